"""Export of plans: HTML report, CSV, Markdown, and JSON, each written when its button is pressed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TypeAlias, TypeVar

import streamlit as st

from core.fields import switch
from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import compare_plans, suggested
from core.planning.comparison.entry import Entry, entry_of
from core.planning.estimate import timed_estimate
from core.planning.form.plan_form import plan_of
from core.views.report.data import as_json
from core.views.report.document import as_html
from core.views.report.report import Report
from core.views.report.tables import as_csv, as_markdown
from core.wording import cleaned
from pages.common import show
from pages.common.inputs import Inputs

DOWNLOADS = switch("take", message("export.title"), False, part="panels")
"""The panel, for the form of a page."""

T = TypeVar("T")
FileKind: TypeAlias = tuple[str, str, str, Callable[[T], str]]
"""A button's label, a file's ending and MIME type, and how it is written."""

_FILES: tuple[FileKind[Report], ...] = (
    (message("export.html"), "html", "text/html", as_html),
    (message("export.csv"), "csv", "text/csv", as_csv),
    (message("export.markdown"), "md", "text/markdown", as_markdown),
    (message("export.json"), "json", "application/json", as_json),
)

_STEM_CHARS = 60


def download_panel(inputs: Inputs, texts: Mapping[str, str], *, of_layout: bool = False) -> None:
    """Draw the panel's content for the plan of ``texts``, under a name of its own. of_layout: whether it is about the
    layout that they name."""
    files([entry_of(typed_name(inputs, message("export.name"), suggested(texts)), texts)], inputs, of_layout=of_layout)


def typed_name(inputs: Inputs, label: str, likely: str) -> str:
    """Ask for the name of the export, and return it; ``likely`` if nothing is entered."""
    most = limit("plan_name")
    typed = st.text_input(label, key=inputs.key("take_name"), max_chars=most, placeholder=likely)
    return cleaned(typed or "", most) or likely


def files(entries: Sequence[Entry], inputs: Inputs, base: int = 0, *, of_layout: bool = False) -> None:
    """Draw what plans can be taken away as; each file is made when its button is pressed. base: which is the
    baseline."""
    show.note(message("export.about"))
    made = partial(_report, tuple(entries), page_link(inputs), base, of_layout)
    downloads(inputs, entries[0].name if len(entries) == 1 else f"{len(entries)} plans", _FILES, made)


def downloads(inputs: Inputs, name: str, kinds: Iterable[FileKind[T]], made: Callable[[], T]) -> None:
    """Draw a button for each kind of file. made: called when one is pressed, and not before."""
    with st.container(horizontal=True):
        for label, ending, mime, text in kinds:
            st.download_button(
                label,
                partial(_written, text, made),
                f"{stem_of(name)}.{ending}",
                mime,
                key=inputs.key(f"take_{ending}"),
                on_click="ignore",
            )


def _written(text: Callable[[T], str], made: Callable[[], T]) -> bytes:
    return text(made()).encode()


def page_link(inputs: Inputs) -> str:
    """Return the whole address of the page with every field."""
    return f"{(st.context.url or inputs.page.url_path).partition('?')[0]}?{inputs.query()}"


def _report(entries: tuple[Entry, ...], link: str, base: int, of_layout: bool) -> Report:
    layout = timed_estimate(plan_of(entries[0].reading)) if of_layout else None
    return Report(compare_plans(entries), link, date.today(), base, layout)


def stem_of(name: str) -> str:
    """Return a plan's name as that of a file, which every system takes: letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+(?:[.,][0-9]+)*", plain)
    return f"napkin-{'-'.join(words).replace(',', '')[:_STEM_CHARS].strip('-.')}".rstrip("-")
