"""What a model's counts are sums of: each term one formula, its symbols bound to the numbers of a shape.

The numbers of one shape are whole numbers under fixed names (`numbers_of`); the numbers of a million shapes are
arrays under the same names. Terms do not care which, so both are counted by the same table.
A feature that a shape lacks is a number of layers, networks or rows that is zero, never another branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Formula
from core.models.spec import TransformerSpec

Group: TypeAlias = Literal["embedding", "attention", "feed-forward", "experts", "norms", "head", "prediction", "mixers"]
"""Which part of the model a term belongs to."""

Numbers: TypeAlias = Mapping[str, Any]
"""The numbers of one shape (``int``) or of many (arrays), by name."""


@dataclass(frozen=True, slots=True)
class ShapeTerm:
    """One formula over the numbers of a shape.

    bind: each parameter of the formula → the number that fills it. run: likewise, but of what one token runs
    through, for the parameters where that differs. id: names the term for programs, ``name`` for readers.
    """

    id: str
    name: str
    group: Group
    formula: Formula[...]
    bind: Mapping[str, str]
    run: Mapping[str, str] | None = None

    def values(self, numbers: Numbers) -> dict[str, Any]:
        """The formula's parameters with their values."""
        return {parameter: numbers[name] for parameter, name in self.bind.items()}

    def run_values(self, numbers: Numbers) -> dict[str, Any]:
        """The same, for what one token runs through."""
        return {parameter: numbers[name] for parameter, name in {**self.bind, **(self.run or {})}.items()}


def term(id: str, name: str, group: Group, rule: Formula[...], *, run: str = "", **bind: str) -> ShapeTerm:
    """A term whose parameters are bound to the numbers of their own name, except those given otherwise.

    run: ``parameter=number`` that differs for what one token runs through.
    """
    bound = {parameter: bind.get(parameter, parameter) for parameter in rule.symbols}
    parameter, _, number = run.partition("=")
    return ShapeTerm(id, name, group, rule, bound, {parameter: number} if run else None)


MIXER_WIDTHS: Mapping[str, str] = {
    name: f"mixer_{name}" for name in ("inner", "pairs", "rates", "conv", "rank", "state", "heads", "learned")
}
"""Parameters of the formulas of layers with a state → the numbers that fill them."""

NEEDED = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
"""Numbers without which there is no shape."""

OPTIONAL: Mapping[str, int] = {
    **dict.fromkeys(("glu", "tied_head", "position_rows", "attention_bias", "output_bias", "ffn_bias"), 0),
    "norm_vectors": 1,
    "norms_per_layer": 2,
    "norms_outside": 1,
    **dict.fromkeys(("attention_sinks", "qk_head", "qk_full", "embedding_width", "mtp_modules"), 0),
    **dict.fromkeys(("head_bias", "activation_scalars"), 0),
    **dict.fromkeys(("experts", "per_token", "expert_width", "shared", "dense_among", "router_bias"), 0),
    **dict.fromkeys(("shared_width", "shared_gate", "latent", "query_rank", "kv_rank"), 0),
    **dict.fromkeys(("nope_dim", "rope_dim", "latent_value", "window", "windowed_layers", "attention_gate"), 0),
    **dict.fromkeys(("mixer_layers", "mixer_heads", "mixer_width", "mixer_state", "mixer_conv", "mixer_rank"), 0),
    **dict.fromkeys(("mixer_bias", "mixer_conv_bias", "mixer_inner", "mixer_pairs", "mixer_rates"), 0),
    **dict.fromkeys(("mixer_learned", "mixer_normed_width", "mixer_operations"), 0),
}
"""Numbers that a shape may leave out, with what they then are; yes and no are 1 and 0."""


def shape_of(spec: TransformerSpec) -> dict[str, int]:
    """A spec as plain whole numbers, under the names of `NEEDED` and `OPTIONAL`."""
    low, moe = spec.latent, spec.experts
    own = [name for name in (*NEEDED, *OPTIONAL) if hasattr(spec, name) and name not in _PARTS]
    numbers = {name: int(getattr(spec, name)) for name in own}
    numbers |= {"qk_head": int(spec.qk_norm == "head"), "qk_full": int(spec.qk_norm == "full")}
    if low:
        numbers |= {"latent": 1, "query_rank": low.query_rank, "kv_rank": low.kv_rank, "nope_dim": low.nope_dim}
        numbers |= {"rope_dim": low.rope_dim, "latent_value": low.value_dim}
    if moe:
        numbers |= {"experts": moe.count, "per_token": moe.per_token, "expert_width": moe.width, "shared": moe.shared}
        numbers |= {"dense_among": moe.dense_layers, "router_bias": int(moe.router_bias)}
        numbers |= {"shared_width": moe.shared_width, "shared_gate": int(moe.shared_gate)}
    if spec.window:
        numbers |= {"window": spec.window.size}
    if mixer := spec.mixer:
        numbers |= {name: int(getattr(mixer, name.removeprefix("mixer_"))) for name in OPTIONAL if name[:6] == "mixer_"}
    return {**OPTIONAL, **numbers}


_PARTS = ("experts", "latent", "window", "mixer")


def both(first: Any, second: Any) -> Any:
    """The product, a plain zero where either factor is one: what no shape has must not become an array of zeros."""
    for factor in (first, second):
        if not isinstance(factor, np.ndarray) and not factor:
            return 0
    return first * second


def derived(shape: Numbers) -> dict[str, Any]:
    """The numbers that terms bind, from those of a shape: whole numbers stay whole, arrays are taken as they are."""
    s = shape
    latent, mixture = s["latent"], (s["experts"] > 0) * 1
    mixed = both(mixture, s["layers"] - s["dense_among"])
    attention_layers = s["layers"] - s["mixer_layers"]
    latent_layers = both(attention_layers, latent)
    ranked = both(latent_layers, (s["query_rank"] > 0) * 1)
    narrow = both((s["embedding_width"] > 0) * 1, (s["embedding_width"] != s["hidden"]) * 1)
    gain = both(s["qk_head"], s["head_dim"])
    dense = s["layers"] - mixed
    plain_dim = both(1 - latent, s["head_dim"])
    # Among mixtures a layer without a feed-forward network, as in Nemotron 3, has no norm before it either.
    bare = both(both(mixture, dense), (s["ffn"] == 0) * 1)
    return {
        **s,
        "zero": 0,
        "one": 1,
        "score_dim": plain_dim + s["nope_dim"] + s["rope_dim"],
        "value_dim": plain_dim + s["latent_value"],
        "matrices": 2 + s["glu"],
        "table_width": s["embedding_width"] + both((s["embedding_width"] == 0) * 1, s["hidden"]),
        "table_joints": both(2, narrow),
        "head_rows": both(1 - s["tied_head"], s["vocab"]),
        "inner_first": s["query_rank"] + gain + both(both(s["qk_full"], s["heads"]), s["head_dim"]),
        "inner_second": s["kv_rank"] + gain + both(both(s["qk_full"], s["kv_heads"]), s["head_dim"]),
        "attention_layers": attention_layers,
        "sink_layers": both(attention_layers, s["attention_sinks"]),
        "gate_layers": both(attention_layers, s["attention_gate"]),
        "plain_layers": attention_layers - latent_layers,
        "latent_layers": latent_layers,
        "ranked_layers": ranked,
        "unranked_layers": both(latent_layers, (s["query_rank"] == 0) * 1),
        "dense_layers": dense,
        "normed_layers": s["layers"] - bare,
        "single_norms": s["norms_outside"] + both(bare, s["norms_per_layer"] - s["norms_per_layer"] // 2),
        "selective_layers": both(s["mixer_layers"], (s["mixer_rank"] > 0) * 1),
        "gated_layers": both(dense, s["glu"]),
        "moe_layers": mixed,
        "shared_width": s["shared_width"] + both((s["shared_width"] == 0) * 1, s["expert_width"]),
        "shared_gates": both(mixed, s["shared_gate"]),
    }


@lru_cache(maxsize=512)
def numbers_of(spec: TransformerSpec) -> Numbers:
    """The numbers that terms bind, of one shape."""
    return derived(shape_of(spec))


def last_layer(numbers: Numbers) -> dict[str, Any]:
    """The numbers of the topmost layer alone, without windows: what a multi-token prediction module repeats."""
    by_name = {name: (numbers[name] > 0) * 1 for name in numbers if name.endswith("_layers")}
    dense = 1 - by_name["moe_layers"]
    return {
        **numbers,
        **by_name,
        "layers": numbers["one"],
        "dense_layers": dense,
        "gated_layers": by_name["gated_layers"] * dense,
        "windowed_layers": numbers["zero"],
        "norms_outside": numbers["zero"],
        "single_norms": numbers["zero"],
        "shared_gates": (numbers["shared_gates"] > 0) * 1,
    }


def sum_of(
    terms: Iterable[ShapeTerm], numbers: Numbers, values: Callable[[ShapeTerm, Numbers], Mapping[str, Any]]
) -> Any:
    """The sum of the terms. The first parameter of each formula is a factor of all of it: where it is a plain zero,
    no shape has the component.
    """
    total: Any = 0
    for term in terms:
        given = values(term, numbers)
        first = next(iter(given.values()))
        if isinstance(first, np.ndarray) or first:
            total = total + term.formula.over(**given)
    return total
