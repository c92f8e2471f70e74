"""Quantities as LaTeX: numbers and units that can be calculated with as they stand in a formula."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from core.number_text import FROM_SUPERSCRIPT
from core.units import (
    BINARY_POWERS,
    LETTER_POWERS,
    PREFIXED,
    SI_POWERS,
    UNIT,
    Kind,
    format_quantity,
    scientific,
    significant,
)

DOLLAR = r"\text{\textdollar}"
"""The sign without itself, which in Markdown would end the formula, a backslash before it or not."""

_PLAINLY: dict[Kind, str] = {
    "count": "",
    "seconds": " s",
    "accelerator_hours": " h",
    "usd": "",
    "usd_per_hour": " /h",
    "kg_co2": " kg",
}
"""Kinds whose text for reading changes the unit or drops digits, with the unit they are calculated in."""


def latex_exact(value: float, kind: Kind, digits: int = 4, *, most: int) -> tuple[str, bool]:
    """``value`` as `latex_quantity` writes it, and whether that is all of it.

    All its digits where ``most`` of them are enough, or where it is a whole number below 10⁹, else only ``digits``;
    what a float's own rounding adds past the 14th digit does not count.
    """
    for tried in (digits, most):
        if math.isclose(_read(_plain(value, kind, tried), kind), value, rel_tol=1e-14):
            return latex_quantity(value, kind, tried), True
        if kind in ("count", "number", "flop") and abs(value) < 1e9 and float(value).is_integer():
            return _latex(f"{value:,.0f} {UNIT[kind]}"), True
    return latex_quantity(value, kind, digits), not math.isfinite(value)


def latex_quantity(value: float, kind: Kind, digits: int = 4) -> str:
    """``value`` as LaTeX for substitution into a formula.

    Always in the kind's base unit or with a decimal prefix, so that the written arithmetic is right as it stands:
    durations in seconds, counts as powers of ten.
    """
    if math.isnan(value):
        return r"\text{unknown}"
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    return _latex(_plain(value, kind, digits))


def _latex(text: str) -> str:
    match = _SHOWN.fullmatch(text)
    if match is None:
        return rf"\text{{{text}}}"
    number, power, letter, unit = match.groups()
    latex = number.replace(",", "{,}").replace("$", DOLLAR)
    if power:
        latex += rf" \times 10^{{{power.translate(FROM_SUPERSCRIPT)}}}"
    if letter:
        latex += rf"\text{{{letter}}}"
    unit = unit.strip().replace("%", r"\%")
    return rf"{latex}\,\text{{{unit}}}" if unit else latex


_SHOWN = re.compile(r"(-?\$?[\d.,]+)(?: × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?([KMBT](?= ))?(.*)")
"""A quantity as `_plain` writes it: number, power of ten or letter, unit."""


def _read(text: str, kind: Kind) -> float:
    """The number that a text of `_plain` says, in base units; NaN where it says none."""
    match = _SHOWN.fullmatch(text)
    if match is None:
        return math.nan
    number, power, unit = match[1].replace("$", "").replace(",", ""), match[2] or "⁰", match[4].strip()
    prefix = unit.removesuffix(UNIT[kind]) if kind in ("bytes", "bytes_binary") or kind in PREFIXED else ""
    scale = 2 ** BINARY_POWERS[prefix] if kind == "bytes_binary" else 10 ** SI_POWERS[prefix]
    shift = int(power.translate(FROM_SUPERSCRIPT)) - (2 if unit == "%" else 0) + LETTER_POWERS[match[3] or ""]
    return float(Decimal(number).scaleb(shift) * scale)


def _plain(value: float, kind: Kind, digits: int) -> str:
    """``value`` as text whose number and unit can be calculated with."""
    cents = kind == "usd_per_hour" and 0 <= value == round(value, 2)
    if cents or kind not in _PLAINLY or not math.isfinite(value):
        return format_quantity(value, kind, digits)
    money = "$" if kind in ("usd", "usd_per_hour") else ""
    small = value == 0 or 1e-3 <= abs(value) < 1e6
    number = significant(abs(value), max(digits, 6)) if small else scientific(abs(value), digits)
    return f"{'-' if value < 0 else ''}{money}{number}{_PLAINLY[kind]}"
