"""A sweep: every cell is the plan with two of its values replaced, answered as it would be alone.

Cells that share all but parameters, tokens and accelerators are answered at once as arrays, by the same equations that
answer one plan; memory likewise, where the shape and the types are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from core.budget.errors import BudgetError
from core.budget.interval import quantile
from core.limits import limit
from core.planning.evaluation import evaluate
from core.planning.form.plan_form import FIND, PLAN_FORM, changes_on, plan_of
from core.planning.memory_estimate import resolved_plan, setup_of
from core.planning.plan import Plan, PlanLimits, Within
from core.planning.resolved_layout import plan_layouts, spec_of, surely_fit, tried_layouts
from core.planning.solving import Array
from core.planning.sweep.axes import AXES, Axis
from core.search.gate import turn
from core.training.device.host import host_lacks
from core.training.layout import Layout, LayoutError, allowed, check

Bools = npt.NDArray[np.bool_]

QUANTITIES = (
    "days",
    "dollars",
    "watt_hours",
    "kg_co2",
    "hours",
    "mfu",
    "tokens_per_second",
    "goodput",
    "steps_mfu",
    "peak_watts",
    "usable",
)
"""What is worked out of every cell at once; NaN where there is none."""


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
    stored_parameters: every expert included.
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
    def memory(self) -> Array:
        """Bytes on the fullest accelerator of every cell, NaN where there are none; every layout is searched for it."""
        totals, *_ = _memory([plan for row in self.plans for plan in row], self.stored_parameters.ravel())
        return totals.reshape(self.shape)

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


@lru_cache(maxsize=limit("sweeps_kept"))
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
        evaluation = evaluate(flat)
        fits, leaves_free, hosted, unlaid = _room(flat, evaluation.stored_parameters)
    by_name = {name: evaluation.middle(name) for name in QUANTITIES if name in evaluation.quantities} | {
        "watt_hours": np.sort(evaluation.energy, axis=1)[:, 1],
        "kg_co2": np.sort(evaluation.carbon, axis=1)[:, 1],
        "usable": np.array([plan.usable_memory for plan in flat]),
    }
    impossible, limits = evaluation.impossible, own.limits
    ranges = {name: np.sort(evaluation.quantities[name], axis=1) for name in ("days", "dollars", "peak_watts")}
    ranges["dollars"][[plan.owned for plan in flat]] = np.nan
    why = [str(problem or "") or other for problem, other in zip(evaluation.problems, unlaid, strict=True)]
    return Sweep(
        base,
        across,
        down,
        within,
        tuple(map(tuple, plans)),
        **{name: by_name[name].reshape(shape) for name in QUANTITIES},
        stored_parameters=evaluation.stored_parameters.reshape(shape),
        fits=fits.reshape(shape),
        leaves_free=leaves_free.reshape(shape),
        hosted=hosted.reshape(shape),
        impossible=impossible.reshape(shape),
        reasons=tuple(tuple(why[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])),
        limits=limits,
        at_certainty={
            name: np.asarray(quantile(ends[:, 0], ends[:, 1], ends[:, 2], limits.level)).reshape(shape)
            for name, ends in ranges.items()
        },
    )


def _room(plans: Sequence[Plan], stored: Array) -> tuple[Bools, Bools, Bools, list[str]]:
    """Whether each plan fits and leaves as much free as it keeps, on its accelerator and its host, and why one cannot
    be laid out. Of most it is known before their layouts are."""
    usable = np.array([plan.usable_memory for plan in plans])
    known: list[int] = np.flatnonzero(~np.isnan(stored + usable)).tolist()
    sure = np.full(len(plans), False)
    sure[known] = surely_fit([_resolved(plans[i], stored[i]) for i in known])
    left: list[int] = np.flatnonzero(~sure).tolist()
    totals, hosted, reasons = np.zeros(len(plans)), np.full(len(plans), True), [""] * len(plans)
    totals[left], hosted[left], why = _memory([plans[i] for i in left], stored[left])
    for i, reason in zip(left, why, strict=True):
        reasons[i] = reason
    free = np.array([plan.limits.free for plan in plans])
    with np.errstate(invalid="ignore"):
        return totals <= usable, totals <= usable * (1 - free), hosted, reasons


def _resolved(plan: Plan, stored: float) -> Plan:
    return resolved_plan(plan, float(stored), plan.accelerators)


def _memory(plans: Sequence[Plan], stored: Array) -> tuple[Array, Bools, list[str]]:
    """Bytes on the fullest accelerator under every plan, whether its host holds the rest, and why one cannot be laid
    out."""
    totals, hosted, reasons = np.full(len(plans), np.nan), np.full(len(plans), True), [""] * len(plans)
    groups: dict[object, list[tuple[int, Plan, Layout]]] = {}
    resolved = {i: _resolved(plan, stored[i]) for i, plan in enumerate(plans) if not np.isnan(stored[i])}
    for (i, plan), layout in zip(resolved.items(), plan_layouts([*resolved.values()]), strict=True):
        if isinstance(layout, LayoutError):
            reasons[i] = str(layout)
            continue
        spec, _ = spec_of(plan, float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters)
        how = replace(plan.runtime_options, chunks=1)
        groups.setdefault((spec, plan.optimizer, plan.policy, plan.own_policy, how, plan.trained), []).append(
            (i, plan, layout)
        )
    for some in groups.values():
        first = some[0][1]
        spec, _ = spec_of(first, float(first.catalog_model.parameters) if first.catalog_model else first.parameters)
        layouts = Layout(
            **{field.name: _row([getattr(layout, field.name) for *_, layout in some]) for field in fields(Layout)}
        )
        lengths = _row([plan.longest for _, plan, _ in some])
        chunks = _row([plan.runtime_options.chunks for _, plan, _ in some])
        setup = replace(setup_of(first, spec, layouts), seq_len=lengths, chunks=chunks)
        good = np.broadcast_to(allowed(spec, layouts, lengths), len(some))
        with np.errstate(all="ignore"):
            try:
                memory = np.asarray(setup.account(layouts).total)
            except LayoutError as problem:
                for i, *_ in some:
                    reasons[i] = str(problem)
                continue
            node = _row([plan.device.node_size for _, plan, _ in some])
            lacks = host_lacks(setup, node, np.array([plan.limits.host for _, plan, _ in some]))
        each = (good, *(np.broadcast_to(part, len(some)) for part in (memory, lacks)))
        for (i, plan, layout), fine, total, lack in zip(some, *each, strict=True):
            if fine:
                totals[i], hosted[i] = total, lack <= 0
            else:
                reasons[i] = _layout_problem(plan, layout)
    return totals, hosted, reasons


def _row(values: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.array([int(value) for value in values], dtype=np.int64)


def _layout_problem(plan: Plan, layout: Layout) -> str:
    """Why a layout cannot be."""
    spec, _ = spec_of(plan, float(plan.catalog_model.parameters) if plan.catalog_model else plan.parameters)
    try:
        check(spec, layout, plan.seq_len)
    except LayoutError as problem:
        return str(problem)
    return ""
