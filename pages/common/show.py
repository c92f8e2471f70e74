"""What every page shows the same way: header, answer sentence, chart, table, "How is this computed"."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import groupby
from typing import Any

import streamlit as st
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from core.fields import query_of
from core.formula import Explanation, Source, derivation
from core.limits import limit
from core.messages import message
from core.search.fastest import WAITING
from core.units import DURATIONS, QuantityText
from core.views.common import markup
from core.views.common.markup import around_quotation, literal, rich
from core.views.common.palette import ROLES
from pages.common import comparison_list, projector
from pages.common.components import copy_link
from pages.common.derivation import step_markdown
from pages.common.figures import enlarged, ready
from pages.common.guard import guarded, guarded_page
from pages.common.inputs import Inputs
from pages.common.links import LANDS_AT, address
from pages.common.registry import GROUPS, PageSpec
from pages.common.slides import on_a_slide, typed_plan
from pages.common.theme import projecting
from pages.common.tours import path_link

TAKEN = "plan:taken"
"""Where session state counts the presets that were taken."""

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_SITE = re.compile(r"(?:(?<=^)|(?<=; ))((?:[\w-]+\.)+(?:com|org|io|dev)/[^\s;,]*)")
_REPOSITORY = re.compile(r"(?:(?<=^)|(?<=; ))([A-Za-z\d-]+/[A-Za-z][\w.-]*[\w])(?=[\s@;,]|$)")
_RANGE = re.compile(r"P10–P90:?|[\d.,]+–[\d.,]*\d(?:\u00a0\w+)?")  # a browser would break it after the dash
_LONG = re.compile(r"<b>([^<]{30,})</b>")
_COUNTED = re.compile(r"(?<=\w) (?=\d)")

_CHART_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtons": [["toImage", "resetScale2d"]],
    "toImageButtonOptions": {"scale": 2},
    "showSendToCloud": False,
    "plotlyServerURL": "",
}


class Html(str):
    """Safe HTML, made by `badge`, `link` or `typed`: a table's cell or a note.

    quantity: what it shows, where it is one.
    """

    quantity: QuantityText | None = None


def slot() -> Any:
    """Return a place on the page to be filled later in the run, such as the presets above the inputs they set."""
    return st.container()


@dataclass(frozen=True, slots=True)
class Head:
    """Places in a page's first line that the page fills: its examples, and its question.

    Both are None in the projector mode, whose bar replaces them.
    """

    examples: Any = None
    question: Any = None


def header(page: PageSpec) -> Head:
    """Draw the title with a box that says what the page is about; in the projector mode, the bar replaces it."""
    if projecting():
        return Head()
    with st.container(key="np-head", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(page.h1, anchor=False, width="content")
        # Under another key it is drawn anew, which is closed.
        with st.popover(message("common.examples"), key=f"{page.id}:examples:{st.session_state.get(TAKEN, 0)}"):
            st.html(f'<p class="np-lead">{rich(page.lead)}</p>')
            examples = st.container()
            if page in GROUPS["Learn"]:
                st.html(path_link())
        question = st.container(key="np-question", horizontal=True, vertical_alignment="center", gap="xsmall")
    return Head(examples, question)


def draw_page(draw: Callable[[], None]) -> None:
    """Draw a page under its header, as one fragment: a changed input redraws the page, and not the frame around it.

    Menu, logo and stylesheet are a third of what a rerun costs the server, and a crowd feels it.
    """
    st.fragment(guarded_draw(draw))()


def guarded_draw(draw: Callable[[], None]) -> Callable[[], None]:
    """Return a page of which what raises outside its parts leaves title, menu and a link."""

    @wraps(draw)
    def page() -> None:
        with guarded_page(query_of(st.query_params.to_dict())):
            projector.begin()
            WAITING.set(lambda: st.spinner(message("common.searching")))
            draw()

    return page


@contextmanager
def question(title: str, *, key: str | None = None) -> Iterator[None]:
    """Draw a section under a thin rule, headed by its question. An error in it affects only the section."""
    with st.container(key=key):
        st.html(f'<h2 class="np-question">{rich(title)}</h2>')
        with guarded(title):
            yield


def heading(title: str) -> None:
    """Draw a quiet heading over the panels that follow."""
    st.html(f'<h2 class="np-heading">{rich(title)}</h2>')


def answer(sentence: str, detail: str = "") -> None:
    """Draw the page's answer in large type. Both texts use the markup of `rich`."""
    small = f"<small>{rich(detail)}</small>" if detail else ""
    large = _RANGE.sub(r'<span class="np-whole">\g<0></span>', _LONG.sub(_wrapped, rich(sentence)))
    st.html(f'<p class="np-answer" role="status">{large}{small}</p>')


def _wrapped(bold: re.Match[str]) -> str:
    """Return HTML in which bold text stays on one line, and longer text does not break in front of a number."""
    words = _COUNTED.sub("\u00a0", bold[1])
    return f'<b class="np-wraps">{words}</b>'


def note(text: str, after: Html | None = None) -> None:
    """Draw a quiet paragraph of `Html` or the markup of `rich`; ``after`` it, a link."""
    safe = text if isinstance(text, Html) else rich(text)
    st.html(f'<p class="np-note">{safe}{f" {after}" if after else ""}</p>')


def takeaway(text: str) -> None:
    """Draw the takeaway of a panel, in one or two sentences. Uses the markup of `rich`."""
    st.html(f'<p class="np-takeaway">{rich(text)}</p>')


def source(of: str | Source) -> None:
    """Draw the source of something, with arXiv numbers, web addresses, and GitHub repositories as links."""
    note(sourced(of))


def sourced(of: str | Source, *, after: str = "") -> Html:
    """Return a source as safe HTML. after: what it is the source of, in the markup of `rich`."""
    text = of if isinstance(of, str) else f"{of}; {of.url.removeprefix('https://')}"
    safe = _ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', rich(text))
    safe = _SITE.sub(r'<a href="https://\1">\1</a>', safe)
    safe = _REPOSITORY.sub(r'<a href="https://github.com/\1">\1</a>', safe)
    return Html(f"{f'{rich(after)} ' if after else ''}{message('common.source')} {safe}")


def error(text: str) -> None:
    """Draw what is wrong, and what is used instead, in the markup of `rich`; “quotations” stay as they were entered."""
    _alert(around_quotation(text, rich))


def _alert(safe: str, kind: str = "np-error") -> None:
    st.html(f'<div class="{kind}" role="alert">{safe}</div>')


def input_errors(inputs: Inputs) -> None:
    """Draw the messages about bad inputs since the last call; call it next to the inputs that they are about."""
    draw_problems(inputs, *(field.id for field in inputs.form.fields if field.id in inputs.drawn))
    alerts(inputs.errors)
    inputs.errors.clear()


@contextmanager
def errors_under(inputs: Inputs) -> Iterator[None]:
    """Draw a row, a panel, or a section with the messages about its inputs under it instead of above the page."""
    earlier = inputs.errors[:]
    inputs.errors.clear()
    try:
        yield
        input_errors(inputs)
    finally:
        inputs.errors[:0] = earlier


def draw_problems(inputs: Inputs, *fields: str) -> None:
    """Draw the messages about these fields of the page's form next to them, each once."""
    alerts(inputs.problems(*fields))


def alerts(messages: Iterable[str], kind: str = "np-error") -> None:
    """Draw messages about inputs, without markup, each once."""
    for said in dict.fromkeys(messages):
        _alert(literal(said), kind)


def good(text: str) -> None:
    """Draw a confirmation worth a line, such as an oracle's agreement."""
    st.html(f'<div class="np-good">{rich(text)}</div>')


def chart(figure: Mapping[str, Any], *, alt: str, key: str) -> None:
    """Draw a figure of ``core`` (a plain dict made with `pages.common.theme.TOKENS`); ``alt`` states the takeaway.

    A page that caches its figures caches what `pages.common.figures.wire` makes of them.
    """
    if projecting():
        figure = enlarged(figure, room=projector.room(key))
    drawn = ready(figure, st.context.theme.type)
    st.plotly_chart(drawn, width="stretch", config=_CHART_CONFIG, alt=alt, key=key)


def cell_of(text: str, safe_html: str) -> Html:
    """Return a table cell that shows ``text`` as ``safe_html``, and its quantity where the text is one."""
    cell = Html(safe_html)
    cell.quantity = text if isinstance(text, QuantityText) else None
    return cell


def remarked(text: str, remark: str) -> Html:
    """Return a table cell of ``text`` with a quieter ``remark`` under it; both use the markup of `rich`."""
    return cell_of(text, markup.remarked(text, remark))


def badge(word: str, role: str) -> Html:
    """Return a verdict or state: the word, in the color of the data role ``role``."""
    if role not in ROLES:
        raise KeyError(role)
    return Html(f'<span class="np-badge" style="color:var(--np-{role})">{html.escape(word)}</span>')


def link(
    label: str,
    page: PageSpec,
    fields: Mapping[str, str],
    others: Mapping[str, str] | None = None,
    at: str = "",
    *,
    new_tab: bool = False,
) -> Html:
    """Return a table cell that links into ``page``, sets its fields and lands at its part ``at``."""
    there = address(page, fields, others, at)
    # Pages of planning are opened without loading the app again: assets/components/copylink.js.
    inside = ' target="_blank"' if new_tab else ' class="np-in"' if page.plans else ""
    return Html(f'<a href="{html.escape(there, quote=True)}"{inside}>{html.escape(label)}</a>')


def typed(text: str, remark: str = "") -> Html:
    """Return what a user typed, with no markup in it, and a quieter remark of the same kind."""
    return cell_of(text, markup.typed(text, remark))


def next_page(label: str, page: PageSpec, fields: Mapping[str, str], at: str = "") -> None:
    """Draw a link into ``page`` with these inputs, which lands at its part ``at``.

    Not Streamlit's own page link, which puts an extra entry into the browser's history, and lets a field that the user
    changed on that page earlier win over the link's value.
    """
    st.html(f'<p class="np-next-page">{link(label, page, fields, at=at)}</p>')


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a `small_table`: heading, whether it holds figures, and whether its cells stay on one line."""

    heading: str
    numeric: bool = False
    whole: bool = False


def small_table(
    columns: Sequence[str | Column],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    here: int | None = None,
    words: int | None = 1,
    foot: Sequence[str] = (),
) -> None:
    """Draw a short table in HTML, a few dozen rows at most. Cells are `Html` or the markup of `rich`.

    here: index of a row to light. words: of columns that are named alone so many hold words, and those behind them
    figures; None: all hold words. foot: a last row, such as links, that is neither sorted nor downloaded.
    """
    columns = [
        one if isinstance(one, Column) else Column(one, numeric=words is not None and i >= words)
        for i, one in enumerate(columns)
    ]
    cells = [list(row) for row in rows]
    by_column = [column_cells(column, [row[i] for row in cells]) for i, column in enumerate(columns)]
    body = "".join(
        f"<tr{' class=np-here' if i == here else ''}>{''.join(row)}</tr>"
        for i, row in enumerate(zip(*by_column, strict=True))
    )
    last = "".join(column_cells(column, [cell])[0] for column, cell in zip(columns, foot, strict=True)) if foot else ""
    table_html(columns, body, caption=caption, foot=last)


def column_cells(column: Column, cells: Sequence[str]) -> list[str]:
    """Return the cells of a column; those that show a quantity also carry it as a plain number.

    Times are in seconds, or in the unit that all of the column's are written in.
    """
    quantities = [cell.quantity if isinstance(cell, Html) else cell for cell in cells]
    numbers = [cell if column.numeric and isinstance(cell, QuantityText) else None for cell in quantities]
    units = {name.removesuffix("s") if size > 1 else name: name for name, size in DURATIONS}
    written = {number.rpartition(" ")[2] for number in numbers if number and number.unit == "s"}
    times = {units.get(unit, unit) for unit in written}
    size = dict(DURATIONS).get(next(iter(times)), 1.0) if len(times) == 1 else 1.0
    if size != 1.0:
        unit = times.pop()
        numbers = [n and (QuantityText(n, n.value / size, unit) if n.unit == "s" else n) for n in numbers]
    return [
        f"<td{_kind(column)}{_data(number)}>{cell if isinstance(cell, Html) else rich(cell)}</td>"
        for cell, number in zip(cells, numbers, strict=True)
    ]


def _kind(column: Column) -> str:
    return ' class="num"' if column.numeric else ' class="whole"' if column.whole else ""


def _data(number: QuantityText | None) -> str:
    if number is None:
        return ""
    unit = f' data-unit="{html.escape(number.unit, quote=True)}"' if number.unit else ""
    return f' data-value="{number.value:.15g}"{unit}{" data-bound" if number.bound else ""}'


def table_html(columns: Sequence[Column], body: str, *, caption: str = "", kind: str = "", foot: str = "") -> None:
    """Draw rows of safe HTML as a table that can be sorted by a heading and downloaded. foot: cells under them that are
    not.

    Both are the work of ``assets/components/copylink.tables.js``, which listens on every page.
    """
    head = "".join(
        f'<th scope="col"{_kind(c)}>'
        + (f'<button type="button">{rich(c.heading)}</button>' if c.heading else "")
        + "</th>"
        for c in columns
    )
    title = f"<caption>{rich(caption)}</caption>" if caption else ""
    under = f"<tfoot><tr>{foot}</tr></tfoot>" if foot else ""
    name = html.escape(caption or ", ".join(c.heading for c in columns), quote=True)
    st.html(  # focusable, because a narrow window makes it scroll sideways
        f'<div class="np-tabled"><div class="np-scroll" role="region" aria-label="{name}" tabindex="0">'
        f'<table class="np-table {kind}">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{under}</table>'
        f'</div><button type="button" class="np-csv" title="{message("common.csv_help")}">'
        f"{message('common.csv')}</button></div>"
    )


@contextmanager
def fold(label: str, *, key: str, icon: str | None = None) -> Iterator[ExpanderContainer]:
    """An expander that runs its content only when open: ``with fold(...) as f: if f.open: ...``.

    What raises in it takes only the expander.
    """
    expander = st.expander(label, key=key, icon=icon, on_change="rerun")
    with expander, guarded(label):
        yield expander


@contextmanager
def popover(label: str, *, key: str, icon: str | None = None) -> Iterator[PopoverContainer]:
    """Draw a button that opens a box over the page. Like `fold`, its content runs only while it is open."""
    drawn = st.popover(label, key=key, icon=icon, on_change="rerun")
    with drawn, guarded(label):
        yield drawn


@dataclass(frozen=True, slots=True)
class DerivationPart:
    """What `how_each` says about one thing: number, name, a note on the method (may be empty), formulas (likewise)."""

    number: str
    name: str
    note: str
    explanations: Sequence[Explanation]

    @property
    def numbered(self) -> Iterator[Explanation]:
        """The explanations under titles that say of which part they are, and what in it they are about."""
        for explanation in self.explanations:
            yield replace(explanation, title=f"{self.number} · {explanation.title if explanation.named else self.name}")


def how(
    explanations: Callable[[], Sequence[Explanation | str]] | Sequence[Explanation | str],
    *,
    key: str,
    label: str = "",
    notes: Sequence[str] = (),
) -> None:
    """Draw the panel that opens every number: ``notes`` on the method, then formula, values, unit and linked source.

    A string among the explanations is a heading over those that follow it.
    Give a function where explaining costs something; it is called only while the panel is open.
    """
    with fold(label or message("common.how"), key=key, icon=":material/function:") as panel:
        if panel.open:
            for text in notes:
                note(text)
            items = explanations() if callable(explanations) else explanations
            with st.container(key=f"how-{key}", gap=None):
                for headed, under in groupby(items, key=lambda item: isinstance(item, str)):
                    if headed:
                        for heading in under:
                            st.html(f'<h3 class="np-question">{rich(str(heading))}</h3>')
                    else:
                        derive(item for item in under if not isinstance(item, str))


def how_each(parts: Callable[[], Sequence[DerivationPart]], *, key: str, label: str = "") -> None:
    """Draw `how` for several results: notes on each, then each formula with all its uses."""
    with fold(label or message("common.how"), key=key, icon=":material/function:") as panel:
        if panel.open:
            result = parts()
            notes = (f"<p><b>{html.escape(p.number)}</b> {rich(p.note)}</p>" for p in result if p.note)
            with st.container(key=f"how-{key}", gap=None):
                st.html(f'<div class="np-note">{"".join(notes)}</div>')
                derive(explanation for part in result for explanation in part.numbered)


def derive(explanations: Iterable[Explanation]) -> None:
    """Draw each formula once, with all values that it is used with."""
    for step in derivation(explanations):
        st.markdown(step_markdown(step))


def footer(inputs: Inputs) -> None:
    """Draw the permalink button: copies a link that spells out every field and a version."""
    draw_problems(inputs, *(problem.field for problem in inputs.reading.problems))  # of fields that are folded away
    key, at = f"{inputs.page.id}:link", st.query_params.get(LANDS_AT, "")[: limit("number_chars")]
    if on_a_slide(inputs.page):
        inputs.hand_on(typed_plan(inputs))  # other pages get what was typed
    inputs.finish()
    slides = projector.bar(inputs)
    if slides:
        copy_link(inputs.query(), key=key, projector=True, take=slides.take)
    else:
        copy_link(inputs.query(), key=key, at=at)
    comparison_list.remember(inputs.page)
