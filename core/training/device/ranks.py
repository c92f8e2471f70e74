"""Parameters that one accelerator works on: its share of every tensor of its pipeline stage, before ZeRO.

A tensor-parallel rank holds a narrower transformer: its share of the heads, of the feed-forward width and of the
vocabulary, and all of the hidden width. So its parameters are those of the model's own formulas at narrower numbers;
norms, the router, the position table and the biases of row-parallel products are whole on each. Numbers may be arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from core.models.parameter_formulas import joint_parameters, norm_parameters
from core.models.parameters import MIXER_TERMS, TERMS, with_extra_layer
from core.models.terms import Numbers, ShapeTerm, both, derived, sum_of
from core.training.layout import Degrees, pick

StageName: TypeAlias = Literal["first", "middle", "last"]
"""A pipeline stage: with the embedding, the fullest without either end, with the head."""

TensorClass: TypeAlias = Literal["layers", "norms", "experts", "embedding", "head"]
"""Tensors that an optimizer may treat alike: matrices of the layers, vectors, routed experts, and the two ends."""

_PLACE: Mapping[str, str] = {
    **dict.fromkeys(("qkv", "queries", "queries_unranked", "keys_values", "sinks", "output"), "every layer"),
    **dict.fromkeys(("attention_gate", *(term.id for term in MIXER_TERMS)), "every layer"),
    **dict.fromkeys(("ffn", "activation"), "dense layer"),
    **dict.fromkeys(("router", "shared", "shared_gate"), "expert layer"),
    **dict.fromkeys(("inner_norms", "norms"), "norms"),
    "experts": "routed",
    **dict.fromkeys(("embedding", "joints", "positions"), "embedding"),
    **dict.fromkeys(("head", "head_bias"), "head"),
    "prediction": "prediction",
}
"""Each term of the model's parameters → where it lies. Layers with attention and with a
state are spread evenly: one layer has its share of either."""

_SHARED_LAYERS = (
    *("attention_layers", "plain_layers", "latent_layers", "ranked_layers", "unranked_layers", "sink_layers"),
    *("gate_layers", "mixer_layers", "selective_layers"),
)
"""Numbers of layers that have attention, or a state, each with what it has of it."""

_STATE_WIDTHS = ("mixer_heads", "mixer_inner", "mixer_pairs", "mixer_rates")

_AT: Mapping[str, tuple[ShapeTerm, ...]] = {
    place: tuple(term for term in TERMS if _PLACE[term.id] == place) for place in dict.fromkeys(_PLACE.values())
}


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


def narrowed(shape: Numbers, tensor: Any) -> Numbers:
    """The numbers of the transformer that one of ``tensor`` ranks holds.

    Key/value heads fewer than the ranks are kept by several of them, one each. The vocabulary is taken as padded to
    a multiple of the ranks, at no parameters.
    """
    if isinstance(tensor, float) and tensor == 1.0:
        return derived(shape)
    shares = {name: shape[name] / tensor for name in ("heads", "ffn", "vocab")}
    kv = shape["kv_heads"] / np.minimum(tensor, shape["kv_heads"])
    if np.any(shape["mixer_layers"]):
        shares |= {name: shape[name] / tensor for name in _STATE_WIDTHS}
        # The norm of a whole state is divided like it, that of one head is not.
        divided = shape["mixer_normed_width"] == shape["mixer_inner"]
        shares["mixer_normed_width"] = shape["mixer_normed_width"] / np.where(divided, tensor, 1.0)
    shared = both(shape["shared_width"] + both((shape["shared_width"] == 0) * 1, shape["expert_width"]), 1 / tensor)
    return derived({**shape, **shares, "kv_heads": kv, "shared_width": shared})


def _before(layers: Any, pipeline: Any, stage: Any) -> Any:
    """Layers that stand before ``stage``.

    Stages differ by one layer at most. The last stage is the first to go short, then the first one, because they hold
    the head and the embedding; then those before the last.
    """
    full = np.ceil(layers / pipeline)
    short = full * pipeline - layers
    first = (short >= 2) * 1.0
    return stage * full - (stage > 0) * first - np.maximum(0.0, stage - (pipeline - short + first))


def _moe_before(numbers: Numbers, layers: Any) -> Any:
    """Layers with experts among the first ``layers``.

    Dense layers among them are the first ones, as in DeepSeek-V3; where they are a quarter or more, they are taken as
    spread evenly, as in Llama 4 Maverick.
    """
    dense, moe = numbers["dense_layers"], numbers["moe_layers"]
    if not np.any(moe):
        return 0.0 * layers
    if not np.any(dense):
        return layers
    leading = np.maximum(0.0, layers - dense)
    return pick(4 * dense < numbers["layers"], leading, np.floor(layers * moe / numbers["layers"]))


def stages_of(numbers: Numbers, degrees: Degrees, which: Sequence[StageName | int]) -> Stage:
    """The stages called or numbered so, one after the other along a first axis of their own.

    With one or two stages the middle one is the last.
    """
    p, layers = degrees.pipeline, numbers["layers"]
    # The first one without leading dense layers: experts weigh more, and earlier stages hold more micro-batches.
    leading = both((4 * numbers["dense_layers"] < layers) * 1.0, numbers["dense_layers"])
    past = np.maximum(1.0, np.ceil((leading + 1) / np.ceil(layers / p)) - 1)
    places = {"first": 0.0 * p, "middle": np.minimum(past, np.maximum(p - 2, np.minimum(1.0, p - 1))), "last": p - 1}
    index = np.stack([np.atleast_1d(places[item] if isinstance(item, str) else item + 0.0 * p) for item in which])
    start, end = _before(layers, p, index), _before(layers, p, index + 1)
    return Stage(
        index=index,
        layers=end - start,
        moe_layers=_moe_before(numbers, end) - _moe_before(numbers, start),
        first=(index == 0) * 1.0,
        last=(index == p - 1) * 1.0,
    )


@dataclass(frozen=True, slots=True)
class Pieces:
    """Parameters of one tensor-parallel rank by what they belong to: one layer, or one end of the model."""

    every: Any
    norms: Any
    dense: Any
    mixed: Any
    experts: Any
    embedding: Any
    head: Any
    projection: Any
    first_norms: Any
    last_norms: Any
    predicted: Any
    predicted_experts: Any
    untied_prediction: Any


def pieces_of(numbers: Numbers, degrees: Degrees) -> Pieces:
    """What the stages of a model are put together from. ``numbers`` are those of `narrowed` for the tensor degree.

    Routed experts lie on ``expert`` ranks, each divided over ``expert_split``. A tied head on another stage than the
    embedding is a copy of it.
    """
    by_name: dict[str, Any] = {name: (numbers[name] > 0) * 1 for name in numbers if name.endswith("_layers")}
    if np.any(numbers["mixer_layers"]):
        by_name |= {name: numbers[name] / numbers["layers"] for name in _SHARED_LAYERS}
    alone = {**numbers, **by_name, "layers": 1, "dense_layers": 1, "norms_outside": 0}
    alone["shared_gates"] = (numbers["shared_gates"] > 0) * 1
    alone["normed_layers"] = numbers["normed_layers"] / numbers["layers"]
    alone["single_norms"] = (numbers["single_norms"] - numbers["norms_outside"]) / numbers["layers"]
    outside = numbers["norms_outside"]
    copied = pick(degrees.pipeline > 1, 1.0, 1.0 - numbers["tied_head"])
    experts: Any = 0.0
    if np.any(numbers["experts"]):
        width = numbers["expert_width"] / degrees.expert_split
        experts = _sum("routed", {**alone, "experts": numbers["experts"] / degrees.expert, "expert_width": width})
    predicted, predicted_experts = 0.0, 0.0
    modules = numbers["mtp_modules"]
    if np.any(modules):
        predicted = _sum("prediction", with_extra_layer({**numbers, "expert_width": 0}))
        predicted_experts = modules * by_name["moe_layers"] * experts
    return Pieces(
        every=_sum("every layer", alone),
        norms=_sum("norms", alone),
        dense=_sum("dense layer", alone),
        mixed=_sum("expert layer", alone),
        experts=experts,
        embedding=_sum("embedding", {**numbers, "table_joints": numbers["table_joints"] / 2}),
        head=_sum("head", {**numbers, "head_rows": numbers["vocab"] * copied})
        + joint_parameters(numbers["table_joints"] / 2, numbers["table_width"], numbers["hidden"]),
        projection=_sum("head", {**numbers, "head_rows": numbers["vocab"]}),
        first_norms=_outside_norms(numbers, np.maximum(0, outside - 1)),
        last_norms=_outside_norms(numbers, np.minimum(1, outside)),
        predicted=predicted,
        predicted_experts=predicted_experts,
        untied_prediction=both((modules > 0) * 1, 1 - numbers["tied_head"]),
    )


def rank_parameters(pieces: Pieces, stage: Stage) -> RankParameters:
    """Parameters of one rank of ``stage``. Multi-token prediction lies on the last one, with the embedding it needs."""
    moe, last = stage.moe_layers, stage.last
    dense = stage.layers - moe
    network = np.maximum(both(pieces.dense, (dense > 0) * 1.0), both(pieces.mixed, (moe > 0) * 1.0))
    return RankParameters(
        layers=stage.layers * pieces.every + dense * pieces.dense + moe * pieces.mixed + last * pieces.predicted,
        norms=stage.layers * pieces.norms + stage.first * pieces.first_norms + last * pieces.last_norms,
        experts=moe * pieces.experts + last * pieces.predicted_experts,
        embedding=pieces.embedding * np.maximum(stage.first, last * pieces.untied_prediction),
        head=last * pieces.head,
        unit=pieces.every + pieces.norms + network,
        unit_experts=pieces.experts * (moe > 0),
        projection=last * pieces.projection,
    )


def _outside_norms(numbers: Numbers, count: Any) -> Any:
    return norm_parameters(
        layers=1, per_layer=0, outside=count, vectors=numbers["norm_vectors"], hidden=numbers["hidden"]
    )


def _sum(place: str, numbers: Numbers) -> Any:
    return sum_of(_AT[place], numbers, ShapeTerm.values)
