"""Which cell of a sweep is the least that is enough: that fits, and keeps the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.planning.form.plan_form import COUNT
from core.planning.sweep.sweep import Sweep

By: TypeAlias = Literal["fewest", "soonest", "most", "least", "cheapest", "roomiest"]
"""What a cell has: the fewest accelerators or days, the most tokens, the lowest price, the most memory to spare."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A cell by row and column, and by what it was chosen."""

    cell: tuple[int, int]
    by: By


def recommend(sweep: Sweep) -> Recommendation | None:
    """The cell that is enough and asks for least; None where none is, or nothing says what is enough.

    Among kinds of things, the cheapest; where all cost the same, the one with most memory to spare. Of numbers, the
    fewest accelerators that do at least the plan's own work, or any where none do; then the lowest MFU to rest on and
    the most tokens, parameters or length that they can be had with; of equals the one nearest to the plan itself, then
    the cheapest. Where the limit is money, which any number of accelerators costs alike, the soonest instead of the
    fewest, with the lowest MFU before it.
    """
    if not sweep.limited or not sweep.satisfies.any():
        return None
    cells = [(int(i), int(j)) for i, j in np.argwhere(sweep.satisfies)]
    axes = (sweep.y.axis, sweep.x.axis)
    middle = sweep.plan_cell or (sweep.shape[0] // 2, sweep.shape[1] // 2)
    # Accelerators that are owned, without rent, are not the cheapest.
    cost = {cell: _rounded(float(sweep.dollars[cell]) or np.inf) for cell in cells}
    wanted = any(axis.want for axis in axes) and not any(axis.chosen for axis in axes)

    def asks(cell: tuple[int, int]) -> tuple[float, ...]:
        fewest, rest, away = 0, 0, 0
        for axis, at, own in zip(axes, cell, middle, strict=True):
            away += abs(at - own)
            if axis.id == COUNT.id:
                fewest = at
            elif axis.want:
                rest += at if axis.want == "less" else -at
        return fewest, rest, away

    if wanted:
        counts = any(axis.id == COUNT.id for axis in axes)
        if counts and sweep.plan_cell:
            work = [place for place, axis in enumerate(axes) if axis.want == "more"]
            cells = [cell for cell in cells if all(cell[place] >= middle[place] for place in work)] or cells
        if counts and sweep.within.in_money:
            return Recommendation(
                min(cells, key=lambda cell: (asks(cell)[1], _rounded(float(sweep.days[cell])))), "soonest"
            )
        by: By = "fewest" if counts else "most" if any(axis.want == "more" for axis in axes) else "least"
        return Recommendation(min(cells, key=lambda cell: (*asks(cell), cost[cell])), by)
    if len(set(cost.values())) > 1:
        return Recommendation(min(cells, key=lambda cell: (cost[cell], *asks(cell))), "cheapest")
    full = {cell: _rounded(float(sweep.memory[cell] / sweep.usable[cell])) for cell in cells}
    return Recommendation(min(cells, key=lambda cell: (full[cell], *asks(cell))), "roomiest")


def _rounded(value: float) -> float:
    """Without the last digits, in which equals differ; unknown ones last of all."""
    return float(f"{value:.9g}") if np.isfinite(value) else np.inf
