"""A visitor is the same after a reload, whatever mask the cookie has by then, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from pages.common.server import visitor as module
from pages.common.server.visitor import visitor


class _Context:
    def __init__(self, **cookies: str) -> None:
        self.cookies = cookies


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The id in a session with these cookies, of somebody signed in or not."""

    def who(cookie: str = "", session: str = "", **user: object) -> str:
        class Session:
            session_id = session

        monkeypatch.setattr(st, "context", _Context(**({module.XSRF_COOKIE_NAME: cookie} if cookie else {})))
        monkeypatch.setattr(type(st.user), "to_dict", lambda _: user)
        monkeypatch.setattr(module, "get_script_run_ctx", lambda: Session if session else None)
        return visitor()

    return who


def test_a_browser_is_one_visitor_and_another_another(here: Any) -> None:
    masked = [generate_xsrf_token_string(b"a" * 16, 1), generate_xsrf_token_string(b"a" * 16, 2)]
    assert masked[0] != masked[1]
    one, again = here(masked[0], "x"), here(masked[1], "y")
    assert one == again
    assert len(one) == 16
    assert one not in "".join(masked)
    assert here(generate_xsrf_token_string(b"b" * 16, 1), "x") != one


def test_who_has_signed_in_is_the_same_everywhere(here: Any) -> None:
    cookies = [generate_xsrf_token_string(bytes([i]) * 16, 1) for i in range(2)]
    ada, bo = ({"is_logged_in": True, "iss": "i", "sub": sub, "name": "A. Name"} for sub in ("1", "2"))
    assert here(cookies[0], "x", **ada) == here(cookies[1], "y", **ada)
    assert here(cookies[0], "x", **ada) != here(cookies[0], "x", **bo)
    assert here(cookies[0], "x", **ada | {"is_logged_in": False}) == here(cookies[0], "y")


@pytest.mark.parametrize("cookie", ["", "nonsense", "2|zz|zz|1", "2|||"])
def test_without_a_cookie_that_can_be_read_a_session_is_a_visitor(here: Any, cookie: str) -> None:
    assert here(cookie, "x") == here(cookie, "x")
    assert len({here(cookie, "x"), here(cookie, "y"), ""}) == 3
    assert here(cookie) == ""
