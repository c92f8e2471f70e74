"""A board: every cell is the plan with two of its values replaced, answered as it would be alone.

Cells that share all but parameters, tokens and accelerators are answered at once as arrays, by the same equations that
answer one plan; memory likewise, where the shape and the types are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.planning.answer.answer import answer, ceiling_of, columns, too_fast
from core.planning.answer.form import FIND, PLAN_FORM, plan_of
from core.planning.answer.holding import runtime_of, settled, spec_of, step_of
from core.planning.answer.laying import laid
from core.planning.answer.plan import Computed, Limits, Plan, Power, whole_accelerators
from core.planning.answer.solving import Array, Solved, Terms, finished, prices_of
from core.planning.answer.wishes import Wishes
from core.planning.board.axes import AXES, Axis
from core.planning.budget.errors import BudgetError
from core.planning.whole.energy import carbon, energy
from core.planning.whole.goodput import LEAST_GOODPUT
from core.training import Layout, LayoutError, allowed, check, find_optimizer, memory_over, states_of

Bools = npt.NDArray[np.bool_]

_ANY = Plan()
"""Its parts stand for those that nothing is made of."""

QUANTITIES = (
    "days",
    "dollars",
    "watt_hours",
    "kg_co2",
    "hours",
    "mfu",
    "tokens_per_second",
    "goodput",
    "steps",
    "memory",
    "usable",
)
"""What is worked out of every cell; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a board: what is swept, and the texts that it takes."""

    axis: Axis
    texts: tuple[str, ...]

    @property
    def written(self) -> str:
        """The texts as a list that `core.planning.board.axes.typed` reads; one that is empty cannot be typed."""
        return ("; " if self.axis.chosen else ", ").join(text for text in self.texts if text)


@dataclass(frozen=True, eq=False)
class Board:
    """A plan swept over two of its fields; arrays have a row for each value of ``y`` and a column for each of ``x``.

    base: the texts of the plan. limits: the time or the money that a cell has to keep to. Of the middle of its range
    each: days on the wall; dollars; watt_hours; kg_co2; hours: accelerator-hours; mfu: over all hours; steps: of the
    steps alone; goodput; memory: bytes on the fullest accelerator; usable: bytes that it has. impossible: whether
    the steps would have to be faster than the best matmul. reasons: why there is no answer, or no layout; else empty.
    """

    base: Mapping[str, str]
    x: Side
    y: Side
    limits: Limits
    plans: tuple[tuple[Plan, ...], ...]
    days: Array
    dollars: Array
    watt_hours: Array
    kg_co2: Array
    hours: Array
    mfu: Array
    tokens_per_second: Array
    goodput: Array
    steps: Array
    memory: Array
    usable: Array
    impossible: Bools
    reasons: tuple[tuple[str, ...], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y.texts), len(self.x.texts)

    @cached_property
    def fits(self) -> Bools:
        """Whether an accelerator holds what it has to; not where its memory is unknown, or no layout is."""
        with np.errstate(invalid="ignore"):
            return self.memory <= self.usable

    @cached_property
    def within(self) -> Bools:
        """Whether the time, or the money, is kept by steps that can be."""
        kept = self.dollars <= self.limits.dollars if self.limits.in_money else self.days <= self.limits.days
        return kept & ~self.impossible

    @property
    def enough(self) -> Bools:
        """Whether it fits and keeps the limit."""
        return self.fits & self.within

    @cached_property
    def here(self) -> tuple[int, int] | None:
        """Row and column of the plan itself; None where it is no cell."""
        own = plan_at(self.base)
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
        return self.x.axis.sets(self.x.texts[column]) | self.y.axis.sets(self.y.texts[row])


def plan_at(texts: Mapping[str, str]) -> Plan:
    """The plan of these texts, whose time is asked for."""
    return plan_of(PLAN_FORM.read({**texts, FIND.id: "time"}))


def limits_of(asked: Limits | None, plan: Plan) -> Limits:
    """What the cells have to keep to: what was asked for, else the plan's own time, else 90 days."""
    return asked or (_ANY.limits if plan.limits.in_money else plan.limits)


def board(texts: Mapping[str, str], x: Side, y: Side, limits: Limits) -> Board:
    """The board of the plan of ``texts``; one that was asked for lately is remembered."""
    mine = tuple((one.id, texts.get(one.id, one.default)) for one in PLAN_FORM.fields)
    return _board(mine, (x.axis.name, x.texts), (y.axis.name, y.texts), limits)


@lru_cache(maxsize=limit("boards_kept"))
def _board(
    texts: tuple[tuple[str, str], ...], x: tuple[str, tuple[str, ...]], y: tuple[str, tuple[str, ...]], limits: Limits
) -> Board:
    base = dict(texts)
    across, down = Side(AXES[x[0]], x[1]), Side(AXES[y[0]], y[1])
    rows = [across.axis.sets(text) for text in across.texts]
    plans = [[plan_at({**base, **one, **down.axis.sets(text)}) for one in rows] for text in down.texts]
    flat = [plan for row in plans for plan in row]
    shape = (len(down.texts), len(across.texts))
    found, impossible, reasons = _answers(flat)
    memory, unlaid = _memory(flat, found["stored"])
    found |= {"memory": memory, "usable": np.array([plan.device.memory_bytes for plan in flat])}
    why = [first or second for first, second in zip(reasons, unlaid, strict=True)]
    return Board(
        base,
        across,
        down,
        limits,
        tuple(map(tuple, plans)),
        **{name: found[name].reshape(shape) for name in QUANTITIES},
        impossible=impossible.reshape(shape),
        reasons=tuple(tuple(why[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])),
    )


def _terms_of(plan: Plan) -> Plan:
    """The plan without what its hours do not follow from, or follow from as arrays."""
    return replace(
        plan,
        limits=_ANY.limits,
        parameters=_ANY.parameters,
        tokens=_ANY.tokens,
        accelerators=_ANY.accelerators,
        attention=_ANY.attention,
        prices=None,
        layout=_ANY.layout,
        computed=Computed(),
        power=Power(),
        wishes=Wishes(),
    )


def _answers(plans: Sequence[Plan]) -> tuple[dict[str, Array], Bools, list[str]]:
    """What `answer` says of the middle of every plan, whether its steps cannot be, and why there is no answer."""
    count = len(plans)
    names = (*QUANTITIES, "stored")
    out = {name: np.full(count, np.nan) for name in names}
    impossible, reasons = np.zeros(count, bool), [""] * count
    groups: dict[Plan, list[int]] = {}
    for i, plan in enumerate(plans):
        groups.setdefault(_terms_of(plan), []).append(i)
    for shared, where in groups.items():
        some = [plans[i] for i in where]
        terms = Terms(shared, shared.known)
        found, good = _solved(terms, some)
        for name, values in found.items():
            out[name][where] = values
        impossible[where] = too_fast(found["steps"], ceiling_of(shared.device, terms.dtype))
        for i in (where[j] for j in np.flatnonzero(~good)):
            for name in names:
                out[name][i] = np.nan
            impossible[i] = False
            reasons[i] = _why(plans[i])
    return out, impossible, reasons


def _solved(terms: Terms, plans: Sequence[Plan]) -> tuple[dict[str, Array], Bools]:
    """Plans that share ``terms``, and where they have an answer."""
    known = terms.model
    given = Solved(
        parameters=np.array([[float(known.active) if known else plan.parameters] for plan in plans]),
        tokens=np.array([[plan.tokens] for plan in plans]),
        accelerators=np.array([[plan.accelerators] for plan in plans]),
        days=np.full((len(plans), 3), np.nan),
        mfu=np.full((len(plans), 3), np.nan),
        price=np.array([prices_of(plan) for plan in plans]),
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        solved = finished(terms, given)
        goodput = np.asarray(terms.stops(given.parameters, given.accelerators).goodput)
        all_of = columns(terms, solved, goodput)
    good = np.all(np.isfinite(solved.days) & (solved.days > 0), axis=1)
    if terms.steady:
        good &= goodput[:, 0] > LEAST_GOODPUT
    found = {name: values[:, 1] for name, values in all_of.items() if name in QUANTITIES}
    power = {name: np.array([getattr(plan.power, name) for plan in plans]) for name in ("draw", "pue", "grid")}
    watts = terms.plan.device.tdp_watts
    hours = np.sort(all_of["hours"], axis=1)[:, 1]
    found["watt_hours"] = energy.over(hours=hours, watts=watts, share=power["draw"], pue=power["pue"])
    found["kg_co2"] = carbon.over(energy=found["watt_hours"], intensity=power["grid"])
    found["stored"] = np.maximum(1.0, np.asarray(terms.total(all_of["parameters"][:, 1])))
    return found, good


def _why(plan: Plan) -> str:
    """Why a plan has no answer."""
    try:
        answer(plan)
    except BudgetError as problem:
        return str(problem)
    return "These numbers go beyond what can be counted."


def _memory(plans: Sequence[Plan], stored: Array) -> tuple[Array, list[str]]:
    """What `held` says that the fullest accelerator holds under every plan, and why one cannot be laid out."""
    totals, reasons = np.full(len(plans), np.nan), [""] * len(plans)
    groups: dict[object, list[tuple[int, Plan, Layout]]] = {}
    for i, plan in enumerate(plans):
        if np.isnan(stored[i]):
            continue
        plan = settled(plan, float(stored[i]), plan.accelerators)
        try:
            layout = laid(plan.layout, whole_accelerators(plan.accelerators))
        except LayoutError as problem:
            reasons[i] = str(problem)
            continue
        spec, _ = spec_of(plan, float(plan.known.parameters) if plan.known else plan.parameters)
        how = replace(plan.computed, chunks=1)
        groups.setdefault((spec, plan.optimizer, plan.policy, plan.own, how), []).append((i, plan, layout))
    for some in groups.values():
        first = some[0][1]
        spec, _ = spec_of(first, float(first.known.parameters) if first.known else first.parameters)
        optimizer = find_optimizer(first.optimizer)
        policy = first.policy_under(optimizer)
        layouts = Layout(
            **{one.name: _row([getattr(layout, one.name) for *_, layout in some]) for one in fields(Layout)}
        )
        lengths = _row([plan.seq_len for _, plan, _ in some])
        step = replace(
            step_of(first, policy), seq_len=lengths, chunks=_row([plan.computed.chunks for _, plan, _ in some])
        )
        good = np.broadcast_to(allowed(spec, layouts, lengths), len(some))
        with np.errstate(all="ignore"):
            states = states_of(optimizer, policy, spec)
            found = np.asarray(memory_over(spec, layouts, states, step, runtime=runtime_of(first)).total)
        for (i, plan, layout), fine, total in zip(some, good, np.broadcast_to(found, len(some)), strict=True):
            if fine:
                totals[i] = total
            else:
                reasons[i] = _unlaid(plan, layout)
    return totals, reasons


def _row(values: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.array([int(value) for value in values], dtype=np.int64)


def _unlaid(plan: Plan, layout: Layout) -> str:
    """Why a layout cannot be."""
    spec, _ = spec_of(plan, float(plan.known.parameters) if plan.known else plan.parameters)
    try:
        check(spec, layout, plan.seq_len)
    except LayoutError as problem:
        return str(problem)
    return ""
