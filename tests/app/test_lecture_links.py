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
    """The value of the widget with this key, of any kind, or of a field that the page holds undrawn."""
    for kind in ("text_input", "text_area", "selectbox", "toggle", "slider", "button_group"):
        for widget in app.get(kind):
            if widget.key == key:
                return widget.value
    for panel in app.expander:
        if panel.proto.id.endswith(f"-{key}"):
            return "true" if app.session_state[key] else "false"
    assert key in app.session_state, f"neither a widget nor a field: {key}"
    return app.session_state[key]


SHOWN = {
    "F3": "0.15625",
    "F9": "2,415,919,104 B",
    "F12": "stalls at 4",
    "F13": "never moves",
    "C1": "33,554,432",
    "C3": "+6.85",
    "C7": "143.9",
    "C9": "73,728",
    "C11": "989.4",
    "C12": "512 multiply-adds",
    "C15": "matrix products are <b>99.9",
    "C16": "memory",
    "C17": "6",
    "M1": "40B",
    "M8": "840",
}
"""What the page that a claim links to must show."""


@pytest.mark.parametrize("claim_id", [claim.id for claim in CLAIMS.values() if claim.link])
def test_link_sets_the_page_up(claim_id: str) -> None:
    link = CLAIMS[claim_id].link
    assert link is not None
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
        said = value[0] if isinstance(value, list) and len(value) == 1 else value
        assert str(said).lower() == text.lower() if isinstance(said, bool) else str(said) == text, name
    bodies = [block.proto.body for block in app.get("html")] + [block.value for block in app.get("markdown")]
    assert SHOWN.get(claim_id, "") in "\n".join(bodies).replace("\u00a0", " ")
    assert not [block.proto.body for block in app.get("html") if 'class="np-error"' in block.proto.body]
