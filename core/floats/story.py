"""One sentence, and a quieter one, that say what happened to a number in a format and why.

Both use the pages' markup: ``**bold**``, `` `code` `` and Unicode superscripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from core.floats.codec import Overflow, decode_exact
from core.floats.compare import Stored
from core.floats.decimals import brief, power_form, raised, rounded
from core.floats.formats import FloatFormat

_LONG_TEXT = 36


@dataclass(frozen=True, slots=True)
class Story:
    """The answer and the line under it."""

    answer: str
    detail: str


def tell(stored: Stored, overflow: Overflow = "format") -> Story:
    """What became of the typed number, and why."""
    typed, view, fmt = stored.typed, stored.view, stored.fmt
    asked = _pretty(typed.text)
    if typed.nan:
        return _nan(stored)
    if typed.code is not None and typed.code_format == fmt.name:
        return Story(f"The {fmt.title} code `{view.hex_code}` is **{stored.text}**.", _place(stored))
    if typed.value is None or stored.overflowed:
        return _beyond(stored, asked)
    if overflow == "saturate" and abs(typed.value) > fmt.max_finite:
        return Story(
            f"{asked} becomes **{stored.text}** in {fmt.title}, clipped to the largest finite value.",
            f"That is {_off(stored)}. Without saturation, round-to-nearest gives the same up to {_threshold(fmt)} "
            f"and {_overflow_word(fmt)} beyond.",
        )
    if stored.exact:
        return Story(f"**{asked}** is stored exactly in {fmt.title}{_landmark(stored)}.", _place(stored))
    if view.value == 0:
        return Story(
            f"{asked} becomes **{stored.text}** in {fmt.title}: the smallest {fmt.title} subnormal is "
            f"**{rounded(fmt.min_subnormal, 3)}**.",
            f"Everything up to half of that, {rounded(fmt.min_subnormal / 2, 3)}, is nearer to zero and rounds to it.",
        )
    return Story(f"{asked} becomes **{stored.text}** in {fmt.title}, {_off(stored)}.", _choice(stored))


def _nan(stored: Stored) -> Story:
    fmt, view = stored.fmt, stored.view
    if fmt.inf_code is None:
        largest = f"0x{fmt.max_code:0{fmt.hex_digits}x}"
        return Story(
            f"**NaN** in {fmt.title} has only **{fmt.nan_codes} codes**: every bit after the sign is 1.",
            f"Flip the last bit and it is a number again: `{largest}` is {brief(fmt.max_finite)}, the largest.",
        )
    quiet = view.fraction >> (fmt.fraction_bits - 1)
    payload = view.fraction & (fmt.fraction_mask >> 1)
    kind = "quiet (the first fraction bit is 1)" if quiet else "signalling (the first fraction bit is 0)"
    return Story(
        f"**NaN** in {fmt.title} is any of **{fmt.nan_codes:,} codes**: exponent all ones, fraction not zero.",
        f"This one, `{view.hex_code}`, is {kind}, payload {payload:,}. With a fraction of zero it would be infinity.",
    )


def _beyond(stored: Stored, asked: str) -> Story:
    """Infinity was typed, or a finite number overflowed."""
    typed, fmt, view = stored.typed, stored.fmt, stored.view
    largest = brief(fmt.max_finite)
    if stored.exact:
        return Story(
            f"**{asked}** in {fmt.title} is the code `{view.hex_code}`: exponent all ones, fraction zero.",
            f"The code before it is the largest finite value, {largest}.",
        )
    saturating = f"A saturating conversion gives {'−' * typed.negative}{largest} instead."
    if typed.value is None:
        if view.value is not None:
            return Story(f"{asked} becomes **{stored.text}** in {fmt.title}, clipped to the largest finite value.", "")
        return Story(f"{asked} becomes **NaN** in {fmt.title}, which has no infinity.", saturating)
    word = "−infinity" if view.kind == "inf" and view.sign else _overflow_word(fmt)
    missing = "" if fmt.inf_code is not None else " and there is no infinity"
    answer = f"{asked} becomes **{word}** in {fmt.title}: the largest finite value is **{largest}**{missing}."
    tie_overflows = bool(fmt.max_code & 1)
    if tie_overflows and abs(typed.value) == fmt.overflow_threshold:
        return Story(answer, f"It is the very border, half a step past the largest, and the tie goes up. {saturating}")
    since = f"{'From' if tie_overflows else 'Above'} {_threshold(fmt)}, half a step past the largest"
    return Story(answer, f"{since}, round-to-nearest goes to {_overflow_word(fmt)}. {saturating}")


def _choice(stored: Stored) -> str:
    """The two candidates and why one was taken; for subnormals, what they lost."""
    view, fmt, asked = stored.view, stored.fmt, stored.typed.value
    if view.value is None or asked is None or view.ulp is None or stored.ulps is None:
        return ""
    code = view.above if view.value < asked else view.below
    other = decode_exact(code, fmt) if code is not None else None
    if other is None:
        # The neighbour would be the next step past the largest value.
        other = view.value + (view.ulp if view.value < asked else -view.ulp)
    significant = view.fraction.bit_length() if view.kind == "subnormal" else fmt.fraction_bits + 1
    digits = significant * 3 // 10 + 3
    low, high = (brief(v, digits) for v in sorted((view.value, other)))
    if abs(asked - view.value) == abs(other - asked):
        chosen = brief(view.value, digits)
        text = f"Exactly halfway between {low} and {high}: the tie goes to the even fraction, {chosen}."
    else:
        text = f"Its neighbours are {low} and {high}; the nearer one wins, off by {rounded(abs(stored.ulps), 3)} ULP."
    if view.kind == "subnormal":
        text += f" A subnormal: this far down it keeps {significant} of {fmt.fraction_bits + 1} significant bits."
    return text


def _place(stored: Stored) -> str:
    """Where an exact value stands: as significand times power of two, and the spacing around it."""
    view, fmt = stored.view, stored.fmt
    if view.value is None:
        return "Exponent all ones, fraction zero."
    if view.value == 0:
        return "The sign bit is all that tells −0 from 0; they compare equal." if view.sign else "Every bit is zero."
    spacing = f"the step between neighbours here is {rounded(view.ulp or Fraction(0), 3)}"
    form = power_form(view.value)
    shown = f"It is {_pretty(form)}; {spacing}" if len(form) <= _LONG_TEXT else spacing.capitalize()
    if view.kind == "subnormal":
        return f"A subnormal, below the smallest normal {rounded(fmt.min_normal, 3)}. {shown}."
    return f"{shown}."


def _landmark(stored: Stored) -> str:
    value, fmt = abs(stored.view.value or Fraction(0)), stored.fmt
    if value == fmt.max_finite:
        return ": its **largest** finite value"
    if value == fmt.min_normal:
        return ": its **smallest normal** value"
    if value == fmt.min_subnormal:
        return ": its **smallest subnormal**, next to zero"
    return ""


def _off(stored: Stored) -> str:
    relative, asked = abs(stored.relative or Fraction(0)), stored.typed.value or Fraction(0)
    where = "large" if abs(stored.view.value or 0) > abs(asked) else "small"
    if relative >= Fraction(1, 10**6):
        return f"**{rounded(100 * relative, 3)} %** too {where}"
    return f"too {where} by **{rounded(relative, 3)}** of its size"


def _threshold(fmt: FloatFormat) -> str:
    return brief(fmt.overflow_threshold, fmt.decimal_digits + 3)


def _overflow_word(fmt: FloatFormat) -> str:
    return "NaN" if fmt.inf_code is None else "infinity"


def _pretty(text: str) -> str:
    """Typed text for a sentence: powers raised, products with ×, the middle of a long one left out."""
    text = text.replace("**", "^")
    if len(text) > _LONG_TEXT:
        text = f"{text[: _LONG_TEXT - 10]}…{text[-8:]}"
    return re.sub(r"\s*\*\s*", " × ", raised(text))
