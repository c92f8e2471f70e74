"""``TransformerSpec``: the shape of a decoder-only transformer, with everything that changes a count.

Symbols used by the formulas of this package: L layers, h hidden width, a query heads, k key/value heads, d head
width, f feed-forward width, V vocabulary, s sequence length, w attention window, E experts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.limits import limit
from core.messages import message
from core.models.mixer import NAMES, Mixer
from core.models.spec_error import SpecError, whole

QKNorm: TypeAlias = Literal["none", "head", "full"]
"""Norm of queries and keys: none, one gain per head width, or one gain over all heads together."""

NormKind: TypeAlias = Literal["rmsnorm", "layernorm"]
"""RMSNorm divides by the root mean square; LayerNorm takes off the mean first."""

Positions: TypeAlias = Literal["rotary", "learned", "alibi", "none"]
"""How a model knows where a token stands. Only learned positions have parameters."""


def _nearest_divisor(of: int, near: int) -> int:
    """The divisor of ``of`` that is closest to ``near``, the larger of two."""
    small = [d for d in range(1, math.isqrt(of) + 1) if of % d == 0]
    return min({*small, *(of // d for d in small)}, key=lambda d: (abs(d - near), -d))


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture-of-experts part: routed experts of which each token runs ``per_token``, and shared ones.

    width: feed-forward width of one routed expert. shared: experts that every token runs, each ``shared_width`` wide
    (0: as wide as a routed one), together one network. shared_gate: one learned row that weighs what they give.
    dense_layers: layers that keep an ordinary feed-forward network of the spec's ``ffn`` width; which ones they are
    changes no count. router_bias: one learned offset per expert; balancing offsets that no gradient reaches are
    buffers and do not count. route_groups: equal groups of routed experts, ``groups_per_token`` of which contain all
    experts of one token (node-limited routing). With one group every expert can be chosen. latent: width in which
    routed experts compute where it is not h, with a projection each way (Nemotron 3 Super), and ``latent_norm``: a norm
    of it. router_scaled: one gain per input of the router, and one per expert (Gemma 4). norms: further ones of width h
    around the experts.
    """

    count: int
    per_token: int
    width: int
    shared: int = 0
    dense_layers: int = 0
    router_bias: bool = False
    shared_width: int = 0
    shared_gate: bool = False
    route_groups: int = 1
    groups_per_token: int = 1
    latent: int = 0
    latent_norm: bool = False
    router_scaled: bool = False
    norms: int = 0

    def __post_init__(self) -> None:
        whole(self, 1, "count", "per_token", "width", "route_groups", "groups_per_token")
        whole(self, 0, "shared", "dense_layers", "shared_width", "latent", "norms")
        if self.per_token > self.count:
            rule = message("spec.per_token", experts=float(self.count))
            raise SpecError("per_token", self.per_token, rule, self.count)
        if self.route_groups > self.count:
            rule = message("spec.per_token", experts=float(self.count))
            raise SpecError("route_groups", self.route_groups, rule, 1)
        if self.groups_per_token > self.route_groups:
            rule = message("spec.groups_per_token", groups=float(self.route_groups))
            raise SpecError("groups_per_token", self.groups_per_token, rule, self.route_groups)
        if self.shared_gate and not self.shared:
            raise SpecError("shared_gate", True, message("spec.shared_gate"))
        if self.latent_norm and not self.latent:
            raise SpecError("latent_norm", True, message("spec.latent_norm"))


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek): low-rank query and key/value paths and their head widths.

    query_rank 0: queries are projected at once, without a low rank between.
    """

    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def __post_init__(self) -> None:
        whole(self, 0, "query_rank", "nope_dim", "rope_dim")
        whole(self, 1, "kv_rank", "value_dim")
        if not self.nope_dim + self.rope_dim:
            raise SpecError("nope_dim", 0, message("spec.nope_dim"))


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A window of the last ``size`` tokens, the token itself included, in the layers that ``pattern`` marks.

    pattern: repeats over the layers from the bottom, ``True`` where a layer sees the window only; Gemma 3 has five
    windowed layers and then one that sees everything.
    """

    size: int
    pattern: tuple[bool, ...] = (True,)

    def __post_init__(self) -> None:
        whole(self, 1, "size")
        if not self.pattern:
            raise SpecError("pattern", self.pattern, message("spec.pattern"))

    def layers(self, of: int) -> int:
        """How many of ``of`` layers are windowed."""
        turns, rest = divmod(of, len(self.pattern))
        return turns * sum(self.pattern) + sum(self.pattern[:rest])


KeyValues: TypeAlias = Literal["own", "one", "earlier"]
"""Where layers take keys and values from: projections of their own, one projection for both, or an earlier layer."""


@dataclass(frozen=True, slots=True)
class AttentionLayers:
    """Attention layers whose heads, widths, or window are not those of the spec.

    value_dim: width of a head’s values, 0 for that of its keys. window: last tokens that each token attends to, the
    token itself included; 0 for all. sinks: one learned logit per query head.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    window: int = 0
    sinks: bool = False
    keys: KeyValues = "own"

    def __post_init__(self) -> None:
        whole(self, 1, "layers", "heads", "kv_heads", "head_dim")
        whole(self, 0, "value_dim", "window")
        _check_groups(self.heads, self.kv_heads)
        if self.keys == "one" and self.value_dim not in (0, self.head_dim):
            raise SpecError("value_dim", self.value_dim, message("spec.value_dim"), self.head_dim)


@dataclass(frozen=True, slots=True)
class DenseLayers:
    """Layers with an ordinary feed-forward network that is ``width`` wide; 0 for none."""

    layers: int
    width: int

    def __post_init__(self) -> None:
        whole(self, 1, "layers")
        whole(self, 0, "width")


FurtherKind: TypeAlias = Literal["matmul", "norm", "vector"]


@dataclass(frozen=True, slots=True)
class Further:
    """What each of ``layers`` layers has that no other field describes: a matmul of ``columns`` inputs and ``rows``
    outputs, a norm of width ``rows`` with ``columns`` gains, or so many learned numbers that scale or shift."""

    kind: FurtherKind
    layers: int
    rows: int
    columns: int = 1

    def __post_init__(self) -> None:
        whole(self, 1, "layers", "rows", "columns")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a mean layer saved for backward while a model ran operation by operation: ``elements`` per token, of
    ``keys`` per token and key. wide: in fp32, whatever is computed in."""

    part: Literal["norms", "attention", "keys", "network"]
    elements: int
    wide: bool = False

    def __post_init__(self) -> None:
        whole(self, 1, "elements")


@dataclass(frozen=True, slots=True)
class Indexer:
    """Sparse attention: a small attention that chooses the tokens which each token attends to (DeepSeek-V3.2).

    chosen: how many. layers: attention layers that have one; others with latent attention use that of the layer before.
    0: all of them. normed: whether queries are normed as its keys are (MiniMax-M3).
    """

    heads: int
    head_dim: int
    chosen: int
    layers: int = 0
    normed: bool = False

    def __post_init__(self) -> None:
        whole(self, 1, "heads", "head_dim", "chosen")
        whole(self, 0, "layers")


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """Attention to a window, and to entries that each stand for several earlier tokens (DeepSeek-V4).

    Queries come from ``query_rank``; a single key is its value, too; the output goes through ``output_groups`` ranks of
    ``output_rank``. sparse: layers whose entries stand for ``sparse_rate`` tokens each and are chosen by an indexer;
    heavy: layers that see every entry, of ``heavy_rate`` tokens. Other layers see the window alone.
    """

    query_rank: int
    output_groups: int
    output_rank: int
    sparse: int
    heavy: int
    sparse_rate: int = 4
    heavy_rate: int = 128

    def __post_init__(self) -> None:
        whole(self, 1, "query_rank", "output_groups", "output_rank", "sparse_rate", "heavy_rate")
        whole(self, 0, "sparse", "heavy")


def _check_groups(heads: int, kv_heads: int) -> None:
    if heads % kv_heads:
        rule = message("spec.kv_heads", heads=float(heads))
        raise SpecError("kv_heads", kv_heads, rule, _nearest_divisor(heads, kv_heads))


@dataclass(frozen=True, slots=True)
class TransformerSpec:
    """A decoder-only transformer.

    norm, norm_vectors: kind of norm, and learned vectors per norm: 0 (non-parametric), 1 (gain) or 2 (gain and bias).
    norms_per_layer, norms_outside: norms of width h inside each layer, and before or after the stack.
    position_rows: rows of a learned position table; 0 without one. positions: empty means learned where there are
    rows, rotary where there are none.
    attention_bias, output_bias, ffn_bias: biases of the Q, K and V projections (with latent attention: of the
    projections down to the ranks), of the output projection, and of the feed-forward matrices (of the experts, where
    there are experts). head_bias: one of the output head, per token of the vocabulary.
    activation_scalars: learned numbers of the activation function in each dense feed-forward network (xIELU: 2).
    mixer: layers with a state in place of attention; where all layers are such, ``heads`` and the like count nothing.
    There, and where others are mixtures, a feed-forward width of 0 is none. attention_gate: what attention gives is
    weighed by a projection as wide as its values, or with ``gate_per_head`` by one number per head.
    value_width: width of a head’s values where it is not ``head_dim``. indexer: how attention chooses tokens.
    others: attention layers of other sizes; they are among ``layers``, and the spec’s own sizes are those of the rest.
    networks: dense layers of other widths, among them likewise. bare_layers: layers with neither attention nor a state.
    values_normed: values have a norm without a gain (Gemma 4).
    tower: parameters of what reads images or sound.
    further: what its layers have beyond all of this, as read from a model that ran. kept: what they saved then, where
    that is not what is saved by these operations.
    layer_embedding: width of what each layer looks up of every token for itself, with a projection each way (Gemma 3n).
    streams: residual streams that learned weights mix before and after each block (hyper-connections, DeepSeek-V4).
    attention_sinks: one learned logit per query head and layer.
    window: layers that attend to a sliding window; None where every layer sees the whole sequence.
    parallel_blocks: attention and feed-forward network read the same input and are added together.
    embedding_width: width of the token table where it is not h; a projection each way joins it to the layers.
    mtp_modules: multi-token prediction modules (DeepSeek-V3), each one more layer, a projection of two hidden
    vectors to one, three norms, and another use of the embedding and the head.

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
    norm: NormKind = "rmsnorm"
    positions: Positions | Literal[""] = ""
    window: SlidingWindow | None = None
    parallel_blocks: bool = False
    embedding_width: int = 0
    mtp_modules: int = 0
    head_bias: bool = False
    activation_scalars: int = 0
    mixer: Mixer | None = None
    attention_gate: bool = False
    gate_per_head: bool = False
    value_width: int = 0
    indexer: Indexer | None = None
    others: tuple[AttentionLayers, ...] = ()
    networks: tuple[DenseLayers, ...] = ()
    bare_layers: int = 0
    values_normed: bool = False
    layer_embedding: int = 0
    compressed: CompressedAttention | None = None
    streams: int = 1
    tower: int = 0
    further: tuple[Further, ...] = ()
    kept: tuple[Kept, ...] = ()

    def __post_init__(self) -> None:
        whole(self, 1, "layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "streams")
        whole(self, 0, "ffn", "norms_per_layer", "norms_outside", "position_rows", "embedding_width", "mtp_modules")
        whole(self, 0, "activation_scalars", "value_width", "bare_layers", "layer_embedding")
        if self.layers > limit("model_layers"):
            raise SpecError("layers", self.layers, message("spec.most", most=float(limit("model_layers"))))
        if not 0 <= self.tower <= limit("parameters"):
            raise SpecError("tower", self.tower, message("spec.most", most=float(limit("parameters"))), 0)
        if self.norm_vectors not in (0, 1, 2):
            raise SpecError("norm_vectors", self.norm_vectors, message("spec.norm_vectors"))
        _check_groups(self.heads, self.kv_heads)
        if self.experts and self.experts.dense_layers > self.layers:
            rule = message("spec.layers", layers=float(self.layers))
            raise SpecError("dense_layers", self.experts.dense_layers, rule)
        # Among mixtures a layer may have attention or a state alone, as in Nemotron 3.
        fed = self.attention_layers and not (self.mixer and self.experts)
        if self.ffn < 1 and self.own_dense_layers > 0 and (fed or self.ffn_bias):
            raise SpecError("ffn", self.ffn, message("spec.ffn"))
        if self.positions and (self.positions == "learned") != (self.position_rows > 0):
            raise SpecError("positions", self.positions, message("spec.positions", rows=float(self.position_rows)))
        if self.latent and self.qk_norm != "none":
            raise SpecError("qk_norm", self.qk_norm, message("spec.qk_norm"))
        if self.gate_per_head and not self.attention_gate:
            raise SpecError("gate_per_head", True, message("spec.gate_per_head"))
        if self.mixer:
            self._check_mixer(self.mixer)
        if (low := self.compressed) and (low.sparse + low.heavy > self.layers or not self.window or not self.indexer):
            raise SpecError("compressed", low.sparse + low.heavy, message("spec.compressed", layers=float(self.layers)))
        if self.own_attention_layers < 0:
            rule = message("spec.others", layers=float(self.attention_layers))
            raise SpecError("others", sum(other.layers for other in self.others), rule, self.attention_layers)
        if self.own_dense_layers < 0:
            rule = message("spec.networks", layers=float(self.dense_layers))
            raise SpecError("networks", sum(one.layers for one in self.networks), rule, self.dense_layers)
        if self.indexer and (self.others or self.indexer.layers > self.attention_layers):
            rule = message("spec.indexer", layers=float(self.attention_layers))
            raise SpecError("indexer", self.indexer.layers, rule)
        for other in self.others:
            sizes = (other.kv_heads, other.head_dim, other.value_dim)
            if other.keys == "earlier" and sizes not in self._key_sizes():
                raise SpecError("others", other.layers, message("spec.earlier"))

    def _key_sizes(self) -> set[tuple[int, int, int]]:
        sizes = {(o.kv_heads, o.head_dim, o.value_dim) for o in self.others if o.keys != "earlier"}
        return sizes | {(self.kv_heads, self.head_dim, self.value_width)} if self.own_attention_layers else sizes

    def _check_mixer(self, mixer: Mixer) -> None:
        if mixer.layers > self.layers:
            rule = message("spec.state_layers", layers=float(mixer.layers))
            raise SpecError("layers", self.layers, rule, mixer.layers)
        if self.window:
            raise SpecError("window", self.window, message("spec.window"))

    @property
    def attention_layers(self) -> int:
        """Layers with attention."""
        replaced = self.mixer.layers if self.mixer and not self.mixer.parallel else 0
        return self.layers - self.bare_layers - replaced

    @property
    def own_attention_layers(self) -> int:
        """Layers with attention of the spec’s own sizes."""
        return self.attention_layers - sum(other.layers for other in self.others)

    @property
    def heads_of_kinds(self) -> tuple[tuple[int, int], ...]:
        """Query heads and key/value heads of each kind of attention."""
        own = [(self.heads, self.kv_heads)] if self.own_attention_layers else []
        return tuple(dict.fromkeys((*own, *((other.heads, other.kv_heads) for other in self.others))))

    @property
    def own_dense_layers(self) -> int:
        """Layers with an ordinary feed-forward network of the spec’s own width."""
        return self.dense_layers - sum(network.layers for network in self.networks)

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
        return self.latent.value_dim if self.latent else self.value_width or self.head_dim

    @property
    def windowed_layers(self) -> int:
        """Layers that attend to a sliding window only."""
        return self.window.layers(self.own_attention_layers) if self.window else 0

    @property
    def position_kind(self) -> Positions:
        """How positions are known: as the spec says, else by its position table."""
        return self.positions or ("learned" if self.position_rows else "rotary")

    @property
    def stream_width(self) -> int:
        """Width of all residual streams together."""
        return self.streams * self.hidden

    @property
    def table_width(self) -> int:
        """Width of one row of the token table."""
        return self.embedding_width or self.hidden

    @property
    def unmodelled(self) -> str:
        """Which of its parts have parameters and FLOPs that are counted, but no account of memory and time; or none."""
        return NAMES["mamba"] if self.mixer and self.mixer.kind == "mamba" else ""


def modelled(spec: TransformerSpec) -> TransformerSpec:
    """``spec``, where what its layers keep and how long they take is known; raises `SpecError` elsewhere."""
    if what := spec.unmodelled:
        raise SpecError("mixer", what, message("spec.not_modeled"))
    return spec
