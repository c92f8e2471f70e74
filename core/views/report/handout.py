"""A handout as one HTML file, as a report is: an answer with tables or parts, exercises with answers, the formulas."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.exercises.exercise import Exercise
from core.formula import Explanation, derivation
from core.views.report.document import as_text, rendered


@dataclass(frozen=True, slots=True)
class HandoutTable:
    """A table under a heading; cells are plain text, the first of each row its name."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class HandoutPart:
    """A paragraph under a heading of its own, with what was found and lines of code; texts in markup."""

    title: str
    says: str
    found: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Handout:
    """What a handout shows. answer, detail: in ``**bold**`` markup. code: lines that it is about, as typed."""

    title: str
    answer: str
    detail: str = ""
    code: str = ""
    tables: tuple[HandoutTable, ...] = ()
    parts: tuple[HandoutPart, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    questions: Sequence[Exercise] = ()


def handout_html(of: Handout, link: str, date: datetime.date) -> str:
    """The whole file. link: the whole address that opens the page again."""
    return rendered(
        "handout.html",
        of.title,
        date,
        link,
        code=of.code,
        answer=of.answer,
        detail=of.detail,
        tables=[replace(one, rows=[list(map(as_text, row)) for row in one.rows]) for one in of.tables],
        parts=of.parts,
        questions=of.questions,
        steps=derivation(of.explanations) if of.explanations else (),
    )
