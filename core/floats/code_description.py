"""One code of one format, described completely: fields, class, exact value, neighbors, and every bit's weight."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from core.floats.codec import NumberClass, classify, decode_exact, neighbor
from core.floats.decimals import exact_decimal, rounded
from core.floats.formats import FloatFormat
from core.floats.laws import fixed_value, normal_value, power_value, subnormal_value, unit_in_last_place
from core.formula import Explanation, Formula
from core.limits import cached

Field: TypeAlias = Literal["sign", "exponent", "fraction"]


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit.

    index: its place in its field, 0 for the last. weight: in its field, as ``2^3``; the sign bit's is ``(-1)^S``.
    power: log2 of what it adds to the value, or of the factor that it multiplies the value by; None for a sign bit and
    for infinity and NaN. flipped: the value after flipping this bit alone.
    """

    field: Field
    index: int
    value: int
    weight: str
    power: int | None
    flipped: str


@dataclass(frozen=True, slots=True)
class CodeView:
    """A code and everything that follows from it. Made by `describe`.

    sign, exponent, fraction: the fields. value: exact, None for infinity and NaN.
    decimal: every digit of the value, or inf, -inf, nan.
    ulp: spacing to the next larger magnitude of the same binade, None for infinity and NaN.
    below, above: codes of the next smaller and larger value, None at the end of the line and for NaN.
    """

    fmt: FloatFormat
    code: int
    kind: NumberClass
    sign: int
    exponent: int
    fraction: int
    value: Fraction | None
    decimal: str
    ulp: Fraction | None
    below: int | None
    above: int | None

    @property
    def hex_code(self) -> str:
        """The code in hex with all its digits."""
        return f"0x{self.code:0{self.fmt.hex_digits}x}"

    @property
    def word(self) -> str:
        """The memory word that holds the code, in hex, where it is wider than the code; else empty."""
        spare = self.fmt.word_bits - self.fmt.bits
        return f"0x{self.code << spare:0{self.fmt.word_bits // 4}x}" if spare else ""

    @property
    def power(self) -> int:
        """The power of two that multiplies 1.M or 0.M."""
        return self.fmt.power(self.exponent)

    @property
    def significand(self) -> Fraction:
        """1.M of a normal number, 0.M of a subnormal."""
        return Fraction(self.fraction, 1 << self.fmt.fraction_bits) + self.lead

    @property
    def lead(self) -> int:
        """The bit before the point of the significand."""
        return self.fmt.lead(self.exponent)


@cached("small_results_kept")
def describe(code: int, fmt: FloatFormat) -> CodeView:
    """Return everything about ``code`` in ``fmt``. Raises ``ValueError`` if the code has more bits than the format."""
    value = decode_exact(code, fmt)
    kind = classify(code, fmt)
    sign = int(code & fmt.sign_mask > 0)
    exponent = (code >> fmt.fraction_bits) & fmt.exponent_mask
    if value is None:
        decimal = ("-" if sign else "") + kind if kind == "inf" else kind
        ulp = None
    else:
        minus = "-" if sign and not value else ""
        decimal = minus + exact_decimal(value)
        # Without subnormals the step from zero is the smallest value itself.
        gap = kind == "zero" and not fmt.gradual
        ulp = fmt.min_subnormal if gap else Fraction(2) ** (fmt.power(exponent) - fmt.fraction_bits)
    return CodeView(
        fmt,
        code,
        kind,
        sign,
        exponent,
        code & fmt.fraction_mask,
        value,
        decimal,
        ulp,
        neighbor(code, fmt, up=False),
        neighbor(code, fmt, up=True),
    )


@cached("small_results_kept")
def bits(code: int, fmt: FloatFormat) -> tuple[Bit, ...]:
    """Return every bit of ``code``, first (sign) to last."""
    view = describe(code, fmt)
    return tuple(_bit(view, place) for place in reversed(range(fmt.bits)))


def _bit(view: CodeView, place: int) -> Bit:
    fmt = view.fmt
    now = view.code >> place & 1
    flipped = _short(view.code ^ 1 << place, fmt)
    if 1 << place == fmt.sign_mask:
        weight = f"-2^{place - fmt.fraction_bits + 1}" if fmt.twos_complement else "(-1)^S"
        return Bit("sign", 0, now, weight, None, flipped)
    if place >= fmt.fraction_bits:
        index = place - fmt.fraction_bits
        return Bit("exponent", index, now, f"2^{index}", 1 << index, flipped)
    weight = place - fmt.fraction_bits + (fmt.emin if fmt.twos_complement else 0)
    power = weight if fmt.twos_complement else weight + view.power
    return Bit("fraction", place, now, f"2^{weight}", None if view.value is None else power, flipped)


def _short(code: int, fmt: FloatFormat) -> str:
    view = decode_exact(code, fmt)
    sign = "−" if code & fmt.sign_mask else ""
    if view is None:
        return "NaN" if classify(code, fmt) == "nan" else f"{sign}inf"
    return rounded(view, 6) if view else f"{sign}0"


def explainable(view: CodeView) -> bool:
    """Return whether `explain` has anything to say."""
    return value_formula(view)[0] is not None


def explain(view: CodeView) -> tuple[Explanation, ...]:
    """Return how the value and its spacing are computed; nothing for codes that mean themselves, as infinity and NaN
    do."""
    law, values = value_formula(view)
    if law is None:
        return ()
    value = law.explain(**values)
    if view.fmt.twos_complement:
        return (value,)
    ulp = unit_in_last_place.explain(
        exponent=float(view.power + view.fmt.bias),
        bias=float(view.fmt.bias),
        fraction_bits=float(view.fmt.fraction_bits),
    )
    return value, ulp


def explain_value(view: CodeView) -> tuple[Explanation, ...]:
    """Return the formula of the value, named after its format; empty for codes without a formula."""
    return tuple(step.about(view.fmt.title) for step in explain(view)[:1])


def value_formula(view: CodeView) -> tuple[Formula[...] | None, dict[str, float]]:
    """Return the formula that makes the value out of the fields, and its arguments; None if the code means itself."""
    fmt = view.fmt
    if view.value is None or (view.kind == "zero" and not fmt.gradual):
        return None, {}
    fields = {"sign": view.sign, "fraction": view.fraction, "fraction_bits": fmt.fraction_bits}
    law: Formula[...]
    if fmt.twos_complement:
        law, fields = fixed_value, fields | {"places": fmt.fraction_bits - fmt.emin}
    elif not fmt.signed and not fmt.zero and fmt.fraction_bits == 0:
        law, fields = power_value, {"exponent": view.exponent, "bias": fmt.bias}
    elif view.lead:
        law, fields = normal_value, fields | {"exponent": view.exponent, "bias": fmt.bias}
    else:
        law, fields = subnormal_value, fields | {"bias": fmt.bias}
    return law, {name: float(value) for name, value in fields.items()}
