"""The lecture as slides across pages: each is a page in a state, with what to say, and perhaps a question before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.limits import cached
from core.rows import read_rows


class DeckError(ValueError):
    """A slide that there is not; the message says why."""


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide. claim: of the lecture, by its id. link: the page and its state.

    say: one sentence for the lecturer. minutes: how long. ask: a question to be answered before it is shown, or empty.
    """

    claim: str
    link: Link = field(hash=False)
    headline: str
    say: str
    minutes: float
    ask: str


@cached("tables_kept")
def lecture_slides() -> tuple[Slide, ...]:
    """The lecture's slides in its order (``assets/data/lecture_deck.csv``)."""
    return tuple(
        Slide(
            row["claim"],
            _shown(row),
            row["headline"],
            row["say"],
            float(row["minutes"]),
            row["ask"],
        )
        for row in read_rows("lecture_deck")
    )


def _shown(row: Mapping[str, str]) -> Link:
    """Where a slide leads: as its row says, else as its claim does."""
    if row["page"]:
        fields = dict(parse_qsl(row["fields"]))
        return Link(row["page"], fields, fields.pop("at", ""))
    return CLAIMS[row["claim"]].link or Link("lecture", {"claim": row["claim"]})
