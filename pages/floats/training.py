"""Float formats, panels about training: sums that stall, and blocks under one scale; loss scaling is in `scaling`."""

from __future__ import annotations

import html
from typing import Any

import streamlit as st

from core import fields
from core.fields import choice
from core.floats import block_example
from core.floats.arithmetic import accumulation
from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, BlockFormat
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.limits import cached, limit
from core.messages import message, messages
from core.views.floats.charts import accumulation as accumulation_figure
from core.views.floats.charts import summation_lines
from core.views.floats.text_rounding import mode_label
from core.views.floats.text_training import (
    block_rows,
    block_texts,
    rule_rows,
    scale_note,
    sum_rows,
    sum_texts,
)
from core.wording import plain
from pages.common import show
from pages.common.components import component
from pages.common.figures import wire
from pages.common.theme import TOKENS
from pages.floats.inputs import FloatInputs, titles
from pages.floats.scaling import loss_scaling

_BLOCK = "floats:block"
_SEEN, _ANSWERED = "floats:block:seen", "floats:block:seq"
_VALUE_FIELDS = ("vals", "out", "own")
_RULES = {rule.title: name for name, rule in SCALE_RULES.items()}
_OWN = fields.text(
    "own",
    message("blocks.field.custom"),
    "",
    max_chars=limit("block_chars"),
    placeholder="0.5, -1.25, 30, …",
    help=message("blocks.field.custom_help"),
)
_FORMAT = choice(
    "blk",
    message("blocks.field.format"),
    list(BLOCK_FORMATS),
    "mxfp4_e2m1",
    few=True,
    short=[fmt.title for fmt in BLOCK_FORMATS.values()],
)
_VALUES = choice("vals", message("blocks.field.values"), list(block_example.DISTRIBUTIONS), "one outlier", few=True)
_MOST = 1e30
_LARGEST_TERM = 1e6
_SUMS = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2")
_CHOSEN = "the chosen format"
ADDING: dict[str, dict[str, str]] = {
    message("sums.preset.hundredths"): {"start": "0", "add": "0.01", "times": "1000", "sum": "bf16"},
    message("sums.preset.weight"): {"start": "1", "add": "-0.001", "times": "100", "sum": "bf16"},
    message("sums.preset.counter"): {"start": "0", "add": "1", "times": "4000", "sum": "fp16"},
    message("sums.preset.fp8"): {"start": "0", "add": "0.1", "times": "200", "sum": "fp8_e4m3fn"},
}


def training(inputs: FloatInputs) -> None:
    """Draw the panels, each of which runs only while it is open."""
    for name, title, panel in (
        ("sums", message("sums.title"), adding),
        ("loss", message("scaling.title"), loss_scaling),
        ("block", message("blocks.title"), blocks),
    ):
        with inputs.panel(name, title) as opened:
            if opened.open:
                with show.errors_under(inputs):
                    panel(inputs)


def adding(inputs: FloatInputs) -> None:
    """Draw a small number added many times."""
    head = show.slot()
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        start = inputs.number("start", message("sums.field.start"), "1", -_LARGEST_TERM, _LARGEST_TERM)
        addend = inputs.number(
            "add", message("sums.field.add"), "0.001", -_LARGEST_TERM, _LARGEST_TERM, message("sums.field.add_help")
        )
        times = inputs.count("times", message("sums.field.times"), "1000", 1, limit("additions"))
        fmt = FORMATS[
            inputs.ask(choice("sum", message("sums.field.format"), _SUMS, "bf16", few=True, short=titles(_SUMS)))
        ]
    text = " ".join(sum_texts(start, addend, times, fmt))
    with head:
        show.takeaway(text)
    inputs.presets(ADDING, into=head, key="adding")
    show.chart(_sums(start, addend, times, fmt), alt=message("sums.alt", takeaway=plain(text)), key="floats:adding")
    show.small_table(
        (
            message("sums.column.format"),
            *(mode_label(mode) for mode in accumulation.DETERMINISTIC),
            mode_label("stochastic"),
        ),
        [[_two_lines(*cell) for cell in row] for row in sum_rows(start, addend, times)],
        caption=message("sums.caption", replicas=float(accumulation.REPLICAS)),
        here=_SUMS.index(fmt.name),
    )
    show.how(lambda: accumulation.explain(start, addend, times, fmt), key="floats:adding:how")


def _two_lines(text: str, small: str) -> show.Html:
    """Return a cell with a quieter second line."""
    note = f"<small>{html.escape(small)}</small>" if small else ""
    return show.cell_of(text, html.escape(text).replace(" ", "\u00a0") + note)


@cached("arrays_kept")
def _sums(start: float, addend: float, times: int, fmt: FloatFormat) -> dict[str, Any]:
    lines, spread = summation_lines(start, addend, times, fmt)
    return wire(accumulation_figure(lines, spread, exact=(start, addend), palette=TOKENS))


def blocks(inputs: FloatInputs) -> None:
    """Draw a block of values under one shared scale."""
    head = show.slot()
    with show.errors_under(inputs):
        name = inputs.ask(_FORMAT)
    fmt = BLOCK_FORMATS[name]
    _open_rule(inputs, fmt)
    _new_values(inputs)
    with show.errors_under(inputs), st.container(horizontal=True):
        rules = [SCALE_RULES[name].title for name in fmt.scale_rules]
        rule: Any = _RULES[inputs.ask(choice("rule", message("blocks.field.rule"), rules, rules[0], few=True))]
        source: Any = inputs.ask(_VALUES)
        outlier = inputs.number("out", message("blocks.field.outlier"), f"{block_example.OUTLIER:g}", 0.0, 1e6)
    values = _read_values(inputs, source, outlier)
    st.session_state[_SEEN] = {field: st.session_state[inputs.key(field)] for field in _VALUE_FIELDS}
    done = block_example.quantize(values, name, rule)
    with head:
        show.takeaway(" ".join(block_texts(values, done)))

    def change() -> None:
        sent: Any = getattr(st.session_state.get(_BLOCK), "change", None)
        changes, seq = (sent.get("values"), sent.get("seq")) if isinstance(sent, dict) else (None, None)
        if not isinstance(changes, list) or len(changes) > len(values) or not isinstance(seq, int):
            return
        st.session_state[_ANSWERED] = seq
        changed = list(values)
        for item in changes:
            place, value = item if isinstance(item, list) and len(item) == 2 else (None, None)
            if isinstance(place, int) and 0 <= place < len(values) and isinstance(value, int | float):
                changed[place] = float(value) if abs(value) <= _MOST else changed[place]
        st.session_state[inputs.key("own")] = block_example.write_block(tuple(changed))

    component("block")(
        data={
            "label": message("blocks.picture", values=float(len(values)), fmt=fmt.title),
            "hint": message("blocks.hint"),
            "values": values,
            "back": done.values.tolist(),
            "codes": [f"0x{code:0{fmt.element.hex_digits}x}" for code in done.codes.tolist()],
            "clipped": done.clipped.tolist(),
            "top": max(map(abs, values)) or 1.0,
            "seq": st.session_state.get(_ANSWERED, 0),
        },
        key=_BLOCK,
        on_change_change=change,
    )
    show.note(scale_note(done))
    clipped = message("blocks.column.clipped")
    show.small_table(
        (
            message("blocks.column.rule"),
            message("blocks.column.sqnr"),
            clipped,
            show.Column(message("blocks.column.meaning")),
        ),
        rule_rows(values, fmt),
        caption=message("blocks.rules_caption", fmt=fmt.title),
        here=fmt.scale_rules.index(rule),
    )
    show.small_table(
        (*messages("blocks.column", "format size bits sqnr"), clipped),
        block_rows(values, name, rule),
        caption=message("blocks.formats_caption"),
        here=list(BLOCK_FORMATS).index(name),
    )
    show.how(lambda: block_example.explain(values, done), key="floats:block:how", notes=[message("blocks.model")])


def _read_values(inputs: FloatInputs, source: Any, outlier: float) -> tuple[float, ...]:
    """Ask for custom values, which count instead of the drawn ones."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        text = inputs.ask(_OWN)
    values = block_example.example(source, outlier)
    if text.strip():
        row.button(message("blocks.reset"), key="floats:block:back", on_click=_forget_own, args=(inputs,))
        try:
            values = block_example.read_block(text)
            inputs.keep_good(_OWN.id, text)
        except FormatError as problem:
            good = inputs.last_good(_OWN.id, "")
            values = block_example.read_block(good) if good else values
            inputs.fall_back(_OWN, problem, good or source)
            show.input_errors(inputs)
    return values


def _open_rule(inputs: FloatInputs, fmt: BlockFormat) -> None:
    """Read the scale rule that a link names by its id or title. A rule of another format is dropped."""
    key = inputs.key("rule")
    named = st.query_params.get(key, "")
    titles = [SCALE_RULES[name].title for name in fmt.scale_rules]
    if key not in st.session_state and named in fmt.scale_rules:
        st.session_state[key] = SCALE_RULES[named].title
    if st.session_state.get(key, titles[0]) not in titles:
        st.session_state[key] = titles[0]


def _new_values(inputs: FloatInputs) -> None:
    """Drop the custom values after a user chooses other random values or another outlier."""
    before = st.session_state.get(_SEEN)
    if before is None:
        return
    changed = {f for f in _VALUE_FIELDS if st.session_state.get(inputs.key(f), before[f]) != before[f]}
    if changed == {"out"}:
        st.session_state[inputs.key("vals")] = "one outlier"
    if changed and "own" not in changed:
        _forget_own(inputs)


def _forget_own(inputs: FloatInputs) -> None:
    st.session_state[inputs.key("own")] = ""
