"""The field's terms, rows of ``assets/data/glossary.csv``: one definition each, its source, and where to see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.fields import Link, read_link
from core.formula import Source
from core.rows import read_rows


@dataclass(frozen=True, slots=True)
class Term:
    """One term, what it means in one or two sentences, other names for it, and its source where there is one.

    shown: the page that shows what it means. picture: cells of a matrix, 1 filled and 0 empty, rows divided by “/”.
    """

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    source: Source | None = None
    shown: Link | None = field(default=None, hash=False)
    picture: str = ""

    @property
    def id(self) -> str:
        """The term in a link: lower-case letters and digits, a hyphen for all between."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def names(self) -> tuple[str, ...]:
        """The term and its other names."""
        return (self.name, *self.also)


def _read(row: Mapping[str, str]) -> Term:
    return Term(
        row["name"],
        row["meaning"],
        tuple(row["also"].split("; ")) if row["also"] else (),
        Source(row["source"], row["locator"], row["url"]) if row["source"] else None,
        read_link(row["shown"]) if row["shown"] else None,
        row["picture"],
    )


TERMS: tuple[Term, ...] = tuple(sorted(map(_read, read_rows("glossary")), key=lambda term: term.name.lower()))
"""Every term, in alphabetical order."""


_MEANINGS = {name: term.meaning for term in TERMS for name in term.names}


def meaning(name: str) -> str:
    """Return the definition of a term, for the middle of a text. Raises ``KeyError`` for an unknown term."""
    return _MEANINGS[name]


def matching(wanted: str) -> tuple[Term, ...]:
    """Return terms called ``wanted``, then others whose name has it, then whose definition has it; or all terms."""
    text = " ".join(wanted.lower().split())
    named = [term for term in TERMS if any(text in name.lower() for name in term.names)]
    named.sort(key=lambda term: all(text != name.lower() for name in term.names))
    return (*named, *(term for term in TERMS if term not in named and text in term.meaning.lower()))


def _written(term: Term) -> str:
    """Return how a term may stand in a sentence: any of its names, an ordinary word also with a capital or in the
    plural."""
    ways: list[str] = []
    for name in sorted(term.names, key=len, reverse=True):
        first, rest = name[0], re.escape(name[1:]).replace(r"\ ", r"[ \xa0-]")
        if not name[1:2].islower():
            ways.append(re.escape(first) + rest + ("s?" if name[-1].isalpha() and not name.endswith("s") else ""))
            continue
        plural = "" if name.endswith("s") else "(?:es)?" if name.endswith("ch") else "s?"
        ways.append(f"[{first.lower()}{first.upper()}]{rest}{plural}")
    return f"({'|'.join(ways)})"


PATTERN = rf"(?<![\w/.-])(?:{'|'.join(_written(term) for term in TERMS)})(?![\w-]|/\w)"
"""Where terms stand in a text: one group for each of `TERMS`, in syntax that JavaScript reads alike."""

_PATTERN = re.compile(PATTERN)


def appearances(text: str) -> tuple[Term, ...]:
    """Return the terms that appear in a text, in order, each once."""
    return tuple(dict.fromkeys(TERMS[int(match.lastindex or 1) - 1] for match in _PATTERN.finditer(text)))
