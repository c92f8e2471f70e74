"""What offload takes of the host's memory: states, gradients and activations of one accelerator."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.training.device.memory import parts_of
from core.training.device.setup import Setup
from core.training.layout import degrees_of

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
def host_bytes(state: float, gradients: float, parameters: float, activations: float) -> float:
    """Bytes in the host's memory for one accelerator; without the programs and data that are there anyway."""
    return state + gradients + parameters + activations


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes in the host's memory for the accelerator that has most there, by what they are for."""

    state: float = 0.0
    gradients: float = 0.0
    parameters: float = 0.0
    activations: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.explain().value

    def explain(self) -> Explanation:
        """How it comes about."""
        return host_bytes.explain(**asdict(self))


def node_bytes(setup: Setup, node_size: int) -> float:
    """Bytes in the host's memory for the accelerators of a node, with the buffers of what updates there."""
    buffers = BUFFERS if setup.layout.offload else 1.0
    return min(int(setup.layout.accelerators), node_size) * buffers * host_memory(setup).total


def host_memory(setup: Setup) -> HostMemory:
    """What a setup offloads: what its first stage would hold on the accelerator if it offloaded nothing, less what it
    does, with gradients in fp32 for an optimizer that updates there. A paged optimizer's state may all move there.
    """
    if not (setup.layout.offload or setup.implementation.offloads or setup.paged):
        return HostMemory()
    kept = replace(
        setup,
        layout=replace(setup.layout, offload=0),
        implementation=replace(setup.implementation, offloads=False),
        paged=False,
    )

    def part(of: Setup, name: str) -> float:
        degrees, step = degrees_of(of.layout), of.step
        parts = parts_of(of.spec, degrees, of.states, step, of.runtime, ("first",))
        value = parts.activations.layers if name == "activations" else getattr(parts, name)
        return float(np.ravel(value)[0])

    def moved(name: str) -> float:
        return max(0.0, part(kept, name) - part(setup, name))

    gradients = 0.0
    if setup.layout.offload:
        # Each rank updates its own shard, whether gradients are sharded on the accelerator or not.
        zero = 2 if int(setup.layout.zero) == 1 else int(setup.layout.zero)
        shared = replace(kept, layout=replace(kept.layout, zero=zero))
        gradients = part(shared, "gradients") * _FP32 / float(setup.policy.gradient_bytes)
    state = moved("master_weights") + moved("optimizer_state")
    return HostMemory(state, gradients, moved("parameters"), moved("activations"))
