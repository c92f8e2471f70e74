"""Quantities: reading what a person types, and saying what is wrong with it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from core.limits import limit
from core.messages import message
from core.number_text import QuantityError, in_dollars, keyed
from core.units import (
    BINARY_POWERS,
    LETTER_POWERS,
    SI_POWERS,
    SUPERSCRIPT,
    UNIT,
    Kind,
    format_quantity,
    significant,
    singular,
)


@dataclass(frozen=True, slots=True)
class _Grammar:
    kind: str
    example: str
    suffixes: dict[str, Fraction]


def _powers(table: dict[str, int], base: int, unit: str = "") -> dict[str, Fraction]:
    return {f"{prefix}{unit}".lower(): Fraction(base) ** power for prefix, power in table.items()}


def _si(*units: str) -> dict[str, Fraction]:
    """Return every decimal prefix before each of ``units``."""
    return {suffix: factor for unit in units for suffix, factor in _powers(SI_POWERS, 10, unit).items()}


_COUNT_SUFFIXES = _powers(LETTER_POWERS, 10) | {
    word: Fraction(10**power)
    for power, words in (
        (3, "thousand"),
        (6, "mn mln mm mio million millions millionen"),
        (9, "g bn mrd billion billions milliarde milliarden milliard milliards"),
        (12, "tn bio trillion trillions billionen"),
        (15, "p"),
    )
    for word in words.split()
}
"""What may follow a count, the German and French words beside the English ones: a *Billion* alone is English."""


def _counted(*units: str) -> dict[str, Fraction]:
    """Return what may follow a count of ``units``: a letter, a unit, or both; the singular of a plural too."""
    names = (*units, *map(singular, units))
    return _COUNT_SUFFIXES | {letter + name: size for letter, size in _COUNT_SUFFIXES.items() for name in names}


_LENGTH_SUFFIXES = _counted("tokens")


_FLOP_SUFFIXES = _si("FLOP", "FLOPs", "")
_RATE_SUFFIXES = _si("FLOP/s", "FLOPs/s", "FLOPS", "")
_BYTE_SUFFIXES = _si("B", "") | _powers(BINARY_POWERS, 2, "B")
_DURATION_SUFFIXES = {
    suffix: Fraction(size)
    for names, size in (
        ("ms", Fraction(1, 1000)),
        (" s sec secs second seconds", 1),
        ("min mins minute minutes", 60),
        ("h hr hrs hour hours", 3600),
        ("d day days tag tage", 86400),
        ("wk wks week weeks woche wochen", 7 * 86400),
        ("mo mos month months monat monate", Fraction(31557600, 12)),
        ("yr yrs year years jahr jahre", 31557600),
    )
    for suffix in names.split(" ")
}

_GRAMMARS: dict[Kind, _Grammar] = {
    "count": _Grammar("quantity.kind.count", "70B, 1.5T, 16,384, or 6e24", _COUNT_SUFFIXES),
    "parameters": _Grammar(
        "quantity.kind.parameters", "70B or 70B parameters", _counted("parameters", "params", "weights")
    ),
    "accelerators": _Grammar(
        "quantity.kind.accelerators", "1,024 or 1,024 accelerators", _counted("accelerators", "gpus", "chips", "tpus")
    ),
    "tokens": _Grammar("quantity.kind.tokens", "15T or 15T tokens", _counted("tokens")),
    "length": _Grammar("quantity.kind.length", "8,192 or 64k", _LENGTH_SUFFIXES),
    "days": _Grammar("quantity.kind.days", "30 or 30 days", _counted("days")),
    "tokens_per_s": _Grammar("quantity.kind.tokens_per_s", "1.2M or 1.2M tokens/s", _counted("tokens/s")),
    "number": _Grammar("quantity.kind.number", "0.5 or 1e-8", {"": Fraction(1)}),
    "ratio": _Grammar(
        "quantity.kind.ratio", "0.4 or 40%", {"": Fraction(1), "%": Fraction(1, 100), "percent": Fraction(1, 100)}
    ),
    "flop": _Grammar("quantity.kind.flop", "6.3e24 or 3.8e25 FLOP", _FLOP_SUFFIXES),
    "flop_per_s": _Grammar("quantity.kind.flop_per_s", "989.4 TFLOP/s or 1.2e15", _RATE_SUFFIXES),
    "bytes": _Grammar("quantity.kind.bytes", "80 GB, 80 GiB, or 8e10", _BYTE_SUFFIXES),
    "bytes_binary": _Grammar("quantity.kind.bytes_binary", "80 GiB, 80 GB, or 8e10", _BYTE_SUFFIXES),
    "bytes_per_s": _Grammar("quantity.kind.bytes_per_s", "3.35 TB/s or 3.35e12", _si("B/s", "")),
    "bits_per_s": _Grammar("quantity.kind.bits_per_s", "400 Gb/s", _si("b/s", "bit/s", "bps")),
    "seconds": _Grammar("quantity.kind.seconds", "30 days, 12 h, or 90 s", _DURATION_SUFFIXES),
    "usd": _Grammar("quantity.kind.usd", "2.50 or $5M", _COUNT_SUFFIXES),
    "usd_per_hour": _Grammar("quantity.kind.usd_per_hour", "2.50", {"": Fraction(1), "/h": Fraction(1)}),
    "watts": _Grammar("quantity.kind.watts", "700 W or 1.2 kW", _si("W") | {"": Fraction(1)}),
    "watt_hours": _Grammar("quantity.kind.watt_hours", "36 MWh or 1.5 GWh", _si("Wh")),
    "kg_per_kwh": _Grammar("quantity.kind.kg_per_kwh", "0.385", {"": Fraction(1), "kg/kwh": Fraction(1)}),
}

_NUMBER = re.compile(
    r"""\s*(?P<sign>[-+]?)\s*
        (?P<number>\d+(?:\.\d*)?|\.\d+)
        (?:\s*(?:e|\*\s*10\s*\^|×\s*10\s*\^)\s*(?P<exponent>[-+]?\d{1,4}))?
        (?:\s*\^\s*(?P<power>\d{1,4}))?
        \s*(?P<suffix>[a-zA-Zµ/%]*(?:\s+[a-zA-Z/]+)?)\s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


IN_PERCENT = 2
"""A share typed without a percent sign is meant in percent from here on. Whether 1.5 is 1.5 % or 150 % nobody knows."""

_TIMES = re.compile(r"[*×](?!\s*10\s*\^)")
"""Between two numbers of a product; before a power of ten it belongs to the number."""


_GROUPED_BY_POINT = re.compile(r"^([1-9]\d{0,2})\.(\d{3})(?!\d)")
"""A number whose decimals may be its thousands."""


def _factors(keyed: str) -> list[str]:
    """Return the numbers of a product, of which there may be so many; one for what is none."""
    parts = _TIMES.split(keyed)
    if len(parts) > limit("product_factors"):
        raise QuantityError(message("quantity.factors", most=float(limit("product_factors"))))
    return parts


def _suffix(match: re.Match[str]) -> str:
    return "".join(match["suffix"].lower().split())


def _magnitude(match: re.Match[str], text: str, grammar: _Grammar) -> Fraction:
    """Return the number without its sign and its suffix."""
    value = Fraction(match["number"].rstrip("."))
    if match["exponent"]:
        exponent = int(match["exponent"])
        if abs(exponent) > 400:
            raise QuantityError(message("quantity.exponent", entered=text.strip(), example=grammar.example))
        value *= Fraction(10) ** exponent
    if match["power"]:
        if value > 10_000 or int(match["power"]) > 100:
            raise QuantityError(message("quantity.power", entered=text.strip()))
        value = value ** int(match["power"])
    return value


def _binary_length(number: Fraction, suffix: str) -> Fraction | None:
    """Return what k or M stands for behind a length such as 64k or 96k: 1,024 or its square; None behind 100k or 10M.

    number: 1, 2, 4 or 3, 6, 12 and so on. Lengths of sequences are such numbers of 1,024 tokens.
    """
    letter = suffix.removesuffix("tokens").removesuffix("token")
    odd = int(number) // (int(number) & -int(number)) if number >= 1 and number.denominator == 1 else 0
    return {"k": Fraction(2**10), "m": Fraction(2**20)}.get(letter) if odd in (1, 3) else None


def parse_quantity(
    text: str,
    kind: Kind,
    *,
    low: float = 0.0,
    high: float = math.inf,
    whole: bool = False,
    example: str | None = None,
) -> float:
    """Return an entered quantity in base units.

    Reads 70B, 1.5T, 6e24, 16,384, 2^20, 40%, 80 GiB, 30 days, $2.50, 5M$, according to ``kind``. Also reads a product
    such as 400000*1024*1024 or 8 × 80 GB, of which only the last number may have a unit, and the same in full-width
    characters or with pasted non-breaking spaces. A share of 45 is 45%, where no share can be 45. whole: whether to
    reject fractions. example: shown in messages instead of the kind's own. Raises `QuantityError` with a reason and an
    example for anything else, and outside [low, high].
    """
    grammar = _GRAMMARS[kind]
    if example is not None:
        grammar = replace(grammar, example=example)
    entered, cap = text.strip(), limit("number_chars")
    if len(text) > cap:
        what = message(grammar.kind)
        raise QuantityError(message("quantity.long", length=float(len(text)), what=what, most=float(cap)))
    if not entered:
        raise QuantityError(message("quantity.empty", what=message(grammar.kind), example=grammar.example))
    plain_text = keyed(text)
    *factors, last = _factors(in_dollars(plain_text) if kind.startswith("usd") else plain_text)
    match = _NUMBER.fullmatch(last)
    suffix = _suffix(match) if match else ""
    if match is None or suffix not in grammar.suffixes:
        raise _other(entered, message(grammar.kind), grammar.example)
    value = _magnitude(match, text, grammar)
    for factor in factors:
        plain = _NUMBER.fullmatch(factor)
        if plain is None or _suffix(plain) not in _COUNT_SUFFIXES:
            raise _other(entered, message(grammar.kind), grammar.example)
        value *= (
            _magnitude(plain, text, grammar) * _COUNT_SUFFIXES[_suffix(plain)] * (-1 if plain["sign"] == "-" else 1)
        )
    binary = _binary_length(value, suffix) if kind == "length" else None
    value *= binary or grammar.suffixes[suffix]
    if kind == "ratio" and not suffix and IN_PERCENT * max(1.0, high) <= value <= 100 * high:
        value /= 100
    if match["sign"] == "-":
        value = -value
    try:
        number = float(value)
    except OverflowError:
        raise QuantityError(message("quantity.large", entered=entered, example=grammar.example)) from None
    if whole and not number.is_integer():
        meant = _GROUPED_BY_POINT.sub(r"\1,\2", entered)
        if meant != entered:
            raise QuantityError(message("quantity.whole_meant", entered=entered, meant=meant))
        raise QuantityError(message("quantity.whole", entered=entered, example=grammar.example))
    if not low <= number <= high:
        raise QuantityError(_range_message(entered, number, kind, low, high))
    return number


def _other(entered: str, what: str, example: str) -> QuantityError:
    return QuantityError(message("quantity.other", entered=entered, what=what, example=example))


def _range_message(entered: str, value: float, kind: Kind, low: float, high: float) -> str:
    if math.isinf(high):
        return message("quantity.small", entered=entered, low=_bound(low, kind))
    low_end, high_end = _bound(low, kind), _bound(high, kind)
    if kind == "ratio" and 1 < value < IN_PERCENT and "%" not in entered:
        meant = significant(value)
        return message("quantity.range_percent", entered=entered, low=low_end, high=high_end, meant=meant)
    return message("quantity.range", entered=entered, low=low_end, high=high_end)


def _bound(value: float, kind: Kind) -> str:
    """Return an end of a range; of counts, a power of ten from a million on is 10⁷ whether or not it has a letter."""
    counted = kind in ("count", "parameters", "tokens", "accelerators", "length")
    power = round(math.log10(value)) if counted and 1e6 <= value < math.inf else 0
    if power and value == 10.0**power:
        return f"10{str(power).translate(SUPERSCRIPT)} {UNIT[kind]}".rstrip()
    return format_quantity(value, kind)
