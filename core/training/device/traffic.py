"""Bytes that one accelerator sends in one step, by the parallelism that makes it.

Collectives are counted as rings: an all-gather or reduce-scatter of n bytes over G ranks sends (G − 1) / G · n, an
all-reduce twice that. Layout and sequence length may be arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from core.formula import Source, Symbol, formula
from core.limits import cached
from core.models.operation import AttentionCore, Block, Dispatch, Linear, Split
from core.models.operations import operations
from core.models.spec import TransformerSpec
from core.sources import ZERO
from core.training.activations.formulas import MEGATRON_MEMORY, rank_tokens
from core.training.device.memory import rank_of, width_of
from core.training.device.ranks import StageName
from core.training.divided import DividedAmount, most_ranks
from core.training.layout import Counts, Degrees, Layout, Recompute, degrees_of, pick, share_again, way_of
from core.training.precision import PrecisionPolicy

_NCCL = Source(
    "NVIDIA, nccl-tests", "doc/PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)
_RING = Source("Liu et al. 2023, Ring Attention", "section 3", "https://arxiv.org/abs/2310.01889")
_SENT = Symbol("W", "bytes that one rank sends", "bytes")
_RANKS = Symbol("G", "ranks of the group", "count")


@formula(
    r"\v{times} \cdot \v{size} \cdot (1 - \frac{1}{\v{ranks}})",
    result=_SENT,
    symbols={
        "times": Symbol("k", "reduce-scatters, all-gathers or all-to-alls; an all-reduce is two", "count"),
        "size": Symbol("n", "bytes of the whole tensor", "bytes"),
        "ranks": _RANKS,
    },
    sources=(_NCCL, ZERO.at("section 7"), MEGATRON_MEMORY.at("section 4.2.2")),
)
def ring_bytes(times: float, size: float, ranks: float) -> float:
    """Bytes sent by collectives over a ring: each rank passes on all but its own part."""
    return times * size * (1 - 1 / ranks)


@formula(
    r"\v{passes} \cdot \v{size} \cdot (\v{ranks} - 1)",
    result=_SENT,
    symbols={
        "passes": Symbol("k", "passes over the keys and values of all ranks", "count"),
        "size": Symbol("n", "bytes of one rank’s keys and values", "bytes"),
        "ranks": _RANKS,
    },
    sources=(_RING,),
)
def passed_bytes(passes: float, size: float, ranks: float) -> float:
    """Bytes sent by ring attention: every rank’s keys and values pass by every other rank."""
    return passes * size * (ranks - 1)


@dataclass(frozen=True, slots=True)
class SentWidths:
    """Elements of a token that ranks exchange, in a mean layer but for ``dispatched``.

    kept: what decoding would store, which passes context-parallel ranks. state: what those exchange for a state,
    forward: what its first projection makes goes to ranks that hold whole sequences of some heads, and what the state
    gives comes back. dispatched: of a layer with experts, to all experts of a token. summed: blocks whose output
    tensor-parallel ranks add up, with what divides the input of the last matmul.
    """

    kept: DividedAmount
    state: float
    dispatched: int
    summed: frozenset[tuple[Block, Split]]


@cached("results_kept")
def sent_widths(spec: TransformerSpec) -> SentWidths:
    """Return what ranks exchange of a token of ``spec``."""
    kept, state, dispatched, summed = DividedAmount(), 0.0, 0, set[tuple[Block, Split]]()
    for op in operations(spec):
        share = op.layers / spec.layers
        match op:
            case AttentionCore(block="layer"):
                for x in op.cached:
                    kept[most_ranks(x.split, (op,))] += share * x.width / op.every
            case Linear(reads=(x,), makes=(y,)):
                divided = x.split in ("tensor", "expert tensor")
                summed |= {(op.block, x.split)} if divided else set()
                state += share * (x if divided else y).width * (op.block == "mixer")
            case Dispatch(block="moe"):
                dispatched += op.copies * op.makes[0].width
            case _:
                pass
    return SentWidths(kept, state, dispatched, frozenset(summed))


def outputs_sent(spec: TransformerSpec, layers: Any, mixed: Any, d: Degrees) -> Any:
    """Reduce-scatters and all-gathers of layers' outputs among tensor-parallel ranks, in one pass over ``layers``.

    mixed: how many of the layers have experts. Each block has an output; in parallel, attention adds its to that of the
    network. Routed experts that tokens are sent to have none: these come from where sequence parallelism keeps them.
    """
    summed = sent_widths(spec).summed
    # Parallel attention beside experts that tokens are sent to, or beside no network, would have one, too.
    times = 2.0 * ((not spec.parallel_blocks) * layers + mixed + (("dense", "tensor") in summed) * (layers - mixed))
    return times if ("moe", "tensor") in summed or not spec.experts else times - 2.0 * mixed * d.sends_tokens


def gathered_tokens(times: Any, size: Any, d: Degrees) -> Any:
    """Bytes that one rank sends among the ranks that hold an expert together: tokens in, and what it makes of them.

    times: passes over layers with experts.  size: bytes of all tokens of the tensor-parallel group, for each expert.
    """
    if not (np.any(size) and np.any(d.expert_tensor > 0)):
        return 0.0
    split = d.expert_split
    return d.sends_tokens * ring_bytes.over(times=2.0 * times, size=size / d.tensor * split, ranks=split)


def handed_on(d: Degrees, stream: Any, scattered: Counts = 0) -> Any:
    """What one rank sends on of a micro-batch's residual ``stream``, in bytes: its share with sequence parallelism.

    Without it each tensor-parallel rank sends all of them, as Megatron-Core does, unless they are ``scattered`` for it
    and gathered again, as Megatron-LM did in 2021 (Narayanan et al. 2021, section 4.1).
    """
    return stream / pick((d.sequence_parallel > 0) | (scattered > 0), d.tensor, 1.0)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one accelerator sends in one step by kind; numbers or arrays."""

    tensor: Any
    pipeline: Any
    data: Any
    expert: Any
    context: Any

    @property
    def total(self) -> Any:
        return self.tensor + self.pipeline + self.data + self.expert + self.context


def traffic_per_step(
    spec: TransformerSpec,
    layout: Layout,
    *,
    policy: PrecisionPolicy,
    seq_len: Counts,
    stage: StageName = "middle",
    regathers: bool = False,
) -> Traffic:
    """Bytes that one accelerator of ``stage`` sends in one step.

    Tensor parallelism sends an all-reduce of each output of a layer forward and one backward, as pairs of halves with
    sequence parallelism; full recomputation repeats the forward ones. ZeRO-2 and 3 reduce gradients after every
    micro-batch, and ZeRO-3 gathers weights for each forward and backward pass, but once a step with a pipeline, unless
    the software ``regathers`` there, too.
    """
    d, width = degrees_of(layout), width_of(policy)
    stages, rank = rank_of(spec, d, (stage,))
    layers, moe, many = stages.layers[0], stages.moe_layers[0], d.micro_batches
    tokens = rank_tokens.over(micro_batch=d.micro_batch, seq_len=np.asarray(seq_len), context=d.context)
    again = (way_of(d.recompute) == Recompute.FULL) * share_again(d.recompute, layers)
    hidden = tokens * spec.hidden * width
    neighbours = (stages.index[0] > 0) * 1.0 + (stages.index[0] < d.pipeline - 1)
    widths = sent_widths(spec)
    dispatched = tokens * widths.dispatched * width
    outputs = outputs_sent(spec, layers, moe, d)
    sent = Traffic(
        tensor=ring_bytes.over(times=many * outputs * (2 + again), size=hidden, ranks=d.tensor)
        + gathered_tokens(many * moe * (2 + again), dispatched, d),
        pipeline=many * d.interleave * neighbours * handed_on(d, tokens * spec.stream_width * policy.residual.bytes),
        data=_data(rank.dense[0], d.shards, d, policy, regathers)
        + _data(rank.experts[0] + 0.0 * many, d.expert_shards, d, policy, regathers),
        expert=ring_bytes.over(times=many * moe * (4 + 2 * again), size=dispatched / d.tensor, ranks=d.expert),
        context=passed_bytes.over(
            passes=many * layers * (3 + again), size=tokens * widths.kept.on(d.tensor) * width, ranks=d.context
        )
        + ring_bytes.over(
            times=many * layers * (2 + again), size=tokens * widths.state / d.tensor * width, ranks=d.context
        ),
    )
    if all(np.ndim(value) == 0 for value in (seq_len, *(getattr(layout, field.name) for field in fields(layout)))):
        return Traffic(**{field.name: float(np.ravel(getattr(sent, field.name))[0]) for field in fields(sent)})
    return sent


def _data(parameters: Any, shards: Any, d: Degrees, policy: PrecisionPolicy, regathers: bool) -> Any:
    """Reduced gradients and gathered weights; with fewer shards than replicas, gradients also between the groups."""
    once = d.once_a_step(regathers)
    often = pick(once, 1.0, d.micro_batches)
    reduced = parameters * policy.gradients.bytes
    gathered = parameters * policy.multiplies.bytes
    reduces = pick(d.zero >= 2, often, pick(d.zero >= 1, 1.0, 2.0))
    gathers = pick(d.zero >= 3, pick(once, 1.0, 2.0 * often), (d.zero >= 1) * 1.0)
    inside = ring_bytes.over(times=reduces, size=reduced, ranks=shards)
    inside = inside + ring_bytes.over(times=gathers, size=gathered, ranks=shards)
    groups = d.shards / d.replicas
    between = ring_bytes.over(times=2.0, size=reduced / shards, ranks=1 / groups)
    return inside + between
