"""A sweep: every cell is the plan with two of its values replaced, answered as it would be alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.limits import cached, limit
from core.planning.estimate import PlanEstimate, estimates
from core.planning.form.plan_form import COUNT, FIND, PLAN_FORM, changes_on, plan_of
from core.planning.largest_model import DoesNotFitError
from core.planning.layout import tried_layouts
from core.planning.plan import Plan, PlanLimits, Within
from core.planning.solving import Array
from core.planning.sweep.axes import AXES, Axis
from core.search.fastest import turn
from core.training.layout import LayoutError
from core.units import SI_POWERS, format_count, significant
from core.wording import rent_or_none

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SweptAxis:
    """One side of a sweep: what is swept, and the texts that it takes."""

    axis: Axis
    texts: tuple[str, ...]

    @property
    def written(self) -> str:
        """The texts as a list that `core.planning.sweep.axes.typed` reads; one that is empty cannot be typed."""
        return ("; " if self.axis.chosen else ", ").join(text for text in self.texts if text)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A plan swept over two of its fields; arrays have a row for each value of ``y`` and a column for each of ``x``.

    base: the texts of the plan. within: the time, endless for none, or the money that the question allows. Of the
    middle of its range each: days on the wall; dollars; watt_hours; kg_co2; hours: accelerator-hours; mfu: over all
    hours; steps_mfu: of the steps alone; goodput; peak_watts; usable: bytes that an accelerator has.
    stored_parameters: every expert included. memory: bytes on the fullest accelerator.
    fits, leaves_free: whether an accelerator holds what it has to, and leaves as much free as the plan keeps; not
    where its memory is unknown, or no layout is. hosted: whether a node's host holds what is offloaded. impossible:
    whether the steps would have to be faster than the best matmul.
    reasons: why there is no answer, or no layout; else empty.
    limits: of the plan itself. at_certainty: days, dollars and peak_watts at the certainty that the limits ask for;
    NaN where unknown, as are dollars of accelerators that are owned.
    """

    base: Mapping[str, str]
    x: SweptAxis
    y: SweptAxis
    within: Within
    plans: tuple[tuple[Plan, ...], ...]
    days: Array
    dollars: Array
    watt_hours: Array
    kg_co2: Array
    hours: Array
    mfu: Array
    tokens_per_second: Array
    goodput: Array
    steps_mfu: Array
    peak_watts: Array
    usable: Array
    stored_parameters: Array
    memory: Array
    fits: Bools
    leaves_free: Bools
    hosted: Bools
    impossible: Bools
    reasons: tuple[tuple[str, ...], ...]
    limits: PlanLimits
    at_certainty: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y.texts), len(self.x.texts)

    @cached_property
    def meets_limits(self) -> Bools:
        """Whether the time, or the money, and the plan's own limits are kept by steps that can be."""
        return np.logical_and.reduce([~self.impossible, *self.limits_met.values()])

    @cached_property
    def limits_met(self) -> dict[str, Bools]:
        """Whether each thing that is limited is kept: days, dollars, peak_watts, host."""
        typed = {
            "days": (self.within.days, self.limits.days),
            "dollars": (self.within.dollars, self.limits.dollars),
            "peak_watts": (self.limits.watts,),
        }
        host = {} if np.isnan(self.limits.host) else {"host": self.hosted}
        kept = {
            name: self.at_certainty[name] <= np.nanmin(most) for name, most in typed.items() if not np.isnan(most).all()
        }
        return kept | host

    @cached_property
    def limits_unknown(self) -> dict[str, Bools]:
        """Of each thing that is limited, whether it is unknown of a plan that has an answer."""
        known = self.limits_met.keys() & self.at_certainty.keys()
        return {name: np.isnan(self.at_certainty[name]) & np.isfinite(self.days) for name in sorted(known)}

    @cached_property
    def may_meet_limits(self) -> Bools:
        """Whether no limit is missed that is known, and one is unknown."""
        unknown, never = self.limits_unknown, np.full(self.shape, False)
        kept = [met | unknown.get(name, never) for name, met in self.limits_met.items()]
        return np.logical_and.reduce([~self.impossible, *kept]) & np.logical_or.reduce([never, *unknown.values()])

    @property
    def answered(self) -> bool:
        """Whether any cell has an answer."""
        return not np.isnan(self.days).all()

    @property
    def limited(self) -> bool:
        """Whether anything but memory is limited."""
        return self.limits.has_limits or not np.isinf(self.within.days)

    @property
    def satisfies(self) -> Bools:
        """Whether it fits, leaves enough memory free, and keeps the limits."""
        return self.fits & self.leaves_free & self.meets_limits

    @cached_property
    def plan_cell(self) -> tuple[int, int] | None:
        """Row and column of the plan itself; None where it is no cell."""
        own = plan_of_texts(self.base)
        return next(((i, j) for i, row in enumerate(self.plans) for j, plan in enumerate(row) if plan == own), None)

    def cell_of(self, name: str) -> tuple[int, int] | None:
        """Row and column of a cell by its name, ``3,4``; None for what names none."""
        row, _, column = name[:8].partition(",")
        if not (name.isascii() and row.isdecimal() and column.isdecimal()):
            return None
        cell = (int(row), int(column))
        return cell if cell[0] < self.shape[0] and cell[1] < self.shape[1] else None

    def sets(self, row: int, column: int) -> dict[str, str]:
        """The texts that a cell puts into the plan."""
        plan = plan_of_texts(self.base)
        changes = self.x.axis.changes(self.x.texts[column], plan) | self.y.axis.changes(self.y.texts[row], plan)
        return changes_on(plan.accelerator, changes)


def plan_of_texts(texts: Mapping[str, str]) -> Plan:
    """The plan of these texts, whose time is asked for."""
    return plan_of(PLAN_FORM.parse({**texts, FIND.id: "time"}))


def sweep_within(within: Within | None, plan: Plan) -> Within:
    """What the cells have to keep to: what was asked for, else the plan's deadline; endless days where it has none."""
    return within or Within(np.inf if np.isnan(plan.limits.days) else plan.limits.days)


def sweep_plan(texts: Mapping[str, str], x: SweptAxis, y: SweptAxis, within: Within) -> Sweep:
    """The sweep of the plan of ``texts``; one that was asked for lately is remembered.

    Raises `BudgetError` for more layouts than are tried at once.
    """
    rows = tuple((field.id, texts.get(field.id, field.default)) for field in PLAN_FORM.fields)
    return _sweep(rows, (x.axis.name, x.texts), (y.axis.name, y.texts), within)


@cached("sweeps_kept")
def _sweep(
    texts: tuple[tuple[str, str], ...], x: tuple[str, tuple[str, ...]], y: tuple[str, tuple[str, ...]], within: Within
) -> Sweep:
    base = dict(texts)
    reading = PLAN_FORM.parse({**base, FIND.id: "time"})
    across, down = SweptAxis(AXES[x[0]], x[1]), SweptAxis(AXES[y[0]], y[1])
    own = plan_of(reading)
    sides = [[side.axis.changes(text, own) for text in side.texts] for side in (down, across)]
    changes = [[changes_on(own.accelerator, row | column) for column in sides[1]] for row in sides[0]]
    plans = [[plan_of(PLAN_FORM.change(reading, cell)) for cell in row] for row in changes]
    flat = [plan for row in plans for plan in row]
    shape = (len(down.texts), len(across.texts))
    count, most = tried_layouts(flat), limit("sweep_layouts")
    if count > most:
        raise BudgetError(
            "xs",
            f"These {len(flat):,} combinations would try {count:,} layouts. A sweep tries at most {most:,}. "
            "Enter fewer values on one side.",
        )
    with turn(count):
        results = estimates(flat)
        rooms = [_room(a) for a in results]
    found = [None if isinstance(a, BudgetError) else a for a in results]

    def column(value: Callable[[PlanEstimate], float]) -> Array:
        return np.array([np.nan if a is None else value(a) for a in found]).reshape(shape)

    level = own.limits.level
    return Sweep(
        base,
        across,
        down,
        within,
        tuple(map(tuple, plans)),
        **{name: column(value) for name, value in _QUANTITIES.items()},
        fits=np.array([room.fits for room in rooms]).reshape(shape),
        leaves_free=np.array([room.leaves_free for room in rooms]).reshape(shape),
        hosted=np.array([room.hosted for room in rooms]).reshape(shape),
        impossible=np.array([a is not None and a.impossible for a in found]).reshape(shape),
        memory=np.array([room.memory for room in rooms]).reshape(shape),
        reasons=tuple(tuple(room.reason for room in rooms[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])),
        limits=own.limits,
        at_certainty={
            "days": column(lambda a: a.range_of("days").quantile(level)),
            "dollars": column(lambda a: np.nan if a.plan.owned else a.range_of("dollars").quantile(level)),
            "peak_watts": column(lambda a: a.range_of("peak_watts").quantile(level)),
        },
    )


_QUANTITIES: Mapping[str, Callable[[PlanEstimate], float]] = {
    "days": lambda a: a.middle.days,
    "dollars": lambda a: a.middle.dollars,
    "watt_hours": lambda a: a.energy.mid,
    "kg_co2": lambda a: a.carbon.mid,
    "hours": lambda a: a.middle.hours,
    "mfu": lambda a: a.middle.mfu,
    "tokens_per_second": lambda a: a.middle.tokens_per_second,
    "goodput": lambda a: a.middle.goodput,
    "steps_mfu": lambda a: a.middle.steps_mfu,
    "peak_watts": lambda a: a.middle.peak_watts,
    "usable": lambda a: a.plan.usable_memory,
    "stored_parameters": lambda a: a.stored_parameters,
}


@dataclass(frozen=True, slots=True)
class _Room:
    """Whether a cell fits and leaves as much free as it keeps, on its accelerator and its host; bytes on the fullest
    accelerator, NaN where there are none; and why there is no answer or no layout, else empty."""

    fits: bool = False
    leaves_free: bool = False
    hosted: bool = True
    memory: float = np.nan
    reason: str = ""


def _room(a: PlanEstimate | BudgetError) -> _Room:
    if isinstance(a, BudgetError):
        return _Room(reason=str(a.args[0]) if isinstance(a, DoesNotFitError) else str(a))
    try:
        h = a.memory
    except LayoutError as problem:
        return _Room(reason=str(problem))
    return _Room(h.fits == "fits", h.fits == "fits" and not h.lacks, h.host_holds, h.total)


Unit: TypeAlias = Literal["time", "money", "count", "share", "Wh", "W", "g", "memory"]

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Result:
    """One quantity of every cell. quantity: the sweep's array. title: what it is; unit: how it is written."""

    name: str
    quantity: str
    title: str
    unit: Unit

    def of(self, sweep: Sweep) -> Array:
        """Its values, NaN where there are none."""
        return np.asarray(getattr(sweep, self.quantity))


RESULTS: Mapping[str, Result] = {
    result.name: result
    for result in (
        Result("days", "days", "time on the wall", "time"),
        Result("dollars", "dollars", "dollars for accelerators", "money"),
        Result("memory", "memory", "peak memory per accelerator", "memory"),
        Result("MFU", "mfu", "MFU over all hours", "share"),
        Result("tokens/s", "tokens_per_second", "tokens per second, whole cluster", "count"),
        Result("acc.-hours", "hours", "accelerator-hours", "count"),
        Result("goodput", "goodput", "goodput, the share of the time that trains", "share"),
        Result("energy", "watt_hours", "energy", "Wh"),
        Result("power", "peak_watts", "peak power", "W"),
        Result("CO₂", "kg_co2", "carbon, CO₂ equivalent", "g"),
    )
}
"""Everything that a sweep can show, by name."""

_DAYS = (("years", 365.25, 2000.0), ("days", 1.0, 2.0), ("hours", 1 / 24, 1 / 12), ("minutes", 1 / 1440, 0.0))
_COUNTS = (("billions", 1e9), ("millions", 1e6), ("thousands", 1e3))


@dataclass(frozen=True, slots=True)
class Scale:
    """How the values of one sweep are written: in one unit for all cells, so that they can be compared by eye."""

    result: Result
    unit: str
    size: float

    def cell(self, value: float) -> str:
        """A value without its unit, which stands once beside all of them; short enough for a cell."""
        if not math.isfinite(value):
            return "—"
        display = value / self.size
        if abs(display) >= 1e6:
            return format_count(display, 3)
        return f"{significant(display / 1e3, 3)}k" if abs(display) >= 1e4 else significant(display, 3)

    def full(self, value: float) -> str:
        """A value with its unit."""
        if not math.isfinite(value):
            return "unknown"
        if self.result.unit == "money":
            return rent_or_none(value)
        return format_count(value, 3) if self.result.unit == "count" else f"{self.cell(value)} {self.unit}"

    @property
    def title(self) -> str:
        """What the cells say, with the unit."""
        return f"{self.result.title}, {self.unit}" if self.unit else self.result.title


def scale_of(sweep: Sweep, result: Result) -> Scale:
    """The unit in which the middle one of a sweep's values reads well."""
    values = result.of(sweep)
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if finite.size else 1.0
    match result.unit:
        case "time":
            unit, size, _ = next(row for row in _DAYS if middle >= row[2])
            return Scale(result, unit, size)
        case "share":
            return Scale(result, "%", 0.01)
        case "memory":
            return Scale(result, "GiB", GIB)
        case "money" | "count":
            unit, size = next((row for row in _COUNTS if middle >= row[1]), ("", 1.0))
            return Scale(result, unit, size)
        case "g":
            return Scale(result, "t", 1e3) if middle >= 1e3 else Scale(result, "kg", 1.0)
        case "Wh" | "W":
            prefix = max((p for p, power in SI_POWERS.items() if middle >= 10.0**power), key=SI_POWERS.__getitem__)
            return Scale(result, f"{prefix}{result.unit}", 10.0 ** SI_POWERS[prefix])


Edge: TypeAlias = "tuple[int, int, int, int]"
"""x and y of its two ends, in cells from the top left."""


@dataclass(frozen=True, slots=True)
class FrontierEnd:
    """Where a frontier leaves the sweep. side: of the sweep. at: cells along that side. before: whether what holds does
    so before that place (to the left of it, or over it)."""

    side: Literal["top", "right", "bottom", "left"]
    at: int
    before: bool


def edges(inside: Bools) -> list[Edge]:
    """Every edge between a cell where it holds and one where it does not; rows run from the top."""
    upright = np.argwhere(inside[:, 1:] != inside[:, :-1])
    level = np.argwhere(inside[1:, :] != inside[:-1, :])
    rows = [(int(j) + 1, int(i), int(j) + 1, int(i) + 1) for i, j in upright]
    return rows + [(int(j), int(i) + 1, int(j) + 1, int(i) + 1) for i, j in level]


def frontier_end(inside: Bools) -> FrontierEnd | None:
    """Where the frontier meets the sweep's rim, to be named there: on top if it does, else right, below, left."""
    rims = (("top", inside[0, :]), ("right", inside[:, -1]), ("bottom", inside[-1, :]), ("left", inside[:, 0]))
    for side, rim in rims:
        turns = np.flatnonzero(rim[1:] != rim[:-1])
        if turns.size:
            at = int(turns[-1] if side in ("top", "bottom") else turns[0])
            return FrontierEnd(side, at + 1, bool(rim[at]))  # type: ignore[arg-type]
    return None


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
