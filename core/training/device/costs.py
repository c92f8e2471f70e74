"""What a layout costs beside memory: FLOPs computed again, bytes sent, the pipeline’s wait. Over arrays of layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.formula import Source, Symbol, formula
from core.models.flops import FlopPart, flops_per_token
from core.models.spec import TransformerSpec
from core.models.symbols import count
from core.training.activations.operations import flop_again
from core.training.activations.tensors import Implementation
from core.training.device.setup import Setup
from core.training.device.traffic import traffic_per_step
from core.training.layout import LayerModule, Layout, Recompute, modules_of, share_again, way_of

_NARAYANAN = Source(
    "Narayanan et al. 2021, Megatron-LM on GPU Clusters", "section 2.2", "https://arxiv.org/abs/2104.04473"
)

FLOP_PER_BYTE = 1e4
"""FLOPs that a byte sent is worth: 400 TFLOP/s of an H100 in training over 40 GB/s of its network. Only the order of
changes depends on it."""

INSIDE_FLOP_PER_BYTE = 1e3
"""The same inside a node, where tensor parallelism stays: on links ten times as fast."""


@formula(
    r"\frac{\v{pipeline} - 1}{\v{interleave}} \cdot (\v{stage} + \v{transfer})",
    result=Symbol(r"t_\text{b}", "time that a stage waits for the others", "seconds"),
    symbols={
        "pipeline": count("p", "pipeline stages"),
        "interleave": count("v", "model chunks on each stage"),
        "stage": Symbol(r"t_\text{s}", "forward and backward of one micro-batch on one stage", "seconds"),
        "transfer": Symbol(r"t_\text{p}", "its transfers to and from the next stage", "seconds"),
    },
    sources=(_NARAYANAN,),
)
def bubble_seconds(pipeline: float, interleave: float, stage: float, transfer: float) -> float:
    """The pipeline’s bubble: until the last stage has work, and after the first has none."""
    return (pipeline - 1) / interleave * (stage + transfer)


@dataclass(frozen=True, slots=True)
class StepCost:
    """What steps cost beyond the arithmetic that the model needs; numbers or arrays.

    again: FLOPs computed again, over those of the step.  sent: bytes that one accelerator sends for each of the tokens
    that it works on, its host included.  wait: time that the pipeline stands still, over that of the work.  share: by
    how much a step is longer for all of it, bytes counted as FLOPs.
    """

    again: Any
    sent: Any
    wait: Any
    share: Any


_REDONE: Mapping[LayerModule, Callable[[FlopPart], bool]] = {
    LayerModule.CORE: lambda part: part.square and part.group == "attention",
    LayerModule.UP_PROJECTION: lambda part: part.id in ("queries", "keys_values"),
    LayerModule.NETWORK: lambda part: part.group == "feed-forward",
    LayerModule.MIXTURE: lambda part: part.group == "experts",
}
"""Module → the products that are done again with it; those of the others are on single elements."""


def flop_redone(spec: TransformerSpec, how: Implementation, layout: Layout, seq_len: int) -> Any:
    """FLOPs of products that backward does again, per token: whole layers, every second product, or modules."""
    counted, way = flops_per_token(spec, seq_len, recompute="full"), way_of(layout.recompute)
    modules = modules_of(layout.recompute, flash=how.flash)
    redone = (way == Recompute.FULL) * counted.recomputed
    squares = 0.0 if how.flash else counted.squares
    redone = redone + (way == Recompute.PER_OPERATION) * (flop_again(spec) + squares)
    for module, inside in _REDONE.items():
        redone = redone + (modules & module > 0) * sum(part.flop for part in counted.parts if inside(part))
    return redone * share_again(layout.recompute, spec.layers / np.asarray(layout.pipeline))


def step_cost(setup: Setup, layout: Layout, *, per_byte: float = FLOP_PER_BYTE) -> StepCost:
    """The cost of the setup's step under other layouts, arrays of them too; none is checked.

    per_byte: FLOPs that a byte is worth which other kinds of parallelism than tensor send.

    An offloaded optimizer moves a step's gradients and parameters over the host's link; offloaded parameters come over
    it in each micro-batch's forward, and again in its backward.
    """
    need = flops_per_token(setup.spec, setup.seq_len).training
    redone = flop_redone(setup.spec, setup.implementation, layout, setup.seq_len)
    again = setup.implementation.regathers
    sent = traffic_per_step(setup.spec, layout, policy=setup.policy, seq_len=setup.seq_len, regathers=again)
    on_device = setup.account(replace(layout, offload=0))
    moved = np.greater(layout.offload, 0) * (on_device.gradients + on_device.later + on_device.parameters)
    moved = moved + np.greater(layout.offload, 1) * 2 * layout.micro_batches * on_device.parameters
    tokens = (
        layout.micro_batch * layout.micro_batches * setup.seq_len / (layout.tensor * layout.pipeline * layout.context)
    )
    worth = per_byte * (sent.total - sent.tensor) + INSIDE_FLOP_PER_BYTE * sent.tensor + FLOP_PER_BYTE * moved
    stage_share = 1 / np.asarray(layout.micro_batches)
    wait = bubble_seconds.over(pipeline=layout.pipeline, interleave=layout.interleave, stage=stage_share, transfer=0.0)
    again = redone / need
    return StepCost(again, (sent.total + moved) / tokens, wait, again + worth / (need * tokens) + wait)
