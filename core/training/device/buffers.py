"""What a step needs beside states and activations: gathered weights, gradient buckets, and the runtime's own memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.formula import Source, Symbol, formula
from core.sources import ZERO
from core.training.device.ranks import RankParameters
from core.training.layout import Degrees, pick

_FSDP = Source("Zhao et al. 2023, PyTorch FSDP", "sections 3.2 and 4.2", "https://arxiv.org/abs/2304.11277")
_BUCKETS = Source(
    "DeepSpeed, ZeRO configuration",
    "reduce_bucket_size",
    "https://www.deepspeed.ai/docs/config-json/#zero-optimizations-for-fp16-training",
)
_FITTED = Source("Napkin’s fit", "median of published memory readings, Runtime in core/training/device/buffers.py")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What frameworks keep beside the tensors of the account; every default can be set otherwise.

    units_gathered: layers whose weights ZeRO-3 holds gathered at once, the one at work and the one fetched ahead.
    bucket: parameters whose gradients ZeRO-2 holds before they are reduced; DeepSpeed's reduce_bucket_size.
    context: bytes of the driver's context, its kernels and the workspaces of matrix libraries.
    communicator: bytes of each process group with more than one rank.
    slack: share that the allocator reserves on top of the tensors and cannot use.
    The last three are fitted to published readings: 24 of 2022, of layouts with one to three groups, and 18 of what
    PyTorch's allocator reserved.
    """

    units_gathered: float = 2.0
    bucket: float = 5e8
    context: float = 2e9
    communicator: float = 2e9
    slack: float = 0.03


MEASURED = Runtime()
"""The defaults."""

TENSORS_ONLY = Runtime(context=0.0, communicator=0.0, slack=0.0)
"""The bytes of tensors alone, as papers estimate them."""

_WEIGHTS = Symbol("N_d", "parameters of a rank that are no routed experts", "count")
_EXPERTS = Symbol("N_e", "parameters of a rank in routed experts", "count")


@formula(
    r"(\frac{\v{dense}}{\v{shards}} + \frac{\v{experts}}{\v{expert_shards}}) \cdot \v{each}",
    result=Symbol("S", "bytes of one part of the model states on one accelerator", "bytes"),
    symbols={
        "dense": _WEIGHTS,
        "shards": Symbol("G", "ranks over which ZeRO shards this part; 1 if it does not", "count"),
        "experts": _EXPERTS,
        "expert_shards": Symbol("G_e", "the same for routed experts", "count"),
        "each": Symbol("b", "bytes per parameter of this part", "bytes_per_parameter"),
    },
    sources=(ZERO.at("section 5"),),
)
def sharded_bytes(dense: float, shards: float, experts: float, expert_shards: float, each: float) -> float:
    """One part of the model states on one accelerator.

    Tensor, pipeline and expert parallelism have divided the parameters of the rank; ZeRO divides what is left among
    the ranks that would hold the same.
    """
    return (dense / shards + experts / expert_shards) * each


@formula(
    r"\v{tensors} \cdot \v{slack} + \v{context} + \v{groups} \cdot \v{communicator}",
    result=Symbol("R", "memory of the runtime", "bytes"),
    symbols={
        "tensors": Symbol("T", "bytes of all tensors", "bytes"),
        "slack": Symbol("f", "share that the allocator reserves on top", "number"),
        "context": Symbol("c", "context of the driver and workspaces of libraries", "bytes"),
        "groups": Symbol("n_g", "process groups of more than one rank", "count"),
        "communicator": Symbol("c_g", "buffers of one process group", "bytes"),
    },
    sources=(_FITTED,),
)
def runtime_bytes(tensors: float, slack: float, context: float, groups: float, communicator: float) -> float:
    """Memory that holds no tensor: fragmentation, the driver's context, and buffers of collectives."""
    return tensors * slack + context + groups * communicator


@formula(
    r"\v{states} + \v{activations} + \v{buffers} + \v{runtime}",
    result=Symbol("M", "memory that one accelerator has to hold", "bytes"),
    symbols={
        "states": Symbol("S", "model states", "bytes"),
        "activations": Symbol("A", "activations", "bytes"),
        "buffers": Symbol("B", "gathered weights and gradient buckets", "bytes"),
        "runtime": Symbol("R", "memory of the runtime", "bytes"),
    },
    sources=(ZERO.at("section 3"), _FITTED),
)
def device_bytes(states: float, activations: float, buffers: float, runtime: float) -> float:
    """Memory of one accelerator."""
    return states + activations + buffers + runtime


def process_groups(degrees: Degrees) -> Any:
    """Process groups of more than one rank that an accelerator is in."""
    d = degrees
    several = (size > 1 for size in (d.tensor, d.pipeline, d.context, d.replicas, d.expert))
    return sum(one * 1.0 for one in several)


def gathered_bytes(
    rank: RankParameters, degrees: Degrees, elsewhere: Any, each: Any, gradients: Any, runtime: Runtime
) -> Any:
    """Weights that ZeRO-3 holds unsharded.

    elsewhere: parameters of the rank that lie on other ranks; never more are held.  each, gradients: bytes of a
    gathered weight and of its gradient. Without a pipeline a few layers and the larger end at a time; with one, all
    weights and gradients of the stage, because every micro-batch needs them again [torchtitan's FSDP with pipelines].
    """
    if not np.any(degrees.zero >= 3):
        return 0.0
    units = runtime.units_gathered * (rank.unit + rank.unit_experts) + np.maximum(rank.embedding, rank.head)
    piped = degrees.pipeline > 1
    held = pick(piped, elsewhere, np.minimum(elsewhere, units))
    return held * ((degrees.zero >= 3) * (each + piped * gradients))


def bucket_bytes(rank: RankParameters, degrees: Degrees, elsewhere: Any, gradients: Any, runtime: Runtime) -> Any:
    """Gradients that are whole before they are reduced to shards: a bucket under ZeRO-2, one layer under ZeRO-3.

    elsewhere: as for `gathered_bytes`.  gradients: bytes of one. With a pipeline, ZeRO-3 holds all of them, which
    `gathered_bytes` counts.
    """
    if not np.any(degrees.zero >= 2):
        return 0.0
    layer = pick(degrees.pipeline > 1, 0.0, rank.unit + rank.unit_experts)
    whole = pick(degrees.zero >= 3, layer, runtime.bucket)
    return np.minimum(elsewhere, whole) * ((degrees.zero >= 2) * gradients)
