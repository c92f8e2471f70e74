"""One training setup as a value: model, layout, precision and way of computing, that can be asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from core.models.spec import TransformerSpec
from core.training.activations.stage import Amounts
from core.training.activations.tensors import FUSED, Implementation, Loss
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.inputs import States, StepSettings, states_of, written_under
from core.training.device.memory import DeviceMemory, memory_over
from core.training.layout import Counts, Layout, check
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.trained import EVERYTHING, Trained


@dataclass(frozen=True)
class Setup:
    """What an account of one accelerator needs; the fields are those of `memory_per_device`.

    memory: bytes of one accelerator that can be used; NaN where unknown.
    Without slots, so that the account is worked out once.
    """

    spec: TransformerSpec
    layout: Layout
    policy: PrecisionPolicy
    optimizer: Optimizer
    seq_len: int
    memory: float = math.nan
    implementation: Implementation = FUSED
    loss: Loss | None = None
    chunks: int = 1
    imbalance: Amounts = 1.0
    capacity: Amounts = 0.0
    runtime: Runtime = MEASURED
    trained: Trained = EVERYTHING
    in_backward: bool = False
    paged: bool = False

    @cached_property
    def states(self) -> States:
        """Bytes of each parameter."""
        return states_of(
            self.optimizer, self.policy, self.spec, self.trained, in_backward=self.in_backward, paged=self.paged
        )

    @cached_property
    def device_memory(self) -> DeviceMemory:
        """What the fullest accelerator holds. Raises `LayoutError` for a layout that cannot be."""
        check(self.spec, self.layout, self.seq_len)
        return self.account(self.layout)

    @property
    def fits(self) -> bool:
        """Whether an accelerator holds it; no where its memory is unknown."""
        return bool(self.device_memory.total <= self.memory)

    @cached_property
    def step(self) -> StepSettings:
        """How its step is computed."""
        return StepSettings(
            self.seq_len,
            written_under(self.implementation, self.spec, self.policy, self.trained),
            loss=self.loss,
            chunks=self.chunks,
            imbalance=self.imbalance,
            capacity=self.capacity,
        ).under(self.policy, self.trained)

    def account(self, layout: Layout, *, seq_len: Counts | None = None, stage: int | None = None) -> DeviceMemory:
        """What an accelerator of ``stage``, or the fullest one, holds under other layouts and sequence lengths, none of
        which is checked."""
        step = replace(self.step, seq_len=self.seq_len if seq_len is None else seq_len)
        return memory_over(self.spec, layout, self.states, step, runtime=self.runtime, stage=stage)
