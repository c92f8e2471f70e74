"""How one training step is laid out over accelerators: degrees of parallelism, micro-batches, what is recomputed.

Every field may be a number or an integer array; arrays broadcast against each other, so that one layout can stand for
a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum, IntFlag
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.messages import Message, message, pick_message
from core.models.spec import TransformerSpec, modelled

Counts: TypeAlias = "int | npt.NDArray[np.int64]"
"""Whole numbers, or arrays of them that broadcast."""


class Recompute(IntEnum):
    """What the backward pass computes again instead of reading what forward saved.

    selective: with flash attention the outputs of norms and activation functions, else the core of attention.
    """

    NONE = 0
    SELECTIVE = 1
    FULL = 2
    PER_OPERATION = 3


RECOMPUTES: Mapping[str, Recompute] = MappingProxyType(
    {way.name.lower().replace("_", " "): way for way in sorted(Recompute, key=[0, 1, 3, 2].index)}
)
"""By name, from what keeps most to what keeps least; the numbers are those of stored layouts."""


class LayerModule(IntFlag):
    """Parts of a layer that backward computes again one by one, as Megatron-Core names them.

    “act” is the activation function of any network, experts' among them, of which alone Megatron-Core speaks as
    “moe_act”.
    """

    CORE_ATTN = 1
    LAYERNORM = 2
    ACT = 4
    MLA_UP_PROJ = 8
    MLP = 16
    MOE = 32


MODULES: Mapping[str, LayerModule] = MappingProxyType(
    {name.lower(): module for name, module in LayerModule.__members__.items()}
)
"""By name."""

_NAMED = 3
_WAYS = 128


def recomputation(way: int, modules: int = 0, layers: int = 0) -> int:
    """The one number of a layout's recomputation. modules: flags of `LayerModule`, in place of a way. layers: so many
    of each stage, 0 for all; below 0 full recomputation begins at every so many-th, which keeps its input alone."""
    return (_NAMED + modules if modules else way) + _WAYS * layers


def way_of(recompute: Counts) -> Any:
    """What is computed again: a `Recompute`, or more than any where modules are named."""
    return np.asarray(recompute) % _WAYS


def modules_of(recompute: Counts, *, flash: bool) -> Any:
    """The flags of the modules that are done again; none of them where operations are, or whole layers."""
    way = way_of(recompute)
    selective = LayerModule.LAYERNORM | LayerModule.ACT if flash else LayerModule.CORE_ATTN
    named = cast("Any", np.where(way > _NAMED, way - _NAMED, int(selective) * (way == Recompute.SELECTIVE)))
    return np.asarray(named, dtype=np.int64)


def layers_of(recompute: Counts) -> Any:
    """Layers of each stage that are, 0 for all; below 0 how many of them keep one input together."""
    return np.asarray(recompute) // _WAYS


BY_MODULE = "modules"
"""The name of a way that names modules."""


def recompute_name(recompute: Counts) -> str:
    """The name of the way in which one layout computes again."""
    return next((name for name, way in RECOMPUTES.items() if way == way_of(recompute)), BY_MODULE)


def named_modules(recompute: Counts) -> tuple[str, ...]:
    """The names of the modules that one layout names."""
    named = int(way_of(recompute)) - _NAMED
    return tuple(name for name, module in MODULES.items() if named > 0 and named & module)


def share_again(recompute: Counts, layers: Any) -> Any:
    """Share of a stage's ``layers`` that compute again."""
    some = layers_of(recompute)
    return np.where(some > 0, np.minimum(1.0, some / np.maximum(layers, 1.0)), 1.0) if np.any(some > 0) else 1.0


OFFLOADS: Mapping[str, int] = MappingProxyType({"none": 0, "optimizer": 1, "optimizer and parameters": 2})
"""What of the states lives in the host's memory, by name."""

OFFLOAD_NAMES = tuple(OFFLOADS)
"""The names in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees and batch of one step. Accelerators = tensor · pipeline · context · data.

    interleave: model chunks on each pipeline stage, 1 for plain 1F1B.  expert: ranks over which routed experts are
    spread; they lie inside tensor · context · data.  expert_tensor: ranks that hold one routed expert together; 0 is
    usual: one where experts are spread, else all tensor-parallel ranks.  micro_batch: sequences of one micro-batch on
    one data-parallel rank.  micro_batches: of one step, one after the other through a pipeline or accumulated.
    zero: ZeRO stage 0 to 3, 3 being FSDP.  shard_group: ranks over which ZeRO shards; 0 takes all of data · context,
    fewer is HSDP.  sequence_parallel: 1 where norms and residuals are split over the tensor-parallel ranks.
    recompute: a `Recompute`, or a `recomputation`.  offload: one of `OFFLOADS`; 1 where optimizer state and master
    weights live in the host's memory, 2 where parameters do as well and come layer by layer.
    """

    tensor: Counts = 1
    pipeline: Counts = 1
    interleave: Counts = 1
    context: Counts = 1
    expert: Counts = 1
    expert_tensor: Counts = 0
    data: Counts = 1
    micro_batch: Counts = 1
    micro_batches: Counts = 1
    zero: Counts = 0
    shard_group: Counts = 0
    sequence_parallel: Counts = 0
    recompute: Counts = 0
    offload: Counts = 0

    @property
    def accelerators(self) -> Counts:
        """Accelerators that the layout takes."""
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def expert_split(self) -> Any:
        """Ranks that hold one routed expert together."""
        return pick(self.expert_tensor > 0, self.expert_tensor, pick(self.expert > 1, 1, self.tensor))

    @property
    def expert_ranks(self) -> Any:
        """Ranks that hold all routed experts of a layer once."""
        return self.expert * self.expert_split

    @property
    def sends_tokens(self) -> Any:
        """Whether routed experts lie otherwise than the tensor-parallel group, so that tokens are sent to them."""
        return (self.expert > 1) | (self.expert_split != self.tensor)


class LayoutError(ValueError):
    """An invalid layout.

    field, value, rule: what is wrong, what it was, and what it must be. example: a value that is valid with the others,
    None where no single one suggests itself. The message names all four, values as forms have them.
    """

    def __init__(self, field: str, value: int, rule: Message, example: int | None = None) -> None:
        self.field = field
        self.value = value
        self.rule = rule
        self.example = example
        super().__init__(
            pick_message(
                "training.layout.error" if example is None else "training.layout.error_example",
                field=field.replace("_", " "),
                value=_value_name(field, value),
                rule=rule,
                example="" if example is None else _value_name(field, example),
            )
        )


def _value_name(field: str, value: int) -> str:
    """Return a value of a layout's field as forms have it."""
    if field == "recompute":
        return recompute_name(value)
    return OFFLOAD_NAMES[value] if field == "offload" and 0 <= value < len(OFFLOAD_NAMES) else f"{value:,}"


def pick(where: Any, yes: Any, no: Any) -> Any:
    """``yes`` where the condition holds, else ``no``: of a plain condition one of them as it is, else an array."""
    if np.ndim(where):
        return cast("Any", np.where(where, yes, no))
    return yes if where else no


@dataclass(frozen=True, slots=True)
class Degrees(Layout):
    """A layout whose fields are floats or arrays of them, which numpy multiplies and divides fastest."""

    @property
    def replicas(self) -> Any:
        """Ranks that hold the same weights: the data-parallel group, context-parallel ranks among them."""
        return self.data * self.context

    @property
    def shards(self) -> Any:
        """Ranks over which ZeRO shards what is no routed expert."""
        return pick(self.shard_group > 0, self.shard_group, self.replicas)

    def once_a_step(self, regathers: bool) -> Any:
        """Where ZeRO-2 and 3 gather and reduce once a step: with a pipeline, unless its software ``regathers``."""
        return self.pipeline > (np.inf if regathers else 1)

    @property
    def expert_shards(self) -> Any:
        """Ranks over which ZeRO shards routed experts: ``expert_ranks`` of data · context · tensor hold one copy."""
        return np.maximum(1.0, self.shards * self.tensor / self.expert_ranks)


def degrees_of(layout: Layout) -> Degrees:
    """The layout's numbers as floats."""
    return Degrees(*(_floats(getattr(layout, field.name)) for field in fields(layout)))


def _floats(value: Counts) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule of a layout: ``broken`` where it does not hold.

    kind: of ids `training.rule.…`, whose message takes the number ``n`` or the name ``module``. of: what the field
    must divide. most: what it must not exceed.
    """

    field: str
    broken: Any
    kind: str
    n: int = 0
    module: str = ""
    of: Any = None
    most: Any = None


def _rules(spec: TransformerSpec, layout: Layout, seq_len: Counts, accelerators: Counts | None) -> Iterator[_Rule]:
    """Every rule, the ranges of single fields first: later ones divide by what these have seen to."""
    item = layout
    for name in ("tensor", "pipeline", "interleave", "context", "expert", "data", "micro_batch", "micro_batches"):
        yield _Rule(name, np.less(getattr(item, name), 1), "at_least_one", most=1)
    for name in ("expert_tensor", "shard_group"):
        yield _Rule(name, np.less(getattr(item, name), 0), "not_negative", most=0)
    for name, most in (("zero", 3), ("sequence_parallel", 1), ("offload", 2)):
        value = getattr(item, name)
        yield _Rule(name, np.less(value, 0) | np.greater(value, most), "range", most, most=most)
    way, some = way_of(item.recompute), layers_of(item.recompute)
    most, named = _NAMED + sum(LayerModule), np.where(way > _NAMED, way - _NAMED, 0).astype(np.int64)
    unknown = np.greater(way, most) | np.greater(abs(some), spec.layers)
    yield _Rule("recompute", unknown, "recompute", spec.layers, most=0)
    yield _Rule("recompute", np.less(some, 0) & np.not_equal(way, Recompute.FULL), "blocks", most=0)
    there = {
        LayerModule.MLA_UP_PROJ: spec.latent,
        LayerModule.MLP: spec.dense_layers and spec.ffn,
        LayerModule.MOE: spec.experts,
    }
    for module, found in there.items():
        if not found:
            known = next(name for name in MODULES if MODULES[name] == module)
            yield _Rule("recompute", (named & module) > 0, "module", module=known, most=0)
    hosted = np.greater(item.offload, 1) & (np.less(item.zero, 3) | np.greater(item.pipeline, 1))
    yield _Rule("offload", hosted, "offload", most=1)
    t, p, e, ranks = item.tensor, item.pipeline, item.expert, item.data * item.context
    most = math.gcd(*(heads for heads, _ in spec.heads_of_kinds))
    for heads, kv in spec.heads_of_kinds:
        yield _Rule("tensor", np.not_equal(heads % t, 0), "heads", heads, of=most)
        uneven = np.not_equal(kv % t, 0) & np.not_equal(t % kv, 0)
        yield _Rule("tensor", uneven, "kv_heads", kv, of=math.gcd(kv, most))
    if spec.mixer:
        groups = spec.mixer.groups
        yield _Rule("tensor", np.not_equal(groups % t, 0), "groups", groups, of=math.gcd(groups, most))
    if spec.dense_layers and spec.ffn:
        yield _Rule("tensor", np.not_equal(spec.ffn % t, 0), "ffn", spec.ffn, of=math.gcd(spec.ffn, spec.heads))
    yield _Rule("pipeline", np.greater(p, spec.layers), "layers", spec.layers, most=spec.layers)
    yield _Rule("interleave", np.greater(item.interleave, 1) & np.equal(p, 1), "interleave", most=1)
    # One chunk may hold the embedding alone and one the head alone, as in Llama 3's 128 chunks for 126 layers.
    most = np.maximum(1, (spec.layers + 2) // p)
    yield _Rule("interleave", np.greater(item.interleave, most), "chunks", spec.layers, most=most)
    experts = spec.experts.count if spec.experts else 1
    yield _Rule(
        "expert", np.not_equal(experts % e, 0), "experts" if spec.experts else "no_experts", experts, of=experts
    )
    yield _Rule("expert", np.not_equal(t * ranks % e, 0), "ranks", of=t * ranks)
    if np.any(np.greater(item.expert_tensor, 0)):
        split, width = item.expert_split, spec.experts.width if spec.experts else 1
        kind = "expert_width" if spec.experts else "no_experts"
        uneven = np.not_equal(width % np.maximum(1, item.expert_tensor), 0)
        yield _Rule("expert_tensor", uneven, kind, width, of=width)
        uneven = np.not_equal(t * ranks % (e * split), 0)
        yield _Rule("expert_tensor", uneven, "expert_ranks", of=np.maximum(1, t * ranks // e))
    group = np.maximum(1, item.shard_group)
    yield _Rule("shard_group", np.not_equal(ranks % group, 0), "shard_group", of=ranks)
    yield _Rule("context", np.not_equal(seq_len % item.context, 0), "tokens", of=seq_len)
    room = limit("accelerators") if accelerators is None else accelerators
    most = np.maximum(1, room // (t * p * item.context))
    yield _Rule("data", np.greater(item.accelerators, room), "accelerators", most=most)


def allowed(
    spec: TransformerSpec, layout: Layout, seq_len: Counts, accelerators: Counts | None = None
) -> npt.NDArray[np.bool_]:
    """Where a layout, or each of many, keeps every rule: degrees that divide, and no more ranks than accelerators."""
    with np.errstate(divide="ignore"):
        broken = [rule.broken for rule in _rules(spec, layout, seq_len, accelerators)]
    return ~np.logical_or.reduce(np.broadcast_arrays(*broken))


def check(spec: TransformerSpec, layout: Layout, seq_len: Counts, accelerators: Counts | None = None) -> None:
    """Raise `LayoutError` for the first rule that a layout, or the first of many, breaks, and for less than a token.

    Raises `SpecError` for a model of which no account of memory and time is known.
    """
    modelled(spec)
    if np.any(np.less(seq_len, 1)):
        raise LayoutError("seq_len", int(np.min(seq_len)), message("training.rule.at_least_one"), 4096)
    for rule in _rules(spec, layout, seq_len, accelerators):
        if not np.any(rule.broken):
            continue
        at = int(np.argmax(np.ravel(rule.broken)))
        value = _taken(getattr(layout, rule.field), rule.broken, at)
        said = pick_message(f"training.rule.{rule.kind}", n=float(rule.n), module=rule.module)
        if rule.most is not None:
            raise LayoutError(rule.field, value, said, _taken(rule.most, rule.broken, at))
        raise LayoutError(rule.field, value, said, _divisor(_taken(rule.of, rule.broken, at), value))


def filled(layout: Layout, accelerators: Counts, batch: int) -> tuple[Layout, npt.NDArray[np.bool_]]:
    """A layout, or each of many, with as many data-parallel ranks as ``accelerators`` leave and as have work of
    ``batch`` sequences, and the micro-batches that these take; and whether there is such a rank at all.

    What does not divide leaves some accelerators idle, and some places of the last micro-batches empty. Micro-batches
    that are more than 0 stay as many, and the batch is what they come to.
    """
    least = np.where(np.greater(layout.interleave, 1), layout.pipeline, 1)
    typed = np.greater(layout.micro_batches, 0)
    rank = layout.micro_batch * least  # sequences of a rank's round
    room = np.where(typed, accelerators, np.where(np.less_equal(rank, batch), -(-batch // rank), 0))
    data = accelerators // (layout.tensor * layout.pipeline * layout.context)
    data = data if np.all(np.greater_equal(room, data)) else np.minimum(data, room)
    # Ranks that hold one set of experts are whole; of fewer than one set there is a rule that says so.
    sets = layout.expert_ranks // np.gcd(layout.expert_ranks, layout.tensor * layout.context)
    data = data - np.where(np.greater_equal(data, sets), data % sets, 0)
    ranks = np.maximum(data, 1)
    rounds = -(-batch // (ranks * rank)) * least
    return replace(layout, data=ranks, micro_batches=np.where(typed, layout.micro_batches, rounds)), np.greater_equal(
        data, 1
    )


def _taken(value: Any, like: Any, at: int) -> int:
    """The entry ``at`` of a value that broadcasts with ``like``."""
    return int(np.ravel(np.broadcast_arrays(value, like)[0])[at])


def _divisor(of: int, near: int) -> int:
    """The largest divisor of ``of`` up to ``near``."""
    return max(d for d in range(1, max(1, min(near, of)) + 1) if of % d == 0)
