"""Quantities: parsing what a person types and showing what a formula gives.

Every quantity has a *kind* that fixes its unit and display. Decimal and binary bytes are different kinds, so GB
and GiB never mix. Internally everything is in base units: bytes, FLOP, FLOP/s, seconds, dollars, plain counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from core.limits import limit
from core.number_text import QuantityError, in_dollars, keyed, message

Kind: TypeAlias = Literal[
    "count",  # parameters, tokens, layers: 70 B, 16,384
    "parameters",  # a count of parameters that says so: 40B parameters
    "accelerators",  # likewise, and so on
    "tokens",
    "length",  # of a sequence, in tokens: 8,192, which people call 8k
    "days",
    "tokens_per_s",
    "number",  # a plain dimensionless number
    "ratio",  # shown in percent
    "flop",
    "flop_per_s",
    "op_per_s",  # of integers
    "flop_per_byte",
    "bytes",  # decimal: kB, MB, GB
    "bytes_binary",  # binary: KiB, MiB, GiB
    "bytes_per_s",
    "bits_per_s",  # of a network, one way
    "bytes_per_parameter",
    "seconds",
    "accelerator_hours",
    "usd",
    "usd_per_hour",
    "bits",
    "watts",
    "watt_hours",
    "kg_co2",  # kilograms of CO₂ equivalent, shown in tonnes from one on
    "kg_per_kwh",
]

UNIT: dict[Kind, str] = {
    "count": "",
    "parameters": "parameters",
    "accelerators": "accelerators",
    "tokens": "tokens",
    "length": "tokens",
    "days": "days",
    "tokens_per_s": "tokens/s",
    "number": "",
    "ratio": "%",
    "flop": "FLOP",
    "flop_per_s": "FLOP/s",
    "op_per_s": "OP/s",
    "flop_per_byte": "FLOP/B",
    "bytes": "B",
    "bytes_binary": "B",
    "bytes_per_s": "B/s",
    "bits_per_s": "b/s",
    "bytes_per_parameter": "B/parameter",
    "seconds": "s",
    "accelerator_hours": "h",
    "usd": "USD",
    "usd_per_hour": "USD/h",
    "bits": "bit",
    "watts": "W",
    "watt_hours": "Wh",
    "kg_co2": "kg",
    "kg_per_kwh": "kg/kWh",
}
"""Base unit of each kind. Counts, plain numbers and ratios have none."""

SI_POWERS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24}
LETTER_POWERS = {"": 0, "K": 3, "M": 6, "B": 9, "T": 12}
BINARY_POWERS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
DURATIONS: tuple[tuple[str, float], ...] = (
    ("years", 365.25 * 86400),
    ("days", 86400.0),
    ("h", 3600.0),
    ("min", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("µs", 1e-6),
    ("ns", 1e-9),
)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# ---------------------------------------------------------------------------------------------- showing


class QuantityText(str):
    """A quantity as it is written, with the plain number and the unit that it stands for; a table sorts and is taken
    away by these.

    bound: it is only known to be under that.
    """

    value: float
    unit: str
    bound: bool

    def __new__(cls, text: str, value: float, unit: str = "", *, bound: bool = False) -> QuantityText:
        result = super().__new__(cls, text)
        result.value, result.unit, result.bound = float(value), unit, bound
        return result

    def __getnewargs_ex__(self) -> tuple[tuple[str, float, str], dict[str, bool]]:  # a copy is made of these
        return (str(self), self.value, self.unit), {"bound": self.bound}

    def written(self, text: str) -> QuantityText:
        """The same quantity in other words, such as with a mark before it."""
        return QuantityText(text, self.value, self.unit, bound=self.bound)


_HALF_UP = Context(prec=400, rounding=ROUND_HALF_UP)
"""Rounds as people do, ties away from zero; precise enough for every float."""


def _rounded(value: float, decimals: int) -> Decimal:
    """``value``, as its shortest decimals say it, to so many decimals: 365.25 to one is 365.3."""
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), context=_HALF_UP)


def significant(value: float, digits: int = 4) -> QuantityText:
    """``value`` in plain notation with up to ``digits`` significant digits and thousands separators.

    Ties go away from zero: 0.15625 in four digits is 0.1563. Digits before the point are never rounded away.
    """
    if value == 0:
        return QuantityText("0", 0.0)
    text = f"{_rounded(value, max(0, digits - 1 - math.floor(math.log10(abs(value))))):,f}"
    return QuantityText(text.rstrip("0").rstrip(".") if "." in text else text, value)


def scientific(value: float, digits: int = 3) -> QuantityText:
    """``value`` as ``3.8 × 10²⁵`` with up to ``digits`` significant digits, ties away from zero."""
    exact = Decimal(repr(float(value)))
    mantissa, _, exponent = f"{_rounded(value, digits - 1 - exact.adjusted()):.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return QuantityText(f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}", value)


def _scaled(value: float, table: dict[str, int], base: int, digits: int) -> tuple[str, str]:
    """Split ``value`` into a number in 1..1000 (or 1..1024) and the prefix that goes with it."""
    chosen = ""
    for prefix, power in table.items():
        # Half a unit in the last shown digit counts as reached, so that 999,999 shows as 1 M, not 1,000 k.
        if abs(value) >= float(base) ** power * (1 - 0.5 * 10.0**-digits):
            chosen = prefix
    return significant(value / float(base) ** table[chosen], digits), chosen


def format_exact(number: int) -> QuantityText:
    """A whole number with all of its digits."""
    return QuantityText(f"{number:,}", number)


def format_count(value: float, digits: int = 4) -> str:
    """A count: exact with separators below a million, else 70B, 15.6T; scientific from 10¹⁵ on.

    The letter follows without a space, as in "a 70B model", so that a count never reads like bytes ("16 B").
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if abs(value) < 1e6:
        return QuantityText(f"{value:,.0f}", value) if float(value).is_integer() else significant(value, digits)
    number, prefix = _scaled(value, LETTER_POWERS, 10, digits)
    return QuantityText(f"{number}{prefix}", value) if abs(value) < 0.99995e15 else scientific(value, digits)


def format_bytes(value: float, *, system: Literal["decimal", "binary"], digits: int = 4) -> str:
    """Bytes with a decimal (GB) or a binary (GiB) prefix; the system is always the caller's explicit choice."""
    if not math.isfinite(value):
        return "unknown"
    if system == "decimal":
        number, prefix = _scaled(value, SI_POWERS, 10, digits)
    else:
        number, prefix = _scaled(value, BINARY_POWERS, 2, digits)
    return QuantityText(f"{number} {prefix}B", value, "B")


def format_duration(seconds: float, digits: int = 4) -> str:
    """A duration in the largest unit that keeps the number at one or more; days up to a thousand of them."""
    if not math.isfinite(seconds):
        return "unknown" if math.isnan(seconds) else "∞"
    if seconds == 0:
        return QuantityText("0 s", 0.0, "s")
    larger, above = "", math.inf
    for unit, size in DURATIONS:
        threshold = 1000 * 86400.0 if unit == "years" else size
        if abs(seconds) >= threshold:
            number = seconds / size
            text = format_count(number, digits) if number >= 1e6 else significant(number, digits)
            if size <= 1 and size * float(text.replace(",", "")) >= above:
                return QuantityText(f"1 {larger}", seconds, "s")  # 1 ms, not 1,000 µs
            return QuantityText(f"{text} {unit.removesuffix('s') if text == '1' and size > 1 else unit}", seconds, "s")
        larger, above = unit, size
    return QuantityText(f"{scientific(seconds)} s", seconds, "s")


def format_money(value: float, digits: int = 3) -> str:
    """US dollars: cents below a hundred, whole dollars below a million, then M, B, T."""
    if not math.isfinite(value):
        return "unknown"
    if abs(value) < 1e6:
        text = f"{_rounded(value, 2 if abs(value) < 100 else 0):,f}"
    elif abs(value) >= 1e18:
        text = scientific(value, digits)
    else:
        text = "".join(_scaled(value, LETTER_POWERS, 10, digits))
    return QuantityText(f"${text}", value, "USD")


def _format_si(value: float, unit: str, digits: int = 4) -> str:
    if not math.isfinite(value):
        return "unknown"
    number, prefix = _scaled(value, SI_POWERS, 10, digits)
    return QuantityText(f"{number} {prefix}{unit}", value, unit)


def singular(unit: str) -> str:
    """The ``unit`` of one: a parameter, a token/s."""
    return re.sub(r"s(?=/|$)", "", unit, count=1)


def format_quantity(value: float, kind: Kind, digits: int = 4) -> str:
    """``value`` (base units) as text with its unit. NaN is shown as "unknown"."""
    if kind == "count":
        return format_count(value, digits)
    if math.isnan(value):
        return "unknown"
    if kind == "bytes" or kind == "bytes_binary":
        return format_bytes(value, system="decimal" if kind == "bytes" else "binary", digits=digits)
    if kind == "seconds":
        return format_duration(value, digits)
    if kind == "usd":
        return format_money(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if kind in PREFIXED:
        return _format_si(value, UNIT[kind], digits)
    return QuantityText(_written(value, kind, digits), value, "" if kind == "ratio" else UNIT[kind])


def _written(value: float, kind: Kind, digits: int) -> str:
    """A finite value of a kind that has a way of its own to be written."""
    if kind in ("parameters", "accelerators", "tokens", "length", "days", "tokens_per_s"):
        exact = kind == "length" and float(value).is_integer()
        text = f"{value:,.0f}" if exact else scientific(value) if 0 < abs(value) < 1e-4 else format_count(value, digits)
        return f"{text} {singular(UNIT[kind]) if text == '1' else UNIT[kind]}"
    if kind == "ratio":
        return f"{significant(100 * value, max(digits - 1, 1))}%"
    if kind == "flop":
        return f"{scientific(value, digits)} FLOP" if abs(value) >= 1e6 else f"{significant(value, digits)} FLOP"
    if kind == "kg_co2" and abs(value) >= 1000:
        return f"{format_count(value / 1000, digits)} t"
    if kind == "accelerator_hours":
        return f"{format_count(value, digits)} h" if abs(value) >= 1 else f"{significant(value, digits)} h"
    if kind == "usd_per_hour":
        return f"${_rounded(value, 2):,f}/h"
    text = scientific(value, digits) if value and not 1e-4 <= abs(value) < 1e9 else significant(value, digits)
    return f"{text} {UNIT[kind]}".rstrip()


PREFIXED: tuple[Kind, ...] = ("flop_per_s", "op_per_s", "bytes_per_s", "bits_per_s", "watts", "watt_hours")
"""Kinds shown with a decimal prefix before their unit."""


# ---------------------------------------------------------------------------------------------- parsing


@dataclass(frozen=True, slots=True)
class _Grammar:
    kind: str
    example: str
    suffixes: dict[str, Fraction]


def _powers(table: dict[str, int], base: int, unit: str = "") -> dict[str, Fraction]:
    return {f"{prefix}{unit}".lower(): Fraction(base) ** power for prefix, power in table.items()}


def _si(*units: str) -> dict[str, Fraction]:
    """Every decimal prefix before each of ``units``."""
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
    """What may follow a count of ``units``: a letter, a unit, or both; the singular of a plural too."""
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
    """The numbers of a product, of which there may be so many; one for what is none."""
    parts = _TIMES.split(keyed)
    if len(parts) > limit("product_factors"):
        raise QuantityError(message("quantity.factors", most=float(limit("product_factors"))))
    return parts


def _suffix(match: re.Match[str]) -> str:
    return "".join(match["suffix"].lower().split())


def _magnitude(match: re.Match[str], text: str, grammar: _Grammar) -> Fraction:
    """The number without its sign and its suffix."""
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
    """What k or M stands for behind a length such as 64k or 96k: 1,024 or its square; None behind 100k or 10M.

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
    """What a person typed, in base units.

    Understands 70B, 1.5T, 6e24, 16,384, 2^20, 40%, 80 GiB, 30 days, $2.50, 5M$, according to ``kind``; a product such
    as 400000*1024*1024 or 8 × 80 GB, in which the last number alone may have a unit; and the same in full-width
    characters or with pasted non-breaking spaces. A share of 45 is 45 %, where no share can be 45.
    whole: refuse fractions, for things that come one by one. example: shown in messages instead of the kind's own.
    Raises `QuantityError` with a reason and an example for anything else, and outside [low, high].
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
    """An end of a range; of counts, a power of ten from a million on is 10⁷ whether or not it has a letter."""
    counted = kind in ("count", "parameters", "tokens", "accelerators", "length")
    power = round(math.log10(value)) if counted and 1e6 <= value < math.inf else 0
    if power and value == 10.0**power:
        return f"10{str(power).translate(_SUPERSCRIPT)} {UNIT[kind]}".rstrip()
    return format_quantity(value, kind)
