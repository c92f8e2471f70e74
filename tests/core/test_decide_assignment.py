"""The assignment of runs to offers is the best one by brute force, and keeps what an independent function checks."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.budget.equations import Interval
from core.planning.decide.assignment import GOALS, Assignment, AssignmentProgram, assign, broken_limits
from core.planning.decide.matrix import UNKNOWN, Cell, OfferMatrix
from core.planning.decide.offers import Offer
from core.planning.decide.runs import Run
from core.planning.decide.schedule import Placement, committed, times_at
from core.planning.plan import PlanLimits

START = date(2027, 1, 15)
LEVEL = PlanLimits().level


def cell(run: Run, offer: Offer, accelerators: int, days: Interval, cost: Interval, watts: float) -> Cell:
    """A cell with an answer of these days, and of this power."""
    ranges = {"days": days, "hours": days.through(lambda d: 24 * d * accelerators)}
    answer = SimpleNamespace(
        range_of=ranges.__getitem__, impossible=False, middle=SimpleNamespace(peak_watts=watts), energy=days
    )
    return Cell(run, offer, accelerators, {}, cast("Any", answer), cost=cost, energy=Interval.point(0.0))


def random_matrix(seed: int) -> OfferMatrix:
    """Two or three runs on two or three offers, whole and halved, under some limits."""
    rng = random.Random(seed)
    count = rng.choice((2, 2, 3))
    runs = [
        Run(
            row=i,
            name=f"run {i}",
            texts={},
            after=rng.choice([None, None, i - 1]) if i else None,
            first=rng.choice([0.0, 0.0, 9.0]),
            deadline=rng.choice([math.nan, rng.uniform(40, 160)]),
        )
        for i in range(count)
    ]
    offers = [
        Offer(
            row=j,
            name=f"offer {j}",
            accelerator="H100 SXM",
            count=64,
            unit=8,
            contract=rng.choice(("rented", "owned", "reserved")),
            prices=(2.0, 2.0 + rng.random()),
            first=START + timedelta(days=rng.choice((0, 0, 20))),
            last=rng.choice([None, START + timedelta(days=150)]),
            watts=rng.choice([math.nan, math.nan, 1.2e6]),
            maintenance=rng.choice((0.0, 24.0)),
        )
        for j in range(2 if count == 3 else rng.choice((2, 3)))
    ]
    cells: dict[tuple[int, int], Cell] = {}
    parts: list[Cell] = []
    for (i, run), (j, offer) in product(enumerate(runs), enumerate(offers)):
        days, dollars, watts = rng.uniform(15, 70), rng.uniform(1e5, 2e6), rng.uniform(4e5, 1.1e6)
        spread = rng.uniform(1.1, 1.6)

        def on(accelerators: int, longer: float, run: Run = run, offer: Offer = offer) -> Cell:
            d = days * longer  # noqa: B023
            span = Interval(d / spread, d, d * spread)  # noqa: B023
            cost = span.through(lambda at: dollars * at / days)  # noqa: B023
            return cell(run, offer, accelerators, span, cost, watts * accelerators / offer.count)  # noqa: B023

        cells[i, j] = on(64, 1.0)
        parts.append(on(32, rng.uniform(1.6, 2.0)))
    limits = PlanLimits(
        days=rng.choice([math.nan, rng.uniform(50, 200)]),
        dollars=rng.choice([math.nan, rng.uniform(1e6, 5e6)]),
        watts=rng.choice([math.nan, rng.uniform(6e5, 2.5e6)]),
    )
    return OfferMatrix(START, tuple(runs), tuple(offers), cells, tuple(parts), limits, 0.08)


def schedules(matrix: OfferMatrix, level: float) -> Iterator[tuple[tuple[Cell, ...], list[float], float]]:
    """Cells, ends, and dollars of every assignment that starts each run as soon as it can, in every order."""
    by_run = [[cell for cell in matrix.every if cell.run is run] for run in matrix.runs]
    for cells in product(*by_run):
        reserved = {cell.offer for cell in cells if cell.offer.contract == "reserved"}
        paid = sum(cell.cost.quantile(level) for cell in cells if cell.offer not in reserved)
        paid += sum(committed(offer, START).quantile(level) for offer in reserved)
        for order in permutations(range(len(cells))):
            if any(matrix.runs[i].after in order[at:] for at, i in enumerate(order)):
                continue
            times: dict[int, tuple[float, float]] = {}
            for i in order:
                after = matrix.runs[i].after
                least = max(
                    matrix.runs[i].first, cells[i].offer.opens(START), times[after][1] if after is not None else 0
                )
                lasts = cells[i].calendar_days.quantile(level)
                begins = [least, *(end for _, end in times.values() if end > least)]
                begin = next((at for at in sorted(begins) if fits(matrix, cells, times, i, at, at + lasts)), None)
                if begin is None:
                    break
                times[i] = begin, begin + lasts
            else:
                yield cells, [times[i][1] for i in range(len(cells))], paid


def fits(
    matrix: OfferMatrix,
    cells: tuple[Cell, ...],
    times: dict[int, tuple[float, float]],
    i: int,
    begin: float,
    end: float,
) -> bool:
    """Whether a run has room beside those that are placed."""
    for at in [begin, *(a for a, _ in times.values() if begin < a < end)]:
        now = [cells[i], *(cells[j] for j, (a, b) in times.items() if a <= at < b)]
        here = [other for other in now if other.offer is cells[i].offer]
        watts = sum(other.watts for other in here)
        if sum(other.accelerators for other in here) > cells[i].offer.count or watts > cells[i].offer.watts:
            return False
        if sum(other.watts for other in now) > matrix.limits.watts:
            return False
    return True


def best_of(matrix: OfferMatrix, level: float) -> tuple[float, float] | None:
    """Least cost, and earliest end, of all that meets every limit at a level; None where nothing does."""
    found: list[tuple[float, float]] = []
    for cells, ends, paid in schedules(matrix, level):
        dues = [min(matrix.due(cell.run), cell.offer.closes(START)) for cell in cells]
        if all(end <= due for end, due in zip(ends, dues, strict=True)) and not paid > matrix.limits.dollars:
            found.append((paid, max(ends)))
    return (min(paid for paid, _ in found), min(end for _, end in found)) if found else None


def end_at(a: Assignment, level: float) -> float:
    return max(end for _, end in times_at(a.matrix, a.placements, level))


def faults(seed: int) -> list[str]:
    """In what the assignments of a random matrix differ from brute force."""
    matrix, said = random_matrix(seed), list[str]()
    best, program = best_of(matrix, LEVEL), AssignmentProgram(matrix)
    cheapest = program.solve("cost", LEVEL)
    if best is None or cheapest is None:
        one = assign(matrix)
        said += ["found where nothing is, or nothing where one is"] if cheapest or best else []
        said += ["no reason"] if not one.reasons or (one.best and not broken_limits(one.best)) else []
        return said
    soonest, surest = (program.best(goal, LEVEL, cheapest) for goal in ("soonest", "probable"))
    said += [f"{one.key} breaks {broken_limits(one)}" for one in (cheapest, soonest, surest) if broken_limits(one)]
    said += ["not the cheapest"] if cheapest.cost_at(LEVEL) != pytest.approx(best[0], rel=1e-6) else []
    said += ["not the soonest"] if end_at(soonest, LEVEL) != pytest.approx(best[1], rel=1e-6) else []
    if not math.isnan(chance := surest.probability):
        grid = math.floor(chance * 100 + 1e-3)
        said += ["not so probable"] if best_of(matrix, min(grid, 99) / 100) is None else []
        said += [f"{chance} is not the most"] if grid < 99 and best_of(matrix, (grid + 1) / 100) else []
    return said


@pytest.mark.sweep(2)
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_assignment_equals_brute_force(first: int) -> None:
    assert {seed: said for seed in range(first, first + 20) if (said := faults(seed))} == {}


def one_run(**limits: Any) -> OfferMatrix:
    run, offer = Run(0, "a", {}), Offer(0, "o", "H100 SXM", 64, 8)
    only = cell(run, offer, 64, Interval(40, 50, 70), Interval(0.8e6, 1e6, 1.4e6), 1e6)
    return OfferMatrix(START, (run,), (offer,), {(0, 0): only}, (), PlanLimits(**limits), 0.08)


@pytest.mark.parametrize(
    ("limits", "broken", "needed"),
    [
        ({"days": 45.0}, "deadline", 50.0),
        ({"dollars": 0.5e6}, "money", 1e6),
        ({"watts": 0.9e6}, "power", 1e6),
    ],
)
def test_reason_names_limit_and_need(limits: dict[str, float], broken: str, needed: float) -> None:
    found = assign(one_run(**limits))
    assert [(reason.limit, reason.allowed) for reason in found.reasons] == [(broken, *limits.values())]
    assert found.reasons[0].needed == pytest.approx(needed)
    assert found.best
    assert found.best.met is False


def test_two_missed_limits_are_each_named_alone() -> None:
    found = assign(one_run(days=45.0, watts=0.9e6))
    assert {(r.limit, r.needed, r.alone) for r in found.reasons} == {("deadline", 50.0, True), ("power", 1e6, True)}


def test_run_without_an_answer_is_named() -> None:
    matrix = one_run()
    cells = {at: replace(one, answer=None, problem="too large") for at, one in matrix.cells.items()}
    found = assign(replace(matrix, cells=cells))
    assert found.best is None
    assert [(reason.limit, reason.run) for reason in found.reasons] == [("model", matrix.runs[0])]


def test_unknown_cost_meets_no_budget_and_yields_to_a_known_one() -> None:
    matrix = one_run(dollars=2e6)
    known = matrix.at(0, 0)
    other = replace(known.offer, row=1, name="unpriced")
    faster = replace(cell(known.run, other, 64, Interval(4, 5, 7), UNKNOWN, 1e6), cost=UNKNOWN)
    both = replace(matrix, offers=(known.offer, other), cells={(0, 0): known, (0, 1): faster})
    for goal in GOALS:
        found = assign(both, goal)
        assert found.best
        assert found.best.placements[0].cell is known
        assert [one.met for one in found.alternatives] == [None]
    alone = assign(replace(matrix, offers=(other,), cells={(0, 0): faster}))
    assert alone.best
    assert alone.best.met is None
    assert math.isnan(alone.best.probability)


def test_broken_limits_finds_each_fault() -> None:
    """Two runs at once on one offer, too early, too late, over money and power."""
    runs = (Run(0, "a", {}, first=3.0), Run(1, "b", {}, after=0, deadline=10.0))
    offer = Offer(0, "o", "H100 SXM", 64, 8, watts=1.5e6)
    cells = {
        (i, 0): cell(run, offer, 64, Interval(40, 50, 70), Interval(0.8e6, 1e6, 1.4e6), 1e6)
        for i, run in enumerate(runs)
    }
    matrix = OfferMatrix(START, runs, (offer,), cells, (), PlanLimits(dollars=1e6, watts=1.9e6), 0.08)
    wrong = Assignment(matrix, (Placement(cells[0, 0]), Placement(cells[1, 0])))
    assert {(one.limit, one.name) for one in broken_limits(wrong)} == {
        *(("after", "b"), ("deadline", "b"), ("money", ""), ("power", ""), ("power", "o"), ("count", "o"))
    }
    right = Assignment(replace(matrix, limits=PlanLimits()), (Placement(cells[0, 0]), Placement(cells[1, 0], (0,))))
    assert {one.limit for one in broken_limits(right)} == {"deadline"}
