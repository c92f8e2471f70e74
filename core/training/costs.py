"""What a layout costs beside memory: FLOPs computed again, bytes sent, the pipeline’s wait. Over arrays of layouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.models.flops import flops_per_token
from core.training.activations.operations import flop_again
from core.training.layout import Layout, Recompute
from core.training.setup import Setup
from core.training.traffic import traffic_per_step

FLOP_PER_BYTE = 1e4
"""FLOPs that a byte sent is worth: 400 TFLOP/s of an H100 in training over 40 GB/s of its network. Only the order of
changes depends on it."""

TENSOR_FLOP_PER_BYTE = 1e3
"""The same for tensor parallelism, which stays on links ten times as fast."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """What steps cost beyond the arithmetic that the model needs; numbers or arrays.

    again: FLOPs computed again, over those of the step.  sent: bytes that one accelerator sends for each of the tokens
    that it works on, its host included.  share: by how much a step is longer for all of it, bytes counted as FLOPs.
    """

    again: Any
    sent: Any
    share: Any


def step_cost(setup: Setup, layout: Layout) -> StepCost:
    """The cost of the setup's step under other layouts, arrays of them too; none is checked.

    An offloaded optimizer moves a step's gradients and parameters over the host's link. The pipeline's wait is
    (p − 1) / (v · m) of its work [Narayanan et al. 2021, section 2.2].
    """
    counted = flops_per_token(setup.spec, setup.seq_len, recompute="full")
    need = counted.training
    recompute = np.asarray(layout.recompute)
    lean = 0.0 if setup.implementation.flash else counted.squares
    redone = (
        (recompute == Recompute.FULL) * counted.recomputed
        + (recompute == Recompute.SELECTIVE) * lean
        + (recompute == Recompute.PER_OPERATION) * (flop_again(setup.spec) + lean)
    )
    sent = traffic_per_step(setup.spec, layout, policy=setup.policy, seq_len=setup.seq_len)
    on_device = setup.account(replace(layout, offload=0))
    moved = np.asarray(layout.offload) * (on_device.gradients + on_device.parameters)
    tokens = (
        layout.micro_batch * layout.micro_batches * setup.seq_len / (layout.tensor * layout.pipeline * layout.context)
    )
    worth = FLOP_PER_BYTE * (sent.total - sent.tensor + moved) + TENSOR_FLOP_PER_BYTE * sent.tensor
    wait = (layout.pipeline - 1) / (layout.interleave * layout.micro_batches)
    again = redone / need
    return StepCost(again, (sent.total + moved) / tokens, again + worth / (need * tokens) + wait)
