"""The Float formats page's first row: number, format (common, one of the others, or one's own) and overflow."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.fields import Field, choice, quantity, text
from core.floats.custom import NAN_WORDS, custom_format, parse_custom
from core.floats.formats import FORMATS, OVERFLOWS, FloatFormat, FormatError, Overflow
from core.floats.typed_numbers import FloatTextError, Typed, clipped, number_text, parse, typed_code
from core.limits import limit
from pages.common.inputs import Inputs

NUMBER, FORMAT, CUSTOM, FIRST_OTHER = "0.1", "bf16", "e4m3b11fnuz", "fp6_e3m2fn"
COMMON = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1fn")
MORE, OWN = "more", "custom"
OTHERS = tuple(name for name in FORMATS if name not in COMMON)

TYPE_HELP = (
    "A decimal (0.1, 1e-8, 65,504), a fraction (1/3), a power (2^-24, 1.25*2^-3), a hexfloat (0x1.8p-3), a sum of "
    "these (1 + 2^-8), nan, -inf; or a code of the chosen format in hex (0x3c00) or in bits (0 01111 0000000000)."
)
OVERFLOW_HELP = (
    "What a number beyond the largest finite value becomes. format: what the format itself says, infinity where it has "
    "one, else NaN, else the largest value. saturate: the largest finite value."
)
CUSTOM_HELP = (
    "e and exponent bits, m and fraction bits; then, if you like, b and a bias; fn (finite, NaN at all ones), fnuz "
    "(finite, NaN at −0) or f (finite, no NaN); and flags: _inf, _noinf, _unsigned, _nosub, _nonegzero."
)


NAN_HELP = (
    "Which codes are NaN. Exponent all ones: IEEE’s rule, with a fraction other than zero where there is infinity. All "
    "ones: every bit after the sign, as in E4M3. In place of −0: that one code, as in the FNUZ and P3109 formats."
)


_NUMBER = text("x", "Number", NUMBER, max_chars=limit("float_box_chars"), help=TYPE_HELP)
_OVERFLOW = choice("over", "Overflow", OVERFLOWS, "format", few=True, help=OVERFLOW_HELP)
_FORMAT = choice("fmt", "Format", (*COMMON, MORE, OWN), FORMAT, few=True)
_MORE_FORMATS = choice("more", "More formats", OTHERS, FIRST_OTHER, few=True)
_OWN = text("custom", "Your format", CUSTOM, max_chars=limit("float_box_chars"), help=CUSTOM_HELP)


@dataclass(frozen=True, slots=True)
class NumberInputs:
    """What the page is about: a number, a format, and what happens beyond its largest value."""

    typed: Typed
    fmt: FloatFormat
    overflow: Overflow

    @property
    def code(self) -> int:
        """The code the number becomes."""
        return typed_code(self.typed, self.fmt, self.overflow)


class FloatInputs(Inputs):
    """The page's inputs, with what its callbacks need."""

    def chosen(self) -> FloatFormat:
        """The format that session state names now, in a callback before the page has run."""
        name = str(st.session_state.get(self.key("fmt"), FORMAT))
        if name == MORE:
            name = str(st.session_state.get(self.key("more"), FIRST_OTHER))
        if name == OWN:
            text = str(st.session_state.get(f"{self.key('custom')}:good", CUSTOM))
            try:
                return parse_custom(str(st.session_state.get(self.key("custom"), text)))
            except FormatError:
                return parse_custom(text)
        return FORMATS.get(name, FORMATS[FORMAT])

    def choose(self, fmt: FloatFormat) -> None:
        """In a callback: make ``fmt`` the chosen format."""
        for name, value in choice_of(fmt.name).items():
            st.session_state[self.key(name)] = value

    def number(self, name: str, label: str, default: str, low: float, high: float, help: str = "") -> float:
        """Ask for a number."""
        return self.ask(quantity(name, label, default, "number", low=low, high=high, help=help))

    def count(self, name: str, label: str, default: str, low: float, high: float, help: str = "") -> int:
        """Ask for a whole number."""
        return int(self.ask(quantity(name, label, default, "count", low=low, high=high, whole=True, help=help)))

    def type_in(self, text: str) -> None:
        """In a callback: make ``text`` the typed number."""
        st.session_state[self.key("x")] = text


def choice_of(name: str) -> dict[str, str]:
    """The fields that choose the format ``name``."""
    if name in COMMON:
        return {"fmt": name}
    return {"fmt": MORE, "more": name} if name in FORMATS else {"fmt": OWN, "custom": name}


def read_inputs(inputs: FloatInputs) -> NumberInputs:
    """Draw the row, and read it; bad input is reported and the last good one stays."""
    _open_link(inputs)
    _follow_format(inputs)
    with st.container(horizontal=True):
        text = inputs.ask(_NUMBER)
        overflow: Overflow = inputs.ask(_OVERFLOW)
    name = inputs.ask(_FORMAT)
    fmt = FORMATS.get(inputs.ask(_MORE_FORMATS) if name == MORE else name) or _own(inputs)
    if overflow not in fmt.overflows:
        inputs.fail(
            f"Overflow: {fmt.title} has no code for “{overflow}”; it can follow {', '.join(fmt.overflows)}.",
            "Using the format’s own.",
        )
        overflow = "format"
    st.session_state["floats:seen"] = (text, fmt)
    return NumberInputs(read_number(inputs, _NUMBER, text, fmt), fmt, overflow)


def _open_link(inputs: FloatInputs) -> None:
    """A link may name any format directly, also one that the segmented control does not show."""
    named = st.query_params.get(inputs.key("fmt"), "")
    if named in OTHERS and inputs.key("fmt") not in st.session_state:
        for name, value in choice_of(named).items():
            st.session_state[inputs.key(name)] = value


def _follow_format(inputs: FloatInputs) -> None:
    """A typed code belongs to its format: when only the format changes, keep the number that the code stood for."""
    text, before = st.session_state.get("floats:seen", ("", None))
    if before is not None and inputs.chosen() != before and st.session_state.get(inputs.key("x")) == text:
        try:
            st.session_state[inputs.key("x")] = number_text(text, before)
        except FloatTextError:
            return


def read_number(inputs: FloatInputs, field: Field, text: str, fmt: FloatFormat) -> Typed:
    """What was typed into ``field``; a bad text is reported, and the last good one stays."""
    try:
        typed = _parsed(text, fmt)
        inputs.keep_good(field.id, number_text(text, fmt))
    except FloatTextError as problem:
        good = inputs.last_good(field.id, field.default)
        try:
            typed = _parsed(good, fmt)
        except FloatTextError:  # NaN, typed before a format without it was chosen
            typed, good = _parsed(field.default, fmt), field.default
        inputs.fail(f"{field.label}: {problem}", f"Still using {clipped(good)}.")
    return typed


def _parsed(text: str, fmt: FloatFormat) -> Typed:
    typed = parse(text, fmt)
    if typed.nan and not fmt.has_nan:
        raise FloatTextError(f"{fmt.title} has no NaN: none of its codes stands for it. For example 0.1, or inf.")
    return typed


def policies(fmt: FloatFormat) -> str:
    """A format's fields and policies in a sentence."""
    parts = [
        "no sign" if not fmt.signed else "1 sign bit",
        f"{_several(fmt.exponent_bits, 'exponent bit')} (bias {fmt.bias})" if fmt.exponent_bits else "fixed point",
        _several(fmt.fraction_bits, "fraction bit"),
        "infinity" if fmt.infinity else "no infinity",
        _several(fmt.nan_codes, "NaN code") if fmt.nan_codes else "no NaN",
    ]
    return f"{fmt.title}, {fmt.used}: {', '.join(parts)}."


def _several(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}" if count else f"no {thing}s"


def _own(inputs: FloatInputs) -> FloatFormat:
    """One's own format: as text, which the link carries, and as controls that write the text."""
    row, switches = st.container(horizontal=True), st.container(horizontal=True)
    with row:
        text = inputs.ask(_OWN)
    try:
        fmt = parse_custom(text)
        inputs.keep_good("custom", text)
    except FormatError as problem:
        good = inputs.last_good("custom", CUSTOM)
        fmt = parse_custom(good)
        inputs.fail(f"{_OWN.label}: {problem}", f"Still using {good}.")
    names = {
        "ce": fmt.exponent_bits,
        "cm": fmt.fraction_bits,
        "cb": fmt.bias,
        "cn": fmt.nan,
        "ci": fmt.infinity,
        "cs": fmt.signed,
        "cu": fmt.subnormals,
        "cz": fmt.has_negative_zero,
    }
    for name, value in names.items():
        st.session_state[inputs.key(name)] = value

    def build() -> None:
        state = {name: st.session_state[inputs.key(name)] for name in names}
        # The bias follows the exponent's width unless it was changed itself.
        moved = state["ce"] != fmt.exponent_bits or state["cn"] != fmt.nan
        # −0 comes back with the code that a sign or another place for NaN makes free.
        freed = state["cs"] != fmt.signed or (state["cn"] != fmt.nan and fmt.nan == "negative_zero")
        try:
            result = custom_format(
                int(state["ce"]),
                int(state["cm"]),
                bias=None if moved and state["cb"] == fmt.bias else int(state["cb"]),
                signed=bool(state["cs"]),
                infinity=bool(state["ci"]),
                nan=state["cn"],
                negative_zero=None if freed or state["cz"] else False,
                subnormals=bool(state["cu"]),
            )
        except FormatError as problem:
            st.session_state["floats:refused"] = str(problem)
            return
        st.session_state[inputs.key("custom")] = result.name

    row.number_input("Exponent bits", 1, 11, key=inputs.key("ce"), on_change=build)
    row.number_input("Fraction bits", 0, 52, key=inputs.key("cm"), on_change=build)
    row.number_input("Bias", -2000, 2000, key=inputs.key("cb"), on_change=build)
    row.selectbox(
        "NaN", list(NAN_WORDS), format_func=NAN_WORDS.__getitem__, key=inputs.key("cn"), help=NAN_HELP, on_change=build
    )
    switches.toggle("Infinity", key=inputs.key("ci"), on_change=build)
    switches.toggle("Signed", key=inputs.key("cs"), on_change=build)
    switches.toggle("Subnormals", key=inputs.key("cu"), on_change=build)
    taken = not fmt.signed or fmt.nan == "negative_zero"
    switches.toggle(
        "Negative zero", key=inputs.key("cz"), help="Without it the code of −0 is NaN.", disabled=taken, on_change=build
    )
    refused = st.session_state.pop("floats:refused", None)
    if refused:
        inputs.fail(f"{_OWN.label}: {refused}", f"Still using {fmt.name}.")
    return fmt
