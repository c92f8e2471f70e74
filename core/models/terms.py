"""What a model's counts are sums of: each term one formula, its symbols bound to the numbers of a shape.

The numbers of one shape are whole numbers under fixed names (`numbers_of`); the numbers of a million shapes are
arrays under the same names (`core.models.batch`). Terms do not care which, so both are counted by the same table.
A feature that a shape lacks is a number of layers, networks or rows that is zero, never another branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from core.formula import Formula
from core.models.spec import TransformerSpec

Group: TypeAlias = Literal["embedding", "attention", "feed-forward", "experts", "norms", "head", "prediction"]
"""Which part of the model a term belongs to."""

Numbers: TypeAlias = Mapping[str, Any]
"""The numbers of one shape (``int``) or of many (arrays), by name."""


@dataclass(frozen=True, slots=True)
class Term:
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


def term(id: str, name: str, group: Group, rule: Formula[...], *, run: str = "", **bind: str) -> Term:
    """A term whose parameters are bound to the numbers of their own name, except those given otherwise.

    run: ``parameter=number`` that differs for what one token runs through.
    """
    bound = {parameter: bind.get(parameter, parameter) for parameter in rule.symbols}
    parameter, _, number = run.partition("=")
    return Term(id, name, group, rule, bound, {parameter: number} if run else None)


@lru_cache(maxsize=512)
def numbers_of(spec: TransformerSpec) -> Numbers:
    """The numbers of one shape, by the names that terms bind."""
    low, moe = spec.latent, spec.experts
    latent_layers = spec.layers if low else 0
    inner_first, inner_second = 0, 0
    if low:
        inner_first, inner_second = low.query_rank, low.kv_rank
    elif spec.qk_norm == "head":
        inner_first, inner_second = spec.head_dim, spec.head_dim
    elif spec.qk_norm == "full":
        inner_first, inner_second = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    return {
        "zero": 0,
        "one": 1,
        "layers": spec.layers,
        "hidden": spec.hidden,
        "heads": spec.heads,
        "kv_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "score_dim": spec.score_dim,
        "value_dim": spec.value_dim,
        "ffn": spec.ffn,
        "matrices": spec.ffn_matrices,
        "vocab": spec.vocab,
        "table_width": spec.table_width,
        "table_joints": 2 if spec.table_width != spec.hidden else 0,
        "position_rows": spec.position_rows,
        "head_rows": 0 if spec.tied_head else spec.vocab,
        "attention_bias": int(spec.attention_bias),
        "output_bias": int(spec.output_bias),
        "ffn_bias": int(spec.ffn_bias),
        "norm_vectors": spec.norm_vectors,
        "norms_per_layer": spec.norms_per_layer,
        "norms_outside": spec.norms_outside,
        "inner_first": inner_first,
        "inner_second": inner_second,
        "sink_layers": spec.layers if spec.attention_sinks else 0,
        "plain_layers": spec.layers - latent_layers,
        "latent_layers": latent_layers,
        "ranked_layers": latent_layers if low and low.query_rank else 0,
        "unranked_layers": latent_layers if low and not low.query_rank else 0,
        "query_rank": low.query_rank if low else 0,
        "kv_rank": low.kv_rank if low else 0,
        "rope_dim": low.rope_dim if low else 0,
        "nope_dim": low.nope_dim if low else 0,
        "dense_layers": spec.dense_layers,
        "gated_layers": spec.dense_layers if spec.glu else 0,
        "moe_layers": spec.moe_layers,
        "experts": moe.count if moe else 0,
        "per_token": moe.per_token if moe else 0,
        "expert_width": moe.width if moe else 0,
        "router_bias": int(moe.router_bias) if moe else 0,
        "shared": moe.shared if moe else 0,
        "shared_width": (moe.shared_width or moe.width) if moe else 0,
        "shared_gates": spec.moe_layers if moe and moe.shared_gate else 0,
        "windowed_layers": spec.windowed_layers,
        "window": spec.window.size if spec.window else 0,
        "mtp_modules": spec.mtp_modules,
    }


def last_layer(numbers: Numbers) -> dict[str, Any]:
    """The numbers of the topmost layer alone, without windows: what a multi-token prediction module repeats."""
    one = {name: (numbers[name] > 0) * 1 for name in numbers if name.endswith("_layers")}
    dense = 1 - one["moe_layers"]
    return {
        **numbers,
        **one,
        "layers": numbers["one"],
        "dense_layers": dense,
        "gated_layers": one["gated_layers"] * dense,
        "windowed_layers": numbers["zero"],
        "norms_outside": numbers["zero"],
        "shared_gates": (numbers["shared_gates"] > 0) * 1,
    }
