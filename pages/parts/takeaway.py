"""Plans as files: a report, tables, data and a program, made when somebody asks for one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial

import streamlit as st

from core.fields import switch
from core.limits import limit
from core.planning.compare.entry import Entry, entry_of
from core.planning.compare.naming import suggested
from core.report.data import as_json
from core.report.document import as_html
from core.report.program import as_python
from core.report.tables import as_csv, as_markdown
from core.report.told import Report, report_of
from pages.parts import show
from pages.parts.inputs import Inputs

TAKE = switch("take", "Take it away: report, table, Markdown, JSON, Python", False, part="panels")
"""The panel, for the form of a page."""

_FILES: tuple[tuple[str, str, str, Callable[[Report], str]], ...] = (
    ("Report as HTML", "html", "text/html", as_html),
    ("Table as CSV", "csv", "text/csv", as_csv),
    ("Markdown", "md", "text/markdown", as_markdown),
    ("JSON", "json", "application/json", as_json),
    ("Python", "py", "text/x-python", as_python),
)

_SAID = (
    "The report is one file that opens without a network and prints: answer, pictures, quantities, each formula with "
    "its values and source. CSV has plain numbers in base units, Markdown is for a pull request, JSON has every "
    "field, and the program works the numbers out anew with `core` alone."
)
_STEM_CHARS = 60


def take_away(inputs: Inputs, texts: Mapping[str, str]) -> None:
    """The panel's content for the plan of ``texts``, under a name of its own."""
    likely = suggested(texts)
    typed = st.text_input(
        "Name of the plan", key=inputs.key("take_name"), max_chars=limit("plan_name"), placeholder=likely
    )
    files([entry_of((typed or "").strip() or likely, texts)], inputs)


def files(entries: Sequence[Entry], inputs: Inputs, base: int = 0) -> None:
    """What plans can be taken away as; each file is made when its button is pressed. base: which is the baseline."""
    show.note(_SAID)
    link = f"{(st.context.url or inputs.page.url_path).partition('?')[0]}?{inputs.query()}"
    stem = stem_of(entries[0].name if len(entries) == 1 else f"{len(entries)} plans")
    with st.container(horizontal=True):
        for label, ending, kind, made in _FILES:
            st.download_button(
                label,
                partial(_made, made, tuple(entries), link, base),
                f"{stem}.{ending}",
                kind,
                key=inputs.key(f"take_{ending}"),
                on_click="ignore",
            )


def _made(made: Callable[[Report], str], entries: tuple[Entry, ...], link: str, base: int) -> bytes:
    return made(report_of(entries, link, date.today(), base)).encode()


def stem_of(name: str) -> str:
    """A plan's name as that of a file, which every system takes: letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+(?:[.,][0-9]+)*", plain)
    return f"napkin-{'-'.join(words).replace(',', '')[:_STEM_CHARS].strip('-.')}".rstrip("-")
