"""Float formats, panels about training: sums that stall, and blocks under one scale; scales are in `scaling`."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import fields
from core.fields import choice
from core.floats import block_example
from core.floats.arithmetic import accumulation
from core.floats.arithmetic import series as sums_of
from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, BlockFormat
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.limits import cached, limit
from core.views.floats.charts import accumulation as accumulation_figure
from core.wording import plain
from pages.common import show
from pages.common.components import component
from pages.common.figures import wire
from pages.common.theme import TOKENS, projecting
from pages.floats.inputs import FloatInputs
from pages.floats.rounding import two_lines
from pages.floats.scaling import loss_scaling

_BLOCK = "floats:block"
_SEEN, _ANSWERED = "floats:block:seen", "floats:block:seq"
_VALUE_FIELDS = ("vals", "out", "own")
_RULES = {rule.title: name for name, rule in SCALE_RULES.items()}
_OWN = fields.text(
    "own",
    "Your own values instead (up to 32), or drag a bar",
    "",
    max_chars=limit("block_chars"),
    placeholder="0.5, -1.25, 30, …",
)
_MOST = 1e30
_LARGEST_TERM = 1e6
ADD_HELP = "What is added each time. An update of a weight is −(learning rate × gradient): −0.001, for example."
_SUMS = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2")
_CHOSEN = "the chosen format"
_ONE, _MANY = "one number many times", "a series"
_SERIES = fields.Field(
    "ser",
    "Series",
    "1/k",
    sums_of.read_series,
    max_chars=limit("series_chars"),
    help="An expression of k, which counts the terms from 1, with + − * / ^, sqrt, exp, log and sin; normal or "
    "uniform, drawn with a seed; or numbers with commas between, over and over.",
)
SERIES = {
    "1/k in bf16": {"ser": "1/k", "sn": "100k", "sfmt": "bf16", "sblk": "128"},
    "Large and small in turn, in fp32": {"ser": "1e8, 1, -1e8, 1", "sn": "1000", "sfmt": "fp32", "sblk": "128"},
    "A million fp8 products, blocks of 128": {"ser": "uniform", "sn": "1M", "sfmt": "fp8_e4m3fn", "sblk": "128"},
    "The same, blocks of 4,096": {"ser": "uniform", "sn": "1M", "sfmt": "fp8_e4m3fn", "sblk": "4096"},
}
ADDING = {
    "0.01 a thousand times": {"start": "0", "add": "0.01", "times": "1000", "sum": "bf16"},
    "A bf16 weight that never moves": {"start": "1", "add": "-0.001", "times": "100", "sum": "bf16"},
    "fp16 counts to 2048": {"start": "0", "add": "1", "times": "4000", "sum": "fp16"},
    "fp8 sums": {"start": "0", "add": "0.1", "times": "200", "sum": "fp8_e4m3fn"},
}


def training(inputs: FloatInputs) -> None:
    """The panels, each running only while it is open."""
    for name, title, panel in (
        ("sums", "Accumulation: a small number many times, or a series in several orders", accumulating),
        ("loss", "Loss scaling: which gradients fp16 loses, and the factor that follows them", loss_scaling),
        ("block", "Block formats: many values under one scale, and what an outlier does to them", blocks),
    ):
        with inputs.panel(name, title) as opened:
            if opened.open:
                with show.errors_under(inputs):
                    panel(inputs)


def accumulating(inputs: FloatInputs) -> None:
    """One number many times, or a series."""
    head = show.slot()
    with show.errors_under(inputs):
        added = inputs.ask(choice("adds", "Added", (_ONE, _MANY), _ONE, few=True))
    (adding if added == _ONE else series)(inputs, head)


def adding(inputs: FloatInputs, head: DeltaGenerator) -> None:
    """Add a small number many times."""
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        start = inputs.number("start", "Start", "1", -_LARGEST_TERM, _LARGEST_TERM)
        addend = inputs.number("add", "Add", "0.001", -_LARGEST_TERM, _LARGEST_TERM, ADD_HELP)
        times = inputs.count("times", "Times", "1000", 1, limit("additions"))
        fmt = FORMATS[inputs.ask(choice("sum", "Sum kept in", _SUMS, "bf16", few=True))]
    text = accumulation.takeaway(start, addend, times, fmt)
    with head:
        show.takeaway(text)
    inputs.presets(ADDING, into=head, key="adding")
    show.chart(
        _sums(start, addend, times, fmt),
        alt=f"Sum against additions in {fmt.title}: {plain(text)}",
        key="floats:adding",
    )
    show.small_table(
        ("Sum kept in", "ties to even", "ties away", "to zero", "up", "down", "stochastic"),
        [[two_lines(*cell) for cell in row] for row in accumulation.table(start, addend, times)],
        caption=accumulation.of_what(start, addend, times) + " Stochastic: mean and deviation of "
        f"{accumulation.REPLICAS} sums, which walk "
        "through a table of all values; fp32 and tf32 have too many values for one.",
        here=_SUMS.index(fmt.name),
    )
    show.how(lambda: accumulation.explain(start, addend, times, fmt), key="floats:adding:how")


def series(inputs: FloatInputs, head: DeltaGenerator) -> None:
    """Add a typed series in several orders."""
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        text: str = inputs.ask(_SERIES)
        count = inputs.count("sn", "Terms", "100k", 2, limit("series_terms"))
        name: str = inputs.ask(choice("sfmt", "Kept in", [*sums_of.DTYPES, "tf32", _CHOSEN], "bf16"))
        size = inputs.count("sblk", "Block", "128", 2, 65_536)
    fmt = inputs.chosen() if name == _CHOSEN else FORMATS[name]
    try:
        exact, rows = sums_of.orders(text, count, fmt, size)
    except FormatError as problem:
        show.error(f"Kept in: {problem}")
        return
    with head:
        show.takeaway(sums_of.takeaway(text, count, fmt, size))
    inputs.presets(SERIES, into=head, key="adding")
    shown = [
        *((row.name, sums_of.number(row.value), sums_of.off(row), row.how) for row in rows),
        ("exactly", sums_of.number(exact), "", "the terms as typed, rounded once"),
    ]
    if projecting():
        show.small_table(("Order", "Sum", "Off by"), [row[:3] for row in shown])
    else:
        show.small_table(("Order", "Sum", "Off by", show.Column("How")), shown)
    show.source(sums_of.DEEPSEEK)


@cached("arrays_kept")
def _sums(start: float, addend: float, times: int, fmt: FloatFormat) -> dict[str, Any]:
    runs, spread = accumulation.drawn(start, addend, times, fmt)
    return wire(accumulation_figure(runs, spread, exact=(start, addend), palette=TOKENS))


def blocks(inputs: FloatInputs) -> None:
    """A block of values under one shared scale."""
    head = show.slot()
    with show.errors_under(inputs):
        name = inputs.ask(choice("blk", "Block format", list(BLOCK_FORMATS), "mxfp4_e2m1", few=True))
    fmt = BLOCK_FORMATS[name]
    _open_rule(inputs, fmt)
    _new_values(inputs)
    with show.errors_under(inputs), st.container(horizontal=True):
        titles = [SCALE_RULES[name].title for name in fmt.scale_rules]
        rule: Any = _RULES[inputs.ask(choice("rule", "Scale rule", titles, titles[0], few=True))]
        source: Any = inputs.ask(choice("vals", "Values", list(block_example.DISTRIBUTIONS), "one outlier", few=True))
        outlier = inputs.number("out", "Outlier", f"{block_example.OUTLIER:g}", 0.0, 1e6)
    own_row = st.container(horizontal=True, vertical_alignment="bottom")
    with own_row:
        text = inputs.ask(_OWN)
    values = block_example.example(source, outlier)
    if text.strip():
        own_row.button(f"Back to {source}", key="floats:block:back", on_click=_forget_own, args=(inputs,))
        try:
            values = block_example.read_block(text)
            inputs.keep_good("own", text)
        except FormatError as problem:
            good = inputs.last_good("own", "")
            values = block_example.read_block(good) if good else values
            show.error(f"Values: {problem} Still using {'the last good ones' if good else source}.")
    st.session_state[_SEEN] = {field: st.session_state[inputs.key(field)] for field in _VALUE_FIELDS}
    done = block_example.quantize(values, name, rule)
    with head:
        show.takeaway(block_example.takeaway(values, done))

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

    top = max(map(abs, values)) or 1.0
    component("block")(
        data={
            "label": f"{len(values)} values in {fmt.title}: outline what was asked, filled what comes back",
            "values": values,
            "back": done.values.tolist(),
            "codes": [f"0x{code:0{fmt.element.hex_digits}x}" for code in done.codes.tolist()],
            "clipped": done.clipped.tolist(),
            "top": top,
            "seq": st.session_state.get(_ANSWERED, 0),
        },
        key=_BLOCK,
        on_change_change=change,
    )
    show.note(block_example.scale_line(done))
    show.small_table(
        ("Block format", "Bits each", *(rule.short for rule in SCALE_RULES.values())),
        [[two_lines(*cell) for cell in row] for row in block_example.table(values)],
        caption="The same values in every block format under every scale rule: SQNR (6 dB are one bit), mean squared "
        "error, clipped elements.",
        here=list(BLOCK_FORMATS).index(name),
    )
    show.how(
        lambda: block_example.explain(values, done),
        key="floats:block:how",
        label="How is this computed, and who uses which scale rule",
        notes=block_example.rule_notes(),
    )


def _open_rule(inputs: FloatInputs, fmt: BlockFormat) -> None:
    """A link may name a scale rule by its id as well as by its title; a rule of another format gives way."""
    key = inputs.key("rule")
    named = st.query_params.get(key, "")
    titles = [SCALE_RULES[name].title for name in fmt.scale_rules]
    if key not in st.session_state and named in fmt.scale_rules:
        st.session_state[key] = SCALE_RULES[named].title
    if st.session_state.get(key, titles[0]) not in titles:
        st.session_state[key] = titles[0]


def _new_values(inputs: FloatInputs) -> None:
    """Whoever chooses other values, or another outlier, wants to see them: one's own values make way."""
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
