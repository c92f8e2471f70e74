"""The best split of a plan's compute in words and table cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.budget.compute_optimal import LAWS, Allocation, overtraining
from core.formula import Explanation
from core.planning.estimate import PlanEstimate
from core.units import QuantityText, format_count, significant

SPLITS = (
    "best split of this compute by",
    "parameters",
    "tokens",
    "tokens per parameter",
    "loss by Chinchilla",
    "loss by its refit",
)
"""Headings of the table of `splits`: the losses are those of `LAWS`, in their order."""


def splits(allocations: Sequence[Allocation], a: PlanEstimate) -> list[tuple[str, ...]]:
    """Rows of the table of splits, the plan's own last; every row has its loss by either law."""
    m = a.middle
    chosen = [(s.name, s.params, s.tokens) for s in allocations]
    return [
        (
            name,
            format_count(params, 3),
            format_count(tokens, 3),
            significant(tokens / params, 3),
            *(QuantityText(f"{loss:.4f}", loss) for loss in (law.loss(params, tokens) for law in LAWS)),
        )
        for name, params, tokens in (*chosen, ("**your plan**", m.parameters, m.tokens))
    ]


def explain_losses(a: PlanEstimate) -> list[Explanation]:
    """The losses of the plan by either law."""
    return [
        replace(explanation, title=f"{explanation.title}, your plan")
        for explanation in (law.explain_loss(a.middle.parameters, a.middle.tokens) for law in LAWS)
    ]


def trained(a: PlanEstimate) -> str:
    """How far the plan is from 20 tokens per parameter."""
    m = a.middle
    factor = overtraining(m.tokens, m.parameters)
    ratio = significant(m.tokens / m.parameters, 3)
    text = (
        f"**{significant(factor, 3)} times** as many as Chinchilla’s 20: a smaller model than the compute would allow, "
        "which costs some training loss and makes every token served cheaper."
        if factor >= 1
        else f"**{significant(factor, 3)} times** Chinchilla’s 20: a larger model than the compute trains well."
    )
    return f"**{ratio}** tokens per parameter, {text}"
