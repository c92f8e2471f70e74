"""Compute budget: the roofline of one layer on the chosen accelerator, and one run under every convention of MFU."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from core.models.spec import TransformerSpec
from core.planning.answer import words as plain
from core.planning.answer.figures import score_bars
from core.planning.budget.rule import scale_of
from core.planning.budget.solver import BudgetError
from core.planning.counting.scored import Scored, which_mfu
from core.planning.layer import words
from core.planning.layer.figures import roofline
from core.planning.layer.kinds import LayerKind, kinds_of
from core.planning.layer.operations import ELEMENT_BYTES, LayerOperation, layer_roofline, wide_dtype
from core.units import QuantityError, parse_quantity
from pages.compute.inputs import Asked
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS

_TRAIL = 2.0 ** np.arange(16)
_TRAILED = ("up", "shared_up")
_FUSED = (
    "On: scores, softmax and values are one operation on the scores that the mask leaves, and these never leave the "
    "chip, as in FlashAttention. Off: three operations on all scores, which write them to memory and read them back."
)


def roof(inputs: Inputs, asked: Asked) -> None:
    """The panel's content."""
    device, spec, dtype = asked.device, asked.shape.spec, asked.dtype
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        power = inputs.slider("mb", "Tokens at once: 2ᵏ, k", 0, 17, 13, help="Tokens of one micro-batch.")
        fused = inputs.toggle("flash", "Fused attention", True, help=_FUSED)
        # Last: a field that moves when another one comes or goes is made anew, and may lose its hold on the address.
        kind = _kind(inputs, spec, asked.seq_len)
    tokens = 2**power
    if dtype not in ELEMENT_BYTES or not device.bandwidth > 0:
        show.note(f"No roofline: the {dtype} peak or the bandwidth of {device.name} is not known.")
        return
    layer = partial(layer_roofline, spec, device, dtype=dtype, seq_len=asked.seq_len, kind=kind)
    either = {way: layer(tokens=float(tokens), fused_attention=way) for way in (True, False)}
    found = either[fused]
    trail = next(o for o in layer(tokens=_TRAIL) if o.id in _TRAILED and o.phase == "forward")
    with head:
        show.says(words.layered(found, device.name, tokens))
    shown: list[LayerOperation] = [o for o in found if o.phase != "backward" and o.id != "head_update"]
    wide = wide_dtype(device, dtype)
    peaks = {name: device.peak(name) for name in (dtype, wide)}
    vector = device.peak("fp32")
    show.chart(
        roofline(shown, trail, _TRAIL, peaks, vector if vector > 0 else peaks[wide], device.bandwidth, TOKENS),
        alt=f"Roofline of {device.name}. {words.layered(found, device.name, tokens).replace('**', '')}",
        key="compute:roofline",
    )
    show.note(
        "Forward pass. Circles: limited by compute; diamonds: limited by memory. Dotted: the same matrix product from "
        "1 to 32,768 tokens at once."
    )
    if divided := words.narrow(dtype, wide, mixture=kind.mixture):
        show.note(divided)
        show.source(words.NARROW_SOURCE)
    name = words.kind_name(kind, kinds_of(spec, asked.seq_len))
    show.small_table(
        [show.Column(heading, numeric=i not in (0, 4)) for i, heading in enumerate(words.OPERATIONS)],
        words.operations(found),
        caption=f"One layer of {asked.shape.name}{f' ({name})' if name else ''}, forward and backward together, and "
        "what is beside it",
    )
    show.note(words.fused(either[True], either[False]))
    show.how(
        lambda: [step for o in found if o.id in (*_TRAILED, "norms") for step in o.placed.explanations],
        key="compute:roof:how",
        notes=words.LAYER_NOTES,
    )


def _kind(inputs: Inputs, spec: TransformerSpec, seq_len: int) -> LayerKind:
    """The layer to draw; a question only where a model has several kinds.

    Windows and experts are a field each, whose options mean the same for every model, so that links keep theirs.
    """
    kinds = kinds_of(spec, seq_len)
    windowed, mixture = kinds[0].window > 0, kinds[0].mixture
    if sized := words.windows(kinds):
        ways = {"window": True, "full attention": False}
        usual = next(way for way, has in ways.items() if has == windowed)
        windowed = ways[inputs.choice("win", sized, list(ways), usual, segmented=True)]
    if mixed := words.mixtures(kinds):
        ways = {"experts": True, "dense": False}
        usual = next(way for way, has in ways.items() if has == mixture)
        mixture = ways[inputs.choice("ffn", mixed, list(ways), usual, segmented=True)]
    seeing = [kind for kind in kinds if (kind.window > 0) == windowed]
    return next((kind for kind in seeing if kind.mixture == mixture), seeing[0])


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
