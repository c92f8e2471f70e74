"""Model states alone: what one accelerator keeps of each parameter, and the largest model that this would leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.formula import Explanation, Symbol, formula
from core.sources import CS336, ZERO
from core.training.device.buffers import sharded_bytes
from core.training.layout import Degrees, Layout, degrees_of, pick
from core.training.memory import PARTS, StateBytes, bytes_per_parameter

SHARED_FROM: Mapping[str, int] = {"parameters": 3, "gradients": 2, "master": 1, "optimizer": 1}
"""Part of `StateBytes` → the first stage of ZeRO that shares it among ranks."""


@formula(
    r"\frac{\v{memory} \cdot \v{ways}}{\v{each}}",
    result=Symbol(r"N_{\max}", "parameters of the largest model whose states fill the memory", "parameters"),
    symbols={
        "memory": Symbol("M", "memory capacity of one accelerator", "bytes"),
        "ways": Symbol("t p", "tensor- and pipeline-parallel ranks, which split the model", "count"),
        "each": Symbol("b_1", "bytes that one of them keeps for each of its parameters", "bytes_per_parameter"),
    },
    sources=(CS336, ZERO.at("section 3.1 and table 1")),
)
def largest_model(memory: float, ways: float, each: float) -> float:
    """Largest model whose states alone fill the accelerators that share them.

    An upper bound: nothing is left for activations, buffers, the runtime and fragmentation.
    """
    return memory * ways / each


def shared_over(part: str, degrees: Degrees, shards: Any) -> Any:
    """Over how many ranks a part of the model states is shared, of ``shards`` among which ZeRO does."""
    return pick(degrees.zero >= SHARED_FROM[part], shards, 1.0)


def on_device(part: str, degrees: Degrees) -> Any:
    """1 where a part lies on the accelerator, 0 in the host's memory.

    ZeRO-Offload moves gradients to the host as soon as they are reduced; without sharding they stay.
    """
    if part == "parameters":
        return pick(degrees.offload > 1, 0.0, 1.0)
    host = pick(degrees.offload > 0, 0.0, 1.0)
    return pick(degrees.zero >= SHARED_FROM["gradients"], host, 1.0) if part == "gradients" else host


def kept_each(states: StateBytes, layout: Layout) -> float:
    """Return the bytes that one accelerator keeps for each parameter of a dense model."""
    degrees = degrees_of(layout)
    kept = (
        float(getattr(states, part))
        * float(on_device(part, degrees))
        / float(shared_over(part, degrees, degrees.shards))
        for part in PARTS
    )
    return sum(kept) / float(degrees.tensor * degrees.pipeline)


def explain_largest(states: StateBytes, layout: Layout, memory: float) -> tuple[Explanation, ...]:
    """The steps to the largest model whose states alone fit."""
    degrees = degrees_of(layout)
    steps: list[Explanation] = []
    for part, name in PARTS.items():
        size = float(getattr(states, part)) * float(on_device(part, degrees))
        if size:
            shards = float(shared_over(part, degrees, degrees.shards))
            explanation = sharded_bytes.explain(dense=1.0, shards=shards, experts=0.0, expert_shards=1.0, each=size)
            steps.append(explanation.about(f"of one parameter, {name}"))
    return (
        bytes_per_parameter.explain(**{part: float(getattr(states, part)) for part in PARTS}),
        *steps,
        largest_model.explain(
            memory=memory,
            ways=float(degrees.tensor * degrees.pipeline),
            each=sum(step.value for step in steps),
        ),
    )
