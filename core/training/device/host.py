"""What a node’s host holds and updates in place of its accelerators."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.training.activations.stage import Amounts
from core.training.device.inputs import in_parts
from core.training.device.memory import DeviceMemory, Setup, parts_of
from core.training.layout import Counts, Layout

_COMMIT = "https://github.com/deepspeedai/DeepSpeed/blob/ea78ab6863441bdf40e352132d5f930cc9e2d7aa"
DEEPSPEED = Source(
    "DeepSpeed",
    "runtime/zero/stage3.py, estimate_zero3_model_states_mem_needs: 16 bytes each, then half as much for buffers",
    f"{_COMMIT}/deepspeed/runtime/zero/stage3.py",
)

BUFFERS = 1.5
"""What DeepSpeed reckons with over the states that are offloaded, for its buffers."""

_FP32 = 4.0


@formula(
    r"\v{state} + \v{gradients} + \v{parameters} + \v{activations}",
    result=Symbol(r"M_\text{host}", "memory of the host for one accelerator", "bytes"),
    symbols={
        "state": Symbol(r"M_\text{opt}", "optimizer state and master weights that lie there", "bytes"),
        "gradients": Symbol(r"M_\text{g}", "gradients in fp32 of what is updated there", "bytes"),
        "parameters": Symbol(r"M_\text{par}", "parameters that lie there", "bytes"),
        "activations": Symbol(r"M_\text{act}", "activations that wait there for backward", "bytes"),
    },
    sources=(DEEPSPEED,),
)
def host_bytes(state: Any, gradients: Any, parameters: Any, activations: Any) -> Any:
    """Bytes in the host's memory for one accelerator; without the programs and data that are there anyway."""
    return state + gradients + parameters + activations


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes in the host's memory for the accelerator that has most there, by what they are for; numbers or arrays."""

    state: Any = 0.0
    gradients: Any = 0.0
    parameters: Any = 0.0
    activations: Any = 0.0

    @property
    def total(self) -> Any:
        """All of it."""
        return host_bytes(**asdict(self))

    def explain(self) -> Explanation:
        """How it comes about."""
        return host_bytes.explain(**asdict(self))


def node_bytes(layout: Layout, held: HostMemory, node_size: Counts, *, buffers: float = BUFFERS) -> Any:
    """Bytes in the host's memory for the accelerators of a node, of what one has ``held`` there, with the buffers of
    what updates there."""
    over = np.where(np.greater(layout.offload, 0), buffers, 1.0)
    size = np.minimum(layout.accelerators, node_size) * over * held.total
    return size if np.ndim(size) else float(size)


def host_lacks(setup: Setup, node_size: Counts, host: Amounts) -> Any:
    """Bytes of a node's ``host`` that are missing, beyond rounding; none are where nobody said how much it has."""
    unlimited = np.isnan(host)
    if np.all(unlimited):
        return -math.inf
    size = node_bytes(setup.layout, host_memory(setup), node_size, buffers=buffers_of(setup))
    return np.where(unlimited, -math.inf, size - np.multiply(host, 1 + 1e-9))


def buffers_of(setup: Setup) -> float:
    """What the host holds over the states that are offloaded: FSDP updates them where they lie, without buffers."""
    return 1.0 if setup.implementation.sharded_by == "FSDP" else BUFFERS


def host_memory(setup: Setup) -> HostMemory:
    """What a setup offloads: what its first stage would hold on the accelerator if it offloaded nothing, less what it
    does, with gradients in fp32 for an optimizer that updates there. A paged optimizer's state may all move there.

    Of layouts in arrays, arrays.
    """
    offloads = np.greater(setup.layout.offload, 0)
    if not (np.any(offloads) or setup.implementation.offloads or setup.paged):
        return HostMemory()
    kept = replace(
        setup,
        layout=replace(setup.layout, offload=0),
        implementation=replace(setup.implementation, offloads=False),
        paged=False,
    )
    here, there = _first_stage(setup), _first_stage(kept)
    state, parameters, activations = (np.maximum(0.0, there[name] - here[name]) for name in _MOVED[:3])
    gradients: Any = 0.0
    if np.any(offloads):
        # Each rank updates its own shard, whether gradients are sharded on the accelerator or not.
        zero = np.where(np.equal(setup.layout.zero, 1), 2, setup.layout.zero)
        shards = _first_stage(replace(kept, layout=replace(kept.layout, zero=zero)))["gradients"]
        gradients = offloads * shards * _FP32 / setup.policy.gradient_bytes
    if setup.implementation.sharded_by == "FSDP":  # what it gathers is cast from the fp32 shard, the only copy
        parameters = parameters * np.equal(state, 0)
    every = (state, gradients, parameters, activations)
    return HostMemory(*(part if np.ndim(part) else float(part) for part in every))


_MOVED = ("state", "parameters", "activations", "gradients")

_PIECE = 1 << 16
"""Layouts that are worked out at a time."""


def _first_stage(setup: Setup) -> dict[str, Any]:
    """Bytes of the first stage, by what may move to the host."""
    size, pieces = in_parts(setup.layout, setup.states, setup.step, _PIECE)
    out = {name: np.empty(size or (1,)) for name in _MOVED}
    for piece, degrees, states, step in pieces:
        parts = parts_of(setup.spec, degrees, states, step, setup.runtime, ("first",))
        held = (
            parts.master_weights + parts.optimizer_state,
            parts.parameters,
            parts.activations.layers,
            parts.gradients,
        )
        for name, value in zip(_MOVED, held, strict=True):
            # A part that is one number for all stages has no axis for them.
            out[name][piece] = value[0] if np.ndim(value) else value
    return {name: value.reshape(size) for name, value in out.items()}


@formula(
    r"\v{states} + \frac{\v{state}}{2} + \v{runtime}",
    result=Symbol(r"M_\text{all}", "memory while torch’s Adam updates all tensors at once", "bytes"),
    symbols={
        "states": Symbol(r"M_\text{s}", "model states", "bytes"),
        "state": Symbol(r"M_\text{opt}", "its two moments", "bytes"),
        "runtime": Symbol(r"M_\text{rt}", "context and what the allocator cannot use", "bytes"),
    },
    sources=(Source("PyTorch 2.11", "torch/optim/adam.py, _multi_tensor_adam", "https://github.com/pytorch/pytorch"),),
)
def foreach_bytes(states: float, state: float, runtime: float) -> float:
    """Return the bytes of an update without ``fused=True`` on CUDA: all states and the roots of all second moments."""
    return states + state / 2 + runtime


def foreach_update(memory: DeviceMemory) -> Explanation:
    """Explain how full an accelerator is while Adam updates all tensors at once."""
    return foreach_bytes.explain(
        states=float(memory.states), state=float(memory.optimizer_state), runtime=float(memory.runtime)
    )
