"""FLOPs of a transformer: the 6ND rule, and the count matrix by matrix that it approximates.

Counts are matrix multiplications only, a multiply-add as two FLOPs, per token and over all layers. Norms, softmax,
activations and the optimizer step are left out, as in every published model-FLOP count; recomputation is hardware
work and not model work, and is counted apart. How much of the attention square is counted is a convention and always
named; see `Attention`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Explanation, Formula, Symbol, explanation
from core.limits import cached
from core.messages import message
from core.models.components import ROWS, ModelPart, explain_row, totals, weight_flop
from core.models.flop_formulas import (
    FORWARD,
    palm_flop,
    square_flop_causal,
    square_flop_exact,
    square_flop_full,
    train_flop_6nd,
    train_flop_by_layer,
    window_flop_causal,
    window_flop_exact,
    window_flop_full,
)
from core.models.operation import AttentionCore, IndexCore, Linear, Lookup
from core.models.operations import operations
from core.models.parameters import parameters
from core.models.spec import SpecError, TransformerSpec

Attention: TypeAlias = Literal["full", "causal", "exact", "eager"]
"""How much of the attention square counts, s keys for each of s tokens.

``full``: every key, within the window where a layer has one (PaLM, llm-foundry). ``causal``: what a mask along the
diagonal leaves when the square is cut in half, s²/2 (Megatron-LM); in a window of w it leaves w·s − w²/2. ``exact``:
the pairs of the mask one by one, the diagonal whole, s·(s + 1)/2. ``eager``: the whole square whatever the windows,
which is what an implementation that multiplies first and masks afterwards computes.
"""

_SQUARES: Mapping[Attention, tuple[Formula[...], Formula[...]]] = {
    "full": (square_flop_full, window_flop_full),
    "causal": (square_flop_causal, window_flop_causal),
    "exact": (square_flop_exact, window_flop_exact),
    "eager": (square_flop_full, square_flop_full),
}
"""Convention → one product of attention in layers that see everything, and in windowed ones."""

AttentionProduct: TypeAlias = "tuple[str, Formula[...], dict[str, Any]]"
"""Component, formula, and values of one product of activations."""


@dataclass(frozen=True, slots=True)
class FlopPart(ModelPart):
    """One component's forward FLOPs per token. ``square`` marks attention's products of activations."""

    flop: float
    square: bool
    products: tuple[AttentionProduct, ...]

    @property
    def in_layer(self) -> bool:
        """Whether full recomputation does it again: the layers, not the tables at either end."""
        return self.group not in ("embedding", "head")

    def explain(self) -> Explanation:
        """Return the formula of ``flop`` with its values, under the component’s name."""
        if not self.products:
            return explain_row(self.spec, self.id, "flop")
        told = [formula.explain(**values) for _, formula, values in self.products]
        if len(told) == 1:
            return replace(told[0], title=self.name)
        names = {f"kind_{i}": Symbol(f"F_{i}", "in layers of one size", "flop") for i in range(1, len(told) + 1)}
        latex = " + ".join(rf"\v{{{name}}}" for name in names)
        values = {name: one.value for name, one in zip(names, told, strict=True)}
        key = f"{self.id}: {latex}"
        return explanation(key, self.name, told[0].detail, latex, FORWARD, names, values, self.flop, told[0].sources)


@dataclass(frozen=True, slots=True)
class FlopCount:
    """FLOPs per token by component, in the order a token meets them; the parts hold the forward pass.

    Each product of the forward pass has two in the backward pass, the gradient of either factor, of the same size:
    backward is twice forward. Nothing is saved at the bottom, because the embedding is trained: the first layer's
    input needs its gradient too.
    """

    parts: tuple[FlopPart, ...]

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
    def in_layers(self) -> float:
        """Forward FLOPs per token of the layers, which full recomputation runs again; selective, ``squares``."""
        return sum(part.flop for part in self.parts if part.in_layer)

    @property
    def weights(self) -> float:
        """Forward FLOPs that multiply by a parameter: twice the parameters a token is multiplied with."""
        return sum(part.flop for part in self.parts if not part.square)

    @property
    def squares(self) -> float:
        """Forward FLOPs of attention's products of activations, which no parameter takes part in."""
        return sum(part.flop for part in self.parts if part.square)


def attention_products(spec: TransformerSpec, seq_len: Any, attention: Attention) -> Iterator[AttentionProduct]:
    """Yield attention’s products of activations under a convention; ``seq_len`` may be an array.

    A window as long as the sequence hides nothing, so that such layers see everything. Chosen tokens count as a window
    does. Of layers whose sizes differ each kind has products of its own.
    """
    layers: dict[tuple[str, int, int, int, int, int], Any] = {}
    for op in operations(spec):
        if isinstance(op, AttentionCore):
            prefix, last = "index_" if isinstance(op, IndexCore) else "", op.window or op.chosen
            inside = op.layers * (last < seq_len / op.every) if last and attention != "eager" else 0
            for key, window, count in ((prefix, 0, op.layers - inside), (f"window_{prefix}", last, inside)):
                if window or not last or np.any(count):
                    kind = (key, op.heads, op.key_dim, op.value_dim, window, op.every)
                    layers[kind] = layers.get(kind, 0) + count
    for (prefix, heads, key_dim, value_dim, window, every), count in sorted(
        layers.items(), key=lambda item: item[0][0]
    ):
        formula = _SQUARES[attention][bool(window)]
        for width, name in ((key_dim, "scores"), (value_dim, "values")):
            if width:
                given = {
                    "heads": heads,
                    "seq_len": seq_len / every if every > 1 else seq_len,
                    "window": window,
                    "layers": count,
                    "head_dim": width,
                }
                yield f"{prefix}{name}", formula, {name: given[name] for name in formula.symbols}


@cached("small_results_kept")
def flops_per_token(spec: TransformerSpec, seq_len: int, attention: Attention = "causal") -> FlopCount:
    """Return FLOPs per token of ``spec`` by component, at ``seq_len`` and under a convention.

    Raises:
        SpecError: For a length below 1.
    """
    if seq_len < 1:
        raise SpecError("seq_len", seq_len, message("spec.sequence"))
    flop: dict[str, float] = dict(totals(spec, "flop"))
    products: dict[str, list[AttentionProduct]] = {}
    for product in attention_products(spec, seq_len, attention):
        key, formula, values = product
        if amount := formula(**values):
            products.setdefault(key, []).append(product)
            flop[key] = flop.get(key, 0) + amount
    parts = (
        FlopPart(spec, key, flop[key], key == "scan" or key in products, tuple(products.get(key, ())))
        for key in ROWS
        if flop.get(key)
    )
    return FlopCount(tuple(parts))


@dataclass(frozen=True, slots=True)
class RuleGap:
    """Why the 6ND rule and the count by layer differ, per token of training; the parts sum to the difference.

    rule: 6 N with N the active parameters. lookup: what the rule charges for tables that are only looked up (an
    input embedding of its own, learned positions). vectors: what it charges for norms and
    biases. square: what it leaves out, attention's products of activations. again: what it counts once and the layers
    multiply again, the output head, and projections of a narrow table, in every multi-token prediction module.
    counted: rule − lookup − vectors + square + again.
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
    ops = operations(spec)
    tables = sum(weight_flop(op) for op in ops if type(op) is Lookup and op.block != "mtp")
    lookup = 3.0 * tables - 6.0 * spec.tied_head * spec.table_width * spec.vocab
    repeated = (op for op in ops if op.block == "mtp" and isinstance(op, Linear) and op.weights[0].shared)
    again = 3.0 * sum(op.layers * weight_flop(op) for op in repeated)
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
    cores = [op for op in operations(spec) if type(op) is AttentionCore and op.block != "mtp"]
    width = sum(op.layers * op.heads * (op.key_dim + op.value_dim) / 2 for op in cores)
    heads = max(1, spec.attention_layers * spec.heads)
    palm = palm_flop(active, spec.attention_layers, spec.heads, width / heads, seq_len)
    tables = spec.hidden * spec.position_rows + (1 if spec.tied_head else 2) * spec.table_width * spec.vocab
    return (
        Convention("rule", f"6ND, N all {'active ' if spec.experts else ''}parameters", train_flop_6nd(active, 1)),
        Convention("kaplan", "6ND, N without embeddings (Kaplan 2020)", train_flop_6nd(active - tables, 1)),
        Convention("causal", "by layer, causal attention", by_layer("causal")),
        Convention("full", "by layer, full attention", by_layer("full")),
        Convention("palm", "6N plus full attention (PaLM)", palm),
    )
