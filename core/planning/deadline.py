"""A deadline: the fewest accelerators, whole or in whole nodes, that finish the work in time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.formula import Explanation
from core.limits import limit
from core.planning.budget import training_seconds
from core.planning.equations import accelerators_needed, productive_seconds, wall_seconds
from core.planning.solver import BudgetError, solve_budget
from core.units import format_quantity


@dataclass(frozen=True, slots=True)
class Fleet:
    """The smallest fleet that keeps a deadline.

    accelerators: a whole number; a multiple of ``per_node`` where nodes were asked for. exact: before rounding up.
    nodes: 0 where single accelerators were asked for. seconds: wall time this fleet takes, at most the deadline.
    """

    accelerators: int
    exact: float
    nodes: int
    per_node: int
    seconds: float
    explanations: tuple[Explanation, ...]


def fewest_accelerators(
    *, flop: float, peak: float, mfu: float, days: float, goodput: float = 1.0, per_node: int | None = None
) -> Fleet:
    """The fewest accelerators that do ``flop`` of training in ``days``; in whole nodes of ``per_node`` where given.

    The MFU is taken not to fall as the fleet grows, which published runs contradict beyond a few thousand.
    Raises `BudgetError` for impossible input, and for a deadline that no fleet within the cap can keep.
    """
    if per_node is not None and not 1 <= per_node <= limit("accelerators"):
        raise BudgetError("per_node", f"A node has at least 1 accelerator; this has {per_node:,}. For example: 8.")
    made = solve_budget(tokens=flop, flop_per_token=1.0, days=days, mfu=mfu, peak=peak, goodput=goodput)
    exact = float(made.accelerators)
    size = per_node or 1
    # A fleet that is enough but for rounding of the last digits is enough.
    nodes = max(1, math.ceil(exact / size * (1 - 1e-12))) if exact < limit("accelerators") else 0
    count = nodes * size
    if not 1 <= count <= limit("accelerators"):
        raise BudgetError(
            "days",
            f"Cannot be met: it would take {format_quantity(exact, 'count')} accelerators, more than the "
            f"{format_quantity(limit('accelerators'), 'count')} allowed for here. Allow more days.",
        )
    work = {"flop": flop, "peak": peak, "mfu": mfu}
    productive = productive_seconds(days, goodput)
    needed = training_seconds(accelerators=count, **work)
    return Fleet(
        accelerators=count,
        exact=exact,
        nodes=nodes if per_node else 0,
        per_node=size,
        seconds=wall_seconds(needed, goodput),
        explanations=(
            productive_seconds.explain(days=days, goodput=goodput),
            accelerators_needed.explain(seconds=productive, **work),
            training_seconds.explain(accelerators=count, **work),
            wall_seconds.explain(seconds=needed, goodput=goodput),
        ),
    )
