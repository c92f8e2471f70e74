"""What stands outside a step: an update of all tensors at once, and what DeepSpeed copies."""

from __future__ import annotations

from core.formula import Explanation, Source, Symbol, formula
from core.models.symbols import count
from core.training.device.host import DEEPSPEED
from core.training.device.memory import DeviceMemory

_TORCH = Source("PyTorch 2.11", "torch/optim/adam.py, _multi_tensor_adam", "https://github.com/pytorch/pytorch")
_ZERO_2 = DEEPSPEED.at("runtime/zero/stage_1_and_2.py")
_STATES = Symbol(r"M_\text{s}", "model states", "bytes")
_WEIGHTS = Symbol(r"M_\text{w}", "weights in 16 bits", "bytes")
_RUNTIME = Symbol(r"M_\text{rt}", "context and what the allocator cannot use", "bytes")
_SHARDS = count("d", "ranks that share a state")


@formula(
    r"\v{states} + \frac{\v{state}}{2} + \v{runtime}",
    result=Symbol(r"M_\text{all}", "memory while torch’s Adam updates all tensors at once", "bytes"),
    symbols={
        "states": _STATES,
        "state": Symbol(r"M_\text{opt}", "its two moments", "bytes"),
        "runtime": _RUNTIME,
    },
    sources=(_TORCH,),
)
def foreach_bytes(states: float, state: float, runtime: float) -> float:
    """An update without ``fused=True`` on CUDA: the roots of all second moments stand beside all states."""
    return states + state / 2 + runtime


@formula(
    r"\v{weights} \cdot \left(2 + \frac{1}{\v{shards}}\right) + \v{masters} + \v{runtime}",
    result=Symbol(r"M_\text{init}", "memory while DeepSpeed takes a model over", "bytes"),
    symbols={
        "weights": _WEIGHTS,
        "shards": _SHARDS,
        "masters": Symbol(r"M_\text{m}", "a rank’s copy in fp32", "bytes"),
        "runtime": _RUNTIME,
    },
    sources=(_ZERO_2,),
)
def setup_bytes(weights: float, shards: float, masters: float, runtime: float) -> float:
    """ZeRO-1 or 2: the weights as they were and in one piece, a rank’s shard of them, and its copy in fp32; measured as
    10 bytes a parameter on one rank."""
    return weights * (2 + 1 / shards) + masters + runtime


@formula(
    r"\v{states} + \frac{3 \cdot \v{weights}}{\v{shards}} + \v{runtime}",
    result=Symbol(r"M_\text{upd}", "memory while DeepSpeed updates", "bytes"),
    symbols={"states": _STATES, "weights": _WEIGHTS, "shards": _SHARDS, "runtime": _RUNTIME},
    sources=(_ZERO_2,),
)
def update_bytes(states: float, weights: float, shards: float, runtime: float) -> float:
    """ZeRO-1 or 2: beside all states a rank’s shard of gradients in one piece, in 16 bits and in fp32; measured as 22
    bytes a parameter on one rank."""
    return states + 3 * weights / shards + runtime


def foreach_update(memory: DeviceMemory) -> Explanation:
    """How full an accelerator is while Adam updates all tensors at once."""
    return foreach_bytes.explain(
        states=float(memory.states), state=float(memory.optimizer_state), runtime=float(memory.runtime)
    )


def deepspeed_setup(memory: DeviceMemory, shards: float) -> Explanation:
    """The same while DeepSpeed’s ZeRO-1 or 2 takes a model over."""
    masters = float(memory.master_weights)
    return setup_bytes.explain(
        weights=float(memory.parameters), shards=shards, masters=masters, runtime=float(memory.runtime)
    )


def deepspeed_update(memory: DeviceMemory, shards: float) -> Explanation:
    """The same while it updates."""
    weights = float(memory.parameters)
    return update_bytes.explain(
        states=float(memory.states), weights=weights, shards=shards, runtime=float(memory.runtime)
    )
