"""What people typed reaches a browser as text: every message that a page sends is read through, field by field.

A field that is not known to be drawn as it stands is taken for Markdown, so that a new kind of element fails here
until somebody has looked at it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from core.planning.decide.offers import OFFER_COLUMNS, write_table
from core.planning.decide.runs import RUN_COLUMNS
from core.store.store import Store
from pages.common.figures import wire
from pages.common.registry import COMPARE, COMPUTE, DECIDE, PAGES, SAVED, PageSpec
from tests.app.plan_pages import linked, opened
from tests.app.test_compare import with_plans
from tests.app.test_pages import APP, ROOT
from tests.core.typed_cases import HOST, KINDS, live, plans, tags
from tests.patience import PATIENCE_S

BOTH = " ".join(KINDS[:2])
"""Markdown and HTML."""

AS_IT_STANDS = {
    "BidiComponent.css_content",
    "BidiComponent.js_content",
    "BidiComponent.json",
    "Code.code_text",
    "PlotlyChart.alt",
    "Selectbox.options",
    "Selectbox.raw_value",
    "TextArea.default",
    "TextArea.value",
    "TextInput.default",
    "TextInput.placeholder",
    "TextInput.value",
}
"""Fields that Streamlit's client draws as plain text, or hands to a script of ours, which makes nodes of text."""


def strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every text in a message with the name of its field."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated else (value,):
            if isinstance(one, Message):
                yield from strings(one)
            elif isinstance(one, str) and not (field.message_type and field.message_type.GetOptions().map_entry):
                yield f"{message.DESCRIPTOR.name}.{field.name}", one


def sent(node: Any) -> Iterator[tuple[str, str]]:
    """The same of all elements and containers of a page."""
    if isinstance(getattr(node, "proto", None), Message):
        yield from strings(node.proto)
    for child in getattr(node, "children", {}).values():
        yield from sent(child)


class Tags(HTMLParser):
    """What a piece of HTML would have a browser ask for, or link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        # A link of ours carries what was typed behind the mark, and so does a slide's address in the notes.
        inside = "".join(values.pop(name, "").partition("?")[0] for name in ("href", "data-href"))
        named = [name for name, value in values.items() if HOST in value and name not in ("aria-label", "title")]
        if HOST in inside or named or tag in ("img", "i", "iframe", "object", "embed", "script", "link"):
            self.found.append(tag)


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a figure."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_of(one)
    elif isinstance(value, str):
        yield value


def faults(field: str, text: str) -> list[str]:
    """What a field makes of typed text."""
    if field in AS_IT_STANDS:
        return []
    if field == "Html.body":
        return Tags(text).found
    if field == "PlotlyChart.spec":
        return [tag for one in texts_of(json.loads(text)) for tag in re.findall(r"<[^>]*>", one) if HOST in tag]
    return live(text)


def open_all(app: AppTest) -> None:
    """Open every panel, and those in panels."""
    known: set[str] = set()
    while found := {one.proto.id for one in app.get("expander") if one.proto.id} - known:
        known |= found
        states = app._tree.get_widget_states()
        states.widgets.extend(WidgetState(id=one, bool_value=True) for one in known)
        app._run(states)
        assert not app.exception


def checked(app: AppTest) -> set[str]:
    """Nothing that the page has sent is more than text; the fields in which some of it came."""
    open_all(app)
    told = [(field, text) for field, text in sent(app._tree) if HOST in text]
    assert {(field, fault) for field, text in told for fault in faults(field, text)} == set()
    return {field for field, _ in told}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_in_every_box(page: PageSpec) -> None:
    """Numbers, names, code, files and searches: most is refused, in words that quote it."""
    app = opened(page, {})
    open_all(app)
    boxes = [box for kinds in (app.text_input, app.text_area) for box in kinds if not box.disabled]
    for kind in KINDS[:2]:  # each short enough for a number's box
        for box in boxes:
            box.set_value(kind)
        app.run()
        assert bool(checked(app)) == bool(boxes)  # in the page's own link at least


@pytest.mark.sweep(4)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_in_every_parameter_of_a_link(page: PageSpec) -> None:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    if not page.default:
        app.switch_page(page.path)
    for name in (*linked(opened(page, {})), "r_plan", "r_rev", "plans", "tour", "at"):
        app.query_params[name] = BOTH
    app.run()
    assert not app.exception
    checked(app)


def test_in_names_notes_tags_and_owners(store: Store) -> None:
    for kind, one in zip(KINDS, (*plans(), *plans()), strict=False):
        store.save(one, kind, tags(), kind)
    first, *_ = store.find().plans
    store.change(first.id, first.revision, name=KINDS[1], note=KINDS[0], who=KINDS[2])
    assert checked(opened(SAVED, {})) >= {"Html.body", "Option.content", "Selectbox.options"}
    assert checked(opened(SAVED, {"plan": first.id})) >= {"Html.body"}
    app = opened(COMPUTE, {})
    app.query_params.update({"r_plan": first.id, "r_rev": "1", "p_n": "9B"})
    checked(app.run())


@pytest.mark.parametrize("page", [COMPARE, COMPUTE], ids=lambda page: page.id)
def test_in_names_of_plans_that_a_link_carries(page: PageSpec) -> None:
    found = checked(with_plans(plans(), page))
    assert page != COMPARE or found >= {"Html.body", "Markdown.body", "PlotlyChart.spec"}


def test_in_names_of_runs_and_offers() -> None:
    rows = [{"name": kind, "accelerator": "H100 SXM", "count": "512"} for kind in KINDS]
    app = opened(DECIDE, {"train": write_table(rows, RUN_COLUMNS), "offers": write_table(rows[:8], OFFER_COLUMNS)})
    assert checked(app) >= {"Html.body", "PlotlyChart.spec"}


# ------------------------------------------------------------------------------------------ by construction


def test_only_one_place_draws_markdown() -> None:
    """All else of Streamlit's that would goes by labels, which `checked` reads."""
    drawn = re.compile(r"\bst\.(?:markdown|write|caption|toast|header|subheader|metric|badge|info|success|warning)\(")
    found = {
        str(path.relative_to(ROOT))
        for path in [ROOT / "app.py", *Path(ROOT / "pages").rglob("*.py")]
        if drawn.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"pages/common/show.py"}
    assert not any("unsafe_allow_" in path.read_text(encoding="utf-8") for path in (ROOT / "pages").rglob("*.py"))


@pytest.mark.parametrize("kind", [*KINDS, "<A HREF='//a.example'>x</A>", "<span style='fill:url(//a.example)'>x"])
def test_no_tag_but_those_of_our_figures_reaches_a_chart(kind: str) -> None:
    ours = "<b>x</b><br><span style='color:#000'>y</span><sup>2</sup><extra></extra>"
    (made,) = texts_of(wire({"text": f"{ours}{kind}"}))
    assert made.startswith(ours)
    assert "<" not in made.removeprefix(ours).replace("</b>", "").replace("</span>", "")
