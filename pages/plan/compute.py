"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

import streamlit as st

from core.hardware.accelerators import DTYPES, accelerators, find
from core.hardware.roofline import explain_device
from core.limits import limit
from core.models.catalog import catalog, model_named, nearest_dense
from core.models.flops import Attention, flops_per_token
from core.planning import words
from core.planning.budget import (
    Plan,
    count_every_way,
    explain_budget,
    explain_count,
    format_price,
    parse_price,
    scale_of,
)
from core.planning.figures import flops_by_component, hours_of_a_run
from core.planning.runs import compare_all, explain_comparison
from core.units import QuantityError, format_quantity
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

HELP = {
    "n": "N of 6ND: the parameters that work on each token.",
    "active": "The parameters each token runs through, which 6ND takes; with all experts there are more.",
    "tokens": "Tokens trained on, repeats counted each time: D of 6ND.",
    "mfu": "Model FLOPs utilisation: the FLOPs the model needs, over what the accelerators could do at dense peak "
    "in the same time. Published runs of large models report 21 to 46 %.",
    "dtype": "The number format whose dense peak the MFU is a share of: that of the matrix products. The fp8 peak is "
    "about twice the bf16 one, so the same speed is half the MFU there.",
    "seq": "Tokens of one training sequence. Attention’s products grow with it; 6ND does not know it.",
    "attn": "How the count by layer takes attention’s products of activations: causal, the half of the square that a "
    "token may look at, or the full square, as the MFU of the PaLM paper does. 6ND takes neither.",
    "price": "Dollars per accelerator and hour, such as 2.50 or 2-3.50. Empty: the catalogue’s price, if it has one.",
}

inputs = Inputs(COMPUTE)
chips = show.slot()
cells = st.columns([1.8, 1.3, 0.9, 1.6, 1.0, 0.8])
with cells[0]:
    chosen = inputs.choice("model", "Model", [TYPED, *(m.name for m in catalog())], TYPED, help=words.runs_to_compare())
model = None if chosen == TYPED else model_named(chosen)
with cells[1]:
    if model is None:
        params = inputs.quantity(
            "n", "Parameters", "70B", "count", low=1, high=limit("parameters"), whole=True, help=HELP["n"]
        )
    else:
        params = model.active
        label, text = words.fixed_parameters(model)
        about = HELP["active" if model.mixture else "n"]
        st.text_input(label, text, disabled=True, key=inputs.key(f"fixed_{params}"), help=about)
with cells[2]:
    tokens = inputs.quantity(
        "tokens", "Tokens", "15T", "count", low=1, high=limit("tokens"), whole=True, help=HELP["tokens"]
    )
with cells[3]:
    device = find(inputs.choice("gpu", "Accelerator", [a.name for a in accelerators()], "H100 SXM"))
with cells[4]:
    count = inputs.quantity("count", "How many", "1024", "count", low=1, high=limit("accelerators"), whole=True)
with cells[5]:
    mfu = inputs.quantity("mfu", "MFU", "0.5", "ratio", low=0.001, high=1.0, help=HELP["mfu"])
with st.expander("More: peak’s dtype, sequence length, attention convention, price"):
    cells = st.columns([1, 1, 1.3, 1.7])
    with cells[0]:
        wanted = inputs.choice(
            "dtype", "Peak of", [d for d in DTYPES if d != "fp64_tensor"], "bf16", help=HELP["dtype"]
        )
    with cells[1]:
        seq_len = int(
            inputs.quantity(
                "seq",
                "Sequence length",
                "8192",
                "count",
                low=1,
                high=limit("model_dimension"),
                whole=True,
                help=HELP["seq"],
            )
        )
    with cells[2]:
        counted = inputs.choice("attn", "Attention counted", [CAUSAL, FULL], CAUSAL, segmented=True, help=HELP["attn"])
        attention = FULL if counted == FULL else CAUSAL
    with cells[3]:
        offer = format_price(device.price_low, device.price_high)
        typed_price = inputs.text(
            "price",
            "Price per accelerator-hour, or a range",
            "",
            max_chars=limit("number_chars"),
            placeholder=offer,
            help=HELP["price"],
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
    inputs.fail(f"Price: {problem}", words.price_kept(low, high))
show.input_errors(inputs)
inputs.presets("Stories", STORIES, into=chips)

plan = Plan(params, tokens, count, device.peak(dtype), mfu, low, high)
show.answer(words.answer(plan, model, device), words.assumptions(plan, device, dtype))
if caution := words.ceiling(plan, device, dtype):
    show.error(caution)

peak = format_quantity(plan.peak, "flop_per_s")
with show.fold(
    f"The peak: {peak} dense {dtype}, {device.name}, {words.known(device.confidence)}", key="compute:peak"
) as panel:
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
if model and (counted_active := words.active_counts(model)):
    show.note(counted_active)
runs = compare_all(model, mfu, seq_len, device.name) if model else []
if model and not runs:
    show.note(words.no_run(model))
for published in runs[:1]:
    st.subheader("Beside the published run", anchor=False)
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(words.beside_headings(published))],
        words.beside(published, count),
        caption=words.about_run(published),
    )
    if published.evidence:
        show.chart(
            hours_of_a_run(published, TOKENS),
            alt=f"Accelerator-hours of {published.run.model}, step by step from 6ND at your MFU to the published ones.",
            key="compute:hours",
        )
    for line in (*words.reasons(published), *words.other_runs(runs[1:])):
        show.note(line)
    show.source(f"{published.run.source} ({words.known(published.run.confidence)})")

st.subheader("6ND beside the count by layer", anchor=False)
if model is None:
    show.note(words.stand_in(shape, params))
counts = count_every_way(shape.spec, seq_len, plan)
show.small_table(
    [
        show.Column("count"),
        show.Column("per token of training", numeric=True),
        show.Column("whole run", numeric=True),
        show.Column("relative to 6ND", numeric=True),
        show.Column("time on this cluster", numeric=True),
    ],
    words.ways(counts),
    here=[way.id for way in counts].index(attention),
)
for line in (words.gap(shape, seq_len, attention), *words.cautions(shape, seq_len)):
    show.note(line)
flops = flops_per_token(shape.spec, seq_len, attention)
show.chart(
    flops_by_component(flops, TOKENS, scale_of(shape.spec, plan)),
    alt=f"Forward FLOPs of one token of {shape.name} by component; {words.largest(flops)}.",
    key="compute:flops",
)
with show.fold(f"Parameters of {shape.name} by component", key="compute:parameters") as panel:
    if panel.open:
        headings, rows = words.components(shape)
        show.small_table([show.Column(heading, numeric=heading != headings[0]) for heading in headings], rows)
        show.note(words.model_origin(shape))
        show.source(f"{shape.source} ({words.known(shape.confidence)})")
show.how(
    lambda: [
        *explain_budget(plan),
        *(explain_comparison(published) for published in runs[:1]),
        *explain_count(shape.spec, seq_len, attention, plan),
        *explain_device(device, dtype),
    ],
    key="compute:how",
    notes=[words.SCOPE],
)
show.footer(inputs)
