"""A lecture as slides across pages: each is a page in a state, with what to say, and perhaps a question before it.

A deck is written as text, a line a slide: the claim of a slide of the lecture, such as ``F4``, or a slide of one's own,
``address | headline | what to say | minutes | question``, whose address is a link of these pages.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

from core.fields import SHARED, Link
from core.lecture.catalogue import CLAIMS
from core.limits import limit
from core.rows import read_rows
from core.suggest import suggestions


class DeckError(ValueError):
    """A deck that cannot be read; the message says which line and why."""


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide. claim: of the lecture, by its id; empty for one's own. link: the page and its state.

    say: one sentence for the lecturer. minutes: how long. ask: a question to be answered before it is shown, or empty.
    """

    claim: str
    link: Link = field(hash=False)
    headline: str
    say: str
    minutes: float
    ask: str


@lru_cache(maxsize=1)
def lecture_slides() -> Mapping[str, Slide]:
    """The lecture's slides by their claims, in its order (``assets/data/lecture_deck.csv``)."""
    return {
        row["claim"]: Slide(
            row["claim"],
            _shown(row),
            row["headline"],
            row["say"],
            float(row["minutes"]),
            row["ask"],
        )
        for row in read_rows("lecture_deck")
    }


def _shown(row: Mapping[str, str]) -> Link:
    """Where a slide leads: as its row says, else as its claim does."""
    if row["page"]:
        fields = dict(parse_qsl(row["fields"]))
        return Link(row["page"], fields, fields.pop("at", ""))
    return CLAIMS[row["claim"]].link or Link("lecture", {"claim": row["claim"]})


Pages: TypeAlias = Mapping[str, tuple[str, str]]
"""Page id → its path and the prefix of its fields, such as ``("tensor-views", "t")``."""


def deck_text(slides: Sequence[Slide], pages: Pages) -> str:
    """The deck as text that `read_deck` reads."""
    return "\n".join(slide.claim or _own_text(slide, pages) for slide in slides)


def _own_text(slide: Slide, pages: Pages) -> str:
    path, prefix = pages[slide.link.page]
    query = {f"{prefix}_{name}": text for name, text in slide.link.fields.items()}
    query |= {"at": f"{prefix}_{slide.link.at}"} if slide.link.at else {}
    return " | ".join((f"{path}?{urlencode(query)}", slide.headline, slide.say, f"{slide.minutes:g}", slide.ask))


@lru_cache(maxsize=64)
def _read(text: str, pages: tuple[tuple[str, tuple[str, str]], ...]) -> tuple[Slide, ...]:
    if len(text) > limit("deck_chars"):
        raise DeckError(f"{len(text):,} characters are more than the {limit('deck_chars'):,} that a deck may have.")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise DeckError("A deck has at least one slide. For example: F4.")
    if len(lines) > limit("deck_slides"):
        raise DeckError(f"{len(lines)} slides are more than the {limit('deck_slides')} of a deck.")
    return tuple(_slide(number, line, dict(pages)) for number, line in lines)


def read_deck(text: str, pages: Pages) -> tuple[Slide, ...]:
    """The slides of a deck's text. Raises `DeckError`, which names the line and what would do."""
    return _read(text, tuple(pages.items()))


def _slide(number: int, line: str, pages: Pages) -> Slide:
    known = lecture_slides()
    if "|" not in line:
        name = line.upper()
        if name in known:
            return known[name]
        near = suggestions(name, list(known)) or list(known)[:3]
        raise DeckError(
            f"Line {number}: “{line[:40]}” is no slide of the lecture; near it: {', '.join(near)}. One of your own is "
            "address | headline | what to say | minutes."
        )
    address, headline, say, minutes, ask = (part.strip() for part in (*line.split("|", 4), "", "", "", "")[:5])
    if not headline:
        raise DeckError(f"Line {number}: a slide has a headline after its address.")
    return Slide("", _link(number, address, pages), headline, say, _minutes(number, minutes), ask)


def _minutes(number: int, text: str) -> float:
    try:
        value = float(text or 2)
    except ValueError:
        value = -1.0
    if not 0 < value <= limit("deck_minutes"):
        raise DeckError(f"Line {number}: “{text[:20]}” is no number of minutes. For example: 2.")
    return value


def _link(number: int, address: str, pages: Pages) -> Link:
    """A link of these pages: of what host it was copied from nothing is kept."""
    path = urlsplit(address).path.rstrip("/").rpartition("/")[2]
    found = next(((page, prefix) for page, (name, prefix) in pages.items() if name == path), None)
    if found is None:
        near = suggestions(path, [name for name, _ in pages.values()])
        meant = f" Did you mean {near[0]}?" if near else " Copy one from a page."
        raise DeckError(f"Line {number}: “{address[:60]}” is no link of these pages.{meant}")
    page, prefix = found
    query = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    start = f"{prefix}_"
    own = (start, f"{SHARED}_")
    fields = {name.partition("_")[2]: text for name, text in query.items() if name.startswith(own)}
    at = query.get("at", "")
    return Link(page, fields, at.removeprefix(start) if at.startswith(start) else "")


def pack_deck(text: str) -> str:
    """A deck's text for an address."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def unpack_deck(packed: str) -> str:
    """The text of a packed deck. Raises `DeckError` for anything else."""
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        return zlib.decompressobj().decompress(raw, 4 * limit("deck_chars")).decode()
    except (binascii.Error, zlib.error, ValueError) as problem:
        raise DeckError("The deck in this link is cut off or damaged; copy it anew.") from problem


def spent(slides: Sequence[Slide]) -> float:
    """Minutes of all slides."""
    return sum(slide.minutes for slide in slides)
