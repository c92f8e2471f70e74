"""Parameters that one accelerator works on: its share of every tensor of its pipeline stage, before ZeRO.

Each weight of the model's operations says what divides it. Weights are summed once per model, by place and by what
divides them, and only those sums meet the degrees, which may be arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Source, formula
from core.limits import cached
from core.models.operation import Norm, Op, Split, Tower, Weight
from core.models.operations import operations
from core.models.spec import TransformerSpec
from core.models.symbols import count
from core.training.layout import Degrees, pick
from core.training.trained import most_ranks

StageName: TypeAlias = Literal["first", "middle", "last"]
"""A pipeline stage: with the embedding, the fullest without either end, with the head."""

TensorClass: TypeAlias = Literal["layers", "norms", "experts", "embedding", "head"]
"""Tensors that an optimizer may treat alike: matrices of the layers, vectors, routed experts, and the two ends."""

_MEGATRON = Source("Shoeybi et al. 2019, Megatron-LM", "section 3", "https://arxiv.org/abs/1909.08053")
_WHOLE = count("N_w", "parameters that are whole on each rank")
_DIVIDED = count("N_d", "parameters that all ranks divide")


@formula(
    r"\v{whole} + \frac{\v{divided}}{\v{tensor}} + \frac{\v{kv}}{\v{kv_ranks}}",
    result=count("N", "parameters of one tensor-parallel rank"),
    symbols={
        "whole": _WHOLE,
        "divided": _DIVIDED,
        "tensor": count("t", "tensor-parallel ranks"),
        "kv": count("N_{kv}", "parameters of key and value heads"),
        "kv_ranks": count("t_{kv}", "ranks that hold different key/value heads"),
    },
    sources=(_MEGATRON,),
)
def tensor_rank_parameters(whole: float, divided: float, tensor: float, kv: float, kv_ranks: float) -> float:
    """Parameters that one tensor-parallel rank holds.

    Norms, routers, position tables, and biases after a row-parallel matmul are whole on each rank.
    """
    return whole + divided / tensor + kv / kv_ranks


@formula(
    r"\frac{1}{\v{expert}} \cdot (\frac{\v{divided}}{\v{expert_split}} + \v{whole})",
    result=count("N_E", "parameters of one layer’s routed experts on one rank"),
    symbols={
        "divided": count("N_d", "parameters that expert-tensor parallelism divides"),
        "whole": count("N_w", "parameters that are whole in each expert"),
        "expert": count("e", "expert-parallel ranks"),
        "expert_split": count("t_e", "ranks that divide an expert"),
    },
    sources=(_MEGATRON,),
)
def expert_rank_parameters(divided: float, whole: float, expert: float, expert_split: float) -> float:
    """Parameters of routed experts that one rank holds."""
    return (divided / expert_split + whole) / expert


@dataclass(frozen=True, slots=True)
class RankParameters:
    """Parameters of one accelerator by class, each a number or an array. Routed experts have ZeRO groups of their own.

    unit: of the largest layer without its routed experts, and unit_experts those of its routed experts.
    projection: of the matrix that makes logits, the head's own or the embedding's.
    """

    layers: Any
    norms: Any
    experts: Any
    embedding: Any
    head: Any
    unit: Any
    unit_experts: Any
    projection: Any

    @property
    def dense(self) -> Any:
        """All but the routed experts."""
        return self.layers + self.norms + self.embedding + self.head

    @property
    def total(self) -> Any:
        """All of them."""
        return self.dense + self.experts


@dataclass(frozen=True, slots=True)
class Stage:
    """Pipeline stages, arrays: place from 0, layers, those of them with experts, and whether it is an end.

    first, last: 1 where the embedding, where the head lies on it.
    """

    index: Any
    layers: Any
    moe_layers: Any
    first: Any
    last: Any


def _before(layers: Any, pipeline: Any, stage: Any) -> Any:
    """Layers that stand before ``stage``.

    Stages differ by one layer at most. The last stage is the first to go short, then the first one, because they hold
    the head and the embedding; then those before the last.
    """
    full = np.ceil(layers / pipeline)
    short = full * pipeline - layers
    first = (short >= 2) * 1.0
    return stage * full - (stage > 0) * first - np.maximum(0.0, stage - (pipeline - short + first))


def _moe_before(spec: TransformerSpec, layers: Any) -> Any:
    """Layers with experts among the first ``layers``.

    Dense layers among them are the first ones, as in DeepSeek-V3; where they are a quarter or more, they are taken as
    spread evenly, as in Llama 4 Maverick.
    """
    dense, moe = spec.dense_layers, spec.moe_layers
    if not moe:
        return 0.0 * layers
    if 4 * dense < spec.layers:
        return np.maximum(0.0, layers - dense) if dense else layers
    return np.floor(layers * moe / spec.layers)


def stages_of(spec: TransformerSpec, degrees: Degrees, which: Sequence[StageName | int]) -> Stage:
    """The stages called or numbered so, one after the other along a first axis of their own.

    With one or two stages the middle one is the last.
    """
    p, layers = degrees.pipeline, spec.layers
    # The first one without leading dense layers: experts weigh more, and earlier stages hold more micro-batches.
    leading = spec.dense_layers if 4 * spec.dense_layers < layers else 0
    past = np.maximum(1.0, np.ceil((leading + 1) / np.ceil(layers / p)) - 1)
    places = {"first": 0.0 * p, "middle": np.minimum(past, np.maximum(p - 2, np.minimum(1.0, p - 1))), "last": p - 1}
    index = np.stack([np.atleast_1d(places[item] if isinstance(item, str) else item + 0.0 * p) for item in which])
    start, end = _before(layers, p, index), _before(layers, p, index + 1)
    return Stage(
        index=index,
        layers=end - start,
        moe_layers=_moe_before(spec, end) - _moe_before(spec, start),
        first=(index == 0) * 1.0,
        last=(index == p - 1) * 1.0,
    )


Pieces: TypeAlias = Mapping[str, Any]
"""Parameters of one tensor-parallel rank by what they belong to (`_place`): one layer, or one end of the model."""

_PLACES = ("layer", "dense", "moe", "mtp", "embedding", "head head", "head vector", "head matrix")
_NORMS = ("layer norms", "dense norms", "moe norms", "embedding norms", "head norms")


def _place(op: Op, weight: Weight) -> str:
    """Return what a weight belongs to: a kind of layer, its norms, its routed experts, or a part of either end."""
    if weight.split.startswith("expert"):
        return f"{op.block} experts"
    if isinstance(op, Norm | Tower) and op.block not in ("mixer", "mtp"):
        return f"{op.block} norms"
    if op.block == "head":
        return f"head {weight.kind}"
    return "layer" if op.block == "mixer" else op.block


@cached("small_results_kept")
def _sums(spec: TransformerSpec) -> Mapping[str, Mapping[Split | float, float]]:
    """Return parameters by place and by what divides them, of one layer or of one end; by key/value heads as a number.

    Layers with attention and with a state are spread evenly, and so are the norms before them: one layer has its share
    of each.
    """
    layers = {"layer": spec.layers, "dense": spec.dense_layers, "moe": spec.moe_layers}
    sums: dict[str, dict[Split | float, float]] = {}
    written = operations(spec)
    for i, op in enumerate(written):
        for weight in op.weights:
            if not weight.shared or op.block == "head":
                place, size = _place(op, weight), op.layers * weight.rows * weight.columns * weight.count
                by = sums.setdefault(place, {})
                split = most_ranks(weight.split, written[i:]) if weight.split == "kv" else weight.split
                by[split] = by.get(split, 0) + size / layers.get(place.split()[0], 1)
    return sums


def pieces_of(spec: TransformerSpec, degrees: Degrees) -> Pieces:
    """What the stages of a model are put together from.

    Key/value heads fewer than the ranks are kept by several of them, one each. The vocabulary is taken as padded to a
    multiple of the ranks, at no parameters. Routed experts lie on ``expert`` ranks, each divided over ``expert_split``.
    A tied head on another stage than the embedding is a copy of it.
    """
    sums = _sums(spec)

    def held(place: str) -> Any:
        by = sums.get(place, {})
        whole, divided = (by.get(split, 0.0) for split in ("whole", "tensor"))
        kinds = {heads: size for heads, size in by.items() if not isinstance(heads, str)}
        if not divided and not kinds:
            return whole
        kv, each = sum(kinds.values()), [size / np.minimum(degrees.tensor, heads) for heads, size in kinds.items()]
        kv_ranks = kv / sum(each) if each else 1.0  # a mean where kinds of attention have other heads
        return tensor_rank_parameters.over(
            whole=whole, divided=divided, tensor=degrees.tensor, kv=kv, kv_ranks=kv_ranks
        )

    experts: Any = 0.0
    if by := sums.get("moe experts"):
        divided, whole = by["expert tensor"], by.get("expert", 0.0)
        experts = expert_rank_parameters.over(
            divided=divided, whole=whole, expert=degrees.expert, expert_split=degrees.expert_split
        )
    found = {place: held(place) for place in (*_PLACES, *_NORMS)}
    projection, tied = found["head head"] + found["head vector"], float(spec.tied_head)
    own = found["head head"] * pick(degrees.pipeline > 1, 1.0, 1.0 - tied)
    return found | {
        "experts": experts,
        "head": own + found["head vector"] + found["head matrix"],
        "projection": projection,
        "mtp experts": spec.mtp_modules * experts,
        "mtp embedding": (1.0 - tied) * (spec.mtp_modules > 0),
    }


def rank_parameters(held: Pieces, stage: Stage) -> RankParameters:
    """Parameters of one rank of ``stage``. Multi-token prediction lies on the last one, with the embedding it needs."""
    moe, last = stage.moe_layers, stage.last
    dense = stage.layers - moe
    network = np.maximum(
        (held["dense"] + held["dense norms"]) * (dense > 0), (held["moe"] + held["moe norms"]) * (moe > 0)
    )
    norms = stage.layers * held["layer norms"] + dense * held["dense norms"] + moe * held["moe norms"]
    return RankParameters(
        layers=stage.layers * held["layer"] + dense * held["dense"] + moe * held["moe"] + last * held["mtp"],
        norms=norms + stage.first * held["embedding norms"] + last * held["head norms"],
        experts=moe * held["experts"] + last * held["mtp experts"],
        embedding=held["embedding"] * np.maximum(stage.first, last * held["mtp embedding"]),
        head=last * held["head"],
        unit=held["layer"] + held["layer norms"] + network,
        unit_experts=held["experts"] * (moe > 0),
        projection=last * held["projection"],
    )
