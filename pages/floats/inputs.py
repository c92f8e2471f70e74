"""The Float formats page's first row: number, format (common, one of the others, or custom), and overflow."""

from __future__ import annotations

import re
from dataclasses import dataclass

import streamlit as st

from core.fields import Field, choice, quantity, text
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, OVERFLOWS, FloatFormat, FormatError, Overflow
from core.floats.typed_numbers import FloatTextError, Typed, clipped, number_text, parse, typed_code
from core.limits import limit
from core.messages import message
from pages.common.inputs import Inputs

NUMBER, FORMAT, CUSTOM, FIRST_OTHER = "0.1", "bf16", "e4m3b11fnuz", "fp6_e3m2fn"
COMMON = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1fn")
MORE, OWN = "more", "custom"
OTHERS = tuple(name for name in FORMATS if name not in COMMON)


def titles(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of formats in prose."""
    return tuple(FORMATS[name].title for name in names)


_NUMBER = text(
    "x",
    message("floats.field.number"),
    NUMBER,
    max_chars=limit("float_box_chars"),
    help=message("floats.field.number_help"),
)
_OVERFLOW = choice(
    "over",
    message("floats.field.overflow"),
    OVERFLOWS,
    "format",
    few=True,
    help=message("floats.field.overflow_help"),
)
_FORMAT = choice(
    "fmt",
    message("floats.field.format"),
    (*COMMON, MORE, OWN),
    FORMAT,
    few=True,
    short=(*titles(COMMON), message("floats.field.more"), message("floats.field.custom")),
)
_MORE_FORMATS = choice(
    "more", message("floats.field.more_formats"), OTHERS, FIRST_OTHER, few=True, short=titles(OTHERS)
)
_OWN = text(
    "custom",
    message("floats.field.custom_format"),
    CUSTOM,
    max_chars=limit("float_box_chars"),
    help=message("floats.field.custom_help"),
)


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
        """Return the format that session state names now, in a callback before the page has run."""
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

    def number(self, name: str, label: str, default: str, low: float, high: float, help: str = "") -> float:
        """Ask for a number."""
        return self.ask(quantity(name, label, default, "number", low=low, high=high, help=help))

    def count(self, name: str, label: str, default: str, low: float, high: float, help: str = "") -> int:
        """Ask for a whole number."""
        return int(self.ask(quantity(name, label, default, "count", low=low, high=high, whole=True, help=help)))

    def type_in(self, text: str) -> None:
        """Make ``text`` the entered number (callback)."""
        st.session_state[self.key("x")] = text

    def fall_back(self, field: Field, problem: Exception, good: str) -> None:
        """Report a text that cannot be read, and which one counts instead."""
        self.fail(f"{field.label}: {problem}", message("floats.error.still", good=clipped(good)))


def choice_of(name: str) -> dict[str, str]:
    """Return the fields that choose the format ``name``."""
    if name in COMMON:
        return {"fmt": name}
    return {"fmt": MORE, "more": name} if name in FORMATS else {"fmt": OWN, "custom": name}


def read_inputs(inputs: FloatInputs) -> NumberInputs:
    """Draw the row and read it; bad input is reported, and the last good one stays."""
    _open_link(inputs)
    _follow_format(inputs)
    with st.container(horizontal=True):
        text = inputs.ask(_NUMBER)
        overflow: Overflow = inputs.ask(_OVERFLOW)
    name = inputs.ask(_FORMAT)
    fmt = FORMATS.get(inputs.ask(_MORE_FORMATS) if name == MORE else name) or _custom_format(inputs)
    if overflow not in fmt.overflows:
        inputs.fail(message("floats.error.overflow", fmt=fmt.title, overflow=overflow))
        overflow = "format"
    st.session_state["floats:seen"] = (text, fmt)
    return NumberInputs(read_number(inputs, _NUMBER, text, fmt), fmt, overflow)


def _open_link(inputs: FloatInputs) -> None:
    """Read the format that a link names, which may be one that the segmented control does not show."""
    named = st.query_params.get(inputs.key("fmt"), "")
    if named in OTHERS and inputs.key("fmt") not in st.session_state:
        for name, value in choice_of(named).items():
            st.session_state[inputs.key(name)] = value


def _follow_format(inputs: FloatInputs) -> None:
    """Keep the number that an entered code stands for when only the format changes."""
    text, before = st.session_state.get("floats:seen", ("", None))
    if before is not None and inputs.chosen() != before and st.session_state.get(inputs.key("x")) == text:
        try:
            st.session_state[inputs.key("x")] = number_text(text, before)
        except FloatTextError:
            return


def read_number(inputs: FloatInputs, field: Field, text: str, fmt: FloatFormat) -> Typed:
    """Return what was entered into ``field``; a bad text is reported, and the last good one stays."""
    try:
        typed = _parsed(text, fmt)
        inputs.keep_good(field.id, number_text(text, fmt))
    except FloatTextError as problem:
        good = inputs.last_good(field.id, field.default)
        try:
            typed = _parsed(good, fmt)
        except FloatTextError:  # NaN, typed before a format without it was chosen
            typed, good = _parsed(field.default, fmt), field.default
        inputs.fall_back(field, problem, good)
    return typed


def _parsed(text: str, fmt: FloatFormat) -> Typed:
    typed = parse(text, fmt)
    if typed.nan and not fmt.has_nan:
        raise FloatTextError(message("floats.error.no_nan", fmt=fmt.title))
    return typed


_WIDTHS = re.compile(r"e\d+m\d+(b-?\d+)?", re.ASCII)


def _custom_format(inputs: FloatInputs) -> FloatFormat:
    """Return a custom format as text, which the link carries, and its two widths as controls that write the text."""
    with st.container(horizontal=True):
        text = inputs.ask(_OWN)
        try:
            fmt = parse_custom(text)
            inputs.keep_good(_OWN.id, text)
        except FormatError as problem:
            good = inputs.last_good(_OWN.id, CUSTOM)
            fmt = parse_custom(good)
            inputs.fall_back(_OWN, problem, good)
        exponent, fraction = inputs.key("ce"), inputs.key("cm")

        def write() -> None:
            widths = f"e{st.session_state[exponent]}m{st.session_state[fraction]}"
            st.session_state[inputs.key(_OWN.id)] = _WIDTHS.sub(widths, fmt.name)

        st.session_state[exponent], st.session_state[fraction] = fmt.exponent_bits, fmt.fraction_bits
        st.number_input(message("floats.field.exponent_bits"), 1, 11, key=exponent, on_change=write)
        st.number_input(message("floats.field.fraction_bits"), 0, 52, key=fraction, on_change=write)
    return fmt
