"""Signing in: nobody is asked unless it is configured, and then what is missing is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.limits import limit
from core.messages import message
from core.views.common.markup import markdown_text
from pages.common.server import sign_in
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")
TABLE = {
    "client_id": "a",
    "client_secret": "b",
    "server_metadata_url": "https://example.org/.well-known/openid-configuration",
}
AUTH = {"redirect_uri": "http://localhost:8501/oauth2callback", "cookie_secret": "c" * 32}


def opened(**secrets: Any) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    for name, value in secrets.items():
        app.secrets[name] = value
    return app.run()


def entries(app: AppTest) -> list[str]:
    return [button.label for button in app.button if (button.key or "").startswith("app:")]


@pytest.mark.parametrize(
    ("secrets", "labels"),
    [
        ({}, []),
        ({"other": {"client_id": "a"}}, []),
        ({"auth": AUTH | TABLE}, ["Sign in"]),
        ({"auth": AUTH | {"google": TABLE, "okta": TABLE}}, ["Sign in with google", "Sign in with okta"]),
    ],
)
def test_the_menu_asks_only_where_it_is_configured(secrets: dict[str, Any], labels: list[str]) -> None:
    assert entries(opened(**secrets)) == labels


@pytest.mark.parametrize("required", [True, False])
def test_a_server_that_requires_it_shows_nothing_before(required: bool) -> None:
    app = opened(auth=AUTH | TABLE | {"required": required})
    shown = [block.proto.body for block in app.get("html") if 'class="np-answer"' in block.proto.body]
    assert entries(app) == ["Sign in"]
    assert (message("server.sign_in_first") in shown[0], bool(app.text_input)) == (required, not required)


def test_a_provider_that_is_away_is_said_on_the_page() -> None:
    app = opened(auth=AUTH | TABLE | {"server_metadata_url": "http://127.0.0.1:1/"})
    next(one for one in app.button if (one.key or "").startswith("app:")).click().run()
    [said] = [one.value for one in app.error]
    assert said == message("server.sign_in_down")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(sign_in, "_answers", lambda _: True)
    app = opened(auth=AUTH | TABLE)  # of which the file on disk, where Streamlit looks again, has nothing
    next(one for one in app.button if (one.key or "").startswith("app:")).click().run()
    [said] = [one.value for one in app.error]
    assert "secrets.toml" not in said
    assert "secrets.toml" in caplog.text
    monkeypatch.setitem(sys.modules, "authlib", None)
    app = opened(auth=AUTH | TABLE)
    next(one for one in app.button if (one.key or "").startswith("app:")).click().run()
    [said] = [one.value for one in app.error]
    assert said == message("server.sign_in_package")
    assert not app.exception


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({}, ""),
        ({"name": "Ada"}, ""),  # set by nobody who signed in
        ({"is_logged_in": False, "name": "Ada"}, ""),
        ({"is_logged_in": True, "name": "Ada", "email": "a@b.c"}, "Ada"),
        ({"is_logged_in": True, "name": "", "email": "a@b.c"}, "a@b.c"),
        ({"is_logged_in": True, "name": "A" * 10_000}, "A" * limit("plan_owner")),
    ],
)
def test_plans_belong_to_who_has_signed_in(monkeypatch: pytest.MonkeyPatch, user: dict[str, Any], name: str) -> None:
    monkeypatch.setattr(type(st.user), "to_dict", lambda _: user)
    assert sign_in.who() == name


def test_a_name_is_text_and_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    user: dict[str, Any] = {"is_logged_in": True, "name": "[Ada](https://example.org) **:red[x]**"}
    monkeypatch.setattr(type(st.user), "to_dict", lambda _: user)
    [label] = entries(opened(auth=AUTH | TABLE))
    assert label.replace("\u2060", "") == f"Sign out · {markdown_text(user['name'])}".replace("\u2060", "")
