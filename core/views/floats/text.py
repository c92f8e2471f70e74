"""One sentence, and a quieter one, that say what happened to a number in a format and why.

Both use the pages' markup: ``**bold**``, `` `code` `` and Unicode superscripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from core.floats.arithmetic.operations import add_up
from core.floats.codec import decode_exact, floor_log2
from core.floats.comparison import Stored, percent
from core.floats.decimals import brief, power_form, raised, rounded, shortest_decimal
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.rounding_cases import overflows, through_fp32
from core.floats.typed_numbers import Typed, misread

_LONG_TEXT = 36
_OFP8 = ("fp8_e4m3fn", "fp8_e5m2")

OUTCOMES: dict[Overflow, str] = {"infinity": "infinity", "nan": "NaN", "saturate": "the largest finite value"}
"""What lies beyond the largest finite value, in prose, by `FloatFormat.outcome`."""


_SUBNORMAL = " Subnormal: below the smallest normal number, where the leading bit is 0 and all steps are equally wide."


@dataclass(frozen=True, slots=True)
class Description:
    """The answer and the line under it."""

    answer: str
    detail: str


def describe_outcome(stored: Stored) -> Description:
    """What became of the typed number, and why."""
    description = _describe_outcome(stored)
    own = "" if stored.fmt.name in FORMATS else f"{stored.fmt.title} is {stored.fmt.used}."
    hints = misread(stored.typed, stored.fmt), _added(stored), own
    return Description(
        description.answer + _twice(stored), " ".join(part for part in (description.detail, *hints) if part)
    )


def as_read(typed: Typed) -> str:
    """A typed number inside a sentence, before "becomes"; of a code, which format's it is and what it stands for."""
    if typed.code is None:
        return _pretty(typed.text)
    sign = "−" * typed.negative
    stands = rounded(typed.value, 3) if typed.value is not None else "NaN" if typed.nan else f"{sign}infinity"
    return f"{_pretty(typed.text)} as a code of {typed.code_format}, {stands},"


def _describe_outcome(stored: Stored) -> Description:
    view, fmt, fate = stored.view, stored.fmt, stored.fate
    text = _pretty(stored.typed.text)
    if fate == "nan":
        return _nan(stored)
    if fate == "code":
        spare = ""
        if view.value is not None and abs(view.value) > fmt.max_finite:
            ends = f"±{brief(fmt.max_finite)}"
            spare = f" No conversion gives it: they end at {ends} to be symmetric, as the MX specification lets them."
        return Description(f"The {fmt.title} code `{view.hex_code}` is **{stored.text}**.", _place(stored) + spare)
    if fate == "infinity":
        return _infinity(stored, text)
    if fate == "no minus zero":
        code = f"0x{fmt.sign_mask:0{fmt.hex_digits}x}"
        why = f"The code of −0 is its NaN, `{code}`." if fmt.nan == "negative_zero" else "No code says −0."
        return Description(f"−0 becomes **0** in {fmt.title}, which has only one zero.", why)
    if fate in ("no sign", "no zero"):
        return _not_in_format(stored, text)
    if fate == "overflow":
        return _overflow(stored, text)
    if fate == "clipped":
        return Description(
            f"{text} becomes **{stored.text}** in {fmt.title}, clipped to {_extreme(stored)}.",
            f"That is {_off(stored)}. {_unclipped(fmt)}",
        )
    if fate == "exact":
        return Description(f"**{text}** is stored exactly in {fmt.title}{_landmark(stored)}.", _place(stored))
    if fate == "underflow":
        return _underflow(stored, text)
    if fate == "lifted":
        return Description(
            f"{text} becomes **{stored.text}** in {fmt.title}, its smallest value.",
            f"{fmt.title} has no zero: whatever lies below its smallest value becomes that.",
        )
    return Description(f"{text} becomes **{stored.text}** in {fmt.title}, {_off(stored)}.", _choice(stored))


def _twice(stored: Stored) -> str:
    """Where a typed number ends that is rounded to fp32 first, if that is elsewhere."""
    fraction = stored.typed.value
    if fraction is None or stored.typed.code is not None:
        return ""
    detour = through_fp32(fraction, stored.fmt, stored.policy)
    if detour is None or not detour.differs:
        return ""
    ends = (
        overflows(detour.code, stored.fmt) if detour.value is None else brief(detour.value, stored.fmt.decimal_digits)
    )
    return f" By way of fp32 it becomes **{ends}**: **double rounding**."


def _added(stored: Stored) -> str:
    """Of a typed sum, what adding in the format gives: each term rounded first, then each sum."""
    terms, fmt = stored.typed.terms, stored.fmt
    total = add_up(terms, fmt) if len(terms) > 1 else None
    if total is None or decode_exact(total, fmt) == stored.view.value:
        return ""
    exactly = "The sum was added exactly and rounded once."
    word = shortest_decimal(total, fmt).replace("-", "−")
    return f"{exactly} Adding in {fmt.title}, each term rounded first, as hardware does, gives **{word}**."


def _nan(stored: Stored) -> Description:
    fmt, view = stored.fmt, stored.view
    answer = f"**NaN** in {fmt.title} {_nan_shape(fmt)}."
    this = f"This one, `{view.hex_code}`, is"
    if stored.typed.negative and not view.sign:
        this = f"There is no −NaN. {this}"
    elif view.sign and fmt.nan != "negative_zero":
        this = f"Its sign bit is 1, which means nothing: a NaN is neither above nor below 0. {this}"
    if view.code == fmt.sign_mask:
        zero = f"0x{0:0{fmt.hex_digits}x}"
        return Description(answer, f"{this} the code that would be −0: flip its sign bit and `{zero}` is 0.")
    if fmt.nan != "ieee":
        other = view.code ^ 1
        value = decode_exact(other, fmt)
        word = ("−" if other & fmt.sign_mask else "") + "infinity" if value is None else brief(value)
        largest = ", the largest" if value == fmt.max_finite else ""
        text = f"0x{other:0{fmt.hex_digits}x}"
        return Description(answer, f"Flip the last bit and it is a number again: `{text}` is {word}{largest}.")
    if not fmt.infinity or fmt.fraction_bits == 0:
        return Description(answer, f"{this} one with a fraction of {view.fraction}. The format has no infinity.")
    quiet = view.fraction >> (fmt.fraction_bits - 1)
    payload = view.fraction & (fmt.fraction_mask >> 1)
    kind = "quiet (the first fraction bit is 1)" if quiet else "signalling (the first fraction bit is 0)"
    return Description(answer, f"{this} {kind}, payload {payload:,}. With a fraction of zero it would be infinity.")


def _nan_shape(fmt: FloatFormat) -> str:
    """How many codes are NaN, and which."""
    count = f"**{fmt.nan_codes:,} code{'s' * (fmt.nan_codes != 1)}**"
    if fmt.nan == "negative_zero":
        return f"has only **1 code**, the one that would be −0: `0x{fmt.sign_mask:0{fmt.hex_digits}x}`"
    at_zero = ", or the code that would be −0" if fmt.signed and not fmt.negative_zero else ""
    if fmt.nan == "all_ones":
        return f"has only {count}: every bit{' after the sign' * fmt.signed} is 1{at_zero}"
    fraction = ", fraction not zero" if fmt.infinity else ""
    return f"is any of {count}: exponent all ones{fraction}{at_zero}"


def _infinity_shape(fmt: FloatFormat) -> str:
    """The bits of infinity."""
    if fmt.nan == "ieee":
        return "exponent all ones, fraction zero" if fmt.fraction_bits else "exponent all ones"
    last = " but the last" if fmt.nan == "all_ones" else ""
    return f"every bit{' after the sign' * fmt.signed}{last} is 1"


def _infinity(stored: Stored, text: str) -> Description:
    """Infinity was typed."""
    fmt, view = stored.fmt, stored.view
    if view.kind == "inf":
        return Description(
            f"**{text}** in {fmt.title} is the code `{view.hex_code}`: {_infinity_shape(fmt)}.",
            f"The code before it is {_extreme(stored)}, {_bound(stored)}.",
        )
    if view.kind == "nan":
        return Description(
            f"{text} becomes **NaN** in {fmt.title}, which has no infinity.",
            "AMD’s HIP clips numbers alone: infinity is NaN even where it saturates."
            if fmt.lost
            else _saturating(stored),
        )
    own = fmt.own_overflow
    why = f"Without saturation it is {OUTCOMES[own]}." if own != "saturate" else _neither(fmt)
    return Description(f"{text} becomes **{stored.text}** in {fmt.title}, clipped to {_extreme(stored)}.", why)


def _not_in_format(stored: Stored, text: str) -> Description:
    """A negative number in a format without sign, or zero in one without zero."""
    fmt = stored.fmt
    missing = "zero" if stored.fate == "no zero" else "sign"
    least = "from 0" if fmt.zero else f"from {brief(fmt.min_subnormal)}"
    return Description(
        f"{text} becomes **{stored.text}** in {fmt.title}, which has no {missing}.",
        f"It holds numbers {least} to {brief(fmt.max_finite)}.",
    )


def _overflow(stored: Stored, text: str) -> Description:
    """A finite number became infinity or NaN."""
    typed, fmt = stored.typed, stored.fmt
    word = "−infinity" if stored.view.kind == "inf" and typed.negative else OUTCOMES[stored.policy]
    chosen = stored.policy != fmt.own_overflow
    missing = f", and overflow is set to give {OUTCOMES[stored.policy]}" if chosen else ""
    if not fmt.infinity:
        missing = " and there is no infinity"
    answer = f"{text} becomes **{word}** in {fmt.title}: {_extreme(stored)} is **{_bound(stored)}**{missing}."
    saturating = _saturating(stored)
    if abs(typed.value or 0) == fmt.overflow_threshold:
        way = "down" if typed.negative else "up"
        where = f"half a step past {_extreme(stored)}"
        return Description(answer, f"It is the very border, {where}, and the tie goes {way}. {saturating}")
    since = f"{'From' if fmt.tie_overflows else 'Above'} {_threshold(fmt)}"
    size = " in magnitude" if typed.negative else ""
    return Description(
        answer, f"{since}{size}, half a step past the largest, round-to-nearest goes to {word}. {saturating}"
    )


def _saturating(stored: Stored) -> str:
    """What the other way of converting gives; the OFP8 specification defines both."""
    both = "This is OFP8’s non-saturating conversion; its saturating one gives" * (stored.fmt.name in _OFP8)
    return f"{both or 'A saturating conversion gives'} {_bound(stored)}{'' if both else ' instead'}."


def _unclipped(fmt: FloatFormat) -> str:
    """What would happen to a clipped number without saturation."""
    own = fmt.own_overflow
    if own == "saturate":
        return _neither(fmt)
    reach, on = ("below", "from there on") if fmt.tie_overflows else ("up to", "beyond")
    return f"Without saturation, round-to-nearest gives the same {reach} {_threshold(fmt)} and {OUTCOMES[own]} {on}."


def _neither(fmt: FloatFormat) -> str:
    return f"{fmt.title} has neither infinity nor NaN, so every larger number becomes its largest."


def _underflow(stored: Stored, text: str) -> Description:
    fmt = stored.fmt
    least, half = fmt.min_subnormal, fmt.min_subnormal / 2
    name = f"{fmt.title} subnormal" if fmt.has_subnormals else f"{fmt.title} value above zero"
    answer = f"{text} becomes **{stored.text}** in {fmt.title}: the smallest {name} is **{rounded(least, 3)}**."
    if abs(stored.typed.value or 0) == half:
        tie = f"It is exactly half of that, {rounded(half, 3)}: the tie goes to zero."
        return Description(answer, tie + _SUBNORMAL * fmt.has_subnormals)
    steps = f"its grid ends at {_binary(least)}, and whatever is up to half a step, {_binary(half)}, rounds to zero"
    asked_value = abs(stored.typed.value or Fraction(0))
    sign = "−" * stored.typed.negative
    return Description(answer, f"{text} = {sign}{_binary(asked_value)}; {steps}.{_SUBNORMAL * fmt.has_subnormals}")


def _binary(value: Fraction) -> str:
    """A positive number as a factor from 1 to 2 times a power of two, for reading: 1.34 · 2⁻²⁷."""
    power = floor_log2(value)
    factor = rounded(value / Fraction(2) ** power, 3)
    return raised(f"2^{power}" if factor == "1" else f"{factor} · 2^{power}")


def _choice(stored: Stored) -> str:
    """The two candidates and why one was taken; for subnormals, what they lost."""
    view, fmt, fraction = stored.view, stored.fmt, stored.typed.value
    if view.value is None or fraction is None or view.ulp is None or stored.ulps is None:
        return ""
    code = view.above if view.value < fraction else view.below
    other = decode_exact(code, fmt) if code is not None else None
    past = ""
    if other is None or abs(other) > fmt.max_finite:
        # The neighbour would be the next step past the largest value.
        other = view.value + (view.ulp if view.value < fraction else -view.ulp)
        past = f", the step past {_extreme(stored)}"
    significant = view.fraction.bit_length() if view.kind == "subnormal" else fmt.fraction_bits + 1
    digits = significant * 3 // 10 + 3
    low, high = (brief(v, digits) + past * (v == other) for v in sorted((view.value, other)))
    if abs(fraction - view.value) == abs(other - fraction):
        chosen = brief(view.value, digits)
        tie = f"to the even fraction, {chosen}" if fmt.fraction_bits else f"outwards, to {chosen}: no fraction is even"
        text = f"Exactly halfway between {low} and {high}: the tie goes {tie}."
    else:
        off = rounded(abs(stored.ulps), 3)
        hair = "just under " * (off == "0.5" and abs(stored.ulps) < Fraction(1, 2))
        text = f"Its neighbours are {low} and {high}; the nearer one wins, off by {hair}{off} ULP{_of_which(stored)}."
    if view.kind == "subnormal":
        bits = f"{significant} of {fmt.fraction_bits + 1}"
        text += f" A subnormal, whose leading bit is 0: this far down it keeps {bits} significant bits."
    return text


def _of_which(stored: Stored) -> str:
    """Where the number was rounded across the narrower side of the value it became: which step an ULP is."""
    view, fraction = stored.view, stored.typed.value
    if (
        view.inward is None
        or view.value is None
        or fraction is None
        or view.ulp is None
        or abs(fraction) >= abs(view.value)
    ):
        return ""
    here, ulp, step = (brief(fraction) for fraction in (view.value, view.ulp, view.inward))
    return f". 1 ULP is {ulp}, the step outwards from {here}; towards zero the step is {step}"


def _place(stored: Stored) -> str:
    """Where an exact value stands: as significand times power of two, and the spacing around it."""
    view, fmt = stored.view, stored.fmt
    if view.value is None:
        return f"{_infinity_shape(fmt).capitalize()}."
    if view.value == 0:
        return "The sign bit is all that tells −0 from 0; they compare equal." if view.sign else "Every bit is zero."
    spacing = f"the step between neighbours here is {rounded(view.ulp or Fraction(0), 3)}"
    form = power_form(view.value)
    text = f"It is {_pretty(form)}; {spacing}" if len(form) <= _LONG_TEXT else spacing.capitalize()
    if view.kind == "subnormal":
        below = (
            f"below the smallest normal {rounded(fmt.min_normal, 3)}" if fmt.has_normals else "as all its values are"
        )
        return f"A subnormal, {below}: its leading bit is 0. {text}."
    return f"{text}."


def _landmark(stored: Stored) -> str:
    value, fmt = stored.view.value or Fraction(0), stored.fmt
    its = ": minus its" if value < 0 else ": its"
    if abs(value) == fmt.max_finite:
        return f"{its} **largest** finite value"
    if abs(value) == fmt.min_normal and (fmt.has_subnormals or not fmt.zero):
        return f"{its} **smallest normal** value"
    if abs(value) == fmt.min_subnormal:
        return f"{its} **smallest {'subnormal' if fmt.has_subnormals else 'value'}**, next to zero"
    return ""


def _off(stored: Stored) -> str:
    relative, fraction = abs(stored.relative or Fraction(0)), stored.typed.value or Fraction(0)
    where = "large" if abs(stored.view.value or 0) > abs(fraction) else "small"
    if relative >= Fraction(1, 10**6):
        return f"**{percent(relative)}** too {where}"
    return f"too {where} by **{rounded(relative, 3)}** of its size"


def _extreme(stored: Stored) -> str:
    return "the lowest finite value" if stored.typed.negative else "the largest finite value"


def _bound(stored: Stored) -> str:
    return f"{'−' * stored.typed.negative}{brief(stored.fmt.max_finite)}"


def _threshold(fmt: FloatFormat) -> str:
    return brief(fmt.overflow_threshold, fmt.decimal_digits + 3)


def _pretty(text: str) -> str:
    """Typed text for a sentence: powers raised, products with ×, the middle of a long one left out."""
    text = text.replace("**", "^")
    if len(text) > _LONG_TEXT:
        text = f"{text[: _LONG_TEXT - 10]}…{text[-8:]}"
    return re.sub(r"\s*\*\s*", " × ", raised(text))
