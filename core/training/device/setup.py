"""One training setup as a value: model, layout, precision and way of computing, that can be changed and asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from core.hardware.accelerators import find
from core.models.spec import TransformerSpec
from core.training.activations.stage import Amounts
from core.training.activations.tensors import FUSED, Implementation, Loss
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.inputs import States, StepSettings, states_of, written_under
from core.training.device.memory import DeviceMemory, memory_over, memory_per_device
from core.training.layout import Counts, Layout
from core.training.optimizers import Optimizer, find_optimizer
from core.training.precision import PrecisionPolicy, find_policy
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
        return memory_per_device(
            self.spec,
            self.layout,
            policy=self.policy,
            optimizer=self.optimizer,
            seq_len=self.seq_len,
            implementation=self.implementation,
            loss=self.loss,
            chunks=self.chunks,
            imbalance=self.imbalance,
            capacity=self.capacity,
            runtime=self.runtime,
            trained=self.trained,
            in_backward=self.in_backward,
            paged=self.paged,
        )

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

    def account(self, layout: Layout, *, seq_len: Counts | None = None) -> DeviceMemory:
        """What is held under other layouts and sequence lengths, numbers or arrays, none of which is checked."""
        step = replace(self.step, seq_len=self.seq_len if seq_len is None else seq_len)
        return memory_over(self.spec, layout, self.states, step, runtime=self.runtime)

    def changed(self, changes: Mapping[str, Any]) -> Setup:
        """The setup with other values for fields of its own or of its layout, by name.

        An optimizer, a policy and an accelerator may be named. Raises ``KeyError`` for a name that is not known.
        """
        inner = {field.name for field in fields(Layout)}
        laid = replace(self.layout, **{name: value for name, value in changes.items() if name in inner})
        own: dict[str, Any] = {name: value for name, value in changes.items() if name not in inner}
        if "accelerator" in own:
            own["memory"] = find(own.pop("accelerator")).memory_bytes
        if isinstance(own.get("optimizer"), str):
            own["optimizer"] = find_optimizer(own["optimizer"])
        if isinstance(own.get("policy"), str):
            own["policy"] = find_policy(own["policy"])
        return replace(self, layout=laid, **own)
