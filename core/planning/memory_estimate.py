"""What one accelerator has to hold under a plan, and what it can: the same account for every page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.formula import Explanation
from core.limits import cached
from core.messages import message
from core.models.spec import TransformerSpec
from core.planning.layout import plan_checkpoint, plan_layout, spec_of
from core.planning.plan import Plan
from core.step_time.running import written_with
from core.training.activations.derivation import tensor_bytes
from core.training.activations.stage import StepSettings
from core.training.activations.tensors import IMPLEMENTATIONS, LayerKind, SavedTensor
from core.training.device.buffers import MEASURED
from core.training.device.host import HostMemory, buffers_of, host_lacks, host_memory, node_bytes
from core.training.device.memory import DeviceMemory, Setup
from core.training.device.peak import explain_device
from core.training.device.traffic import step_cost
from core.training.layout import Counts, Layout, LayoutError, Recompute, check
from core.training.memory import StateBytes, states_per_parameter
from core.training.optimizers import Optimizer, find_optimizer, optimizers
from core.training.precision import POLICIES, PrecisionPolicy

Fits: TypeAlias = Literal["fits", "over", "unknown"]
"""Whether an accelerator holds what it has to; unknown where its memory is."""


@dataclass(frozen=True, eq=False, slots=True)
class MemoryEstimate:
    """Memory of the accelerator that uses the most.

    spec: the model's layers, or the proxy for them. device_memory: bytes by class. usable: memory capacity in bytes,
    NaN if unknown.
    """

    plan: Plan
    parameters: float
    spec: TransformerSpec
    stands_in: bool
    layout: Layout
    optimizer: Optimizer
    policy: PrecisionPolicy
    device_memory: DeviceMemory
    usable: float
    step: StepSettings

    @property
    def setup(self) -> Setup:
        """The same as a setup, whose step can be followed."""
        return setup_of(self.plan, self.spec, self.layout)

    @property
    def roomy(self) -> Setup:
        """The same setup on an accelerator with the memory headroom subtracted from its capacity."""
        return replace(self.setup, memory=self.total + self.room)

    @property
    def states_each(self) -> StateBytes:
        """Bytes of model states per parameter on accelerators, before sharding."""
        how = self.plan.runtime_options
        return states_per_parameter(
            self.optimizer, self.policy, self.spec, in_backward=how.in_backward, paged=how.paged
        )

    @property
    def checkpoint(self) -> float:
        """Bytes of a checkpoint of the whole model."""
        return float(plan_checkpoint(self.plan).of(self.parameters))

    @property
    def total(self) -> float:
        """Bytes that it has to hold."""
        return float(self.device_memory.total)

    @property
    def readings(self) -> Mapping[str, float]:
        """The same peak as three programs show it: torch’s allocated and reserved bytes, and those of the device."""
        tensors = float(self.device_memory.tensors)
        reserved = tensors * (1 + self.plan.runtime_options.slack)
        return {"allocated": tensors, "reserved": reserved, "device": self.total}

    @property
    def spare(self) -> float:
        """Free bytes; negative if capacity is exceeded."""
        return self.usable - self.total

    @property
    def fits(self) -> Fits:
        """Whether the plan fits in the memory capacity."""
        if math.isnan(self.usable):
            return "unknown"
        return "fits" if self.spare >= 0 else "over"

    @property
    def room(self) -> float:
        """Free bytes beyond the memory headroom; negative if the headroom is not met."""
        return self.spare - self.plan.limits.free * self.usable * (1 - 1e-9)

    @property
    def lacks(self) -> bool:
        """Whether the plan exceeds the capacity or leaves less than the memory headroom."""
        return self.room < 0

    @property
    def on_host(self) -> float:
        """Bytes that a node's host has to hold, with the buffers of what updates there."""
        size, setup = self.plan.device.node_size, self.setup
        return node_bytes(self.layout, held_by_host(self), size, buffers=buffers_of(setup))

    @property
    def on_host_with_fsdp(self) -> float:
        """The same where FSDP shards in place of DeepSpeed: 16 bytes a parameter with AdamW."""
        setup = replace(self.setup, implementation=replace(self.setup.implementation, sharded_by="FSDP"))
        return node_bytes(self.layout, host_memory(setup), self.plan.device.node_size, buffers=1.0)

    @property
    def host_holds(self) -> bool:
        """Whether host memory is enough; true if the user entered none."""
        return bool(host_lacks(self.setup, self.plan.device.node_size, self.plan.limits.host) <= 0)

    def tensors(self, kind: LayerKind, recompute: int | None = None) -> tuple[tuple[SavedTensor, float], ...]:
        """Return what forward saves of one layer and micro-batch on one accelerator, tensor by tensor, in bytes.

        recompute: a `Recompute` instead of the layout's.
        """
        layout = self.layout if recompute is None else replace(self.layout, recompute=recompute)
        rows = tensor_bytes(self.spec, layout, replace(self.step, imbalance=1.0, capacity=0.0), kind)
        return tuple((tensor, float(size)) for tensor, size in rows)

    def over_layouts(
        self,
        layout: Layout,
        *,
        seq_len: Counts | None = None,
        chunks: Counts | None = None,
        optimizer: Optimizer | None = None,
    ) -> DeviceMemory:
        """Return the plan under other layouts, lengths, loss chunks, or another optimizer, which may be arrays. Nothing
        is checked."""
        setup = replace(self.setup, optimizer=optimizer or self.optimizer, policy=self.policy_under(optimizer))
        setup = setup if chunks is None else replace(setup, chunks=chunks)
        return setup.account(layout, seq_len=seq_len)

    def policy_under(self, optimizer: Optimizer | None) -> PrecisionPolicy:
        """Return the plan's precision under another optimizer, whose states may have their own dtypes."""
        return self.plan.policy_under(optimizer) if optimizer else self.policy

    def explain(self) -> tuple[Explanation, ...]:
        """Return how the bytes of one accelerator come about: states by part, activations, runtime."""
        return explain_device(self.setup)

    @property
    def states_fit(self) -> Fits:
        """Whether the model states, without anything else, fit."""
        if math.isnan(self.usable):
            return "unknown"
        return "fits" if float(self.device_memory.states) <= self.usable else "over"


def setup_of(plan: Plan, spec: TransformerSpec, layout: Layout) -> Setup:
    """Return the plan at its longest as a setup under a layout, or several of them."""
    how, optimizer = plan.runtime_options, find_optimizer(plan.optimizer)
    written = written_with(plan.software, IMPLEMENTATIONS[how.implementation])
    return Setup(
        spec=spec,
        layout=layout,
        policy=plan.policy_under(optimizer),
        optimizer=optimizer,
        seq_len=plan.longest,
        memory=plan.usable_memory,
        implementation=replace(written, offloads=how.offload_activations),
        loss=how.loss,
        chunks=how.chunks,
        runtime=replace(MEASURED, context=how.runtime_bytes, communicator=how.runtime_bytes, slack=how.slack),
        trained=plan.trained,
        in_backward=how.in_backward,
        paged=how.paged,
    )


def check_trained(plan: Plan, layout: Layout) -> None:
    """Raise `LayoutError` if a layout does not support what is trained."""
    if plan.runtime_options.in_backward and int(layout.micro_batches) > 1:
        rule = message("training.error.micro_batches")
        raise LayoutError("micro_batches", int(layout.micro_batches), rule, 1)
    if plan.trained.method in ("last layers", "named tensors") and int(layout.pipeline) > 1:
        rule = message("training.error.pipeline")
        raise LayoutError("pipeline", int(layout.pipeline), rule, 1)


@cached("results_kept")
def memory_estimate(plan: Plan) -> MemoryEstimate:
    """Return the peak memory per accelerator for the parameters and accelerators that a plan names.

    Raises `LayoutError` for an invalid layout.
    """
    parameters = float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters
    spec, own = spec_of(plan, parameters)
    layout = plan_layout(plan)
    check_trained(plan, layout)
    setup = setup_of(plan, spec, layout)
    return MemoryEstimate(
        plan=plan,
        parameters=parameters,
        spec=spec,
        stands_in=not own,
        layout=layout,
        optimizer=setup.optimizer,
        policy=setup.policy,
        device_memory=_device_memory(setup),
        usable=setup.memory,
        step=setup.step,
    )


@cached("results_kept")
def _device_memory(setup: Setup) -> DeviceMemory:
    return setup.account(setup.layout)


@cached("results_kept")
def held_by_host(h: MemoryEstimate) -> HostMemory:
    """Return the host memory that the plan needs per accelerator, in bytes."""
    return host_memory(h.setup)


def with_layout(h: MemoryEstimate, **layout: int) -> DeviceMemory:
    """Return the account under another layout, given by its fields. Raises `LayoutError` for one that cannot be."""
    result = replace(h.layout, **layout)
    check(h.spec, result, h.plan.seq_len)
    return h.over_layouts(result)


def stages(h: MemoryEstimate) -> list[tuple[int, DeviceMemory]]:
    """Return the account under each stage of ZeRO."""
    return [(stage, with_layout(h, zero=stage)) for stage in range(4)]


def checkpointing(h: MemoryEstimate) -> list[tuple[Recompute, DeviceMemory, float]]:
    """Return the memory under no, selective, and full recomputation, and the FLOPs of a step relative to no
    recomputation."""
    layouts = {
        mode: replace(h.layout, recompute=int(mode)) for mode in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    }
    return [(mode, h.over_layouts(layout), float(step_cost(h.setup, layout).again)) for mode, layout in layouts.items()]


def under_each_optimizer(h: MemoryEstimate) -> list[MemoryEstimate]:
    """Return the same plan under every optimizer, from the most states to the least."""
    estimates = [
        replace(
            h, optimizer=other, policy=h.policy_under(other), device_memory=h.over_layouts(h.layout, optimizer=other)
        )
        for other in optimizers().values()
    ]
    return sorted(estimates, key=lambda estimate: -float(estimate.device_memory.total))


def under_each_policy(h: MemoryEstimate) -> list[MemoryEstimate]:
    """Return the same plan under every named precision, after its own where it has none of these."""
    named = [memory_estimate(replace(h.plan, policy=name)) for name in POLICIES]
    return named if h.plan.policy in POLICIES else [h, *named]
