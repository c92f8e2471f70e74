"""Buffers of a device: blocks of the allocator, gathered weights, buckets of gradients, and the runtime.

What depends on one axis alone stays as long as that axis, so that its part of a formula costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np

from core.formula import Source, Symbol, formula
from core.sources import ZERO
from core.training.device.ranks import RankParameters
from core.training.layout import Degrees, Recompute, pick, share_again, way_of

Key = TypeVar("Key")

Piece: TypeAlias = "tuple[slice, ...]"


def pieces(size: tuple[int, ...], most: int) -> Iterator[Piece]:
    """Slices that cover a shape, each of ``most`` points or fewer, the first axis being cut first."""
    steps: list[int] = []
    for axis, length in enumerate(size):
        inner = math.prod(size[axis + 1 :])
        steps.append(max(1, min(length, most // inner)) if inner else 1)
    yield from product(*(tuple(slice(i, i + s) for i in range(0, n, s)) for n, s in zip(size, steps, strict=True)))


def aligned(values: Mapping[Key, Any]) -> tuple[tuple[int, ...], dict[Key, Any]]:
    """The shape that values broadcast to, and arrays among them with as many axes; single numbers stay as they are."""
    size = np.broadcast_shapes(*(np.shape(value) for value in values.values()))

    def padded(value: Any) -> Any:
        return value.reshape((1,) * (len(size) - value.ndim) + value.shape) if np.ndim(value) else value

    return size, {key: padded(value) for key, value in values.items()}


def cut(value: Any, piece: Piece) -> Any:
    """The part of an aligned value that lies in a piece; axes along which it does not differ stay of length 1."""
    if not np.ndim(value):
        return value
    return value[tuple(at if n > 1 else slice(None) for at, n in zip(piece, value.shape, strict=True))]


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

    units_gathered: layers whose weights ZeRO-3 holds gathered at once, the one at work and the one fetched ahead; as
    many have whole gradients.
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
        "states": Symbol("S", "model states there at its fullest moment: at the loss without new gradients", "bytes"),
        "activations": Symbol("A", "activations there at that moment", "bytes"),
        "buffers": Symbol("B", "weights gathered or cast, and gradient buckets", "bytes"),
        "runtime": Symbol("R", "memory of the runtime", "bytes"),
    },
    sources=(ZERO.at("section 3"), _FSDP, _BUCKETS, _FITTED),
)
def device_bytes(states: float, activations: float, buffers: float, runtime: float) -> float:
    """Memory of one accelerator."""
    return states + activations + buffers + runtime


def process_groups(degrees: Degrees) -> Any:
    """Process groups of more than one rank that an accelerator is in."""
    d = degrees
    apart = pick(d.sends_tokens, d.expert_split, 1)
    several = (size > 1 for size in (d.tensor, d.pipeline, d.context, d.replicas, d.expert, apart))
    return sum(item * 1.0 for item in several)


def gathered_bytes(
    rank: RankParameters,
    degrees: Degrees,
    each: Any,
    runtime: Runtime,
    ends: float | None = None,
    *,
    regathers: bool = False,
) -> Any:
    """Weights that ZeRO-3 holds unsharded, in buffers of their own beside the shards.

    each: bytes of a gathered weight. Without a pipeline a few layers and both ends, which FSDP gathers as one unit for
    the whole step; with one, all weights of the stage, because every micro-batch needs them again, unless the software
    ``regathers`` them. On one accelerator as many are there of weights that lie in the host's memory.
    ends: bytes of a weight of either end, where it is another.
    """
    if not np.any(degrees.zero >= 3):
        return 0.0
    whole = _shared(rank, degrees)
    units = runtime.units_gathered * (rank.unit + rank.unit_experts) + rank.embedding + rank.head
    if ends is not None:  # the ends count as so many of the layers' weights
        units = units + (rank.embedding + rank.head) * (ends / each - 1.0)
        whole = whole + (rank.embedding + rank.head) * (ends / each - 1.0) * _apart(degrees, degrees.shards)
    content = pick(degrees.once_a_step(regathers), whole, np.minimum(whole, units))
    return content * ((degrees.zero >= 3) * each)


def cast_bytes(rank: RankParameters, degrees: Degrees, each: float, layers: Any, *, experts: bool) -> tuple[Any, Any]:
    """Casts of weights that autocast makes, in buffers of their own: all of forward, and those that backward begins
    with, which are not of layers that are done again, but for the one at work.

    each: bytes of one.  layers: of the stage.  experts: whether routed experts are cast. What ZeRO-3 gathers is cast as
    it is gathered.
    """
    if not each:
        return 0.0, 0.0
    there = (degrees.zero < 3) * each
    again = (way_of(degrees.recompute) == Recompute.FULL) * share_again(degrees.recompute, layers)
    whole, one = rank.layers + rank.experts * experts, rank.unit + rank.unit_experts * experts
    left = np.minimum(whole, whole * (1.0 - again) + one)
    return there * (whole + rank.projection), there * (left + rank.projection)


def waiting_bytes(rank: RankParameters, degrees: Degrees, gradients: Any, *, regathers: bool = False) -> Any:
    """Whole gradients that wait under ZeRO-2 and 3 until they are reduced: with a pipeline that is once a step.

    gradients: bytes of one. Software that ``regathers`` has none. A step of no more micro-batches than stages finishes
    one chunk of interleaved stages before the next, and reduces its gradients then [torchtitan's FSDP with pipelines].
    """
    there = (degrees.zero >= 2) & degrees.once_a_step(regathers)
    if not np.any(there):
        return 0.0
    one_by_one = degrees.micro_batches <= degrees.pipeline
    content = pick(degrees.zero >= 3, _whole(rank, degrees), _elsewhere(rank, degrees))
    return content * (there * gradients / pick(one_by_one, degrees.interleave, 1.0))


def bucket_bytes(
    rank: RankParameters, degrees: Degrees, gradients: Any, runtime: Runtime, *, regathers: bool = False
) -> Any:
    """Gradients on their way to shards while backward runs: a bucket under ZeRO-2, layers under ZeRO-3.

    gradients: bytes of one. Of layers it is two: one at work and one whose reduction is still under way. With a
    pipeline ZeRO-2 has no bucket, but where software ``regathers``: `waiting_bytes` has them all.
    """
    if not np.any(degrees.zero >= 2):
        return 0.0
    layers = runtime.units_gathered * (rank.unit + rank.unit_experts)
    once = degrees.once_a_step(regathers)
    bucket = np.minimum(_elsewhere(rank, degrees), runtime.bucket) * pick(once, 0.0, 1.0)
    whole = pick(once, _shared(rank, degrees), _whole(rank, degrees))
    content = pick(degrees.zero >= 3, np.minimum(whole, layers), bucket)
    return content * ((degrees.zero >= 2) * gradients)


def has_pool(degrees: Degrees) -> Any:
    """1 where gradients lie in a pool of their own, which activations do not get while there are none.

    FSDP reduces on a stream of its own [foreach_reduce], and PyTorch's allocator lends no memory from one stream to
    another. Where both peak at the loss, torchtitan's readings on 8 and on 128 accelerators differ by 15.0 GiB: it
    would be 14.0 with the shards of gradients, 10.5 without.
    """
    return (degrees.zero >= 3) * 1.0 * (degrees.shards > 1)


def _elsewhere(rank: RankParameters, degrees: Degrees) -> Any:
    """Parameters whose gradients ZeRO-2 has whole beside those that the states count: all but the rank's own shard,
    and that as well where it goes to the host, because it goes there once it is reduced."""
    own = pick(degrees.offload > 0, 0.0, 1.0)
    return rank.dense * (1 - own / degrees.shards) + rank.experts * (1 - own / degrees.expert_shards)


def _whole(rank: RankParameters, degrees: Degrees) -> Any:
    """Parameters whose gradients ZeRO-3 makes whole beside those that the states count."""
    return pick(degrees.offload > 0, rank.total, _shared(rank, degrees))


def _shared(rank: RankParameters, degrees: Degrees) -> Any:
    """Parameters of the rank that lie elsewhere until a layer is at work."""
    return rank.dense * _apart(degrees, degrees.shards) + rank.experts * _apart(degrees, degrees.expert_shards)


def _apart(degrees: Degrees, shards: Any) -> Any:
    """1 where weights lie in shards on several ranks, or in the host's memory."""
    return 1.0 * np.logical_or(shards > 1, degrees.offload > 1)
