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
from core.messages import message
from core.views.floats.charts_arithmetic import ROLES, ArithmeticRow, CharacterGrid, stages
from core.views.floats.text_arithmetic import NAMES, answer_texts, mode_rows, stage_texts
from core.views.floats.text_rounding import mode_label
from pages.common import show
from pages.common.show import rich
from pages.floats.inputs import COMMON, FloatInputs, NumberInputs, read_number, titles

CHOSEN = "chosen above"
MODES: dict[str, Rounding] = {
    "even": "nearest_even",
    "away": "nearest_away",
    "zero": "toward_zero",
    "up": "up",
    "down": "down",
}
DEFAULTS = ("0.1", "0.2", "0.3")
_OPERATION = choice(
    "aop",
    message("arithmetic.field.operation"),
    list(OPERATORS),
    "add",
    few=True,
    short=(message("arithmetic.operation.add"), message("arithmetic.operation.multiply"), "fma"),
    help=message("arithmetic.field.operation_help"),
)
_FORMAT = choice(
    "af",
    message("arithmetic.field.format"),
    [CHOSEN, *COMMON],
    CHOSEN,
    short=(message("arithmetic.field.format_above"), *titles(COMMON)),
)
_ROUNDING = choice(
    "ar",
    message("arithmetic.field.rounding"),
    list(MODES),
    "even",
    short=[mode_label(mode) for mode in MODES.values()],
    help=message("arithmetic.field.rounding_help"),
)
_PRESETS: dict[str, tuple[str, Operator, tuple[str, ...]]] = {
    "0.1 + 0.2": ("fp64", "add", ("0.1", "0.2")),
    message("arithmetic.preset.lost"): ("bf16", "add", ("1", "1e-8")),
    message("arithmetic.preset.cancellation"): ("bf16", "add", ("1.01", "-1")),
    message("arithmetic.preset.fma"): ("fp16", "fma", ("1 + 2^-10", "1 - 2^-10", "-1")),
    message("arithmetic.preset.overflow"): ("fp16", "add", ("65504", "16")),
    message("arithmetic.preset.subnormal"): ("fp16", "add", ("3*2^-24", "5*2^-24")),
    message("arithmetic.preset.fp8"): ("fp8_e4m3fn", "multiply", ("1.1", "-3")),
}
PRESETS = {
    preset: {"af": fmt, "aop": operator, "ar": "even"}
    | {f"a{name}": number for name, number in zip(NAMES, numbers, strict=False)}
    for preset, (fmt, operator, numbers) in _PRESETS.items()
}


def arithmetic(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw the panel, which runs only while it is open."""
    with inputs.panel("arith", message("arithmetic.title")) as opened:
        if opened.open:
            with show.errors_under(inputs):
                operation(inputs, number_inputs)


def operation(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw one operation in one format."""
    head = show.slot()
    with show.errors_under(inputs):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            operator: Operator = inputs.ask(_OPERATION)
            fields = st.container(horizontal=True, width="stretch")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            fmt = _format(inputs, number_inputs.fmt)
            mode = MODES[inputs.ask(_ROUNDING)]
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
        show.error(str(problem))
        return
    with head:
        show.takeaway(" ".join(answer_texts(done)))
    st.html(_stages(done))
    if rows := mode_rows(done):
        headings = (message("arithmetic.modes.mode"), message("arithmetic.modes.result"))
        show.small_table(
            headings, rows, caption=message("arithmetic.modes.caption"), here=list(MODES.values()).index(mode)
        )
    show.how(lambda: explain_work(done), key="floats:arith:how")


def _format(inputs: FloatInputs, chosen: FloatFormat) -> FloatFormat:
    name = inputs.ask(_FORMAT)
    fmt = chosen if name == CHOSEN else FORMATS[name]
    try:
        check_arithmetic(fmt)
    except FormatError as problem:
        inputs.fail(str(problem))
        return FORMATS["bf16"]
    return fmt


def _operand(inputs: FloatInputs, name: str, label: str, default: str, fmt: FloatFormat) -> Typed:
    field = text(name, label, default, max_chars=limit("float_box_chars"))
    return read_number(inputs, field, inputs.ask(field), fmt)


def _stages(done: TypedOperation) -> str:
    """Return every stage's sentences with its picture."""
    grids = {grid.stage: grid for grid in stages(done.operation)}
    parts: list[str] = []
    for stage, label, said in stage_texts(done):
        kind = "" if stage in grids else " class=words"
        drawn = _drawn(grids[stage], label) if stage in grids else ""
        parts.append(f"<dt{kind}>{label}</dt><dd{kind}><p>{rich(' '.join(said))}</p>{drawn}</dd>")
    return f'<dl class="np-stages">{"".join(parts)}</dl>'


def _drawn(grid: CharacterGrid, label: str) -> str:
    lines = "".join(_line(row, at in grid.sums) for at, row in enumerate(grid.rows))
    kind = "np-column codes" if grid.stage in ("Stored", "Result") else "np-column"
    return f'<div class="{kind}" role="region" aria-label="{label}" tabindex="0">{lines}</div>'


def _line(row: ArithmeticRow, total: bool) -> str:
    kind = ' class="total"' if total else ""
    name = html.escape(row.label)
    return f"<div{kind}><span>{name}</span><code>{_spans(row)}</code><small>{rich(row.remark)}</small></div>"


def _spans(row: ArithmeticRow) -> str:
    """Return the characters of a row, those of one role next to each other in one element."""
    parts: list[str] = []
    start = 0
    for at in range(1, len(row.text) + 1):
        if at == len(row.text) or row.roles[at] != row.roles[start]:
            text, role = html.escape(row.text[start:at]), row.roles[start]
            parts.append(text if role == " " else f'<b class="{ROLES[role]}">{text}</b>')
            start = at
    return "".join(parts)
