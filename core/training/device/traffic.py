"""What a step sends between accelerators, and what layouts cost it: formulas.

Collectives are counted as rings: an all-gather or reduce-scatter of n bytes over G ranks sends (G − 1) / G · n, an
all-reduce twice that. Layout and sequence length may be arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.formula import Source, Symbol, formula
from core.limits import cached
from core.models.flops import FlopPart, flops_per_token
from core.models.operation import AttentionCore, Block, Dispatch, Linear, Split
from core.models.operations import operations
from core.models.spec import TransformerSpec
from core.models.symbols import count
from core.sources import ZERO
from core.training.activations.operations import flop_again
from core.training.activations.tensors import MEGATRON_MEMORY, Implementation, rank_tokens
from core.training.device.memory import Setup, rank_of, width_of
from core.training.device.ranks import StageName
from core.training.layout import (
    Counts,
    Degrees,
    LayerModule,
    Layout,
    Recompute,
    degrees_of,
    modules_of,
    pick,
    share_again,
    way_of,
)
from core.training.precision import PrecisionPolicy
from core.training.trained import DividedAmount, most_ranks

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


_NARAYANAN = Source(
    "Narayanan et al. 2021, Megatron-LM on GPU Clusters", "section 2.2", "https://arxiv.org/abs/2104.04473"
)

FLOP_PER_BYTE = 1e4
"""FLOPs that a byte sent is worth: 400 TFLOP/s of an H100 in training over 40 GB/s of its network. Only the order of
changes depends on it."""

INSIDE_FLOP_PER_BYTE = 1e3
"""The same inside a node, where tensor parallelism stays: on links ten times as fast."""


@formula(
    r"\frac{\v{pipeline} - 1}{\v{interleave}} \cdot (\v{stage} + \v{transfer})",
    result=Symbol(r"t_\text{b}", "time that a stage waits for the others", "seconds"),
    symbols={
        "pipeline": count("p", "pipeline stages"),
        "interleave": count("v", "model chunks on each stage"),
        "stage": Symbol(r"t_\text{s}", "forward and backward of one micro-batch on one stage", "seconds"),
        "transfer": Symbol(r"t_\text{p}", "its transfers to and from the next stage", "seconds"),
    },
    sources=(_NARAYANAN,),
)
def bubble_seconds(pipeline: float, interleave: float, stage: float, transfer: float) -> float:
    """The pipeline’s bubble: until the last stage has work, and after the first has none."""
    return (pipeline - 1) / interleave * (stage + transfer)


@dataclass(frozen=True, slots=True)
class StepCost:
    """What steps cost beyond the arithmetic that the model needs; numbers or arrays.

    again: FLOPs computed again, over those of the step.  sent: bytes that one accelerator sends for each of the tokens
    that it works on, its host included.  wait: time that the pipeline stands still, over that of the work.  share: by
    how much a step is longer for all of it, bytes counted as FLOPs.
    """

    again: Any
    sent: Any
    wait: Any
    share: Any


_REDONE: Mapping[LayerModule, Callable[[FlopPart], bool]] = {
    LayerModule.CORE_ATTN: lambda part: part.square and part.group == "attention",
    LayerModule.MLA_UP_PROJ: lambda part: part.id in ("queries", "keys_values"),
    LayerModule.MLP: lambda part: part.group == "feed-forward",
    LayerModule.MOE: lambda part: part.group == "experts",
}
"""Module → the products that are done again with it; those of the others are on single elements."""


def flop_redone(spec: TransformerSpec, how: Implementation, layout: Layout, seq_len: int) -> Any:
    """FLOPs of products that backward does again, per token: whole layers, every second product, or modules."""
    counted, way = flops_per_token(spec, seq_len), way_of(layout.recompute)
    modules = modules_of(layout.recompute, flash=how.flash)
    redone = (way == Recompute.FULL) * counted.in_layers
    squares = 0.0 if how.flash else counted.squares
    redone = redone + (way == Recompute.PER_OPERATION) * (flop_again(spec) + squares)
    for module, inside in _REDONE.items():
        redone = redone + (modules & module > 0) * sum(part.flop for part in counted.parts if inside(part))
    return redone * share_again(layout.recompute, spec.layers / np.asarray(layout.pipeline))


def step_cost(setup: Setup, layout: Layout, *, per_byte: float = FLOP_PER_BYTE) -> StepCost:
    """The cost of the setup's step under other layouts, arrays of them too; none is checked.

    per_byte: FLOPs that a byte is worth which other kinds of parallelism than tensor send.

    An offloaded optimizer moves a step's gradients and parameters over the host's link; offloaded parameters come over
    it in each micro-batch's forward, and again in its backward.
    """
    need = flops_per_token(setup.spec, setup.seq_len).training
    redone = flop_redone(setup.spec, setup.implementation, layout, setup.seq_len)
    again = setup.implementation.regathers
    sent = traffic_per_step(setup.spec, layout, policy=setup.policy, seq_len=setup.seq_len, regathers=again)
    on_device = setup.account(replace(layout, offload=0))
    moved = np.greater(layout.offload, 0) * (on_device.gradients + on_device.later + on_device.parameters)
    moved = moved + np.greater(layout.offload, 1) * 2 * layout.micro_batches * on_device.parameters
    tokens = (
        layout.micro_batch * layout.micro_batches * setup.seq_len / (layout.tensor * layout.pipeline * layout.context)
    )
    worth = per_byte * (sent.total - sent.tensor) + INSIDE_FLOP_PER_BYTE * sent.tensor + FLOP_PER_BYTE * moved
    stage_share = 1 / np.asarray(layout.micro_batches)
    wait = bubble_seconds.over(pipeline=layout.pipeline, interleave=layout.interleave, stage=stage_share, transfer=0.0)
    again = redone / need
    return StepCost(again, (sent.total + moved) / tokens, wait, again + worth / (need * tokens) + wait)
