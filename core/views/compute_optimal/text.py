"""The best split of a plan's compute in words and table cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.budget.compute_optimal import LAWS, Allocation, overtraining
from core.formula import Explanation
from core.messages import Message, message, messages
from core.planning.estimate import PlanEstimate
from core.units import QuantityText, format_count, significant


def split_headings() -> tuple[Message, ...]:
    """Return the headings of `split_rows`: the losses are those of `LAWS`, in their order."""
    return messages("optimal", "split parameters tokens ratio loss loss_refit")


def split_rows(allocations: Sequence[Allocation], a: PlanEstimate) -> list[tuple[str, ...]]:
    """Return the splits, the plan's own last; every row has its loss by either law."""
    m = a.middle
    chosen: list[tuple[str, float, float]] = [(s.name, s.params, s.tokens) for s in allocations]
    return [
        (
            name,
            format_count(params, 3),
            format_count(tokens, 3),
            significant(tokens / params, 3),
            *(QuantityText(f"{loss:.4f}", loss) for loss in (law.loss(params, tokens) for law in LAWS)),
        )
        for name, params, tokens in (*chosen, (message("optimal.yours"), m.parameters, m.tokens))
    ]


def explain_losses(a: PlanEstimate) -> list[Explanation]:
    """Explain the losses of the plan by either law."""
    return [
        replace(explanation, title=message("optimal.explained", title=explanation.title))
        for explanation in (law.explain_loss(a.middle.parameters, a.middle.tokens) for law in LAWS)
    ]


def ratio_text(a: PlanEstimate) -> Message:
    """Return how far the plan is from 20 tokens per parameter."""
    m = a.middle
    factor = overtraining(m.tokens, m.parameters)
    return message("optimal.over" if factor >= 1 else "optimal.under", ratio=m.tokens / m.parameters, factor=factor)
