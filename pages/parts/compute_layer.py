"""Compute budget: the roofline of one layer on the chosen accelerator, and one run under every convention of MFU."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.planning import words as plain
from core.planning import words_layer as words
from core.planning.budget import scale_of
from core.planning.figures_layer import roofline
from core.planning.figures_plan import score_bars
from core.planning.layer import ELEMENT_BYTES, LayerOperation, layer_roofline
from core.planning.scored import Scored, which_mfu
from core.planning.solver import BudgetError
from core.units import QuantityError, parse_quantity
from pages.parts import show
from pages.parts.compute_inputs import Asked
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS

_TRAIL = 2.0 ** np.arange(16)
_TRAILED = ("up", "shared_up")


def roof(inputs: Inputs, asked: Asked) -> None:
    """The panel's content."""
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        power = inputs.slider("mb", "Tokens at once: 2ᵏ, k", 0, 17, 13, help="Tokens of one micro-batch.")
        fused = inputs.toggle(
            "flash",
            "Fused attention",
            False,
            help="Scores never leave the chip, as in FlashAttention: scores, softmax and values are one operation.",
        )
    device, spec, tokens = asked.device, asked.shape.spec, 2**power
    if asked.dtype not in ELEMENT_BYTES or not device.bandwidth > 0:
        show.note(f"No roofline: the {asked.dtype} peak or the bandwidth of {device.name} is not known.")
        return
    same = {"dtype": asked.dtype, "seq_len": asked.seq_len, "fused_attention": fused}
    found = layer_roofline(spec, device, tokens=float(tokens), **same)
    swept = layer_roofline(spec, device, tokens=_TRAIL, **same)
    trail = next(o for o in swept if o.id in _TRAILED and o.phase == "forward")
    with head:
        show.says(words.layered(found, device.name, tokens))
    vector = device.peak("fp32")
    shown: list[LayerOperation] = [o for o in found if o.phase != "backward" and o.id != "head_update"]
    peak = device.peak(asked.dtype)
    show.chart(
        roofline(shown, trail, _TRAIL, peak, vector if vector > 0 else peak, device.bandwidth, TOKENS),
        alt=f"Roofline of {device.name}. {words.layered(found, device.name, tokens).replace('**', '')}",
        key="compute:roofline",
    )
    show.note(
        "Forward pass. Circles: limited by compute; diamonds: limited by memory. Dotted: the same matrix product from "
        "1 to 32,768 tokens at once."
    )
    show.small_table(
        [show.Column(heading, numeric=i not in (0, 4)) for i, heading in enumerate(words.OPERATIONS)],
        words.operations(found),
        caption=f"One layer of {asked.shape.name}, forward and backward together, and what is beside it",
    )
    show.how(
        lambda: [step for o in found if o.id in (*_TRAILED, "norms") for step in o.placed.explanations],
        key="compute:roof:how",
        notes=words.LAYER_NOTES,
    )


def which(inputs: Inputs, asked: Asked) -> None:
    """One run under every convention."""
    head = show.slot()
    planned = float(asked.outlook.middle.tokens_per_second)
    text = inputs.text(
        "rate",
        "Tokens per second of the whole cluster, if you measured them",
        "",
        max_chars=24,
        placeholder=f"the plan’s: {planned:,.0f}",
    )
    rate = planned
    try:
        rate = parse_quantity(text, "count", low=1e-9, high=1e15, example="2.7M") if text.strip() else planned
        inputs.keep("rate", text)
    except QuantityError as problem:
        kept = inputs.last_good("rate", "")
        rate = parse_quantity(kept, "count") if kept.strip() else planned
        show.error(f"Tokens per second: {problem} Still using {rate:,.0f}.")
    try:
        found = _scores(asked, rate)
    except BudgetError as problem:
        show.error(str(problem))
        return
    with head:
        show.says(words.scored_run(found, rate))
    show.chart(
        score_bars(found, TOKENS),
        alt=f"Utilisation of one run under {len(found)} conventions. {words.scored_run(found, rate).replace('**', '')}",
        key="compute:scores",
    )
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(words.SCORES)], words.scores(found)
    )
    if asked.model is None:
        show.note(plain.stand_in(asked.shape, asked.plan.params))
    show.how(lambda: [s.explanation for s in found], key="compute:which:how")


def _scores(asked: Asked, rate: float) -> tuple[Scored, ...]:
    plan = asked.plan
    return which_mfu(
        asked.shape.spec,
        asked.seq_len,
        accelerators=plan.accelerators,
        peak=plan.peak,
        tokens_per_second=rate,
        scale=scale_of(asked.shape.spec, plan),
    )
