"""The lecture as slides across pages: each is a page in a state, with what to say and perhaps a question first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.limits import cached
from core.rows import read_rows


class DeckError(ValueError):
    """A link to a slide or deck that does not exist."""


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide. claim: of the lecture, by its id. link: the page and its state.

    say: what the lecturer says. ask, answer: a question to ask before the slide is shown, and its answer; or empty.
    """

    claim: str
    link: Link = field(hash=False)
    headline: str
    say: str
    minutes: float
    ask: str
    answer: str


@cached("tables_kept")
def lecture_slides() -> tuple[Slide, ...]:
    """Return the slides in order (``assets/data/lecture_deck.csv``)."""
    return tuple(
        Slide(
            row["claim"],
            _link_of(row),
            row["headline"],
            row["say"],
            float(row["minutes"]),
            row["ask"],
            row["answer"],
        )
        for row in read_rows("lecture_deck")
    )


def _link_of(row: Mapping[str, str]) -> Link:
    """Return where a slide leads: as its row says, else as its claim does."""
    if row["page"]:
        fields = dict(parse_qsl(row["fields"]))
        return Link(row["page"], fields, fields.pop("at", ""))
    return CLAIMS[row["claim"]].link or Link("lecture", {"claim": row["claim"]})
