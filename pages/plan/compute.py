"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

import streamlit as st

from core.hardware.accelerators import DTYPES, accelerators, find
from core.hardware.roofline import explain_device
from core.limits import limit
from core.models.catalog import catalog, model_named, nearest_dense
from core.models.flops import Attention, flops_per_token
from core.planning import words
from core.planning.budget import Plan, count_every_way, explain_budget, explain_count, format_price, parse_price
from core.planning.figures import flops_by_component, hours_of_a_run
from core.planning.runs import compare_all, explain_comparison
from core.units import QuantityError, format_count, format_quantity
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE
from pages.parts.theme import TOKENS

TYPED = "Typed parameters"
CAUSAL: Attention = "causal"
FULL: Attention = "full"


def story(model: str, tokens: str, gpu: str, count: str, mfu: str, seq: str, **more: str) -> dict[str, object]:
    """One chip: every field, so that the chip is lit only when all of them match."""
    usual = {"dtype": "bf16", "attn": CAUSAL, "price": ""}
    fields = {"model": model, "tokens": tokens, "gpu": gpu, "count": count, "mfu": mfu, "seq": seq}
    return {**fields, **usual, **more}


STORIES = {
    "Llama 3.1 405B as trained": story("Llama 3.1 405B", "15.6T", "H100 SXM", "16,384", "41%", "8192"),
    "Lecture: 70B on 1,024 H100": story(TYPED, "15T", "H100 SXM", "1024", "0.5", "8192", n="70B"),
    "GPT-3 175B": story("GPT-3 175B", "300B", "V100 SXM 32 GB", "10,000", "21.3%", "2048", dtype="fp16"),
    "Llama 2 70B": story("Llama 2 70B", "2T", "A100 SXM 80 GB", "2048", "40%", "4096"),
    "GPT-2 124M on one node": story("GPT-2 124M", "10B", "A100 SXM 80 GB", "8", "0.5", "1024"),
}

inputs = Inputs(COMPUTE)
chips = show.slot()
cells = st.columns([1.9, 1.05, 1, 1.6, 1.1, 0.8])
with cells[0]:
    chosen = inputs.choice("model", "Model", [TYPED, *(m.name for m in catalog())], TYPED)
model = None if chosen == TYPED else model_named(chosen)
with cells[1]:
    if model is None:
        params = inputs.quantity("n", "Parameters", "70B", "count", low=1, high=limit("parameters"))
    else:
        params = model.active
        label = "Active" if model.mixture else "Parameters"
        st.text_input(label, format_count(params), disabled=True, key=inputs.key(f"fixed_{params}"))
with cells[2]:
    tokens = inputs.quantity("tokens", "Tokens", "15T", "count", low=1, high=limit("tokens"))
with cells[3]:
    device = find(inputs.choice("gpu", "Accelerator", [a.name for a in accelerators()], "H100 SXM"))
with cells[4]:
    count = inputs.quantity("count", "How many", "1024", "count", low=1, high=limit("accelerators"), whole=True)
with cells[5]:
    mfu = inputs.quantity("mfu", "MFU", "0.5", "ratio", low=0.001, high=1.0)
with st.expander("More: peak’s dtype, sequence length, attention convention, price"):
    cells = st.columns([1, 1, 1.3, 1.7])
    with cells[0]:
        wanted = inputs.choice("dtype", "Peak of", [d for d in DTYPES if d != "fp64_tensor"], "bf16")
    with cells[1]:
        seq_len = int(
            inputs.quantity("seq", "Sequence length", "8192", "count", low=1, high=limit("model_dimension"), whole=True)
        )
    with cells[2]:
        counted = inputs.choice("attn", "Attention counted", [CAUSAL, FULL], CAUSAL, segmented=True)
        attention = FULL if counted == FULL else CAUSAL
    with cells[3]:
        offer = format_price(device.price_low, device.price_high)
        typed_price = inputs.text(
            "price", "Price per accelerator-hour, or a range", "", max_chars=limit("number_chars"), placeholder=offer
        )
dtype = device.usable(wanted)
if dtype != wanted:
    inputs.fail(f"No dense {wanted} peak of {device.name} is known.", f"Using its {dtype} peak.")
try:
    low, high = parse_price(typed_price) if typed_price.strip() else (device.price_low, device.price_high)
    inputs.keep("price", typed_price)
except QuantityError as problem:
    kept = inputs.last_good("price", "")
    low, high = parse_price(kept) if kept.strip() else (device.price_low, device.price_high)
    inputs.fail(f"Price: {problem}", f"Still using {format_price(low, high)}.")
show.input_errors(inputs)
inputs.presets("Stories", STORIES, into=chips)

plan = Plan(params, tokens, count, device.peak(dtype), mfu, low, high)
show.answer(words.answer(plan, model, device), words.assumptions(plan, device, dtype))
if caution := words.ceiling(plan, device, dtype):
    show.error(caution)

peak = format_quantity(plan.peak, "flop_per_s")
with show.fold(f"The peak: {peak} dense {dtype}, {device.name}, {device.confidence}", key="compute:peak") as panel:
    if panel.open:
        show.small_table(
            [show.Column("dtype"), show.Column("dense peak", numeric=True), show.Column("ridge point", numeric=True)],
            words.peaks(device),
            here=[name for name, _ in device.peaks].index(dtype),
        )
        for line in (*words.peak_origin(device, dtype), words.datasheet(device)):
            show.note(line)
        show.source(device.source)

shape = model or nearest_dense(params)
runs = compare_all(model, mfu, seq_len, device.name) if model else []
for published in runs[:1]:
    st.subheader("Beside the published run", anchor=False)
    show.small_table(
        [
            show.Column("quantity"),
            show.Column("6ND at your MFU", numeric=True),
            show.Column("published", numeric=True),
            show.Column("6ND against it", numeric=True),
        ],
        words.beside(published, count),
        caption=words.about_run(published),
    )
    show.chart(
        hours_of_a_run(published, TOKENS),
        alt=f"Accelerator-hours of {published.run.model}, step by step from 6ND at your MFU to the published figure.",
        key="compute:hours",
    )
    for line in (*words.reasons(published), *words.other_runs(runs[1:])):
        show.note(line)
    show.source(f"{published.run.source} ({published.run.confidence})")

st.subheader("6ND beside the count by layer", anchor=False)
if model is None:
    show.note(words.stand_in(shape, params))
counts = count_every_way(shape.spec, seq_len, plan)
show.small_table(
    [
        show.Column("count"),
        show.Column("per token of training", numeric=True),
        show.Column("whole run", numeric=True),
        show.Column("against 6ND", numeric=True),
        show.Column("time on this cluster", numeric=True),
    ],
    words.ways(counts),
    here=[way.id for way in counts].index(attention),
)
for line in (words.gap(shape, seq_len, attention), *words.cautions(shape, seq_len)):
    show.note(line)
flops = flops_per_token(shape.spec, seq_len, attention)
show.chart(
    flops_by_component(flops, TOKENS),
    alt=f"Forward FLOPs of one token of {shape.name} by component; {words.largest(flops)}.",
    key="compute:flops",
)
with show.fold(f"Parameters of {shape.name} by component", key="compute:parameters") as panel:
    if panel.open:
        headings, rows = words.components(shape)
        show.small_table([show.Column(heading, numeric=heading != headings[0]) for heading in headings], rows)
        show.note(words.model_origin(shape))
        show.source(f"{shape.source} ({shape.confidence})")
show.how(
    lambda: [
        *explain_budget(plan),
        *(explain_comparison(published) for published in runs[:1]),
        *explain_count(shape.spec, seq_len, attention, tokens),
        *explain_device(device, dtype),
    ],
    key="compute:how",
    notes=[words.SCOPE],
)
show.footer(inputs)
