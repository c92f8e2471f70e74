"""FLOPs of a transformer: the 6ND rule, and the count matrix by matrix that it approximates.

Counts are matrix multiplications only, a multiply-add as two FLOPs, per token and over all layers. Norms, softmax,
activations and the optimizer step are left out, as in every published model-FLOP count; so is recomputation, which
is hardware work and not model work. How much of the attention square is counted is a convention and always named:
``full`` counts all s keys for each token, ``causal`` the half that the mask leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from core.formula import Explanation, Formula, Source, Symbol, formula
from core.models.parameters import (
    FFN,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    MATRICES,
    VOCAB,
    count,
    dense_name,
    parameters,
)
from core.models.spec import TransformerSpec
from core.sources import DEEPSEEK_V2, MIXTRAL, PALM

Attention: TypeAlias = Literal["full", "causal"]
"""How much of the attention square counts."""

_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "section 2.1", "https://arxiv.org/abs/2001.08361")
_CHINCHILLA = Source("Hoffmann et al. 2022, Chinchilla", "appendix F", "https://arxiv.org/abs/2203.15556")
_PALM = PALM.at("appendix B")
_MEGATRON = Source(
    "Megatron-LM",
    "megatron/training/training.py, num_floating_point_operations",
    "https://github.com/NVIDIA/Megatron-LM",
)
_DEEPSEEK_V2 = DEEPSEEK_V2.at("section 2.1")

_SEQ = count("s", "sequence length")
_FORWARD = Symbol("F", "forward FLOPs per token", "flop")
_COMPUTE = Symbol("C", "training compute", "flop")
_TOKENS = count("D", "training tokens")


@formula(
    r"6 \cdot \v{params} \cdot \v{tokens}",
    result=_COMPUTE,
    symbols={"params": count("N", "parameters (active ones, with experts)"), "tokens": _TOKENS},
    sources=(_KAPLAN, _CHINCHILLA),
)
def train_flop_6nd(params: float, tokens: float) -> float:
    """Training compute by the 6ND rule.

    Each parameter multiplies and adds once per token going forward (2 FLOPs) and twice going back (4 FLOPs: the
    gradient of the weight and that of its input). Attention's products of activations are not in it, and the input
    embedding is, though it is only looked up.
    """
    return 6 * params * tokens


@formula(
    r"3 \cdot \v{forward} \cdot \v{tokens}",
    result=_COMPUTE,
    symbols={"forward": _FORWARD, "tokens": _TOKENS},
    sources=(_CHINCHILLA, _MEGATRON),
)
def train_flop_by_layer(forward: float, tokens: float) -> float:
    """Training compute from the forward count.

    The backward pass multiplies every matrix twice where the forward pass does once, so it costs two forwards.
    """
    return 3 * forward * tokens


_QKV_SYMBOLS: Mapping[str, Symbol] = {
    "layers": LAYERS,
    "hidden": HIDDEN,
    "heads": HEADS,
    "kv_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
}
_SQUARE_SYMBOLS: Mapping[str, Symbol] = {"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "seq_len": _SEQ}


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot (\v{heads} + 2 \cdot \v{kv_heads}) \cdot \v{head_dim}",
    result=_FORWARD,
    symbols=_QKV_SYMBOLS,
    sources=(_MEGATRON,),
)
def qkv_flop(layers: float, hidden: float, heads: float, kv_heads: float, head_dim: float) -> float:
    """Query, key and value projections."""
    return 2 * layers * hidden * (heads + 2 * kv_heads) * head_dim


@formula(
    r"2 \cdot \v{layers} \cdot (\v{hidden} \cdot \v{rank} + \v{rank} \cdot \v{heads} \cdot \v{score_dim})",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "rank": count("r_q", "rank of the query path"),
        "heads": HEADS,
        "score_dim": count("d_{qk}", "head width of queries and keys"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_query_flop(layers: float, hidden: float, rank: float, heads: float, score_dim: float) -> float:
    """Query projection of latent attention."""
    return 2 * layers * (hidden * rank + rank * heads * score_dim)


@formula(
    r"2 \cdot \v{layers} \cdot (\v{hidden} \cdot (\v{rank} + \v{rope_dim})"
    r" + \v{rank} \cdot \v{heads} \cdot (\v{nope_dim} + \v{value_dim}))",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "rank": count("r_{kv}", "rank of the key/value path"),
        "rope_dim": count("d_r", "rotary width, shared by all heads"),
        "heads": HEADS,
        "nope_dim": count("d_n", "head width without rotation"),
        "value_dim": count("d_v", "head width of values"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_kv_flop(
    layers: float, hidden: float, rank: float, rope_dim: float, heads: float, nope_dim: float, value_dim: float
) -> float:
    """Key and value projections of latent attention."""
    return 2 * layers * (hidden * (rank + rope_dim) + rank * heads * (nope_dim + value_dim))


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=_FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(_PALM,),
)
def square_flop_full(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, all of it counted.

    Scores multiply queries with keys, then weights multiply values: two such products per layer. Each token
    meets all s positions, as PaLM's appendix B counts it. Query heads count, however few key/value heads there are.
    """
    return 2 * layers * heads * head_dim * seq_len


@formula(
    r"\v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=_FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(_MEGATRON,),
)
def square_flop_causal(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, the causal half of it counted.

    A token sees the positions up to its own, (s + 1)/2 on average; the convention takes s/2, as Megatron-LM does.
    """
    return layers * heads * head_dim * seq_len


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{hidden}",
    result=_FORWARD,
    symbols={"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "hidden": HIDDEN},
    sources=(_MEGATRON,),
)
def output_flop(layers: float, heads: float, head_dim: float, hidden: float) -> float:
    """Output projection of attention."""
    return 2 * layers * heads * head_dim * hidden


@formula(
    r"2 \cdot \v{layers} \cdot \v{networks} \cdot \v{matrices} \cdot \v{hidden} \cdot \v{width}",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "networks": count("n", "networks each token runs per layer"),
        "matrices": MATRICES,
        "hidden": HIDDEN,
        "width": FFN,
    },
    sources=(_MEGATRON, MIXTRAL),
)
def ffn_flop(layers: float, networks: float, matrices: float, hidden: float, width: float) -> float:
    """Feed-forward networks a token runs through: one, or its top-k experts, never all experts."""
    return 2 * layers * networks * matrices * hidden * width


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot \v{experts}",
    result=_FORWARD,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "experts": count("E", "routed experts")},
    sources=(MIXTRAL,),
)
def router_flop(layers: float, hidden: float, experts: float) -> float:
    """Router: a score for every expert, chosen or not."""
    return 2 * layers * hidden * experts


@formula(
    r"2 \cdot \v{hidden} \cdot \v{vocab}",
    result=_FORWARD,
    symbols={"hidden": HIDDEN, "vocab": VOCAB},
    sources=(_CHINCHILLA,),
)
def head_flop(hidden: float, vocab: float) -> float:
    """Output head: logits over the vocabulary, whether or not it shares its matrix with the embedding."""
    return 2 * hidden * vocab


@dataclass(frozen=True, slots=True)
class FlopPart:
    """One component's forward FLOPs per token. ``square`` marks attention's products of activations."""

    name: str
    flop: float
    square: bool
    formula: Formula[...]
    values: Mapping[str, float]

    def explain(self) -> Explanation:
        """The formula with these values substituted, under the component's name."""
        return replace(self.formula.explain(**self.values), title=self.name)


@dataclass(frozen=True, slots=True)
class FlopCount:
    """Forward FLOPs per token by component, in the order a token meets them."""

    parts: tuple[FlopPart, ...]

    @property
    def forward(self) -> float:
        return sum(part.flop for part in self.parts)

    @property
    def training(self) -> float:
        """Forward and backward, per token."""
        return 3 * self.forward

    @property
    def weights(self) -> float:
        """Forward FLOPs that multiply by a parameter: twice the parameters a token is multiplied with."""
        return sum(part.flop for part in self.parts if not part.square)

    @property
    def squares(self) -> float:
        """Forward FLOPs of attention's products of activations, which no parameter takes part in."""
        return sum(part.flop for part in self.parts if part.square)


_SQUARES: Mapping[Attention, Formula[...]] = {"full": square_flop_full, "causal": square_flop_causal}


def _part(name: str, rule: Formula[...], **values: int) -> FlopPart:
    return FlopPart(name, rule(**values), rule in _SQUARES.values(), rule, values)


def _attention(spec: TransformerSpec, seq_len: int, convention: Attention) -> list[FlopPart]:
    size: dict[str, int] = {"layers": spec.layers, "hidden": spec.hidden, "heads": spec.heads}
    square = _SQUARES[convention]
    over: dict[str, int] = {"layers": spec.layers, "heads": spec.heads, "seq_len": seq_len}
    if low := spec.latent:
        query = {"rank": low.query_rank, "score_dim": spec.score_dim}
        widths = {"rope_dim": low.rope_dim, "nope_dim": low.nope_dim, "value_dim": low.value_dim}
        projections = [
            _part("Queries", latent_query_flop, **size, **query),
            _part("Keys and values", latent_kv_flop, **size, rank=low.kv_rank, **widths),
        ]
    else:
        projections = [_part("Q, K, V", qkv_flop, **size, kv_heads=spec.kv_heads, head_dim=spec.head_dim)]
    return [
        *projections,
        _part("Attention scores", square, **over, head_dim=spec.score_dim),
        _part("Attention values", square, **over, head_dim=spec.value_dim),
        _part("Attention output", output_flop, **size, head_dim=spec.value_dim),
    ]


def _feed_forward(spec: TransformerSpec) -> list[FlopPart]:
    shape: dict[str, int] = {"matrices": spec.ffn_matrices, "hidden": spec.hidden}
    parts: list[FlopPart] = []
    if spec.dense_layers:
        dense = {"layers": spec.dense_layers, "networks": 1, "width": spec.ffn}
        parts.append(_part(dense_name(spec), ffn_flop, **dense, **shape))
    if moe := spec.experts:
        expert = {"layers": spec.moe_layers, "width": moe.width, **shape}
        parts.append(_part("Router", router_flop, layers=spec.moe_layers, hidden=spec.hidden, experts=moe.count))
        parts.append(_part("Routed experts", ffn_flop, networks=moe.per_token, **expert))
        if moe.shared:
            parts.append(_part("Shared experts", ffn_flop, networks=moe.shared, **expert))
    return parts


@lru_cache(maxsize=512)
def flops_per_token(spec: TransformerSpec, seq_len: int, attention: Attention = "causal") -> FlopCount:
    """Forward FLOPs per token of ``spec`` by component, at ``seq_len`` and under the attention convention.

    Every layer is taken to attend to the whole sequence; the input embedding is a lookup and costs nothing.
    """
    parts = _attention(spec, seq_len, attention) + _feed_forward(spec)
    parts.append(_part("Output head", head_flop, hidden=spec.hidden, vocab=spec.vocab))
    return FlopCount(tuple(parts))


@dataclass(frozen=True, slots=True)
class RuleGap:
    """Why the 6ND rule and the count by layer differ, per token of training; the parts sum to the difference.

    rule: 6 N with N the active parameters. lookup: what the rule charges for tables that are only looked up (an
    input embedding of its own, learned positions). vectors: what it charges for norms and biases. square: what it
    leaves out, attention's products of activations. counted: rule − lookup − vectors + square.
    """

    rule: float
    lookup: float
    vectors: float
    square: float
    counted: float


def rule_gap(spec: TransformerSpec, seq_len: int, attention: Attention = "causal") -> RuleGap:
    """The exact account of 6ND against the count by layer for ``spec``.

    A tied embedding is a lookup at the bottom and a matrix at the top, so it counts once in both.
    """
    counted = flops_per_token(spec, seq_len, attention)
    rule = 6.0 * parameters(spec).active
    lookup = 6.0 * spec.hidden * (spec.position_rows + (0 if spec.tied_head else spec.vocab))
    return RuleGap(
        rule=rule,
        lookup=lookup,
        vectors=rule - lookup - 3 * counted.weights,
        square=3 * counted.squares,
        counted=counted.training,
    )


@dataclass(frozen=True, slots=True)
class Convention:
    """One way of counting, with the FLOPs per token of training that it gives."""

    id: str
    name: str
    per_token: float


def conventions(spec: TransformerSpec, seq_len: int) -> tuple[Convention, ...]:
    """The ways sources count the same model, from the rule of thumb to the full attention square."""
    active = parameters(spec).active
    tables = spec.hidden * (spec.position_rows + (1 if spec.tied_head else 2) * spec.vocab)
    return (
        Convention("rule", f"6ND, N all {'active ' if spec.experts else ''}parameters", train_flop_6nd(active, 1)),
        Convention("kaplan", "6ND, N without embeddings (Kaplan 2020)", train_flop_6nd(active - tables, 1)),
        Convention("causal", "by layer, causal attention", flops_per_token(spec, seq_len, "causal").training),
        Convention("full", "by layer, full attention square", flops_per_token(spec, seq_len, "full").training),
    )
