"""The mixed-integer program that puts runs on offers, at one level of all ranges.

Binary variables: which cell a run takes; whether one run ends before another starts, and whether it starts no later.
What a run takes of an offer's accelerators, or of a power limit, counts at the start of every run beside it, where the
most is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import permutations
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from core.budget.equations import Interval
from core.planning.decide.matrix import Cell, OfferMatrix
from core.planning.decide.schedule import Placement, committed, times_at

Limited: TypeAlias = Literal["deadline", "money", "power"]
LIMITED: tuple[Limited, ...] = get_args(Limited)
"""Limits that an assignment may miss."""

_NODES = 1_000
"""Nodes of the longest search for one assignment, of which ten are usual."""

_LESS = 1e-4
"""Weight of what decides between equal assignments."""

MOMENT = 1e-6
"""Days that are none."""


def end_by(matrix: OfferMatrix, cell: Cell) -> float:
    """Return days from the start by which a run has to end on an offer: its deadline, or the offer's last day."""
    return min(matrix.due(cell.run), cell.offer.closes(matrix.start))


def best_placements(
    matrix: OfferMatrix,
    cells: Sequence[Cell],
    goal: Literal["cost", "soonest", "power"],
    level: float,
    kept: Sequence[Limited] = LIMITED,
    without: Sequence[Sequence[Cell]] = (),
) -> tuple[Placement, ...] | None:
    """Return the placements with the least cost, the earliest end, or the least power over its limits; None for none.

    Args:
        cells: Those that runs may take.
        level: Of the ranges of days and dollars.
        kept: Limits that count, beside the number of accelerators.
        without: Cells that are not to be taken together.
    """
    runs, count, with_power = len(matrix.runs), len(cells), "power" in kept or goal == "power"
    own = [[k for k, cell in enumerate(cells) if cell.run is run] for run in matrix.runs]
    if not all(own):
        return None
    days = [cell.calendar_days.quantile(level) for cell in cells]
    opens = [max(cell.run.first, cell.offer.opens(matrix.start)) for cell in cells]
    horizon = max(opens) + sum(max(days[k] for k in some) for some in own)
    upper, whole = [1.0] * count, [1] * count
    rows: list[tuple[Mapping[int, float], float]] = []  # coefficients, and the most that their sum may be

    def variables(number: int, most: float, integral: int) -> list[int]:
        upper.extend([most] * number)
        whole.extend([integral] * number)
        return list(range(len(upper) - number, len(upper)))

    pairs = list(permutations(range(runs), 2))
    before, sooner = (dict(zip(pairs, variables(len(pairs), 1.0, 1), strict=True)) for _ in range(2))
    starts, (end,), (power,) = variables(runs, horizon, 0), variables(1, horizon, 0), variables(1, math.inf, 0)
    reserved = list(dict.fromkeys(cell.offer for cell in cells if cell.is_reserved))
    taken = variables(len(reserved), 1.0, 1)
    for i, some in enumerate(own):
        lasts = {k: days[k] for k in some}
        rows += [(dict.fromkeys(some, sign), sign) for sign in (1.0, -1.0)]
        rows.append(({**{k: opens[k] for k in some}, starts[i]: -1.0}, 0.0))
        rows.append(({**lasts, starts[i]: 1.0, end: -1.0}, 0.0))
        if "deadline" in kept:
            late = {k: days[k] + horizon - min(end_by(matrix, cells[k]), horizon) for k in some}
            rows.append(({**late, starts[i]: 1.0}, horizon))
        for j in range(runs):
            if matrix.runs[j].after == i:
                rows.append(({**lasts, starts[i]: 1.0, starts[j]: -1.0}, 0.0))
            elif i != j:
                rows.append(({**lasts, starts[i]: 1.0, starts[j]: -1.0, before[i, j]: horizon}, horizon))
    for i, j in pairs:
        rows.append(({before[i, j]: 1.0, before[j, i]: 1.0}, 1.0))
        rows.append(({starts[j]: 1.0, starts[i]: -1.0, sooner[i, j]: -horizon}, 0.0))
        rows.append(({sooner[i, j]: -1.0, sooner[j, i]: -1.0}, -1.0))
    rows += [
        ({sooner[i, j]: 1.0, sooner[j, k]: 1.0, sooner[i, k]: -1.0}, 1.0) for i, j, k in permutations(range(runs), 3)
    ]
    for amounts, room, of_power in _resources(matrix, cells, with_power=with_power):
        most = [max((amounts.get(k, 0.0) for k in some), default=0.0) for some in own]
        if sum(most) <= room:
            continue
        beside = dict(zip(pairs, variables(len(pairs), math.inf, 0), strict=True))
        for i, j in pairs:
            here = {k: amounts[k] for k in own[i] if k in amounts}
            rows.append(({**here, before[i, j]: -most[i], sooner[i, j]: most[i], beside[i, j]: -1.0}, most[i]))
        for j in range(runs):
            here = {k: amounts[k] for k in own[j] if k in amounts} | {beside[i, j]: 1.0 for i in range(runs) if i != j}
            rows.append((here | ({power: -room} if of_power else {}), 0.0 if of_power else room))
    rows.append(({power: -1.0}, -1.0))
    if goal != "power":
        upper[power] = 1.0
    for k, cell in enumerate(cells):
        if cell.is_reserved:
            rows.append(({k: 1.0, taken[reserved.index(cell.offer)]: -1.0}, 0.0))
    fixed = [_amount(committed(offer, matrix.start), level) for offer in reserved]
    dollars = {k: 0.0 if cell.is_reserved else _amount(cell.cost, level, cell.energy) for k, cell in enumerate(cells)}
    dollars |= dict(zip(taken, fixed, strict=True))
    if "money" in kept and not math.isnan(matrix.limits.dollars):
        rows.append((dollars, matrix.limits.dollars * (1 + 1e-9)))
    for other in without:
        rows.append(({k: 1.0 for k, cell in enumerate(cells) if any(cell is one for one in other)}, runs - 1.0))
    weights = np.zeros(len(upper))
    scale = max(1.0, sum(max(dollars[k] for k in some) for some in own) + sum(fixed))
    weights[list(dollars)] = np.array(list(dollars.values())) / scale * (1.0 if goal == "cost" else _LESS)
    weights[end] = (1.0 if goal == "soonest" else _LESS) / max(1.0, horizon)
    weights[power] = float(goal == "power")
    chosen = _solved(weights, np.array(upper), np.array(whole), rows)
    if chosen is None:
        return None
    picked = [next(k for k in some if chosen[k] > 0.5) for some in own]
    spans = [(chosen[at], chosen[at] + days[k]) for at, k in zip(starts, picked, strict=True)]
    resources = _resources(matrix, [cells[k] for k in picked], with_power=with_power)
    rooms = [(amounts, room * chosen[power] if of_power else room) for amounts, room, of_power in resources]
    return _ordered(matrix, [cells[k] for k in picked], spans, rooms, level)


def _resources(
    matrix: OfferMatrix, cells: Sequence[Cell], *, with_power: bool
) -> list[tuple[dict[int, float], float, bool]]:
    """What cells take of the accelerators of an offer, or of a power limit; how much there is; whether of power."""
    found: list[tuple[dict[int, float], float, bool]] = []
    for offer in (None, *matrix.offers):
        here = {k: cell for k, cell in enumerate(cells) if offer is None or cell.offer is offer}
        if offer and not offer.or_more:
            found.append(({k: float(cell.accelerators) for k, cell in here.items()}, float(offer.count), False))
        watts = offer.watts if offer else matrix.limits.watts
        if with_power and not math.isnan(watts):
            found.append(({k: cell.watts for k, cell in here.items() if not math.isnan(cell.watts)}, watts, True))
    return found


def _solved(weights: Any, upper: Any, whole: Any, rows: Sequence[tuple[Mapping[int, float], float]]) -> Any:
    """The values of all variables; None where nothing keeps to the rows."""
    optimize: Any = import_module("scipy.optimize")
    table = np.zeros((len(rows), len(weights)))
    for at, (row, _) in enumerate(rows):
        table[at, list(row)] = list(row.values())
    limits = optimize.LinearConstraint(table, -np.inf, np.array([most for _, most in rows]))
    bounds = optimize.Bounds(np.zeros(len(weights)), upper)
    options = {"node_limit": _NODES}
    return optimize.milp(weights, integrality=whole, bounds=bounds, constraints=limits, options=options).x


def _ordered(
    matrix: OfferMatrix,
    cells: Sequence[Cell],
    spans: Sequence[tuple[float, float]],
    rooms: Sequence[tuple[Mapping[int, float], float]],
    level: float,
) -> tuple[Placement, ...]:
    """Cells, each after the runs that it cannot go with, in the order of the solution."""
    after = [{cell.run.after} if cell.run.after is not None else set[int]() for cell in cells]
    while True:
        placements = tuple(Placement(cell, tuple(sorted(some))) for cell, some in zip(cells, after, strict=True))
        times = times_at(matrix, placements, level)
        for begin, _ in times:
            now = [i for i, (a, b) in enumerate(times) if a <= begin + MOMENT < b]
            over = (
                [i for i in now if i in amounts]
                for amounts, room in rooms
                if sum(amounts.get(i, 0.0) for i in now) > room * (1 + MOMENT)
            )
            if crowd := next(over, None):
                apart = [(spans[j][0] - spans[i][1], i, j) for i, j in permutations(crowd, 2)]
                if apart:
                    _, i, j = max(apart)
                    after[j].add(i)
                    break
        else:
            return placements


def _amount(cost: Interval, level: float, least: Interval | None = None) -> float:
    """Dollars at a level; of an unknown cost the part that is known."""
    known = [amount for amount in (cost, least) if amount and amount.known]
    return known[0].quantile(level) if known else 0.0
