"""Every claim's link names fields that its page has, and sets them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.lecture.catalogue import CLAIMS, findings
from pages.common.registry import PAGES, PageSpec

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
    return app.session_state[f"{prefix}:texts"][name]


SHOWN = {
    "F2": "8 exponent bits",
    "F3": "0.15625",
    "F4": "5.96 × 10",
    "F5": "3.3895",
    "F6": "infinity",
    "F7": "448",
    "F9": "2.25 GiB",
    "F10": "4,096 B",
    "F11": "128 B",
    "F12": "stalls at 4",
    "F13": "0.001",
    "T1": "cell 6",
    "T2": "cell 5",
    "T3": "[:, 1]",
    "T4": "cell 0",
    "T5": "stride 1 ≠ 3 × 2",
    "T6": "48 B",
    "T7": "4,096 B",
    "T8": ".view(-1) works",
    "T9": "stride 1 ≠ 3 × 2",
    "T10": "b s (h d) -> b h s d",
    "C1": "33,554,432",
    "C3": "+6.85 %",
    "C7": "144 days",
    "C8": "3.14 × 10",
    "C9": "73,728",
    "C11": "989.4 TFLOP/s",
    "C12": "512 multiply-adds",
    "C13": "half below 50 %",
    "C14": "66.9 TFLOP/s",
    "C15": "matrix products are 99.9",
    "C16": "memory",
    "C17": "6 FLOPs per weight",
    "M1": "40B",
    "M2": "16 bytes for each parameter",
    "M5": "RMSProp",
    "M8": "840 GB",
}
"""What a link must show: in the page's answer, in what stands beside it, or in the part that it lands at."""

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
    app = AppTest.from_file(APP, default_timeout=60)
    app.run()
    app.switch_page(page.path)
    for name, text in fields.items():
        app.query_params[f"{page.prefix}_{name}"] = text
    return app.run()


@pytest.mark.sweep(15)
@pytest.mark.parametrize("claim_id", [claim.id for claim in CLAIMS.values() if claim.link])
def test_link_sets_the_page_up(claim_id: str) -> None:
    link = CLAIMS[claim_id].link
    assert link is not None
    page = PAGE[link.page]
    app = opened(page, link.fields)
    assert not app.exception
    for name, text in link.fields.items():
        value = value_of(app, f"{page.prefix}_{name}")
        held = value[0] if isinstance(value, list) and len(value) == 1 else value
        assert str(held).lower() == text.lower() if isinstance(held, bool) else str(held) == text, name
    evidence = part_of(app, f"{page.prefix}_{link.at}") if link.at else app
    assert SHOWN[claim_id] in said(evidence)
    if link.at in link.fields:
        assert link.fields[link.at] == "true", "it lands at a panel that is closed"
    assert not [block.proto.body for block in app.get("html") if 'class="np-error"' in block.proto.body]


@pytest.mark.parametrize(
    "claim_id", [claim.id for claim in CLAIMS.values() if claim.link and claim.link.page == "floats"]
)
def test_the_headline_is_about_the_claim(claim_id: str) -> None:
    """A number of the claim, or of what was found of it, stands in the answer that its link opens."""
    claim = CLAIMS[claim_id]
    assert claim.link is not None
    page = PAGE[claim.link.page]
    app = opened(page, claim.link.fields)
    answer = next(block.proto.body for block in app.get("html") if 'class="np-answer' in block.proto.body)
    number = {"F2": "bf16", "F12": "becomes <b>4</b>", "F13": "1 - 0.001 becomes <b>1</b>"}
    assert number.get(claim_id, SHOWN[claim_id].split(" ")[0]) in answer


def test_what_a_link_must_show_is_of_the_claim() -> None:
    """Each text has a word or a number that the claim, its remark or its finding has."""
    for claim in CLAIMS.values():
        if claim.link:
            words = f"{claim.text} {claim.remark} {findings()[claim.id].value} {findings()[claim.id].how}"
            shared = set(re.findall(r"\w+(?:[.,]\w+)*", SHOWN[claim.id])) & set(re.findall(r"\w+(?:[.,]\w+)*", words))
            assert shared, claim.id
