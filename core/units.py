"""Quantities as text: showing what a formula gives.

Every quantity has a *kind* that fixes its unit and display. Decimal and binary bytes are different kinds, so GB
and GiB never mix. Internally everything is in base units: bytes, FLOP, FLOP/s, seconds, dollars, plain counts.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Literal, TypeAlias

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
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# ---------------------------------------------------------------------------------------------- showing


class QuantityText(str):
    """Quantity as text, with its number and unit, by which tables sort and export it.

    bound: whether the number is only an upper bound.
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
        """Return the same quantity with another text, such as with a mark."""
        return QuantityText(text, self.value, self.unit, bound=self.bound)


_HALF_UP = Context(prec=400, rounding=ROUND_HALF_UP)
"""Rounds as people do, ties away from zero; precise enough for every float."""


def _rounded(value: float, decimals: int) -> Decimal:
    """Return ``value``, as its shortest decimals say it, to so many decimals: 365.25 to one is 365.3."""
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), context=_HALF_UP)


def significant(value: float, digits: int = 4) -> QuantityText:
    """Return ``value`` in plain notation with up to ``digits`` significant digits and thousands separators.

    Ties go away from zero: 0.15625 in four digits is 0.1563. Digits before the point are never rounded away.
    """
    if value == 0:
        return QuantityText("0", 0.0)
    text = f"{_rounded(value, max(0, digits - 1 - math.floor(math.log10(abs(value))))):,f}"
    return QuantityText(text.rstrip("0").rstrip(".") if "." in text else text, value)


def scientific(value: float, digits: int = 3) -> QuantityText:
    """Return ``value`` as ``3.8 × 10²⁵`` with up to ``digits`` significant digits, ties away from zero."""
    exact = Decimal(repr(float(value)))
    mantissa, _, exponent = f"{_rounded(value, digits - 1 - exact.adjusted()):.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return QuantityText(f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPT)}", value)


def _scaled(value: float, table: dict[str, int], base: int, digits: int) -> tuple[str, str]:
    """Split ``value`` into a number in 1..1000 (or 1..1024) and the prefix that goes with it."""
    chosen = ""
    for prefix, power in table.items():
        # Half a unit in the last shown digit counts as reached, so that 999,999 shows as 1 M, not 1,000 k.
        if abs(value) >= float(base) ** power * (1 - 0.5 * 10.0**-digits):
            chosen = prefix
    return significant(value / float(base) ** table[chosen], digits), chosen


def format_exact(number: int) -> QuantityText:
    """Return a whole number with all of its digits."""
    return QuantityText(f"{number:,}", number)


def format_count(value: float, digits: int = 4) -> str:
    """Return a count: exact with separators below a million, else 70B, 15.6T; scientific from 10¹⁵ on.

    The letter follows without a space, as in "a 70B model", so that a count never reads like bytes ("16 B").
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if abs(value) < 1e6:
        return QuantityText(f"{value:,.0f}", value) if float(value).is_integer() else significant(value, digits)
    number, prefix = _scaled(value, LETTER_POWERS, 10, digits)
    return QuantityText(f"{number}{prefix}", value) if abs(value) < 0.99995e15 else scientific(value, digits)


def format_bytes(value: float, *, system: Literal["decimal", "binary"], digits: int = 4) -> str:
    """Return bytes with a decimal (GB) or a binary (GiB) prefix; the system is always the caller's explicit choice."""
    if not math.isfinite(value):
        return "unknown"
    if system == "decimal":
        number, prefix = _scaled(value, SI_POWERS, 10, digits)
    else:
        number, prefix = _scaled(value, BINARY_POWERS, 2, digits)
    return QuantityText(f"{number} {prefix}B", value, "B")


def format_duration(seconds: float, digits: int = 4) -> str:
    """Return a duration in the largest unit that keeps the number at one or more; days up to a thousand of them."""
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
    """Return US dollars: cents below a hundred, whole dollars below a million, then M, B, T."""
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
    """Return the ``unit`` of one: a parameter, a token/s."""
    return re.sub(r"s(?=/|$)", "", unit, count=1)


def format_quantity(value: float, kind: Kind, digits: int = 4) -> str:
    """Return ``value`` (base units) as text with its unit. NaN is shown as "unknown"."""
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
    """Return a finite value of a kind that has a way of its own to be written."""
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
