"""A number in binary told in sentences: its digits, the block that repeats, and where a format cuts it."""

from __future__ import annotations

from fractions import Fraction

from core.floats.arithmetic.expansion import Doubling, Expansion, Halving, digits_of
from core.floats.arithmetic.operations import overflows
from core.floats.decimals import exact_decimal, raised, rounded
from core.floats.typed_numbers import Typed
from core.limits import limit
from core.views.floats.text import as_read
from core.views.floats.text_arithmetic import decision, representable_text

_SHOWN, _SHORT = 28, 12


def digits(expansion: Expansion) -> str:
    """The number in binary, its repeating block in brackets: ``0.0(0011)``; a long one ends in “…”."""
    whole, sign = expansion.whole, "−" * (expansion.value < 0)
    if len(whole) > _SHOWN:
        whole = f"{whole[:_SHOWN]}…({len(whole)} digits)"
    rest = abs(expansion.value) % 1
    if not rest:
        return f"{sign}{whole}"
    lead, period = expansion.lead_in, expansion.period
    if period is not None and lead + period <= _SHOWN:
        block = f"({expansion.block})" if period else ""
        return f"{sign}{whole}.{digits_of(rest, lead)}{block}"
    return f"{sign}{whole}.{digits_of(rest, _SHOWN)}…"


def answer(typed: Typed, expansion: Expansion, code: int) -> str:
    """The number in binary, whether its digits end, and what the format makes of them."""
    fmt, cut = expansion.fmt, expansion.cut
    name = as_read(typed) if typed.code is None else rounded(expansion.value, _SHORT)
    head = f"**{name}** in binary is **{digits(expansion)}**: {_repeats(expansion)}."
    if cut is None:
        return head
    number = cut.kept.bit_length()
    places = f"{number} significant digit{'s' * (number != 1)}" if number else "no digit that is 1"
    bits = decision(cut, "nearest_even", expansion.value < 0)
    over = ", too large for the format" * overflows(cut, fmt)
    last = raised(f"2^{cut.last}")
    return (
        f"{head} {fmt.title} keeps {places}, the last place is {last}; {bits}{over}: "
        f"**{representable_text(code, fmt)}**."
    )


def _repeats(expansion: Expansion) -> str:
    if expansion.period is None:
        return f"its digits repeat in a block of more than {limit('binary_period'):,}"
    if expansion.ends:
        count = expansion.lead_in
        return f"its digits end, {count:,} after the point" if count else "a whole number"
    many = expansion.lead_in
    lead = f" after {many:,} digit{'s' * (many != 1)}" if many else ""
    return f"its digits never end;{lead} a block of {_count(expansion.period)} repeats for ever"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**_SHORT else f"about {rounded(Fraction(number), 3)}"


def halving(step: Halving) -> str:
    """``13 = 2 × 6 + 1``."""
    before, after = (f"{n:,}" if n < 10**_SHORT else f"≈ {rounded(Fraction(n), 6)}" for n in (step.before, step.after))
    return f"{before} = 2 × {after} + "


def doubling(step: Doubling) -> str:
    """``2 × 0.8 = 0.6 +``, before the digit."""
    return f"2 × {_rest(step.before)} = {_rest(step.after)} + "


def _rest(value: Fraction) -> str:
    odd = value.denominator
    while odd % 2 == 0:
        odd //= 2
    while odd % 5 == 0:
        odd //= 5
    if odd == 1 and len(exact_decimal(value)) <= _SHORT:
        return rounded(value, _SHORT)
    fraction = f"{value.numerator}/{value.denominator}"
    return fraction if odd > 1 and len(fraction) <= _SHORT else f"≈ {rounded(value, 8)}"
