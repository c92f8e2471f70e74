"""Float formats, the panel on arithmetic: an operation as hardware does it."""

from __future__ import annotations

import html

import streamlit as st

from core.fields import choice, text
from core.floats.arithmetic.errors import TypedOperation, explain_work, work
from core.floats.arithmetic.operations import OPERATORS, Operator, check_arithmetic
from core.floats.formats import FORMATS, FloatFormat, FormatError, Overflow
from core.floats.rounding import Rounding
from core.floats.typed_numbers import Typed
from core.limits import limit
from core.views.floats.charts_arithmetic import ROLES, ArithmeticRow, CharacterGrid, stages, stored_digits
from core.views.floats.text_arithmetic import NAMES, answer, modes, representable_text
from core.views.floats.text_arithmetic import stages as sentences
from pages.common import show
from pages.common.show import rich
from pages.floats.inputs import COMMON, FloatInputs, NumberInputs, read_number

CHOSEN, NONE = "chosen above", "none"
MODES: dict[str, Rounding] = {
    "even": "nearest_even",
    "away": "nearest_away",
    "zero": "toward_zero",
    "up": "up",
    "down": "down",
}
DEFAULTS = ("0.1", "0.2", "0.3")
MODE_HELP = (
    "even: to nearest, ties to even. away: to nearest, ties away from zero. zero: toward zero. up: toward +∞. down: "
    "toward −∞. The operands are rounded to nearest, ties to even, whatever is chosen here."
)
_PRESETS: dict[str, tuple[str, Operator, tuple[str, ...], str]] = {
    "0.1 + 0.2": ("fp64", "add", ("0.1", "0.2"), NONE),
    "1 + 1e-8 is swallowed": ("bf16", "add", ("1", "1e-8"), "fp16"),
    "Cancellation": ("bf16", "add", ("1.01", "-1"), "fp16"),
    "fma keeps what two roundings lose": ("fp16", "fma", ("1 + 2^-10", "1 - 2^-10", "-1"), NONE),
    "65504 + 16 overflows": ("fp16", "add", ("65504", "16"), "bf16"),
    "Subnormals add exactly": ("fp16", "add", ("3*2^-24", "5*2^-24"), NONE),
    "Sterbenz: 3.14 − 2.72": ("bf16", "add", ("3.14", "-2.72"), NONE),
    "An fp8 product": ("fp8_e4m3fn", "multiply", ("1.1", "-3"), "fp8_e5m2"),
}
PRESETS = {
    preset: {"af": fmt, "aop": operator, "ar": "even", "av": other}
    | {f"a{name}": number for name, number in zip(NAMES, numbers, strict=False)}
    for preset, (fmt, operator, numbers, other) in _PRESETS.items()
}


def arithmetic(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """The panel, running only while it is open."""
    with inputs.panel("arith", "Arithmetic: add, multiply, fused multiply-add, bit by bit") as opened:
        if opened.open:
            with show.errors_under(inputs):
                operation(inputs, number_inputs)


def operation(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """One operation in one format, and its result beside that in another."""
    head = show.slot()
    with show.errors_under(inputs):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            operator: Operator = inputs.ask(choice("aop", "Operation", list(OPERATORS), "add", few=True))
            fields = st.container(horizontal=True, width="stretch")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            fmt = _format(inputs, number_inputs.fmt)
            mode = MODES[inputs.ask(choice("ar", "Rounding", list(MODES), "even", few=True, help=MODE_HELP))]
            other = inputs.ask(choice("av", "Beside it", [NONE, *COMMON], NONE))
        with fields:
            typed = tuple(
                _operand(inputs, f"a{name}", name, default, fmt)
                for name, default in zip(NAMES[: 3 if operator == "fma" else 2], DEFAULTS, strict=False)
            )
    with head:
        inputs.presets(PRESETS, into=show.slot(), key="arith")
    overflow: Overflow = number_inputs.overflow if number_inputs.overflow in fmt.overflows else "format"
    try:
        done = work(operator, typed, fmt, rounding=mode, overflow=overflow)
    except FormatError as problem:
        show.error(f"Result: {problem}")
        return
    with head:
        show.takeaway(answer(done))
    st.html(_staged(done))
    if other != NONE:
        _compared(done, FORMATS[other], mode)
    rows = modes(done)
    if rows:
        show.small_table(
            ("Rounding", "Last place", "Result"),
            rows,
            words=2,
            caption="The same bits under every rounding mode",
            here=list(MODES.values()).index(mode),
        )
    show.how(lambda: explain_work(done), key="floats:arith:how")


def _format(inputs: FloatInputs, chosen: FloatFormat) -> FloatFormat:
    name = inputs.ask(choice("af", "In the format", [CHOSEN, *COMMON], CHOSEN))
    fmt = chosen if name == CHOSEN else FORMATS[name]
    try:
        check_arithmetic(fmt)
    except FormatError as problem:
        inputs.fail(f"In the format: {problem}", "Using bf16.")
        return FORMATS["bf16"]
    return fmt


def _operand(inputs: FloatInputs, name: str, label: str, default: str, fmt: FloatFormat) -> Typed:
    field = text(name, label, default, max_chars=limit("float_box_chars"))
    return read_number(inputs, field, inputs.ask(field), fmt)


def _staged(done: TypedOperation) -> str:
    """Every stage's sentence with its picture."""
    grids = {grid.stage: _drawn(grid) for grid in stages(done.operation)}
    rows = [(name, rich(sentence), "" if name in grids else " class=words") for name, sentence in sentences(done)]
    parts = (f"<dt{kind}>{name}</dt><dd{kind}><p>{says}</p>{grids.get(name, '')}</dd>" for name, says, kind in rows)
    return f'<dl class="np-stages">{"".join(parts)}</dl>'


def _drawn(grid: CharacterGrid) -> str:
    lines = "".join(_line(row, at in grid.sums) for at, row in enumerate(grid.rows))
    kind = "np-column codes" if grid.stage in ("Stored", "Result") else "np-column"
    return f'<div class="{kind}" role="region" aria-label="{grid.stage}" tabindex="0">{lines}</div>'


def _line(row: ArithmeticRow, total: bool) -> str:
    kind = ' class="total"' if total else ""
    name = html.escape(row.label)
    return f"<div{kind}><span>{name}</span><code>{_spans(row)}</code><small>{rich(row.remark)}</small></div>"


def _spans(row: ArithmeticRow) -> str:
    """The characters of a row, those of one role next to each other in one element."""
    parts: list[str] = []
    start = 0
    for at in range(1, len(row.text) + 1):
        if at == len(row.text) or row.roles[at] != row.roles[start]:
            text, role = html.escape(row.text[start:at]), row.roles[start]
            parts.append(text if role == " " else f'<b class="{ROLES[role]}">{text}</b>')
            start = at
    return "".join(parts)


def _compared(done: TypedOperation, fmt: FloatFormat, mode: Rounding) -> None:
    """The same operation in another format, and both results under the exact one."""
    try:
        other = work(done.operation.operator, done.typed, fmt, rounding=mode)
    except FormatError as problem:
        show.note(f"Beside it: {problem}")
        return
    show.takeaway(answer(other))
    if done.errors is None:
        return
    both = (done.operation, other.operation)
    drawn = stored_digits(
        done.errors.wanted,
        [(item.fmt, item.code) for item in both],
        [representable_text(item.code, item.fmt) for item in both],
    )
    if drawn is not None:
        st.html(_drawn(drawn))
