"""The formula of one code of a format as LaTeX, whose fields wear their colours."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from core.floats.code_description import CodeView, value_formula
from core.floats.decimals import exact_decimal, place_point, significant_digits
from core.floats.formats import FloatFormat
from core.messages import message
from core.views.common.palette import Palette

_LONG_VALUE = 20
"""In the filled-in formula a value with more characters is rounded, to a few digits more than the format has."""


def value_latex(view: CodeView, palette: Palette, *, in_symbols: bool = True) -> tuple[str, ...]:
    """Return how the fields make the value: in symbols if asked, then in numbers, each a formula of its own that a
    narrow screen can break. Fields wear their colors."""

    def wear(role: str, text: object) -> str:
        return rf"\textcolor{{{palette.role(role)}}}{{{text}}}"

    letters = {"sign": "S", "exponent": "E", "fraction": "M"}
    law, values = value_formula(view)
    if view.value is None or law is None:
        return (_no_number_latex(view, {field: wear(field, letter) for field, letter in letters.items()}, wear),)
    whole = {name: f"{value:.0f}" for name, value in values.items()}  # every one is an integer, of up to 52 bits
    numbers = {name: wear(name, text) if name in letters else text for name, text in whole.items()}
    symbols = numbers | {name: wear(name, letter) for name, letter in letters.items() if name in values}
    if "bias" in values:
        symbols["bias"] = r"\mathrm{bias}"
    right = rf"= {law.fill(**numbers)} {_result_latex(view)}"
    return (rf"x = {law.fill(**symbols)}", rf"\phantom{{x}} {right}") if in_symbols else (f"x {right}",)


def _no_number_latex(view: CodeView, letters: dict[str, str], wear: Callable[[str, object], str]) -> str:
    """Return the fields of infinity, NaN, or a zero that no formula gives, and what their code means."""
    fmt = view.fmt
    minus = "-" * view.sign
    outcome = {"inf": rf"{minus}\infty", "nan": r"\mathrm{NaN}"}.get(view.kind, "0")
    if view.kind == "inf" and fmt.nan == "ieee":
        outcome = rf"(-1)^{{{wear('sign', view.sign)}}} \cdot \infty"
    widths = {"sign": int(fmt.signed), "exponent": fmt.exponent_bits, "fraction": fmt.fraction_bits}
    numbers = {"sign": view.sign, "exponent": view.exponent, "fraction": view.fraction}
    ones = {"exponent": view.exponent == fmt.exponent_mask, "fraction": view.fraction == fmt.fraction_mask}
    display = [name for name, width in widths.items() if width and (name != "sign" or fmt.nan == "negative_zero")]
    note = rf"\text{{ {message('floats.formula.ones')}}}"
    parts = [rf"{letters[name]} = {wear(name, numbers[name])} {note if ones.get(name) else ''}" for name in display]
    fields = r", \quad ".join(parts)
    return rf"{fields} \quad\Rightarrow\quad x = {outcome}"


def _result_latex(view: CodeView) -> str:
    """Return the right-hand sides after the numbers: significand times power of two, then the value."""
    if not view.value:
        return rf"= {view.decimal}"
    sign, equals, power = "-" * (view.value < 0), "=", view.power
    if view.fmt.twos_complement:
        return rf"= {view.decimal}"
    if view.lead:
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
