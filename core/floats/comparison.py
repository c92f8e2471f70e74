"""The same number in every format, with its exact rounding error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from core.floats.code_description import CodeView, describe
from core.floats.decimals import rounded, significant_digits
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.laws import error_in_ulp, relative_error
from core.floats.rounding import Rounding, Seed
from core.floats.typed_numbers import Typed, typed_code
from core.formula import Explanation

Fate: TypeAlias = Literal[
    "nan",
    "code",
    "infinity",
    "no sign",
    "no zero",
    "no minus zero",
    "overflow",
    "clipped",
    "exact",
    "underflow",
    "lifted",
    "rounded",
]
"""What became of a typed number.

``nan``, ``infinity``: that was typed. ``code``: a code of the format was typed. ``no sign``, ``no zero``,
``no minus zero``: the format has no place for it. ``overflow``: too large, and now infinity or NaN. ``clipped``: too
large, and now the largest finite value. ``underflow``: now zero. ``lifted``: below the smallest value of a format
without zero, and now that.
"""

_EXACT_LENGTH = 22
"""A stored value is written out exactly up to this many characters."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What an entered number becomes in one format.

    policy: what the format's largest value overflows to, never ``format``. error: stored minus typed, exact; None when
    either is infinity or NaN. relative: error over the entered number, None also for a typed zero. ulps: error over the
    ULP of the stored value. fate: what became of the number.
    """

    typed: Typed
    view: CodeView
    policy: Overflow
    error: Fraction | None
    relative: Fraction | None
    ulps: Fraction | None
    fate: Fate

    @property
    def fmt(self) -> FloatFormat:
        return self.view.fmt

    @property
    def exact(self) -> bool:
        """Whether the format holds the number itself: the same value, the same infinity, or NaN for NaN."""
        if self.typed.nan or self.typed.value is None:
            return self.view.kind == ("nan" if self.typed.nan else "inf")
        return self.error == 0 and self.fate != "no minus zero"

    @property
    def overflowed(self) -> bool:
        """Whether a finite number was too large: it became infinity or NaN, or was clipped."""
        return self.fate in ("overflow", "clipped")

    @property
    def text(self) -> str:
        """The stored value for reading: exact where that is short, else "≈" and enough digits to see the error."""
        value = self.view.value
        if value is None or value == 0:
            return {"nan": "NaN"}.get(self.view.kind, self.view.decimal).replace("-", "−")
        if len(self.view.decimal) <= _EXACT_LENGTH:
            return rounded(value, _EXACT_LENGTH)
        digits = 6
        if self.relative:
            digits = max(digits, 2 - significant_digits(self.relative, 1)[1])
        return f"≈ {rounded(value, min(digits, 40))}"


def percent(ratio: Fraction) -> str:
    """Return ``ratio`` in percent to three digits, or to more if it would otherwise read as 100%."""
    share = 100 * ratio
    texts = (rounded(share, digits) for digits in (3, 4, 5, 6, 8, 12))
    text = next((text for text in texts if abs(ratio) == 1 or text.lstrip("−") != "100"), "")
    return f"{text or rounded(share, 3)}%"


def store(
    typed: Typed,
    fmt: FloatFormat,
    overflow: Overflow = "format",
    *,
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> Stored:
    """Return what ``typed`` becomes in ``fmt``. Raises `FormatError` like `typed_code`."""
    view = describe(typed_code(typed, fmt, overflow, rounding=rounding, seed=seed), fmt)
    policy = fmt.outcome(overflow)
    if typed.value is None or view.value is None or view.ulp is None:
        return Stored(typed, view, policy, None, None, None, _fate(typed, view, policy, None))
    error = view.value - typed.value
    relative = error / typed.value if typed.value else None
    return Stored(typed, view, policy, error, relative, error / view.ulp, _fate(typed, view, policy, error))


_KEPT = ("fp64", "fp32", "bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1fn")
"""The formats that tensors are most often kept in."""


def comparable_format(typed: Typed, fmt: FloatFormat) -> FloatFormat:
    """Return the common format to compare ``fmt`` with on ``typed``: one with the same, or nearly the same, number of
    bits."""
    others = (FORMATS[name] for name in _KEPT if name != fmt.name and (FORMATS[name].has_nan or not typed.nan))
    return min(others, key=lambda o: (abs(o.bits - fmt.bits), o.exponent_bits != fmt.exponent_bits))


def _fate(typed: Typed, view: CodeView, policy: Overflow, error: Fraction | None) -> Fate:
    fraction, fmt = typed.value, view.fmt
    if typed.nan:
        return "nan"
    if typed.code is not None and typed.code_format == fmt.name:
        return "code"
    if not fmt.signed and typed.negative and fraction != 0:
        return "no sign"
    if fraction is None:
        return "infinity"
    if fraction == 0 and not fmt.zero:
        return "no zero"
    if fraction == 0 and typed.negative and not view.sign:
        return "no minus zero"
    if view.value is None:
        return "overflow"
    if policy == "saturate" and abs(fraction) > fmt.max_finite:
        return "clipped"
    if not error:
        return "exact"
    if view.value == 0:
        return "underflow"
    return "lifted" if not fmt.zero and abs(fraction) < fmt.min_subnormal else "rounded"


def store_everywhere(
    typed: Typed,
    formats: Iterable[FloatFormat] = tuple(FORMATS.values()),
    overflow: Overflow = "format",
    *,
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> tuple[Stored, ...]:
    """Return what ``typed`` becomes in each of ``formats``.

    A format that does not support ``overflow`` uses its own policy. Formats without NaN are left out if NaN was
    entered.
    """
    return tuple(
        store(typed, fmt, overflow if overflow in fmt.overflows else "format", rounding=rounding, seed=seed)
        for fmt in formats
        if fmt.has_nan or not typed.nan or typed.code_format == fmt.name
    )


def explain_error(stored: Stored) -> tuple[Explanation, ...]:
    """Return how the errors are computed; empty if there is no error, or none that a float64 can show."""
    if not stored.error or stored.typed.value is None or stored.view.ulp is None:
        return ()
    exact = stored.error, stored.typed.value, stored.view.ulp
    if max(map(abs, exact)) > FORMATS["fp64"].max_finite:
        return ()
    error, value, ulp = map(float, exact)
    if 0.0 in (error, value, ulp):
        return ()
    return relative_error.explain(error=error, asked=value), error_in_ulp.explain(error=error, ulp=ulp)
