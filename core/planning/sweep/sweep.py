"""Sweeps: each cell is the plan with two of its values replaced, evaluated like any other plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.limits import cached, limit
from core.messages import message
from core.planning.estimate import PlanEstimate, estimates
from core.planning.form.plan_form import COUNT, FIND, PLAN_FORM, changes_on, plan_of
from core.planning.largest_model import DoesNotFitError
from core.planning.layout import tried_layouts
from core.planning.memory_estimate import MemoryEstimate
from core.planning.plan import Plan, PlanLimits, Within
from core.planning.solving import Array
from core.planning.sweep.axes import AXES, Axis
from core.search.fastest import turn
from core.training.layout import LayoutError

Bools = npt.NDArray[np.bool_]


class Result(NamedTuple):
    """A quantity that cells can show: its column in a `Sweep`, and its format in `core.wording.FORMATS`."""

    quantity: str
    kind: str


RESULTS: Mapping[str, Result] = {
    "days": Result("days", "days"),
    "dollars": Result("dollars", "dollars"),
    "memory": Result("memory", "GiB"),
    "MFU": Result("mfu", "percent"),
    "tokens/s": Result("tokens_per_second", "rate"),
    "acc.-hours": Result("hours", "count"),
    "goodput": Result("goodput", "percent"),
    "energy": Result("watt_hours", "Wh"),
    "power": Result("peak_watts", "W"),
    "CO₂": Result("kg_co2", "CO2"),
}
"""Quantities by their option in the menu, which links store."""

_QUANTITIES: Mapping[str, Callable[[PlanEstimate], float]] = {
    "days": lambda a: a.middle.days,
    "dollars": lambda a: a.middle.dollars,
    "watt_hours": lambda a: a.energy.mid,
    "kg_co2": lambda a: a.carbon.mid,
    "hours": lambda a: a.middle.hours,
    "mfu": lambda a: a.middle.mfu,
    "tokens_per_second": lambda a: a.middle.tokens_per_second,
    "goodput": lambda a: a.middle.goodput,
    "peak_watts": lambda a: a.middle.peak_watts,
    "usable": lambda a: a.plan.usable_memory,
}


@dataclass(frozen=True, slots=True)
class SweptAxis:
    """One side of a sweep: an axis and the texts that it takes."""

    axis: Axis
    texts: tuple[str, ...]

    @property
    def written(self) -> str:
        """The texts as a list that `core.planning.sweep.axes.parse_values` reads, without empty ones."""
        return ("; " if self.axis.is_choice else ", ").join(text for text in self.texts if text)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A plan swept over two of its fields. Arrays have a row for each value of ``y`` and a column for each of ``x``.

    base: texts of the plan. within: time that cells may take, endless for no limit, or their budget. values: medians by
    quantity, in base units, times in days; NaN if unknown; ``memory`` is the peak per accelerator in bytes. fits,
    leaves_free: whether memory suffices, and the headroom is met; False if either is unknown. hosted: whether host
    memory suffices. impossible: whether steps would exceed the best matmul rate. reasons: why a cell has no result or
    no layout, else empty. limits: of the plan. at_certainty: days, dollars, and peak_watts at the confidence of the
    limits; NaN if unknown, and dollars of owned accelerators.
    """

    base: Mapping[str, str]
    x: SweptAxis
    y: SweptAxis
    within: Within
    plans: tuple[tuple[Plan, ...], ...]
    values: Mapping[str, Array]
    fits: Bools
    leaves_free: Bools
    hosted: Bools
    impossible: Bools
    reasons: tuple[tuple[str, ...], ...]
    limits: PlanLimits
    at_certainty: Mapping[str, Array]

    def __getitem__(self, quantity: str) -> Array:
        """Return the values of a quantity."""
        return self.values[quantity]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y.texts), len(self.x.texts)

    @cached_property
    def limits_met(self) -> dict[str, Bools]:
        """Whether each cell meets each limit: days, dollars, peak_watts, host. Unknown counts as missed."""
        entered = {
            "days": (self.within.days, self.limits.days),
            "dollars": (self.within.dollars, self.limits.dollars),
            "peak_watts": (self.limits.watts,),
        }
        met = {
            name: self.at_certainty[name] <= np.nanmin(most)
            for name, most in entered.items()
            if not np.isnan(most).all()
        }
        return met if np.isnan(self.limits.host) else met | {"host": self.hosted}

    @cached_property
    def meets_limits(self) -> Bools:
        """Whether a cell is possible and meets every limit except memory."""
        return np.logical_and.reduce([~self.impossible, *self.limits_met.values()])

    @cached_property
    def limits_unknown(self) -> dict[str, Bools]:
        """Where the value of each limited quantity is unknown although the cell has a result."""
        limited = self.limits_met.keys() & self.at_certainty.keys()
        return {name: np.isnan(self.at_certainty[name]) & np.isfinite(self["days"]) for name in sorted(limited)}

    @cached_property
    def may_meet_limits(self) -> Bools:
        """Cells in which no known limit is missed, and one limit is unknown."""
        never = np.full(self.shape, False)
        met = [is_met | self.limits_unknown.get(name, never) for name, is_met in self.limits_met.items()]
        unknown = np.logical_or.reduce([never, *self.limits_unknown.values()])
        return np.logical_and.reduce([~self.impossible, *met]) & unknown

    @property
    def answered(self) -> bool:
        """Whether any cell has a result."""
        return not np.isnan(self["days"]).all()

    @property
    def limited(self) -> bool:
        """Whether anything but memory is limited."""
        return self.limits.has_limits or not np.isinf(self.within.days)

    @property
    def satisfies(self) -> Bools:
        """Whether a cell fits with its headroom and meets every limit."""
        return self.fits & self.leaves_free & self.meets_limits

    @cached_property
    def plan_cell(self) -> tuple[int, int] | None:
        """Row and column of the plan; None if no cell is the plan."""
        own = plan_of_texts(self.base)
        return next(((i, j) for i, row in enumerate(self.plans) for j, plan in enumerate(row) if plan == own), None)

    def cell_of(self, name: str) -> tuple[int, int] | None:
        """Return the row and column of a cell by its name, such as ``3,4``; None for any other text."""
        row, _, column = name[:8].partition(",")
        if not (name.isascii() and row.isdecimal() and column.isdecimal()):
            return None
        cell = (int(row), int(column))
        return cell if cell[0] < self.shape[0] and cell[1] < self.shape[1] else None

    def cell_overrides(self, row: int, column: int) -> dict[str, str]:
        """Return the texts that a cell changes in the plan."""
        plan = plan_of_texts(self.base)
        changes = self.x.axis.changes(self.x.texts[column], plan) | self.y.axis.changes(self.y.texts[row], plan)
        return changes_on(plan.accelerator, changes)


def plan_of_texts(texts: Mapping[str, str]) -> Plan:
    """Return the plan of these texts, solved for time."""
    return plan_of(PLAN_FORM.parse({**texts, FIND.id: "time"}))


def sweep_within(within: Within | None, plan: Plan) -> Within:
    """Return the limit of the cells: what was entered, else the plan’s deadline, else endless days."""
    return within or Within(np.inf if np.isnan(plan.limits.days) else plan.limits.days)


def sweep_plan(texts: Mapping[str, str], x: SweptAxis, y: SweptAxis, within: Within) -> Sweep:
    """Return the sweep of the plan of ``texts``. Raises `BudgetError` for too many layouts at once."""
    rows = tuple((field.id, texts.get(field.id, field.default)) for field in PLAN_FORM.fields)
    return _sweep(rows, (x.axis.name, x.texts), (y.axis.name, y.texts), within)


@cached("sweeps_kept")
def _sweep(
    texts: tuple[tuple[str, str], ...], x: tuple[str, tuple[str, ...]], y: tuple[str, tuple[str, ...]], within: Within
) -> Sweep:
    base = dict(texts)
    reading = PLAN_FORM.parse({**base, FIND.id: "time"})
    across, up = SweptAxis(AXES[x[0]], x[1]), SweptAxis(AXES[y[0]], y[1])
    own = plan_of(reading)
    rows, columns = ([side.axis.changes(text, own) for text in side.texts] for side in (up, across))
    plans = tuple(
        tuple(plan_of(PLAN_FORM.change(reading, changes_on(own.accelerator, row | column))) for column in columns)
        for row in rows
    )
    flat, shape = [plan for row in plans for plan in row], (len(rows), len(columns))
    count, most = tried_layouts(flat), limit("sweep_layouts")
    if count > most:
        number, layouts = float(len(flat)), float(count)
        raise BudgetError("xs", message("sweep.error.layouts", cells=number, layouts=layouts, most=float(most)))
    with turn(count):
        found = estimates(flat)
        memory, reasons = zip(*map(_memory, found), strict=True)

    def flags(test: Callable[[MemoryEstimate], bool], otherwise: bool = False) -> Bools:
        return np.array([test(h) if h else otherwise for h in memory]).reshape(shape)

    def column(value: Callable[[PlanEstimate], float]) -> Array:
        return np.array([math.nan if isinstance(a, BudgetError) else value(a) for a in found]).reshape(shape)

    level = own.limits.level
    values = {name: column(value) for name, value in _QUANTITIES.items()}
    return Sweep(
        base,
        across,
        up,
        within,
        plans,
        values | {"memory": np.array([h.total if h else math.nan for h in memory]).reshape(shape)},
        fits=flags(lambda h: h.fits == "fits"),
        leaves_free=flags(lambda h: h.fits == "fits" and not h.lacks),
        hosted=flags(lambda h: h.host_holds, otherwise=True),
        impossible=column(lambda a: float(a.impossible)) == 1,
        reasons=tuple(reasons[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])),
        limits=own.limits,
        at_certainty={
            "days": column(lambda a: a.range_of("days").quantile(level)),
            "dollars": column(lambda a: math.nan if a.plan.owned else a.range_of("dollars").quantile(level)),
            "peak_watts": column(lambda a: a.range_of("peak_watts").quantile(level)),
        },
    )


def _memory(a: PlanEstimate | BudgetError) -> tuple[MemoryEstimate | None, str]:
    """Return the memory of a cell, None without a result or a layout, and the reason for that."""
    if isinstance(a, BudgetError):
        return None, str(a.args[0]) if isinstance(a, DoesNotFitError) else str(a)
    try:
        return a.memory, ""
    except LayoutError as problem:
        return None, str(problem)


By: TypeAlias = Literal["fewest", "soonest", "most", "least", "cheapest", "roomiest"]
"""Why: fewest accelerators, shortest time, most tokens, lowest value, lowest cost, or most free memory."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A cell by row and column, and why it is recommended."""

    cell: tuple[int, int]
    by: By


def recommend(sweep: Sweep) -> Recommendation | None:
    """Return the cell that meets the limits with the least; None if no cell does, or there is no limit.

    Among options, it is the cheapest; if all cost the same, the one with the most free memory. Among numbers, it is the
    fewest accelerators that do at least the plan’s work, or any if none do; then the lowest MFU and the most tokens,
    parameters, or length; then the nearest to the plan, then the cheapest. Under a budget, the number of accelerators
    does not change the cost, so it is the lowest MFU, then the shortest time.
    """
    if not sweep.limited or not sweep.satisfies.any():
        return None
    cells = [(int(i), int(j)) for i, j in np.argwhere(sweep.satisfies)]
    axes = (sweep.y.axis, sweep.x.axis)
    middle = sweep.plan_cell or (sweep.shape[0] // 2, sweep.shape[1] // 2)
    # Owned accelerators, without rent, are not the cheapest.
    cost = {cell: _rounded(float(sweep["dollars"][cell]) or np.inf) for cell in cells}

    def demands(cell: tuple[int, int]) -> tuple[float, ...]:
        fewest, rest, away = 0, 0, 0
        for axis, at, own in zip(axes, cell, middle, strict=True):
            away += abs(at - own)
            if axis.id == COUNT.id:
                fewest = at
            elif axis.want:
                rest += at if axis.want == "less" else -at
        return fewest, rest, away

    if any(axis.want for axis in axes) and not any(axis.is_choice for axis in axes):
        counts = any(axis.id == COUNT.id for axis in axes)
        if counts and sweep.plan_cell:
            work = [place for place, axis in enumerate(axes) if axis.want == "more"]
            cells = [cell for cell in cells if all(cell[place] >= middle[place] for place in work)] or cells
        if counts and sweep.within.in_money:
            days = sweep["days"]
            return Recommendation(min(cells, key=lambda cell: (demands(cell)[1], _rounded(days[cell]))), "soonest")
        by: By = "fewest" if counts else "most" if any(axis.want == "more" for axis in axes) else "least"
        return Recommendation(min(cells, key=lambda cell: (*demands(cell), cost[cell])), by)
    if len(set(cost.values())) > 1:
        return Recommendation(min(cells, key=lambda cell: (cost[cell], *demands(cell))), "cheapest")
    used = sweep["memory"] / sweep["usable"]
    return Recommendation(min(cells, key=lambda cell: (_rounded(used[cell]), *demands(cell))), "roomiest")


def _rounded(value: float) -> float:
    """Drop the last digits, in which equals differ; unknown values come last."""
    return float(f"{value:.9g}") if np.isfinite(value) else np.inf
