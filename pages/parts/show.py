"""What every page shows the same way: header, answer sentence, chart, table, "How is this computed"."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.formula import Explanation
from core.palette import ROLES
from pages.parts.components import copy_link
from pages.parts.inputs import Inputs, newer_link
from pages.parts.registry import PageSpec

if TYPE_CHECKING:
    import pandas as pd

_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CODE = re.compile(r"`([^`]+)`")
_SUPERSCRIPTS = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")

_CHART_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtons": [["toImage", "resetScale2d"]],
    "toImageButtonOptions": {"scale": 2},
    "showSendToCloud": False,
    "plotlyServerURL": "",
}


def rich(text: str) -> str:
    """Our small markup as safe HTML: ``**bold**``, `` `code` `` and Unicode superscripts; all else is escaped."""
    safe = html.escape(text, quote=False)
    safe = _BOLD.sub(r"<b>\1</b>", safe)
    safe = _CODE.sub(r'<code class="np-mono">\1</code>', safe)
    return _SUPERSCRIPTS.sub(lambda m: f"<sup>{m.group().translate(_PLAIN)}</sup>", safe)


def slot() -> Any:
    """A place on the page to be filled later in the run, such as the chips above the inputs they set."""
    return st.container()


def header(page: PageSpec) -> None:
    """Title and the sentence that says what one learns here."""
    st.title(page.title, anchor=False)
    st.html(f'<p class="np-lead">{rich(page.lead)}</p>')
    warning = newer_link()
    if warning:
        error(warning)


def answer(sentence: str, detail: str = "") -> None:
    """The page's answer in large type. Both texts use the markup of `rich`."""
    small = f"<small>{rich(detail)}</small>" if detail else ""
    st.html(f'<p class="np-answer" role="status">{rich(sentence)}{small}</p>')


def note(text: str) -> None:
    """A quiet paragraph."""
    st.html(f'<p class="np-note">{rich(text)}</p>')


def error(text: str) -> None:
    """What is wrong with an input, why, and what is used instead."""
    st.html(f'<div class="np-error" role="alert">{rich(text)}</div>')


def input_errors(inputs: Inputs) -> None:
    """The messages about bad inputs collected so far, in one place, next to the inputs."""
    for message in inputs.errors:
        error(message)


def good(text: str) -> None:
    """A confirmation worth a line, such as an oracle's agreement."""
    st.html(f'<div class="np-good">{rich(text)}</div>')


def swatch(role: str) -> str:
    """HTML of a small square in the colour of the data role ``role``; put it before the role's name."""
    if role not in ROLES:
        raise KeyError(role)
    return f'<span class="np-swatch" style="background:var(--np-{role})"></span>'


def chart(figure: Mapping[str, Any], *, alt: str, key: str) -> None:
    """Draw a figure of ``core`` (a plain dict made with `pages.parts.theme.TOKENS`); ``alt`` states the takeaway."""
    st.plotly_chart(dict(figure), width="stretch", config=_CHART_CONFIG, alt=alt, key=key)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a `small_table`: heading, and whether it holds figures."""

    heading: str
    numeric: bool = False


def small_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    here: int | None = None,
) -> None:
    """A short table in HTML, a few dozen rows at most. Cells use the markup of `rich`; row ``here`` is lit."""
    cls = [' class="num"' if c.numeric else "" for c in columns]
    head = "".join(f'<th scope="col"{k}>{rich(c.heading)}</th>' for c, k in zip(columns, cls, strict=True))
    body = "".join(
        f"<tr{' class=np-here' if i == here else ''}>"
        + "".join(f"<td{k}>{rich(cell)}</td>" for cell, k in zip(row, cls, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    title = f"<caption>{rich(caption)}</caption>" if caption else ""
    st.html(
        f'<div class="np-scroll"><table class="np-table">{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def fold(label: str, *, key: str, icon: str | None = None) -> Any:
    """An expander that runs its content only when open: ``with fold(...) as f: if f.open: ...``."""
    return st.expander(label, key=key, icon=icon, on_change="rerun")


def data_table(frame: pd.DataFrame, *, label: str, key: str, formats: Mapping[str, Any] | None = None) -> None:
    """The table behind a picture, folded: sortable, searchable, downloadable as CSV."""
    with fold(label, key=key, icon=":material/table:") as panel:
        if panel.open:
            st.dataframe(frame, hide_index=True, column_config=dict(formats or {}), alt=label)


def how(explanations: Sequence[Explanation], *, key: str, label: str = "How is this computed") -> None:
    """The panel that opens every number: formula, substituted values, unit and linked source."""
    with fold(label, key=key, icon=":material/function:") as panel:
        if panel.open:
            for item in explanations:
                _explain(item)


def _explain(item: Explanation) -> None:
    st.html(f'<p class="np-kicker">{html.escape(item.title)}</p>')
    st.latex(item.symbolic)
    st.latex(item.substituted)
    where = ", ".join(f"${t.latex}$ = {t.meaning} ({_dollar_safe(t.text)})" for t in item.terms)
    sources = "; ".join(f"[{s}]({s.url})" if s.url else str(s) for s in item.sources)
    detail = f"\n\n{item.detail}" if item.detail else ""
    st.markdown(f"where {where}.{detail}\n\nSource: {sources}")


def _dollar_safe(text: str) -> str:
    return text.replace("$", r"\$")


def footer(inputs: Inputs) -> None:
    """The permalink button: copies a link that spells out every field and a version."""
    copy_link(inputs.query(), key=f"{inputs.page.id}:link")
