"""A handout as one HTML file, as a report is: an answer with its tables, exercises with their answers, the formulas."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from core.data_version import data_version
from core.exercises.exercise import Exercise
from core.formula import Explanation, derivation
from core.views.common import markup
from core.views.report.document import environment
from core.views.report.style import style
from core.views.report.tables import address


@dataclass(frozen=True, slots=True)
class HandoutTable:
    """A table under a heading; cells are plain text, the first of each row its name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Handout:
    """What a handout shows. answer, detail: in ``**bold**`` markup. code: lines that it is about, as typed."""

    title: str
    answer: str
    detail: str = ""
    code: str = ""
    tables: tuple[HandoutTable, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    questions: Sequence[Exercise] = ()


def handout_html(of: Handout, link: str, date: datetime.date) -> str:
    """The whole file. link: the whole address that opens the page again."""
    tables = [
        {
            "title": one.title,
            "heads": one.heads,
            "caption": one.caption,
            "rows": [[Markup(markup.safe_text(cell)) for cell in row] for row in one.rows],  # noqa: S704 - escaped
        }
        for one in of.tables
    ]
    return (
        environment()
        .get_template("handout.html")
        .render(
            style=Markup(style()),  # noqa: S704 - our own sheet
            title=of.title,
            date=date.isoformat(),
            link=address(link),
            edition=data_version(),
            code=of.code,
            answer=of.answer,
            detail=of.detail,
            tables=tables,
            questions=of.questions,
            steps=derivation(of.explanations) if of.explanations else (),
        )
    )
