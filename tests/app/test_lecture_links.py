"""Every claim's link names fields that its page has, and sets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.lecture import CLAIMS
from pages.parts.registry import PAGES

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = {page.id: page for page in PAGES}


def value_of(app: AppTest, key: str) -> Any:
    """The value of the widget with this key, whatever its kind; fails when there is none."""
    for kind in ("text_input", "text_area", "selectbox", "toggle", "button_group"):
        for widget in app.get(kind):
            if widget.key == key:
                return widget.value
    raise AssertionError(f"no widget {key}")


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_link_sets_the_page_up(claim_id: str) -> None:
    link = CLAIMS[claim_id].link
    page = PAGE[link.page]
    app = AppTest.from_file(APP, default_timeout=60)
    for name, text in link.fields.items():
        app.query_params[f"{page.prefix}_{name}"] = text
    app.run()
    app.switch_page(page.path)
    for name, text in link.fields.items():
        app.query_params[f"{page.prefix}_{name}"] = text
    app.run()
    assert not app.exception
    for name, text in link.fields.items():
        value = value_of(app, f"{page.prefix}_{name}")
        assert value in (text, [text]), name
    assert not [block.proto.body for block in app.get("html") if 'class="np-error"' in block.proto.body]
