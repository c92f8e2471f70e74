"""Shown quantities read back as plain numbers, to sort and to take away a table by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from core.units import BINARY_POWERS, DURATIONS, FROM_SUPERSCRIPT, LETTER_POWERS, SI_POWERS, UNIT, singular

_BASES = ("B", "B/s", "b/s", "FLOP/s", "W", "Wh")
_SCALED: dict[str, tuple[Fraction, str]] = {
    "t": (Fraction(1000), "kg"),
    **{singular(unit): (Fraction(1), unit) for unit in UNIT.values() if len(unit) > 1},
    **{unit: (Fraction(1), unit) for unit in UNIT.values() if unit},
    **{f"{prefix}{base}": (Fraction(10) ** power, base) for base in _BASES for prefix, power in SI_POWERS.items()},
    **{f"{prefix}B": (Fraction(2) ** power, "B") for prefix, power in BINARY_POWERS.items()},
    "%": (Fraction(1, 100), ""),
}
"""Shown unit → its size in the unit that a plain number is in, and that unit."""

_TIMES = {unit: Fraction(size) for unit, size in DURATIONS}

_SHOWN = re.compile(
    r"""(?P<about>≈\s|under\s)?(?P<sign>[-+−]?)(?P<money>\$)?(?P<number>\d[\d,]*(?:\.\d+)?)
        (?:\s×\s10(?:\^(?P<power>[-−]?\d+)|(?P<raised>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)))?
        (?P<letter>(?<=\d)[KMBT]\b)?(?:\s?(?P<unit>[A-Za-zµ/%]+))?(?:\s\(.*\))?""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A shown quantity as a plain number in ``unit``. bound: it is only known to be under that."""

    value: float
    unit: str
    bound: bool = False

    def __str__(self) -> str:
        return f"{self.value:.15g}"


def read_shown(texts: Sequence[str]) -> list[Shown | None]:
    """The quantities that a table's column shows; None for a text that is no quantity.

    Prefixes, letters, powers and percent are resolved. Times stay in the unit that all of them share, else they are
    in seconds.
    """
    results = [_read(text) for text in texts]
    units = {result.unit for result in results if result}
    if len(units & _TIMES.keys()) < 2:
        return results
    return [
        Shown(float(Fraction(result.value) * _TIMES[result.unit]), "s", result.bound)
        if result and result.unit in _TIMES
        else result
        for result in results
    ]


def _read(text: str) -> Shown | None:
    match = _SHOWN.fullmatch(text.replace("\u00a0", " ").strip())
    if match is None:
        return None
    value, unit = Fraction(match["number"].replace(",", "")), match["unit"] or ""
    power = (match["raised"] or "").translate(FROM_SUPERSCRIPT) or (match["power"] or "0").replace("−", "-")
    if abs(int(power)) > 330:  # beyond every float
        return None
    value *= Fraction(10) ** (int(power) + LETTER_POWERS[match["letter"] or ""])
    if match["money"]:
        letter, _, per = unit.partition("/")
        if letter not in LETTER_POWERS:
            return None
        value, unit = value * 10 ** LETTER_POWERS[letter], f"USD/{per}" if per else "USD"
    elif unit in _SCALED:
        size, unit = _SCALED[unit]
        value *= size
    if match["sign"] in ("-", "−"):
        value = -value
    try:
        return Shown(float(value), unit, (match["about"] or "").startswith("under"))
    except OverflowError:
        return None
