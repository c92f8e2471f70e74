"""Compute budget: the roofline of one layer on the chosen accelerator."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from core.hardware.cluster import Rates
from core.models.spec import TransformerSpec
from core.planning.estimate import PlanEstimate
from core.planning.measured import rates_of
from core.step_time.layer_roofline import (
    ELEMENT_BYTES,
    LayerKind,
    LayerOperation,
    kinds_of,
    layer_roofline,
    peaks_of,
    wide_dtype,
)
from core.views.plan.text_rates import by
from core.views.roofline import text
from core.views.roofline.charts import roofline
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import FFN, FUSED, MICRO_BATCH, WINDOWED

_TRAIL = np.exp2(np.arange(16, dtype=np.float64))
_TRAILED = ("up", "shared_up")


def layer_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """The panel's content."""
    device, spec, dtype, seq_len = a.device, a.shape.spec, a.dtype, a.plan.seq_len
    if spec.unlisted:
        show.note(text.no_account(spec))
        return
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        inputs.draw(MICRO_BATCH)
        inputs.draw(FUSED)
        kind = _kind(inputs, spec, seq_len)
    tokens, fused = 2 ** inputs.reading.values[MICRO_BATCH.id], inputs.reading.values[FUSED.id]
    rates = rates_of(a.plan)
    bandwidth = (rates or Rates()).of("memory", device.bandwidth)
    if dtype not in ELEMENT_BYTES or not bandwidth > 0:
        show.note(f"No roofline: the {dtype} peak or the bandwidth of {device.name} is not known.")
        return
    layer = partial(layer_roofline, spec, device, dtype=dtype, seq_len=seq_len, kind=kind, rates=rates)
    either = {way: layer(tokens=float(tokens), fused_attention=way) for way in (True, False)}
    operations = either[fused]
    trail = next(o for o in layer(tokens=_TRAIL) if o.id in _TRAILED and o.phase == "forward")
    message = text.layered(operations, f"{device.name}{by(a.plan)}", tokens)
    with head:
        show.takeaway(message)
    operations_shown: list[LayerOperation] = [o for o in operations if o.phase != "backward" and o.id != "head_update"]
    wide = wide_dtype(device, dtype)
    peaks = peaks_of(device, dtype, rates)
    vector = device.peak("fp32")
    show.chart(
        roofline(
            operations_shown,
            trail,
            _TRAIL,
            peaks,
            vector if vector > 0 else peaks[wide],
            bandwidth,
            TOKENS,
            (peaks_of(device, dtype), device.bandwidth) if rates else None,
        ),
        alt=f"Roofline of {device.name}. {plain(message)}",
        key="compute:roofline",
    )
    show.note(
        "Forward pass. Circles: limited by compute; diamonds: limited by memory. Dotted: the same matrix product from "
        "1 to 32,768 tokens at once." + (" Solid: as measured; dashed: the datasheet’s." if rates else "")
    )
    if divided := text.below_16bit(dtype, wide, mixture=kind.mixture):
        show.note(divided)
        show.source(text.LOW_PRECISION_SOURCE)
    name = text.kind_name(kind, kinds_of(spec, seq_len))
    show.small_table(
        [show.Column(heading, numeric=i not in (0, 4)) for i, heading in enumerate(text.OPERATIONS)],
        text.operations(operations),
        caption=f"One layer of {a.shape.name}{f' ({name})' if name else ''}, forward and backward together, and "
        "what is beside it",
    )
    show.note(text.fused(either[True], either[False]))
    show.how(
        lambda: [step for o in operations if o.id in (*_TRAILED, "norms") for step in o.explanations],
        key="compute:roof:how",
        notes=text.LAYER_NOTES,
    )


def _kind(inputs: Inputs, spec: TransformerSpec, seq_len: int) -> LayerKind:
    """The layer to draw, as usual the most frequent one; a question only where a model has several kinds."""
    kinds = kinds_of(spec, seq_len)
    values = inputs.reading.values
    result = list(kinds)
    for field, sized, has in (
        (WINDOWED, text.windows(kinds), lambda kind: "window" if kind.window else "full attention"),
        (FFN, text.mixtures(kinds), lambda kind: "experts" if kind.mixture else "dense"),
    ):
        if sized:
            inputs.draw(field, label=sized)
            result = [kind for kind in result if values[field.id] in ("most frequent", has(kind))] or result
    return result[0]
