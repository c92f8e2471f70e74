"""Every claim's link names fields that its page has, and sets them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.fields import SHARED, Link
from core.lecture.catalogue import CLAIMS, findings
from pages.common.inputs import PLAN_TEXTS
from pages.common.links import key_of
from pages.common.registry import PAGES, PageSpec
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = {page.id: page for page in PAGES}


def value_of(app: AppTest, key: str) -> Any:
    """The value of the widget with this key, of any kind, or of a field that the page holds undrawn."""
    for kind in ("text_input", "text_area", "selectbox", "toggle", "slider", "button_group"):
        for widget in app.get(kind):
            if widget.key == key:
                return widget.value
    for panel in app.expander:
        if panel.proto.id.endswith(f"-{key}"):
            return "true" if app.session_state[key] else "false"
    prefix, _, name = key.partition("_")
    return app.session_state[PLAN_TEXTS if prefix == SHARED else f"{prefix}:texts"][name]


_PARTS = ("html", "markdown")


def said(within: Any) -> str:
    """The text of this part of the page, without its tags."""
    bodies = [one.proto.body for kind in _PARTS for one in within.get(kind)]
    text = "\n".join(re.sub(r"<[^>]*>", "", body) for body in bodies if ".stApp {" not in body)
    return html.unescape(text).replace("\u00a0", " ")


def part_of(app: AppTest, key: str) -> Any:
    """The panel or container with this key."""
    return next(block for block in blocks(app.main) if getattr(block.proto, "id", "").endswith(f"-{key}"))


def blocks(within: Any) -> Iterator[Any]:
    """Every block under this one."""
    for child in getattr(within, "children", {}).values():
        if hasattr(child, "children"):
            yield child
            yield from blocks(child)


def opened(page: PageSpec, fields: Mapping[str, str]) -> AppTest:
    """The page with these fields in its address."""
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    if not page.default:  # the default page runs first, and an address counts for the first run
        app.run()
        app.switch_page(page.path)
    for name, text in fields.items():
        app.query_params[f"{page.prefix}_{name}"] = text
    return app.run()


def set_up(link: Link) -> Any:
    """What a link lands at: its page has every field that it sets, and refuses nothing."""
    page = PAGE[link.page]
    app = opened(page, link.fields)
    assert not app.exception
    assert not [block.proto.body for block in app.get("html") if 'class="np-error"' in block.proto.body]
    for name, text in link.fields.items():
        value = value_of(app, key_of(page, name))
        held = value[0] if isinstance(value, list) and len(value) == 1 else value
        assert str(held).lower() == text.lower() if isinstance(held, bool) else str(held) == text, name
    return part_of(app, f"{page.prefix}_{link.at}") if link.at else app


@pytest.mark.parametrize("claim_id", [claim.id for claim in CLAIMS.values() if claim.link][::5])
def test_link_sets_the_page_up(claim_id: str) -> None:
    link = CLAIMS[claim_id].link
    assert link is not None
    assert said(set_up(link))
    if link.at in link.fields:
        assert link.fields[link.at] == "true", "it lands at a panel that is closed"


def test_every_link_says_what_it_must_show() -> None:
    """What stands where it leads is worked out with the claim; a browser looks whether it does."""
    assert [claim.id for claim in CLAIMS.values() if claim.link and not findings()[claim.id].shown] == []
