"""The answer about one number in one format, and what is said about its bits and about the format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from core.floats.arithmetic.operations import add_up
from core.floats.code_description import Bit
from core.floats.codec import classify, decode_exact, floor_log2
from core.floats.comparison import Stored, percent
from core.floats.decimals import brief, raised, rounded, shortest_decimal
from core.floats.formats import FloatFormat
from core.floats.range_and_precision import reach
from core.floats.rounding_cases import Detour, through_fp32
from core.floats.typed_numbers import Typed, hint
from core.messages import Message, message, pick_message
from core.units import QuantityText

_LONG_TEXT = 36
_WORTH_PERCENT = Fraction(1, 10**6)
"""Relative errors below it are written with a power of ten."""

_LOG10_OF_2 = 0.30103


def answer_text(stored: Stored) -> Message:
    """Return what became of the entered number."""
    fmt, view, fate = stored.fmt, stored.view, stored.fate
    error = abs(stored.relative or Fraction(0)) if fate == "rounded" else Fraction(0)
    if fate == "exact":
        name = _LANDMARKS[_landmark(stored)]
    elif fate == "rounded":
        name = _ROUNDED[error < _WORTH_PERCENT, abs(view.value or 0) > abs(stored.typed.value or 0)]
    elif fate == "infinity":
        name = "floats.answer.exact" if stored.exact else "floats.answer.no_infinity"
    else:
        name = f"floats.answer.{fate.replace(' ', '_')}"
    return pick_message(
        name,
        number=pretty(stored.typed.text),
        fmt=fmt.title,
        value=stored.text.replace("inf", "infinity"),
        code=view.hex_code,
        largest=f"{'−' * stored.typed.negative}{brief(fmt.max_finite)}",
        least=_power_text(fmt.min_subnormal),
        decimal=rounded(fmt.min_subnormal, 3),
        error=rounded(error, 3) if error < _WORTH_PERCENT else float(error),
    )


_LANDMARKS = {
    "": "floats.answer.exact",
    "largest": "floats.answer.exact_largest",
    "normal": "floats.answer.exact_normal",
    "subnormal": "floats.answer.exact_subnormal",
}
_ROUNDED = {
    (False, True): "floats.answer.rounded_up",
    (False, False): "floats.answer.rounded_down",
    (True, True): "floats.answer.rounded_up_little",
    (True, False): "floats.answer.rounded_down_little",
}
"""Whether the relative error is tiny, and whether the stored value is the larger one → the message."""


def _landmark(stored: Stored) -> str:
    value, fmt = stored.view.value, stored.fmt
    if not value or value < 0:
        return ""
    landmarks = {fmt.max_finite: "largest", fmt.min_subnormal: "subnormal" * fmt.has_subnormals}
    return landmarks.get(value, "normal" if value == fmt.min_normal and fmt.has_subnormals else "")


def detail_texts(stored: Stored) -> list[Message]:
    """Return why, in up to three sentences: the reason, double rounding, and what the text could have meant."""
    detour = through_fp32(stored.typed.value, stored.fmt, stored.policy) if stored.typed.value is not None else None
    said = [_reason(stored), _added(stored), hint(stored.typed, stored.fmt)]
    if detour is not None and detour.differs and stored.typed.code is None:
        said.insert(1, _double_rounding(stored.fmt, detour))
    return [text for text in said if isinstance(text, Message)]


def _double_rounding(fmt: FloatFormat, detour: Detour) -> Message:
    between = "infinity" if detour.between is None else brief(detour.between, 10)
    return message("floats.detail.double", between=between, value=code_value(detour.code, fmt))


def _reason(stored: Stored) -> Message | str:
    fmt, view, typed = stored.fmt, stored.view, stored.typed
    number, value = typed.value, view.value
    if stored.fate == "nan":
        return message(_NAN_RULES[fmt.nan if fmt.fraction_bits else "all_ones"], fmt=fmt.title)
    if stored.fate in ("no sign", "no zero", "lifted"):
        least = "0" if fmt.zero else brief(fmt.min_subnormal)
        return message("floats.detail.range", fmt=fmt.title, low=least, high=brief(fmt.max_finite))
    if stored.fate == "overflow":
        threshold = brief(fmt.overflow_threshold, fmt.decimal_digits + 3)
        return message("floats.detail.threshold" if fmt.tie_overflows else "floats.detail.above", threshold=threshold)
    if stored.fate == "clipped":
        return ""
    if stored.fate == "underflow":
        return message(
            "floats.detail.underflow",
            number=pretty(typed.text),
            power=_power_text(abs(number or Fraction(0))),
            half=_power_text(fmt.min_subnormal / 2),
        )
    if not value or number is None or view.ulp is None:
        return ""
    if value == number:
        step = rounded(view.ulp, 3)
        return message("floats.detail.subnormal" if view.kind == "subnormal" else "floats.detail.step", step=step)
    return _neighbors(stored, value, number)


_NAN_RULES = {
    "ieee": "floats.detail.nan_ieee",
    "all_ones": "floats.detail.nan_ones",
    "negative_zero": "floats.detail.nan_zero",
}


def _neighbors(stored: Stored, value: Fraction, number: Fraction) -> Message:
    """Return the two candidates, and why one was taken; for subnormals, what they lost."""
    view, fmt = stored.view, stored.fmt
    code = view.above if value < number else view.below
    other = decode_exact(code, fmt) if code is not None else None
    if other is None or abs(other) > fmt.max_finite:  # the step past the largest value, which has no code
        other = value + (view.ulp or 0) * (1 if value < number else -1)
    bits = view.fraction.bit_length() if view.kind == "subnormal" else fmt.fraction_bits + 1
    low, high = sorted((value, other))
    tie = abs(number - value) == abs(other - number)
    subnormal = view.kind == "subnormal"
    return pick_message(
        _CHOICES[tie, subnormal],
        low=brief(low, bits * 3 // 10 + 3),
        high=brief(high, bits * 3 // 10 + 3),
        value=brief(value, bits * 3 // 10 + 3),
        ulps=rounded(abs(stored.ulps or Fraction(0)), 3),
        bits=float(bits),
        all=float(fmt.fraction_bits + 1),
    )


_CHOICES = {
    (False, False): "floats.detail.nearest",
    (False, True): "floats.detail.nearest_subnormal",
    (True, False): "floats.detail.tie",
    (True, True): "floats.detail.tie_subnormal",
}
"""Whether the number is a tie, and whether it becomes a subnormal → the message."""


def _added(stored: Stored) -> Message | str:
    """Return the result of adding an entered sum in the format, with each term and each sum rounded."""
    total = add_up(stored.typed.terms, stored.fmt) if len(stored.typed.terms) > 1 else None
    if total is None or decode_exact(total, stored.fmt) == stored.view.value:
        return ""
    value = shortest_decimal(total, stored.fmt).replace("-", "−")
    return message("floats.detail.added", fmt=stored.fmt.title, value=value)


def as_read(typed: Typed) -> str:
    """Return an entered number for a sentence; for a code, its format and value."""
    if typed.code is None:
        return pretty(typed.text)
    sign = "−" * typed.negative
    value = rounded(typed.value, 3) if typed.value is not None else "NaN" if typed.nan else f"{sign}infinity"
    return message("floats.typed.code", code=typed.text, fmt=typed.code_format, value=value)


def _power_text(value: Fraction) -> str:
    """Return a positive number as a factor from 1 to 2 times a power of two: 1.34 × 2⁻²⁷."""
    power = floor_log2(value)
    factor = rounded(value / Fraction(2) ** power, 3)
    return raised(f"2^{power}" if factor == "1" else f"{factor} × 2^{power}")


def pretty(text: str) -> str:
    """Return entered text for a sentence: powers raised, products with ×, the middle of a long one left out."""
    text = text.replace("**", "^")
    if len(text) > _LONG_TEXT:
        text = f"{text[: _LONG_TEXT - 10]}…{text[-8:]}"
    return re.sub(r"\s*\*\s*", " × ", raised(text)).replace("^", "\u2009^\u2009")


def code_value(code: int, fmt: FloatFormat, digits: int = 0) -> str:
    """Return the value of a code for reading. digits: at least; by default as many as tell it from its neighbors."""
    value = decode_exact(code, fmt)
    sign = "−" if code & fmt.sign_mask else ""
    if value is None:
        return "NaN" if classify(code, fmt) == "nan" else f"{sign}infinity"
    return QuantityText(brief(value, digits or fmt.decimal_digits + 3) if value else f"{sign}0", float(value))


def bit_effect(bit: Bit) -> Message:
    """Return what a bit contributes to the value of its code."""
    if bit.field == "sign":
        return message("floats.bit.sign" if bit.weight.startswith("(") else "floats.bit.twos_complement")
    power = raised(f"2^{bit.power}")
    if bit.field == "exponent":
        return message("floats.bit.exponent", factor=power)
    return message("floats.bit.none") if bit.power is None else message("floats.bit.fraction", value=power)


def format_summary(fmt: FloatFormat) -> Message:
    """Return the fields and special values of a format in a sentence."""
    name = "floats.format.fixed" if fmt.twos_complement else _SUMMARIES[fmt.infinity]
    return pick_message(
        name,
        fmt=fmt.title,
        used=fmt.used,
        sign=float(fmt.signed),
        exponent=float(fmt.exponent_bits),
        fraction=float(fmt.fraction_bits),
        bias=str(fmt.bias).replace("-", "−"),
        nan=float(fmt.nan_codes),
    )


_SUMMARIES = {True: "floats.format.infinity", False: "floats.format.finite"}


def range_takeaway(fmt: FloatFormat) -> Message:
    """Return how far a format reaches, and how fine it is."""
    here = reach(fmt)
    orders = (here.largest - here.smallest) * _LOG10_OF_2
    if fmt.twos_complement:
        return message("formats.takeaway.fixed", fmt=fmt.title, orders=orders, step=float(fmt.min_subnormal))
    return message("formats.takeaway.float", fmt=fmt.title, orders=orders, step=percent(fmt.eps / 2))


def fate_label(stored: Stored) -> Message:
    """Return the class of a stored value, or what happened to the number on its way."""
    return message(_LABELS[stored.fate]) if stored.fate in _LABELS else kind_label(stored.view.kind)


_LABELS: Mapping[str, str] = {
    "overflow": "floats.fate.overflow",
    "clipped": "floats.fate.clipped",
    "underflow": "floats.fate.underflow",
    "no zero": "floats.fate.no_zero",
    "no sign": "floats.fate.no_sign",
}


def kind_label(kind: str) -> Message:
    """Return the name of a class of numbers."""
    return message(f"floats.kind.{kind.replace('inf', 'infinity')}")


def count_text(number: str, everywhere: list[Stored]) -> Message:
    """Return in how many formats a number is exact, overflows, and becomes zero."""
    return message(
        "floats.everywhere.takeaway",
        number=pretty(number),
        formats=float(len(everywhere)),
        exact=float(sum(stored.exact for stored in everywhere)),
        over=float(sum(stored.overflowed for stored in everywhere)),
        zero=float(sum(stored.fate == "underflow" for stored in everywhere)),
    )
