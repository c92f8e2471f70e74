"""What the building process is asked and what it answers: one JSON object each way, checked before it is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, cast

from core.limits import limit

TEXT_CHARS = 400
"""Longest text of an answer."""

MOST_PARTS = 60
"""Most modules that parameters are told by; what is beyond is one row."""

MOST_KEYS = 40
"""Most keys that are named as not read."""

_MOST = limit("parameters")
MOST_FLOP = _MOST * limit("model_dimension") * 4
"""Most FLOPs of one sequence that an answer may tell of."""


@dataclass(frozen=True, slots=True)
class BuiltPart:
    """Parameters of one module, layers taken together. active: of those, what one token runs through."""

    module: str
    total: int
    active: int


@dataclass(frozen=True, slots=True)
class Built:
    """A model that was built without its weights, and counted.

    made: the class, and who built it. parts: parameters by module. known: whether ``active`` is known, by running one
    sequence through it; elsewhere it is all. flop: forward FLOPs of one sequence, by its length, every key of the
    square counted; empty where they cannot be counted, and ``flop_refused`` says why. unread: keys of the file that
    the model's configuration does not know.
    """

    made: str
    by: str
    parts: tuple[BuiltPart, ...]
    known: bool
    flop: Mapping[int, int]
    flop_refused: str
    notes: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def total(self) -> int:
        """Every parameter, tied ones once."""
        return sum(part.total for part in self.parts)

    @property
    def active(self) -> int:
        """Parameters that one token of text runs through, input embedding included."""
        return sum(part.active for part in self.parts)

    def flop_at(self, seq_len: int) -> float | None:
        """Forward FLOPs of one sequence of ``seq_len`` tokens, None where they were not counted.

        Exact at the lengths that were run. Between and beyond them it follows the parabola through the three, as
        products with weights grow with the length and attention's with its square.
        """
        if not self.flop:
            return None
        return float(self.flop.get(seq_len) or on_parabola(self.flop, seq_len))


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a model was not built."""

    reason: str


def on_parabola(known: Mapping[int, int], at: int) -> Fraction:
    """The value at ``at`` of the curve through the known points: a parabola through three, a line through two."""
    fraction = Fraction(0)
    for here, value in known.items():
        share = Fraction(value)
        for other in known:
            if other != here:
                share *= Fraction(at - other, here - other)
        fraction += share
    return fraction


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _text(value: object, most: int = TEXT_CHARS) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("no text of that length")
    return value


def _count(value: object, most: int = _MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("no count")
    return value


def _list(value: object, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    values = cast("list[Any]", value)
    if len(values) > most:
        raise ValueError("too long a list")
    return values


def _part(value: Any) -> BuiltPart:
    part = BuiltPart(_text(value["module"]), _count(value["total"]), _count(value["active"]))
    if part.active > part.total:
        raise ValueError("more parameters run than there are")
    return part


def decode(line: bytes) -> Built | Refused | None:
    """The answer on the last line of a building process, or None when it is anything else.

    Every field is checked for type and range: a library's own words can land on the same output.
    """
    try:
        text: Any = json.loads(line, parse_constant=_no_constant)
        if "refused" in text:
            return Refused(_text(text["refused"]))
        result = text["built"]
        flop = {int(_text(n, 12)): _count(value, MOST_FLOP) for n, value in result["flop"].items()}
        if not isinstance(result["known"], bool) or len(flop) > 3:
            return None
        return Built(
            made=_text(result["made"]),
            by=_text(result["by"]),
            parts=tuple(_part(part) for part in _list(result["parts"], MOST_PARTS)),
            known=result["known"],
            flop=flop,
            flop_refused=_text(result["flop_refused"]),
            notes=tuple(_text(note) for note in _list(result["notes"], 8)),
            unread=tuple(_text(key) for key in _list(result["unread"], MOST_KEYS)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
