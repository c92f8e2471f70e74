"""How numbers and names stand in sentences, wherever a sentence stands: shares, ranges, differences, plurals, lists."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from unicodedata import bidirectional

from core.units import (
    QuantityText,
    format_bytes,
    format_count,
    format_duration,
    format_money,
    format_quantity,
    scientific,
    significant,
)

_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Characters that nobody sees, of which some turn the direction of writing: by them a name could take on the look of
another one. Joiners, which scripts and emoji need, are none of them."""

_BLANK = frozenset("\u115f\u1160\u200c\u200d\u2800\u3164\uffa0")
"""Letters, signs and joiners that show nothing by themselves."""

_MARKS = 4
"""Accents over or under one letter; more would lie over the lines beside it."""


def signed(share: float) -> str:
    """Return a difference as a signed percentage: ``+18.5%``, ``−0.02%``."""
    digits = 1 if abs(share) >= 0.0995 else 2 if abs(share) >= 0.000995 else 3
    return QuantityText(f"{share:+,.{digits}%}".replace("-", "−"), share)


def percent(share: float) -> str:
    """Return a share to three digits: ``38.4%``; one that is next to nothing without its zeros."""
    return QuantityText("under 0.0001%", 1e-6, bound=True) if 0 < share < 1e-6 else format_quantity(share, "ratio")


def interval(values: Sequence[float]) -> str:
    """Return ``38–43%`` of a sorted tuple of shares; a single one as it is."""
    if len(values) == 1:
        return percent(values[0])
    return f"{100 * values[0]:.3g}–{percent(values[-1])}"


def strong(text: str) -> str:
    """Return ``text`` in bold; a quantity stays one."""
    bold = f"**{text}**"
    return text.written(bold) if isinstance(text, QuantityText) else bold


def seconds_text(value: float, digits: int = 3) -> QuantityText:
    """Return a time in seconds, however long, so that a column of them can be compared by eye."""
    return QuantityText(f"{significant(value, digits)} s", value, "s")


def percent_of_whole(share: float) -> str:
    """Return a part of a whole in percent, to two decimals."""
    shown = share >= 5e-5
    return QuantityText(f"{100 * share:.2f}%" if shown else "under 0.01%", share if shown else 1e-4, bound=not shown)


_ENDS = re.compile(r"(\$?)(−?[\d.,]+)(.*)")


def span(low: str, high: str) -> str:
    """Return two quantities as a range, a sign and a unit that both have only once: ``193–512 days``, ``$14.2–44M``."""
    first, last = _ENDS.fullmatch(low), _ENDS.fullmatch(high)
    if first and last and first[1] == last[1]:
        unit = last[3] if first[3] == last[3] else ""
        return f"{low.removesuffix(unit)}–{high.removeprefix(first[1])}"
    return f"{low}–{high}"


def amount(value: float, digits: int = 4) -> str:
    """Return a count of hours or of tokens per second, which may also be tiny: ``3.537M``, ``0.25``, ``3.37 ×
    10⁻¹⁸``."""
    return scientific(value) if 0 < value < 1e-3 else format_count(value, digits)


def plural(value: float, noun: str) -> str:
    """Return ``noun`` after a count of ``value``, with its s or es unless the count is one."""
    return noun if format_count(value) == "1" else f"{noun}{'es' if noun.endswith(('ch', 'sh', 's', 'x')) else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return ``a and b``, or ``a, b, and c``."""
    if len(words) < 3:
        return f" {last} ".join(words)
    return f"{', '.join(words[:-1])}, {last} {words[-1]}"


def price(low: float, high: float) -> str:
    """Return ``$2.50/h``, ``$2.50–3.50/h`` or ``unknown``."""
    if low == high or math.isnan(low):
        return format_quantity(low, "usd_per_hour")
    return f"${low:,.2f}–{format_quantity(high, 'usd_per_hour').removeprefix('$')}"


def dollars(value: float) -> str:
    """Return ``$5.6M``, ``under $0.01`` or ``unknown``."""
    return QuantityText("under $0.01", 0.01, "USD", bound=True) if 0 < value < 0.005 else format_money(value)


def rent(value: float) -> str:
    """Return dollars that a plan takes, to three digits, as every page shows them: ``$98,700``; its number has all."""
    text = dollars(float(f"{value:.3g}"))
    exact = isinstance(text, QuantityText) and not text.bound
    return QuantityText(text, value, "USD") if exact else text


def rent_or_none(value: float) -> str:
    """Return a cost in dollars, or ``no rent`` for owned accelerators."""
    return rent(value) if value else "no rent"


def apart_as_shown(a: float, b: float) -> float:
    """Return how far two values are apart that are both shown to three digits, so that a reader who subtracts finds the
    same: 236 − 110 is 126. Of two that are shown alike it is the true distance."""
    return abs(float(f"{a:.3g}") - float(f"{b:.3g}")) or abs(a - b)


_SURE = 0.99


def chance(probability: float) -> str:
    """Return a probability in whole percent: ``38%``; what is nearly certain not as if it were."""
    if probability > _SURE:
        return f"over {_SURE:.0%}"
    return f"under {1 - _SURE:.0%}" if probability < 1 - _SURE else f"{probability:.0%}"


FORMATS: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: format_count(value, 3),
    "exact": lambda value: f"{value:,.0f}",
    "number": lambda value: significant(value, 3),
    "factor": lambda value: f"{significant(value, 3)}×",
    "percent": percent,
    "fine_percent": percent_of_whole,
    "chance": chance,
    "signed": signed,
    "tokens": lambda value: format_quantity(value, "tokens", 3),
    "parameters": lambda value: format_quantity(value, "parameters", 3),
    "size": lambda value: format_quantity(value, "parameters", 4),
    "rate": lambda value: f"{amount(value, 3)} tokens/s",
    "days": lambda value: format_duration(86400 * value, 3),
    "time": lambda value: format_duration(value, 3),
    "dollars": rent,
    "price": lambda value: format_quantity(value, "usd_per_hour"),
    "B": lambda value: f"{value:,.0f} B" if value < 1 << 20 else format_bytes(int(value), system="binary", digits=4),
    "GiB": lambda value: format_quantity(value, "bytes_binary", 3),
    "GB": lambda value: format_quantity(value, "bytes", 3),
    "FLOP": lambda value: format_quantity(value, "flop", 3),
    "FLOP/s": lambda value: format_quantity(value, "flop_per_s"),
    "measured": lambda value: format_quantity(value, "flop_per_s", 3),
    "measured_integer": lambda value: format_quantity(value, "op_per_s", 3),
    "bandwidth": lambda value: format_quantity(value, "bytes_per_s", 3),
    "FLOP/B": lambda value: format_quantity(value, "flop_per_byte", 3),
    "hours": lambda value: amount(value, 3),
    "W": lambda value: format_quantity(value, "watts", 3),
    "Wh": lambda value: format_quantity(value, "watt_hours", 3),
    "CO2": lambda value: format_quantity(value, "kg_co2", 3),
}
"""How a number is written in a sentence, by the name that a placeholder gives: days are days, and time is seconds; all
else is in base units."""


class Amount(NamedTuple):
    """A number, or a range of a low and a high end, with the name of its format in `FORMATS`."""

    value: float | tuple[float, float]
    kind: str


def format_value(value: float | tuple[float, float], kind: str) -> str:
    """Write a number, or a range of a low and a high end, as `FORMATS` has it. Raises `KeyError` for no such format."""
    write = FORMATS[kind]
    if not isinstance(value, tuple):
        return write(value)
    low, high = map(write, value)
    return low if low == high else span(low, high)


def plain(text: str) -> str:
    """Return a sentence without its marks of emphasis, as a screen reader says it."""
    return text.replace("**", "")


_OURS = re.compile(r"[*`^]")


def unmarked(text: str) -> str:
    """Return ``text`` without the marks of our markup, for use inside a sentence.

    Invisible word joiners separate its marks from what they would mark, and right-to-left names are isolated.
    """
    return isolated(_OURS.sub("\\g<0>\u2060", text))


def isolated(text: str) -> str:
    """Return ``text`` with its writing direction isolated from the surrounding text."""
    return f"\u2068{text}\u2069" if any(bidirectional(c) in ("R", "AL", "AN") for c in text) else text


def cleaned(text: str, most: int, *, lines: bool = False) -> str:
    """Return ``text`` without characters that cannot be shown or stored, cut to ``most`` characters.

    lines: whether line breaks stay. Empty if nothing visible is left.
    """
    parts, marks = list[str](), 0
    for c in _UNSEEN.sub("", text):
        kind = unicodedata.category(c)
        marks = marks + 1 if kind[0] == "M" else 0
        if marks <= _MARKS and (kind not in ("Cc", "Cs") or (c == "\n" and lines)):
            parts.append(c)
    message = "".join(parts).strip()[:most].rstrip()
    return message if any(not c.isspace() and c not in _BLANK for c in message) else ""
