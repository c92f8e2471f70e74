"""Compute budget, where the FLOPs go: by component, as the sequence grows, and one run under every convention."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.limits import cached
from core.messages import message
from core.models.attention_share import growth
from core.models.flops import Attention, flops_per_token, train_flop_by_layer
from core.models.spec import TransformerSpec
from core.planning.estimate import PlanEstimate
from core.runs.conventions import which_mfu
from core.views.flops import text
from core.views.flops.charts import flops_by_component, sequence_sweep
from core.wording import plain
from pages.common import show
from pages.common.figures import wire
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import RATE


def flops_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the FLOP count by component and by sequence length, and the conventions of MFU."""
    spec, seq_len, attention, m = a.shape.spec, a.plan.seq_len, a.plan.attention, a.middle
    counted = flops_per_token(spec, seq_len, attention)
    if a.stands_in:
        show.note(text.proxy_text(a.shape))
    show.takeaway(text.components_text(counted))
    show.chart(_parts(spec, seq_len, attention), alt=text.components_alt(a.shape, counted), key="compute:bars")
    grown = growth(spec, seq_len, attention)
    show.takeaway(text.growth_text(grown))
    show.chart(_sweep(spec, seq_len, attention), alt=plain(text.growth_alt(grown)), key="compute:sweep")
    with st.container(key=inputs.key("gap")):
        show.takeaway(text.gap_text(a.shape, seq_len, attention))
        rows, caption = text.gap_rows(a.shape, seq_len, attention), message("flops.gap.caption")
        show.small_table(text.gap_headings(), rows, caption=caption)
        for line in text.cautions(a.shape, seq_len):
            show.note(line)
        show.small_table(*text.rule_table(attention))
    inputs.draw(RATE, placeholder=message("flops.rate.placeholder", rate=a.middle.tokens_per_second))
    show.draw_problems(inputs, RATE.id)
    rate = inputs.reading.values[RATE.id] or a.middle.tokens_per_second
    cluster = {"accelerators": a.middle.accelerators, "peak": a.peak}
    scores = which_mfu(spec, seq_len, tokens_per_second=rate, **cluster)
    show.takeaway(text.scores_text(scores, rate))
    show.small_table(*text.score_table(scores))
    show.how(
        lambda: [
            *(s.explanation for s in scores),
            train_flop_by_layer.explain(forward=counted.forward, tokens=m.tokens),
            *(part.explain() for part in counted.parts),
            *grown.explain(),
        ],
        key="compute:flops:how",
        notes=[text.scope_text()],
    )


@cached("arrays_kept")
def _parts(spec: TransformerSpec, seq_len: int, attention: Attention) -> dict[str, Any]:
    return wire(flops_by_component(flops_per_token(spec, seq_len, attention), TOKENS))


@cached("arrays_kept")
def _sweep(spec: TransformerSpec, seq_len: int, attention: Attention) -> dict[str, Any]:
    return wire(sequence_sweep(growth(spec, seq_len, attention), TOKENS))
