"""FLOPs of a transformer: the 6ND rule, and the count matrix by matrix that it approximates.

Counts are matrix multiplications only, a multiply-add as two FLOPs, per token and over all layers. Norms, softmax,
activations and the optimizer step are left out, as in every published model-FLOP count; recomputation is hardware
work and not model work, and is counted apart. How much of the attention square is counted is a convention and always
named; see `Attention`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from core.formula import Explanation, Formula
from core.models.flop_formulas import (
    ffn_flop,
    head_flop,
    joint_flop,
    latent_kv_flop,
    latent_query_flop,
    matrix_flop,
    output_flop,
    palm_flop,
    prediction_flop,
    qkv_flop,
    router_flop,
    square_flop_causal,
    square_flop_exact,
    square_flop_full,
    train_flop_6nd,
    train_flop_by_layer,
    window_flop_causal,
    window_flop_exact,
    window_flop_full,
)
from core.models.mixer_formulas import convolution_flop, mixer_input_flop, scan_flop, selection_flop
from core.models.parameters import dense_name, parameters
from core.models.spec import SpecError, TransformerSpec
from core.models.terms import MIXER_WIDTHS, Group, Numbers, ShapeTerm, both, last_layer, numbers_of, term

Attention: TypeAlias = Literal["full", "causal", "exact", "eager"]
"""How much of the attention square counts, s keys for each of s tokens.

``full``: every key, within the window where a layer has one (PaLM, llm-foundry). ``causal``: what a mask along the
diagonal leaves when the square is cut in half, s²/2 (Megatron-LM); in a window of w it leaves w·s − w²/2. ``exact``:
the pairs of the mask one by one, the diagonal whole, s·(s + 1)/2. ``eager``: the whole square whatever the windows,
which is what an implementation that multiplies first and masks afterwards computes.
"""

Recompute: TypeAlias = Literal["none", "selective", "full"]
"""What the backward pass computes again: nothing, attention's products of activations, or every layer."""

TERMS: tuple[ShapeTerm, ...] = (
    term("embedding", "Token embedding", "embedding", head_flop, hidden="table_width", vocab="lookup_rows"),
    term("joints", "Embedding projections", "embedding", joint_flop, joints="table_joints", width="table_width"),
    term("qkv", "Q, K, V", "attention", qkv_flop, layers="plain_layers"),
    term("queries", "Queries", "attention", latent_query_flop, layers="ranked_layers", rank="query_rank"),
    term(
        "queries_unranked",
        "Queries",
        "attention",
        qkv_flop,
        layers="unranked_layers",
        kv_heads="zero",
        head_dim="score_dim",
    ),
    term("keys_values", "Keys and values", "attention", latent_kv_flop, layers="latent_layers", rank="kv_rank"),
    term("attention_gate", "Attention gate", "attention", qkv_flop, layers="gate_layers", kv_heads="zero"),
    term("output", "Attention output", "attention", output_flop, layers="attention_layers", head_dim="value_dim"),
    term("mixer_input", "State: first projection", "mixers", mixer_input_flop, layers="mixer_layers", **MIXER_WIDTHS),
    term("convolution", "State: convolution", "mixers", convolution_flop, layers="mixer_layers", **MIXER_WIDTHS),
    term("selection", "State: selection", "mixers", selection_flop, layers="selective_layers", **MIXER_WIDTHS),
    term(
        "mixer_output",
        "State: output",
        "mixers",
        output_flop,
        layers="mixer_layers",
        heads="mixer_heads",
        head_dim="mixer_width",
    ),
    term("gate", "Feed-forward gate", "feed-forward", matrix_flop, layers="gated_layers", width="ffn"),
    term("up", "Feed-forward up", "feed-forward", matrix_flop, layers="dense_layers", width="ffn"),
    term("down", "Feed-forward down", "feed-forward", matrix_flop, layers="dense_layers", width="ffn"),
    term("router", "Router", "experts", router_flop, layers="moe_layers"),
    term(
        "experts",
        "Routed experts",
        "experts",
        ffn_flop,
        layers="moe_layers",
        networks="per_token",
        width="expert_width",
    ),
    term("shared", "Shared experts", "experts", ffn_flop, layers="moe_layers", networks="shared", width="shared_width"),
    term(
        "shared_gate",
        "Gate of the shared experts",
        "experts",
        router_flop,
        layers="shared_gates",
        experts="one",
    ),
    term(
        "prediction",
        "Multi-token prediction",
        "prediction",
        prediction_flop,
        modules="mtp_modules",
        layer="extra_layer",
        width="table_width",
        vocab="logits",
    ),
    term("head", "Output head", "head", head_flop, hidden="table_width", vocab="logits"),
)
"""Every product with a weight, in the order a token meets them."""


def _squares(full: Formula[...], windowed: Formula[...]) -> tuple[ShapeTerm, ...]:
    """The two products over the square, in layers that see everything and in windowed ones."""
    return (
        term("scores", "Attention scores", "attention", full, layers="seeing_layers", head_dim="score_dim"),
        term("values", "Attention values", "attention", full, layers="seeing_layers", head_dim="value_dim"),
        term(
            "window_scores",
            "Attention scores, windowed",
            "attention",
            windowed,
            layers="blinkered_layers",
            head_dim="score_dim",
        ),
        term(
            "window_values",
            "Attention values, windowed",
            "attention",
            windowed,
            layers="blinkered_layers",
            head_dim="value_dim",
        ),
        term(
            "scan",
            "State: moved on and read",
            "mixers",
            scan_flop,
            layers="mixer_layers",
            operations="mixer_operations",
            **MIXER_WIDTHS,
        ),
    )


SQUARES: Mapping[Attention, tuple[ShapeTerm, ...]] = {
    "full": _squares(square_flop_full, window_flop_full),
    "causal": _squares(square_flop_causal, window_flop_causal),
    "exact": _squares(square_flop_exact, window_flop_exact),
    "eager": _squares(square_flop_full, square_flop_full),
}
"""Products of activations under each convention: attention's, and the state's, which is the same under each."""


@dataclass(frozen=True, slots=True)
class FlopPart:
    """One component's forward FLOPs per token. ``square`` marks attention's products of activations."""

    name: str
    flop: float
    square: bool
    formula: Formula[...]
    values: Mapping[str, float]
    id: str
    group: Group

    @property
    def in_layer(self) -> bool:
        """Whether full recomputation does it again: the layers, not the tables at either end."""
        return self.group not in ("embedding", "head")

    def explain(self) -> Explanation:
        """The formula with these values substituted, under the component's name."""
        return replace(self.formula.explain(**self.values), title=self.name)


@dataclass(frozen=True, slots=True)
class FlopCount:
    """FLOPs per token by component, in the order a token meets them; the parts hold the forward pass.

    Each product of the forward pass has two in the backward pass, the gradient of either factor, of the same size:
    backward is twice forward. Nothing is saved at the bottom, because the embedding is trained: the first layer's
    input needs its gradient too.
    """

    parts: tuple[FlopPart, ...]
    recompute: Recompute = "none"

    @property
    def forward(self) -> float:
        return sum(part.flop for part in self.parts)

    @property
    def backward(self) -> float:
        """Gradients of weights and of inputs, per token."""
        return 2 * self.forward

    @property
    def training(self) -> float:
        """Forward and backward, per token: model FLOPs, which MFU counts."""
        return 3 * self.forward

    @property
    def recomputed(self) -> float:
        """What the backward pass computes again, per token."""
        if self.recompute == "selective":
            return self.squares
        return sum(part.flop for part in self.parts if part.in_layer) if self.recompute == "full" else 0

    @property
    def hardware(self) -> float:
        """Forward, backward and recomputation, per token: hardware FLOPs, which HFU counts."""
        return self.training + self.recomputed

    @property
    def weights(self) -> float:
        """Forward FLOPs that multiply by a parameter: twice the parameters a token is multiplied with."""
        return sum(part.flop for part in self.parts if not part.square)

    @property
    def squares(self) -> float:
        """Forward FLOPs of attention's products of activations, which no parameter takes part in."""
        return sum(part.flop for part in self.parts if part.square)


def flop_numbers(numbers: Numbers, seq_len: Any, attention: Attention, *, head: bool, embedding: bool) -> Numbers:
    """The numbers of shapes, completed by what the FLOP terms need beyond them.

    Windows as long as the sequence hide nothing: such layers count among those that see everything.
    """
    eager = attention == "eager"
    inside = 0 if eager else both(numbers["windowed_layers"], (numbers["window"] < seq_len) * 1)
    return {
        **numbers,
        "seq_len": seq_len,
        "blinkered_layers": inside,
        "seeing_layers": numbers["attention_layers"] - inside + numbers["mtp_modules"],
        "lookup_rows": numbers["vocab"] if embedding else numbers["zero"],
        "logits": numbers["vocab"] if head else numbers["zero"],
    }


def with_extra_layer_flop(numbers: Numbers) -> Numbers:
    """The numbers with the FLOPs of one more layer, where there are prediction modules to have one."""
    alone = last_layer(numbers)
    inside = [t for t in TERMS if t.group in ("attention", "feed-forward", "experts")]
    return {**numbers, "extra_layer": sum(t.formula(**t.values(alone)) for t in inside)}


_AFTER_SQUARES = next(i for i, t in enumerate(TERMS) if t.id == "output")


def flop_terms(attention: Attention) -> tuple[ShapeTerm, ...]:
    """Every term of the count under the attention convention, in the order a token meets them."""
    return TERMS[:_AFTER_SQUARES] + SQUARES[attention] + TERMS[_AFTER_SQUARES:]


@lru_cache(maxsize=2048)
def flops_per_token(
    spec: TransformerSpec,
    seq_len: int,
    attention: Attention = "causal",
    *,
    recompute: Recompute = "none",
    head: bool = True,
    embedding: bool = False,
) -> FlopCount:
    """FLOPs per token of ``spec`` by component, at ``seq_len`` and under the conventions named.

    head: count the output head. embedding: count the input embedding as if it were a product with one-hot vectors
    (Chinchilla's appendix F); it is a lookup and costs nothing. Raises `SpecError` for a length below 1.
    """
    if seq_len < 1:
        raise SpecError("seq_len", seq_len, "a sequence has at least one token.")
    numbers = flop_numbers(numbers_of(spec), seq_len, attention, head=head, embedding=embedding)
    if spec.mtp_modules:
        numbers = with_extra_layer_flop(numbers)
    squares = SQUARES[attention]
    parts: list[FlopPart] = []
    for t in flop_terms(attention):
        if t.id == "prediction" and not spec.mtp_modules:
            continue
        values = t.values(numbers)
        flop = t.formula(**values)
        if flop:
            name = t.name.replace("Feed-forward", dense_name(numbers))
            parts.append(FlopPart(name, flop, t in squares, t.formula, values, t.id, t.group))
    return FlopCount(tuple(parts), recompute)


@dataclass(frozen=True, slots=True)
class RuleGap:
    """Why the 6ND rule and the count by layer differ, per token of training; the parts sum to the difference.

    rule: 6 N with N the active parameters. lookup: what the rule charges for tables that are only looked up (an
    input embedding of its own, learned positions). vectors: what it charges for norms and biases. square: what it
    leaves out, attention's products of activations. again: what it counts once and the layers multiply again, the
    output head in every multi-token prediction module. counted: rule − lookup − vectors + square + again.
    """

    rule: float
    lookup: float
    vectors: float
    square: float
    again: float
    counted: float


def rule_gap(spec: TransformerSpec, seq_len: int, attention: Attention = "causal") -> RuleGap:
    """The exact account of 6ND against the count by layer for ``spec``.

    A tied embedding is a lookup at the bottom and a matrix at the top, so it counts once in both.
    """
    counted = flops_per_token(spec, seq_len, attention)
    rule = 6.0 * parameters(spec).active
    lookup = 6.0 * (spec.hidden * spec.position_rows + (0 if spec.tied_head else spec.table_width * spec.vocab))
    again = 6.0 * spec.mtp_modules * spec.table_width * spec.vocab
    return RuleGap(
        rule=rule,
        lookup=lookup,
        vectors=rule + again - lookup - 3 * counted.weights,
        square=3 * counted.squares,
        again=again,
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

    def by_layer(attention: Attention) -> float:
        return train_flop_by_layer(flops_per_token(spec, seq_len, attention).forward, 1)

    active = parameters(spec).active
    palm = palm_flop(active, spec.attention_layers, spec.heads, (spec.score_dim + spec.value_dim) / 2, seq_len)
    tables = spec.hidden * spec.position_rows + (1 if spec.tied_head else 2) * spec.table_width * spec.vocab
    return (
        Convention("rule", f"6ND, N all {'active ' if spec.experts else ''}parameters", train_flop_6nd(active, 1)),
        Convention("kaplan", "6ND, N without embeddings (Kaplan 2020)", train_flop_6nd(active - tables, 1)),
        Convention("causal", "by layer, causal attention", by_layer("causal")),
        Convention("full", "by layer, full attention square", by_layer("full")),
        Convention("palm", "6N and the full attention square (PaLM)", palm),
    )
