"""Compute budget, where the FLOPs go: by component, by convention, and as the sequence grows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from core.models.flops import Attention, flops_per_token
from core.models.spec import TransformerSpec
from core.planning.answer import words
from core.planning.budget.rule import count_every_way, explain_count, explain_way, scale_of
from core.planning.counting import words as words_panels
from core.planning.counting.figures import flops_by_component, flops_treemap, sequence_sweep
from core.planning.counting.growth import growth
from pages.compute.inputs import Asked
from pages.parts import show
from pages.parts.charts import wire
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def where(inputs: Inputs, asked: Asked) -> None:
    """The panel's content."""
    spec, seq_len, attention = asked.shape.spec, asked.seq_len, asked.attention
    scale = scale_of(spec, asked.plan)
    counted = flops_per_token(spec, seq_len, attention)
    if asked.model is None:
        show.note(words.stand_in(asked.shape, asked.plan.params))
    show.says(words_panels.where(counted, scale))
    picture = inputs.choice("pic", "Picture", ["bars", "areas"], "bars", segmented=True)
    show.chart(
        _bars(spec, seq_len, attention, scale) if picture == "bars" else _areas(spec, seq_len, attention, scale),
        alt=f"FLOPs per token of training of {asked.shape.name} by component; {words.largest(counted)}.",
        key=f"compute:{picture}",
    )
    grown = growth(spec, seq_len, attention)
    show.says(words_panels.growing(grown))
    show.chart(
        _sweep(spec, seq_len, attention, scale),
        alt="FLOPs per token against sequence length. Products with weights stay level, attention’s products rise. "
        + words_panels.growing(grown).replace("**", ""),
        key="compute:sweep",
    )
    typed = not asked.published and asked.outlook.find != "MFU"
    plan = asked.plan if typed else asked.outlook.by_rule
    counts = count_every_way(spec, seq_len, plan)
    here = [way.id for way in counts].index(attention)
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(words_panels.ways_headings(typed=typed))],
        words_panels.ways(counts, typed=typed),
        here=here,
    )
    for line in (words.gap(asked.shape, seq_len, attention), *words.cautions(asked.shape, seq_len)):
        show.note(line)
    show.how(
        lambda: [
            *explain_count(spec, seq_len, attention, asked.plan),
            explain_way(counts[here], plan, typed=typed),
            *grown.explain(),
        ],
        key="compute:flops:how",
        notes=[words.SCOPE],
    )


@lru_cache(maxsize=64)
def _bars(spec: TransformerSpec, seq_len: int, attention: Attention, scale: float) -> dict[str, Any]:
    return wire(flops_by_component(flops_per_token(spec, seq_len, attention), TOKENS, scale))


@lru_cache(maxsize=64)
def _areas(spec: TransformerSpec, seq_len: int, attention: Attention, scale: float) -> dict[str, Any]:
    return wire(flops_treemap(flops_per_token(spec, seq_len, attention), TOKENS, scale))


@lru_cache(maxsize=64)
def _sweep(spec: TransformerSpec, seq_len: int, attention: Attention, scale: float) -> dict[str, Any]:
    return wire(sequence_sweep(growth(spec, seq_len, attention), TOKENS, scale))
