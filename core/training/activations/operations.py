"""Per-operation recomputation: every second matrix product of a layer is kept, the rest is done again.

The policy is torchtitan's: kept are a layer's input, what the attention kernel gives, the first, third, fifth ...
matrix product, and what collectives bring in. The rest is done again while backward goes through the layer: norms,
rotation, gates, the other products, the router, and routed experts, whose grouped products are no plain ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from core.models.spec import TransformerSpec
from core.training.activations.tensors import FP32, Implementation, LayerKind, Part, SavedTensor, Split
from core.training.layout import Layout

Sent: TypeAlias = Literal["", "tensor", "expert"]
"""What brings a tensor in: nothing, tensor parallelism, expert parallelism."""


@dataclass(frozen=True, slots=True)
class LayerProduct:
    """One matrix product of a layer, per token: what is read, what comes out, and over which ranks that is spread.

    routed: of routed experts.  Where the output is "whole", each rank makes all of it, or one term of its sum.
    """

    name: str
    part: Part
    read: Any
    made: Any
    split: Split
    routed: bool = False

    @property
    def flop(self) -> float:
        """FLOPs of the product, per token."""
        return 2.0 * float(self.read * self.made)


def products(spec: TransformerSpec, kind: LayerKind) -> Iterator[LayerProduct]:
    """The matrix products of one layer in the order in which they are made; those of activations left out.

    Where some layers have a state in place of attention, a mean layer has its share of either's.
    """
    s = spec
    if s.mixer:
        inner, made = s.mixer.inner, 2 * s.mixer.inner + s.mixer.pairs + s.mixer.rates
        for product in _attention_products(s):
            yield replace(product, made=s.attention_share * product.made)
        yield LayerProduct("state’s first projection", "attention", s.hidden, (1 - s.attention_share) * made, "tensor")
        yield LayerProduct("state’s output", "attention", inner, (1 - s.attention_share) * s.hidden, "whole")
    else:
        yield from _attention_products(s)
    if s.experts is None or kind == "dense":
        yield from _network(s, "", s.ffn, 1) if s.ffn else ()
        return
    yield from _network(s, "experts’ ", s.experts.width, s.experts.per_token, routed=True)
    if s.experts.shared:
        yield from _network(s, "shared experts’ ", s.experts.shared * (s.experts.shared_width or s.experts.width), 1)


def _attention_products(s: TransformerSpec) -> Iterator[LayerProduct]:
    hidden = s.hidden
    queries, values = s.heads * s.score_dim, s.heads * s.value_dim
    if s.latent:
        low = s.latent
        if low.query_rank:
            yield LayerProduct("query latent", "attention", hidden, low.query_rank, "whole")
        yield LayerProduct("queries", "attention", low.query_rank or hidden, queries, "tensor")
        yield LayerProduct("key/value latent", "attention", hidden, low.kv_rank + low.rope_dim, "whole")
        both = s.heads * (low.nope_dim + low.value_dim)
        yield LayerProduct("keys and values", "attention", low.kv_rank, both, "tensor")
    else:
        split: Split = "tensor" if s.kv_heads == s.heads else "key/value heads"
        yield LayerProduct("queries", "attention", hidden, queries, "tensor")
        yield LayerProduct("keys", "attention", hidden, s.kv_heads * s.head_dim, split)
        yield LayerProduct("values", "attention", hidden, s.kv_heads * s.head_dim, split)
    if s.attention_gate:
        yield LayerProduct("attention gate", "attention", hidden, queries, "tensor")
    yield LayerProduct("attention’s output", "attention", values, hidden, "whole")


def _network(
    spec: TransformerSpec, owner: str, width: int, times: int, *, routed: bool = False
) -> Iterator[LayerProduct]:
    for name in ("gate", "up") if spec.glu else ("up",):
        yield LayerProduct(f"{owner}{name}", "feed-forward", spec.hidden, times * width, "tensor", routed)
    yield LayerProduct(f"{owner}down", "feed-forward", width, times * spec.hidden, "whole", routed)


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """A tensor that per-operation recomputation keeps, and what brings it in."""

    tensor: SavedTensor
    sent: Sent = ""

    def present(self, layout: Layout) -> Any:
        """1 where the layout has it: what is brought in there is only where ranks share the work."""
        if self.sent == "tensor":
            # Without sequence parallelism sums come from all-reduces, which the policy does again.
            return np.greater(layout.tensor, 1) * np.asarray(layout.sequence_parallel)
        return np.greater(layout.expert, 1) * 1 if self.sent else 1


@lru_cache(maxsize=256)
def kept_by_operation(
    spec: TransformerSpec, implementation: Implementation, kind: LayerKind, width: int, residual: int | None = None
) -> tuple[KeptTensor, ...]:
    """What one layer keeps under per-operation recomputation. width, residual: as `saved_tensors` has them."""

    def one(name: str, part: Part, elements: Any, split: Split, *, routed: bool = False) -> SavedTensor:
        return SavedTensor(name, part, elements, width, split, routed=routed)

    s = spec
    tensors = [KeptTensor(SavedTensor("layer input", "norms", s.hidden, residual or width, "sequence"))]
    if implementation.flash:
        tensors.append(KeptTensor(SavedTensor("log-sum-exp", "attention", s.attention_share * s.heads, FP32)))
        given = s.attention_share * s.heads * s.value_dim
        tensors.append(KeptTensor(one("attention kernel’s output", "attention", given, "tensor")))
    plain = [product for product in products(s, kind) if not product.routed]
    tensors += [KeptTensor(one(each.name, each.part, each.made, each.split)) for each in plain[::2]]
    summed = [each for each in plain if each.split == "whole" and not each.name.endswith(" latent")]
    tensors += [KeptTensor(one(f"{each.name}, summed", each.part, each.made, "sequence"), "tensor") for each in summed]
    if s.experts and kind == "experts":
        chosen = s.experts.per_token * s.hidden
        for name in ("expert inputs", "expert outputs"):
            tensors.append(KeptTensor(one(name, "feed-forward", chosen, "sequence", routed=True), "expert"))
    return tuple(tensors)


def flop_again(spec: TransformerSpec) -> float:
    """FLOPs of matrix products that per-operation recomputation does again, per token, over all layers.

    The last product of a layer is spared even where it is not kept: backward through the layer never reads it.
    """
    total = 0.0
    kinds: tuple[tuple[LayerKind, int], ...] = (("dense", spec.dense_layers), ("experts", spec.moe_layers))
    for kind, layers in kinds:
        result = list(products(spec, kind)) if layers else []
        plain = [product for product in result if not product.routed]
        parts = {product.name for product in (*plain[::2], *result[-1:])}
        total += layers * sum(product.flop for product in result if product.name not in parts)
    return total
