"""What moves the answer: days and dollars as each input runs over its range, and the curves of equal days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from core.planning.budget.solver import BudgetError, SolvedBudget, solve_budget

Input: TypeAlias = Literal[
    "tokens", "parameters", "accelerators", "mfu", "goodput", "price", "peak", "flop_per_parameter"
]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What days and dollars follow from. price: dollars per accelerator-hour, NaN when unknown."""

    tokens: float
    parameters: float
    accelerators: float
    peak: float
    mfu: float
    goodput: float = 1.0
    price: float = float("nan")
    flop_per_parameter: float = 6.0

    def solve(self) -> SolvedBudget:
        """Days and dollars. Raises `BudgetError` like `solve_budget`."""
        return solve_budget(
            tokens=self.tokens,
            parameters=self.parameters,
            accelerators=self.accelerators,
            mfu=self.mfu,
            peak=self.peak,
            goodput=self.goodput,
            price=None if self.price != self.price else self.price,
            flop_per_parameter=self.flop_per_parameter,
        )


@dataclass(frozen=True, slots=True)
class Swing:
    """One input at its two ends with everything else as assumed. days, dollars: at ``low`` and at ``high``."""

    input: Input
    low: float
    high: float
    days: tuple[float, float]
    dollars: tuple[float, float]

    @property
    def days_moved(self) -> float:
        """How far the days move, without sign."""
        return abs(self.days[1] - self.days[0])

    @property
    def dollars_moved(self) -> float:
        """How far the dollars move, without sign."""
        return abs(self.dollars[1] - self.dollars[0])


def sensitivity(plan: Assumptions, ranges: Mapping[Input, tuple[float, float]]) -> tuple[Swing, ...]:
    """Days and dollars at both ends of each range, one input at a time; what moves the days most comes first.

    Inputs that move no days (the price) follow, by dollars. Raises `BudgetError` for a range that runs backwards or
    holds values that cannot be, naming the input.
    """
    found: list[Swing] = []
    for name, (low, high) in ranges.items():
        if not low <= high:
            raise BudgetError(
                name, f"The range of {name} runs from {low:g} down to {high:g}: give the lower end first."
            )
        ends = [replace(plan, **cast("dict[str, Any]", {name: value})).solve() for value in (low, high)]
        days = (float(ends[0].days), float(ends[1].days))
        dollars = (float(ends[0].dollars), float(ends[1].dollars))
        found.append(Swing(name, low, high, days, dollars))
    return tuple(sorted(found, key=lambda swing: (-swing.days_moved, -np.nan_to_num(swing.dollars_moved))))


@dataclass(frozen=True, slots=True)
class IsoDays:
    """Curves of equal days. accelerators[i, j]: needed to train tokens[j] in days[i]."""

    days: tuple[float, ...]
    tokens: npt.NDArray[np.float64]
    accelerators: npt.NDArray[np.float64]


def iso_days(plan: Assumptions, days: Sequence[float], tokens: npt.NDArray[np.float64]) -> IsoDays:
    """For each number of days the accelerators that train each number of tokens, the rest as in ``plan``."""
    made = solve_budget(
        tokens=tokens[np.newaxis, :],
        days=np.array(days, dtype=np.float64)[:, np.newaxis],
        parameters=plan.parameters,
        mfu=plan.mfu,
        peak=plan.peak,
        goodput=plan.goodput,
        flop_per_parameter=plan.flop_per_parameter,
    )
    return IsoDays(tuple(days), tokens, np.asarray(made.accelerators))
