"""``TransformerSpec``: the shape of a decoder-only transformer, with everything that changes a count.

Symbols used by the formulas of this package: L layers, h hidden width, a query heads, k key/value heads, d head
width, f feed-forward width, V vocabulary, s sequence length, E experts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

QKNorm: TypeAlias = Literal["none", "head", "full"]
"""Norm of queries and keys: none, one gain per head width, or one gain over all heads together."""


class SpecError(ValueError):
    """A shape that no transformer can have; the message names the field, its value and the rule."""


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture-of-experts part: routed experts of which each token runs ``per_token``, and shared ones."""

    count: int
    per_token: int
    width: int
    shared: int = 0
    dense_layers: int = 0
    """Layers at the bottom that keep a dense feed-forward network of the spec's ``ffn`` width."""
    router_bias: bool = False


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek): low-rank query and key/value paths and their head widths."""

    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class TransformerSpec:
    """A decoder-only transformer.

    norm_vectors: learned vectors per norm: 0 (non-parametric), 1 (gain) or 2 (gain and bias).
    norms_per_layer, norms_outside: norms of width h inside each layer, and before or after the stack.
    position_rows: rows of a learned position table; 0 for rotary, ALiBi or none.
    attention_bias, output_bias, ffn_bias: biases of the Q, K and V projections, of the output projection, and of
    the feed-forward matrices (of the experts, where there are experts).
    attention_sinks: one learned logit per query head and layer.

    Raises `SpecError` on construction for a shape that cannot be.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    glu: bool
    tied_head: bool
    norm_vectors: int = 1
    norms_per_layer: int = 2
    norms_outside: int = 1
    qk_norm: QKNorm = "none"
    position_rows: int = 0
    attention_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    attention_sinks: bool = False
    experts: Experts | None = None
    latent: LatentAttention | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}; a transformer needs at least 1.")
        if self.ffn < 1 and self.dense_layers > 0:
            raise SpecError(f"ffn is {self.ffn}; {self.dense_layers} layers are dense and need a width of at least 1.")
        if self.heads % self.kv_heads:
            raise SpecError(f"{self.heads} query heads cannot share {self.kv_heads} key/value heads evenly.")
        if self.experts and not 1 <= self.experts.per_token <= self.experts.count:
            raise SpecError(f"Each token cannot run {self.experts.per_token} of {self.experts.count} experts.")
        if self.experts and not 0 <= self.experts.dense_layers <= self.layers:
            raise SpecError(f"{self.experts.dense_layers} of {self.layers} layers cannot be dense.")

    @property
    def ffn_matrices(self) -> int:
        """Matrices of one feed-forward network: gate, up and down, or up and down."""
        return 3 if self.glu else 2

    @property
    def moe_layers(self) -> int:
        """Layers whose feed-forward network is a mixture of experts."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def dense_layers(self) -> int:
        """Layers with an ordinary feed-forward network."""
        return self.layers - self.moe_layers

    @property
    def score_dim(self) -> int:
        """Width of one head in the product of queries and keys."""
        return self.latent.nope_dim + self.latent.rope_dim if self.latent else self.head_dim

    @property
    def value_dim(self) -> int:
        """Width of one head in the product of weights and values."""
        return self.latent.value_dim if self.latent else self.head_dim
