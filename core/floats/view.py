"""One code of one format, described completely: fields, class, exact value, neighbours, and every bit's weight."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from core.floats.codec import NumberClass, classify, decode_exact
from core.floats.decimals import brief, exact_decimal, hexfloat, place_point, raised, rounded, significant_digits
from core.floats.formats import FloatFormat
from core.floats.laws import normal_value, subnormal_value, unit_in_last_place
from core.formula import Explanation
from core.palette import Palette

Field: TypeAlias = Literal["sign", "exponent", "fraction"]

_LONG_VALUE = 20
"""In the filled-in formula a value with more characters is rounded, to a few digits more than the format has."""


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit: the field it belongs to, its place in it (0 is the last), what it weighs, and what flipping gives.

    weight: in its field, as ``2^3``; the sign bit's is ``(-1)^S``. effect: the same in words, for this code.
    flipped: the value after flipping this bit alone.
    """

    field: Field
    index: int
    value: int
    weight: str
    effect: str
    flipped: str


@dataclass(frozen=True, slots=True)
class CodeView:
    """A code and everything that follows from it. Made by `describe`.

    sign, exponent, fraction: the fields. value: exact, None for infinity and NaN.
    decimal: every digit of the value, or inf, -inf, nan. hexfloat: likewise.
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
    hexfloat: str
    ulp: Fraction | None
    below: int | None
    above: int | None

    @property
    def hex_code(self) -> str:
        """The code in hex with all its digits."""
        return f"0x{self.code:0{self.fmt.hex_digits}x}"

    @property
    def binary(self) -> str:
        """The bits, one group per field."""
        return f"{self.sign} {self.exponent:0{self.fmt.exponent_bits}b} {self.fraction:0{self.fmt.fraction_bits}b}"

    @property
    def power(self) -> int:
        """The power of two that multiplies 1.M or 0.M."""
        return max(self.exponent, 1) - self.fmt.bias

    @property
    def significand(self) -> Fraction:
        """1.M of a normal number, 0.M of a subnormal."""
        return Fraction(self.fraction, 1 << self.fmt.fraction_bits) + (self.exponent > 0)


@lru_cache(maxsize=512)
def describe(code: int, fmt: FloatFormat) -> CodeView:
    """Everything about ``code`` in ``fmt``. Raises ``ValueError`` when the code has more bits than the format."""
    value = decode_exact(code, fmt)
    kind = classify(code, fmt)
    sign = code >> (fmt.bits - 1)
    exponent = (code >> fmt.fraction_bits) & fmt.exponent_mask
    if value is None:
        word = ("-" if sign else "") + kind if kind == "inf" else kind
        decimal = hexadecimal = word
        ulp = None
    else:
        minus = "-" if sign and not value else ""
        decimal, hexadecimal = minus + exact_decimal(value), minus + hexfloat(value)
        ulp = Fraction(2) ** (max(exponent, 1) - fmt.bias - fmt.fraction_bits)
    return CodeView(
        fmt,
        code,
        kind,
        sign,
        exponent,
        code & fmt.fraction_mask,
        value,
        decimal,
        hexadecimal,
        ulp,
        _step(code, fmt, up=False),
        _step(code, fmt, up=True),
    )


def _step(code: int, fmt: FloatFormat, *, up: bool) -> int | None:
    """The code of the next value up or down, stepping from either zero straight to the smallest subnormal."""
    magnitude = code & (fmt.sign_mask - 1)
    last = fmt.max_code if fmt.inf_code is None else fmt.inf_code
    if magnitude > last:
        return None
    negative = bool(code & fmt.sign_mask)
    if magnitude == 0:
        return 1 if up else fmt.sign_mask | 1
    outward = negative != up
    if outward:
        return None if magnitude == last else code + 1
    # −(smallest subnormal) steps up to +0: one zero is enough on a line of values.
    return 0 if magnitude == 1 else code - 1


@lru_cache(maxsize=512)
def bits(code: int, fmt: FloatFormat) -> tuple[Bit, ...]:
    """Every bit of ``code``, first (sign) to last."""
    view = describe(code, fmt)
    return tuple(_bit(view, place) for place in reversed(range(fmt.bits)))


def _bit(view: CodeView, place: int) -> Bit:
    fmt = view.fmt
    now = view.code >> place & 1
    flipped = _short(view.code ^ 1 << place, fmt)
    if place == fmt.bits - 1:
        return Bit("sign", 0, now, "(-1)^S", "1 makes the number negative", flipped)
    if place >= fmt.fraction_bits:
        index = place - fmt.fraction_bits
        effect = raised(f"is worth {1 << index} in E, a factor 2^{1 << index} in the value")
        return Bit("exponent", index, now, f"2^{index}", effect, flipped)
    weight = place - fmt.fraction_bits
    if view.value is None:
        effect = raised(f"is worth 2^{weight} in the fraction, which only tells infinity and the NaNs apart here")
    else:
        lead = 1 if view.exponent else 0
        here = brief(Fraction(2) ** (weight + view.power))
        effect = raised(f"is worth 2^{weight} in {lead}.M, here {here} in the value")
    return Bit("fraction", place, now, f"2^{weight}", effect, flipped)


def _short(code: int, fmt: FloatFormat) -> str:
    view = decode_exact(code, fmt)
    sign = "−" if code & fmt.sign_mask else ""
    if view is None:
        return "NaN" if classify(code, fmt) == "nan" else f"{sign}inf"
    return rounded(view, 6) if view else f"{sign}0"


def value_latex(view: CodeView, palette: Palette) -> str:
    """How the fields make the value: in symbols, then with the numbers filled in. Fields wear their colours."""

    def wear(role: str, text: object) -> str:
        return rf"\textcolor{{{palette.role(role)}}}{{{text}}}"

    sign, exponent, fraction = wear("sign", view.sign), wear("exponent", view.exponent), wear("fraction", view.fraction)
    if view.value is None:
        outcome = rf"(-1)^{{{sign}}} \cdot \infty" if view.kind == "inf" else r"\text{not a number}"
        ones = r"\text{ (all ones)}"
        both = ones if view.fraction == view.fmt.fraction_mask else ""
        fields = rf"{wear('exponent', 'E')} = {exponent} {ones}, \quad {wear('fraction', 'M')} = {fraction} {both}"
        return rf"{fields} \quad\Rightarrow\quad x = {outcome}"
    law = normal_value if view.exponent else subnormal_value
    widths = {"fraction_bits": str(view.fmt.fraction_bits)}
    symbols = widths | {"sign": wear("sign", "S"), "fraction": wear("fraction", "M"), "bias": r"\mathrm{bias}"}
    numbers = widths | {"sign": sign, "fraction": fraction, "bias": str(view.fmt.bias)}
    if view.exponent:
        symbols["exponent"] = wear("exponent", "E")
        numbers["exponent"] = exponent
    rows = rf"x &= {law.fill(**symbols)} \\[6pt] &= {law.fill(**numbers)} {_result_latex(view)}"
    return rf"\begin{{aligned}} {rows} \end{{aligned}}"


def _result_latex(view: CodeView) -> str:
    """The right-hand sides after the numbers: significand times power of two, then the value."""
    if not view.value:
        return rf"= {view.decimal}"
    sign, equals, power = "-" * view.sign, "=", view.power
    if view.exponent:
        significand = exact_decimal(view.significand)
    else:
        # A subnormal is a whole number of the smallest steps, which says more than a significand full of zeros.
        significand, power = str(view.fraction), view.power - view.fmt.fraction_bits
    if len(significand) > _LONG_VALUE:
        significand, equals = _rounded_plain(view.significand, view.fmt), r"\approx"
    product = rf"{equals} {sign}{significand} \cdot 2^{{{power}}}"
    value = exact_decimal(abs(view.value))
    if len(value) > _LONG_VALUE:
        value, equals = _rounded_plain(abs(view.value), view.fmt), r"\approx"
    mantissa, _, exponent = value.partition("e")
    scale = rf" \cdot 10^{{{exponent}}}" if exponent else ""
    return rf"{product} {equals} {sign}{mantissa}{scale}"


def _rounded_plain(value: Fraction, fmt: FloatFormat) -> str:
    digits, exponent = significant_digits(value, fmt.decimal_digits + 4)
    return place_point(digits, exponent)


def explain(view: CodeView) -> tuple[Explanation, ...]:
    """How the value and its spacing are computed; nothing for infinity and NaN, whose codes mean themselves."""
    if view.value is None:
        return ()
    fields = {
        "sign": float(view.sign),
        "fraction": float(view.fraction),
        "fraction_bits": float(view.fmt.fraction_bits),
        "bias": float(view.fmt.bias),
    }
    value = (
        normal_value.explain(exponent=float(view.exponent), **fields)
        if view.exponent
        else subnormal_value.explain(**fields)
    )
    ulp = unit_in_last_place.explain(
        exponent=float(max(view.exponent, 1)),
        bias=float(view.fmt.bias),
        fraction_bits=float(view.fmt.fraction_bits),
    )
    return value, ulp
