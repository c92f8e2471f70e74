"""Exact values as decimal and hexadecimal text. Everything works on fractions, so no digit is ever a guess."""

from __future__ import annotations

import re
from fractions import Fraction

from core.floats.codec import decode_exact, encode_exact, floor_log2
from core.floats.formats import FloatFormat

_SUPERSCRIPT = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"\^\(?([+-]?\d+)\)?", re.ASCII)
_PLAIN_EXPONENTS = range(-4, 21)
_BRIEF = 14


def exact_decimal(value: Fraction) -> str:
    """Return every digit of ``value``: ``0.15625``, or ``5.9604644775390625e-8`` outside 10⁻⁴ to 10²¹.

    Raises ``ValueError`` if the digits never end (a denominator with a prime factor other than 2 and 5).
    """
    if value == 0:
        return "0"
    twos = fives = 0
    rest = value.denominator
    if rest & (rest - 1) == 0:
        twos, rest = rest.bit_length() - 1, 1
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    if rest != 1:
        raise ValueError(f"{value} has no finite decimal expansion")
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 2 ** (places - twos) * 5 ** (places - fives))
    return place_point(digits.rstrip("0") or "0", len(digits) - 1 - places, negative=value < 0)


def rounded(value: Fraction, digits: int = 4) -> str:
    """Return ``value`` to ``digits`` significant digits, for reading: ``0.09998``, ``5.96 × 10⁻⁸``."""
    if value == 0:
        return "0"
    number, exponent = significant_digits(value, digits)
    text = place_point(number, exponent, negative=value < 0)
    mantissa, _, power = text.partition("e")
    text = f"{mantissa} × 10{power.translate(_SUPERSCRIPT)}" if power else text
    return text.replace("-", "−")


def brief(value: Fraction, digits: int = 4) -> str:
    """Return ``value`` for a sentence: all its digits where they are few, else rounded to ``digits``."""
    return rounded(value, _BRIEF if len(exact_decimal(value)) <= _BRIEF else digits)


def significant_digits(value: Fraction, digits: int) -> tuple[str, int]:
    """Return the first ``digits`` digits of |``value``| (rounded, trailing zeros dropped) and the exponent of the
    first."""
    exponent = _floor_log10(abs(value))
    # In whole numbers, because the arithmetic of fractions reduces every step to lowest terms.
    shift = digits - 1 - exponent
    over, under = abs(value.numerator) * 10 ** max(shift, 0), value.denominator * 10 ** max(-shift, 0)
    number, rest = divmod(over, under)
    number += 2 * rest > under or (2 * rest == under and number % 2)
    if number == 10**digits:
        number, exponent = number // 10, exponent + 1
    return str(number).rstrip("0"), exponent


def shortest_decimal(code: int, fmt: FloatFormat) -> str:
    """Return the decimal with the fewest digits that `encode_exact` turns back into ``code``, a finite code.

    A code that no number becomes (MXINT8's −2) is written out exactly.
    """
    value = decode_exact(code, fmt)
    if value is None:
        raise ValueError(f"{code:#x} is not a finite {fmt.title} code")
    sign = "-" if code & fmt.sign_mask else ""
    if value == 0:
        return f"{sign}0"
    if encode_exact(value, fmt) != code:
        return exact_decimal(value)
    side = -1 if value < 0 else 1
    exponent = _floor_log10(abs(value))
    digits = 1
    while True:
        unit = Fraction(10) ** (exponent + 1 - digits)
        below = abs(value) // unit
        # Both neighbors: at a power of two the nearer one can miss the narrow side of the rounding interval.
        for number in sorted((below, below + 1), key=lambda n: abs(n * unit - abs(value))):
            if encode_exact(side * number * unit, fmt) == code:
                return place_point(str(number).rstrip("0"), exponent + len(str(number)) - digits, negative=value < 0)
        digits += 1


def raised(text: str) -> str:
    """Return ``text`` with its powers raised: ``2^-24`` becomes ``2⁻²⁴``."""
    return _POWER.sub(lambda m: m[1].translate(_SUPERSCRIPT), text)


def power_form(value: Fraction) -> str:
    """Return ``value``, a dyadic fraction, as significand times a power of two, exact: ``1.25*2^-3``, ``2^-24``."""
    if value == 0:
        return "0"
    power = floor_log2(abs(value))
    significand = exact_decimal(value / Fraction(2) ** power)
    lead = {"1": "", "-1": "-"}.get(significand, f"{significand}*")
    return f"{lead}2^{power}"


def _floor_log10(value: Fraction) -> int:
    # A decimal digit is 3.3219 bits; the estimate is off by at most one either way.
    exponent = floor_log2(value) * 30103 // 100000
    while not _reaches(value, exponent):
        exponent -= 1
    while _reaches(value, exponent + 1):
        exponent += 1
    return exponent


def _reaches(value: Fraction, exponent: int) -> bool:
    """Return whether ``value`` is at least ten to the ``exponent``."""
    if exponent >= 0:
        return value.numerator >= value.denominator * 10**exponent
    return value.numerator * 10**-exponent >= value.denominator


def place_point(digits: str, exponent: int, *, negative: bool = False) -> str:
    """Return ``digits`` with the point after the first digit times ten to the ``exponent``, plain where that reads
    well."""
    sign = "-" if negative else ""
    if exponent not in _PLAIN_EXPONENTS:
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}{'.' if rest else ''}{rest}"
