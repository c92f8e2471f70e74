"""A plan's budget equation, solved for whichever quantity is asked for: of many plans and each end of their ranges at
once.

Accelerator-hours H(N, D, n) = k · N · D / (3600 · P · u), with k training FLOPs per token and parameter (6 by the
rule), P the dense peak and u the MFU over all hours. u is typed; or what published runs lead one to expect, which
falls slowly with n and moves with N and D; or that of steady steps times the goodput, which falls with n and N. H rises
with N and D, so each of them is found from the hours there are by one root, and every question is the inverse of every
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from core.budget.equations import flop_of_a_run, flop_of_a_token, hours_affordable, whole_units
from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.budget.run import accelerator_hours, training_seconds
from core.limits import limit
from core.models.catalog import CatalogModel
from core.planning.memory_estimate import copy_size, plan_checkpoint
from core.planning.plan import Plan
from core.planning.throughput import Throughput, plan_work_share
from core.runs.goodput import LEAST_GOODPUT, Interruptions, interruptions, mfu_of_all_hours, no_progress
from core.runs.long_sequences import TokenWork, token_work
from core.training.memory import CheckpointSize
from core.units import format_quantity

Array = npt.NDArray[np.float64]

_CLOSE = 1e-12
_ROUNDS = 80
_LEAST_MFU, _TRIALS = 0.01, 32
"""A search for parameters begins with so many trials between this MFU and 1, which take hardly longer than three."""


@dataclass(frozen=True)
class Terms:
    """All that a plan's hours follow from, beside parameters, tokens and accelerators. The last axis of arrays is the
    low end, the middle and the high end of the MFU."""

    plan: Plan
    model: CatalogModel | None

    @cached_property
    def dtype(self) -> str:
        """The dtype whose dense peak counts."""
        return self.plan.peak_dtype

    @cached_property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.dtype)

    @cached_property
    def token_work(self) -> TokenWork:
        """What a token costs at the plan's sequence length."""
        return token_work(self.model, self.plan.mean_length)

    @cached_property
    def work_share(self) -> float:
        """FLOPs of a step over those of one that trains everything."""
        return plan_work_share(self.plan)

    def per_parameter(self, params: Array | float) -> Array:
        """FLOPs of a token for each parameter: of those products that are computed."""
        per_parameter = np.asarray(self.token_work.per_parameter(params))
        return per_parameter if self.work_share == 1 else per_parameter * self.work_share

    @cached_property
    def checkpoint_size(self) -> CheckpointSize:
        """Bytes of a checkpoint per parameter."""
        return plan_checkpoint(self.plan)

    @property
    def in_money(self) -> bool:
        """Whether what a run may take is money."""
        return self.plan.find != "time" and self.plan.within.in_money

    def stored_parameters(self, params: Array | float) -> Array | float:
        """Parameters that are stored, all experts included, where ``params`` work on each token."""
        return params * (self.model.parameters / self.model.active) if self.model else params

    def interruptions(self, params: Array | float, accelerators: Array | float) -> Interruptions:
        """What checkpoints, failures and restarts leave of the time."""
        return interruptions(
            accelerators, self.checkpoint_size.of(self.stored_parameters(params)), self.plan.reliability
        )

    @cached_property
    def throughput(self) -> Throughput:
        """What the cluster trains at, of the steps alone and of the whole run."""
        return Throughput(self.plan, self.model, self.checkpoint_size)

    def flop_per_token(self, params: Array) -> Array:
        """FLOPs of a token that the throughput is counted in: 6 N; where no step is timed, all that are counted, at
        which the MFU is taken to hold."""
        return (6.0 * self.work_share if self.throughput.has_step_estimate else self.per_parameter(params)) * params

    def _of_all_flop(self, mfu: Array, params: Array) -> Array:
        """An MFU of the throughput's FLOPs as one of all that are counted."""
        if not self.throughput.has_step_estimate or not self.token_work.long:
            return mfu
        return mfu * self.token_work.per_parameter(params) / 6

    def expected(self, params: Array, accelerators: Array) -> Array:
        """MFU over all hours that steps and published runs lead one to expect, at each end (last axis)."""
        params, accelerators = np.maximum(params, 1.0), np.maximum(accelerators, 1e-9)
        return self._of_all_flop(self.throughput.whole_mfu_by_6n(params, accelerators), params)

    def layout_mfu(self, params: Array, accelerators: Array) -> Array:
        """MFU of the steps alone, of the plan's layout."""
        params, accelerators = np.maximum(params, 1.0), np.maximum(accelerators, 1e-9)
        return self._of_all_flop(self.throughput.steps_mfu_by_6n(params, accelerators), params)

    def steps_rate(self, params: Array, accelerators: Array) -> Array:
        """Tokens per second of the steps alone, under the plan's layout."""
        return (
            self.throughput.steps_mfu_by_6n(params, accelerators)
            * accelerators
            * self.peak
            / self.flop_per_token(params)
        )

    def mfu(self, params: Array, accelerators: Array) -> Array:
        """MFU over all hours at each end (last axis); the arguments have a value for each, or one for all."""
        typed = self.plan.typed_mfu
        if typed is None:
            return self.expected(params, accelerators)
        share = typed_ends(typed)
        if self.plan.mfu_is_of_steps:
            return mfu_of_all_hours.over(steps=share, goodput=self.interruptions(params, accelerators).goodput)
        return share + 0 * params

    def typed_mfu(self, run: SolvedRuns) -> Array:
        """The MFU as typed, at each end or in the middle, for as many as ``run`` has."""
        typed = self.plan.typed_mfu or Interval.point(math.nan)
        return np.array(typed.mid if np.ndim(run.mfu) == 0 else [typed.low, typed.mid, typed.high])

    def hours(self, params: Array, tokens: Array, accelerators: Array) -> Array:
        """Accelerator-hours at each end."""
        return self.hours_at(self.mfu(params, accelerators), params, tokens)

    def hours_at(self, mfu: Array, params: Array, tokens: Array) -> Array:
        """Accelerator-hours of all the work at an MFU over all hours."""
        per_token = flop_of_a_token.over(per_parameter=self.per_parameter(params), parameters=params)
        flop = flop_of_a_run.over(per_token=per_token, tokens=tokens)
        with np.errstate(divide="ignore", over="ignore"):
            seconds = training_seconds.over(flop=flop, accelerators=1.0, peak=self.peak, mfu=mfu)
            return accelerator_hours.over(accelerators=1.0, seconds=seconds)


def typed_ends(mfu: Interval) -> Array:
    """The low end, the middle and the high end of a typed range."""
    return np.array([mfu.low, mfu.mid, mfu.high])


@dataclass(frozen=True, slots=True)
class SolvedRuns:
    """Runs at each end of their ranges (last axis); what is asked for is found among it. Arrays, or numbers of one end.

    parameters: those that work on each token. mfu: over all hours. allowed_days, allowed_dollars: what the run may take
    at most, NaN where nothing is said. mfu_before_rounding: of the accelerators that would just do, before they are
    rounded up; NaN where they are given.
    """

    parameters: Array
    tokens: Array
    accelerators: Array
    mfu: Array
    price: Array
    allowed_days: Array
    allowed_dollars: Array
    mfu_before_rounding: Array

    def at_end(self, row: int, end: int) -> SolvedRuns:
        """One run, in plain numbers, at one end of its range or in its middle."""
        names = self.__dataclass_fields__
        return SolvedRuns(**{name: np.array(getattr(self, name)[row, end]) for name in names})


def solve(terms: Terms, plans: Sequence[Plan]) -> SolvedRuns:
    """What plans that share ``terms`` ask for, filled in: a row each."""
    given, find = _given(terms, plans), terms.plan.find
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        match find:
            case "accelerators":
                needed = _accelerators(terms, given)
                whole = whole_units.over(needed=needed, unit=allocation_units(terms.plan, needed))
                run = replace(given, accelerators=whole, mfu_before_rounding=terms.mfu(given.parameters, needed))
            case "tokens":
                run = replace(
                    given, tokens=_hours(given) / terms.hours(given.parameters, np.ones(1), given.accelerators)
                )
            case "parameters":
                run = replace(given, parameters=_parameters(terms, given))
            case _:
                run = given
        if find == "MFU":
            run = replace(run, mfu=terms.hours_at(np.ones_like(run.price), run.parameters, run.tokens) / _hours(run))
        else:
            run = replace(run, mfu=terms.mfu(run.parameters, run.accelerators))
    return SolvedRuns(*(np.broadcast_to(getattr(run, name), (len(plans), 3)) for name in run.__dataclass_fields__))


def problems_of(terms: Terms, plans: Sequence[Plan], run: SolvedRuns, goodput: Array) -> list[BudgetError | None]:
    """Why rows of ``run`` are no answer; an error names the field at fault."""
    stuck = np.zeros(len(plans), bool)
    if terms.plan.mfu_is_of_steps or terms.plan.typed_mfu is None:
        stuck = ~np.all(goodput > LEAST_GOODPUT, axis=1)
    return [_unanswerable(plan) or _fault(terms, run, i, bool(stuck[i])) for i, plan in enumerate(plans)]


def _given(terms: Terms, plans: Sequence[Plan]) -> SolvedRuns:
    """What the plans say; one end where all three are the same, so that it is worked out once."""

    def row(value: Callable[[Plan], float]) -> Array:
        return np.array([[value(plan)] for plan in plans])

    model = terms.model
    return SolvedRuns(
        parameters=row(lambda plan: float(model.active) if model else plan.parameters),
        tokens=row(lambda plan: plan.tokens),
        accelerators=row(lambda plan: plan.accelerators),
        mfu=np.full((len(plans), 3), math.nan),
        price=np.array([prices_of(plan) for plan in plans]),
        allowed_days=row(lambda plan: math.nan if plan.find == "time" else plan.within.days),
        allowed_dollars=row(lambda plan: math.nan if plan.find == "time" else plan.within.dollars),
        mfu_before_rounding=np.full((len(plans), 3), math.nan),
    )


def prices_of(plan: Plan) -> tuple[float, float, float]:
    """Dollars per accelerator-hour at each end: the middle of the range, and at its ends the price that goes with
    them, since money buys least at the highest."""
    low, high = plan.price_range
    return high, (low + high) / 2, low


def _unanswerable(plan: Plan) -> BudgetError | None:
    """What is wrong with a question before anything is worked out."""
    if plan.lacks_model:
        return BudgetError("shape", "No model has been read. Paste a config.json under “Model”.")
    if plan.find == "time" or not plan.within.in_money:
        return None
    if plan.find == "accelerators":
        return BudgetError(
            "within",
            "Twice the accelerators for half the time cost the same, so money alone does not say how many: give a "
            "time. For example: 90 days.",
        )
    low, high = plan.price_range
    if math.isnan(low + high):
        return BudgetError("price", "Money buys nothing without a price per accelerator-hour: type one. Example: 2.50.")
    if low == 0:
        return BudgetError("price", "At no price any number of hours can be had: give a time, or a price.")
    return None


def _hours(run: SolvedRuns) -> Array:
    """The accelerator-hours that there are: days of all accelerators, or what the money pays for."""
    in_money = hours_affordable.over(dollars=run.allowed_dollars, price=run.price)
    return np.where(np.isnan(run.allowed_days), in_money, 24 * run.allowed_days * run.accelerators)


def _parameters(terms: Terms, run: SolvedRuns) -> Array:
    """The parameters at which the hours, which rise with them, are those there are, at each end."""
    available = _hours(run)

    def gap(at: Array) -> Array:
        return np.log(terms.hours(np.exp(at), run.tokens, run.accelerators)) - np.log(available)

    if terms.plan.typed_mfu:
        start = np.zeros(run.price.shape)
        return np.exp(_zero(gap, start, start + 1.0))
    most = np.log(3600 * available * terms.peak / (6 * run.tokens)) + np.zeros(run.price.shape)
    return np.exp(_zero(gap, *_near(gap, most + math.log(_LEAST_MFU), most)))


def _near(gap: Callable[[Array], Array], least: Array, most: Array) -> tuple[Array, Array]:
    """About where ``gap`` is zero, and its slope there, from trials between ``least`` and ``most`` (a row each)."""
    trials = np.linspace(least, most, _TRIALS)
    values = gap(trials)
    after = np.clip((values < 0).sum(axis=0), 1, _TRIALS - 1)[None]
    before, after_value = (np.take_along_axis(values, after + i, axis=0)[0] for i in (-1, 0))
    slope = (after_value - before) / (trials[1] - trials[0])
    return np.take_along_axis(np.broadcast_to(trials, values.shape), after, axis=0)[0] - after_value / slope, slope


def allocation_units(plan: Plan, needed: Array | float) -> Array:
    """How many accelerators come at a time where so many are needed: whole nodes, single ones inside of the first.

    Under one's own layout copies of the model, of which no part is of use; in whole nodes where one divides the other.
    """
    node, copy = plan.device.node_size, copy_size(plan)
    together = max(node, copy) if max(node, copy) % min(node, copy) == 0 else copy
    return np.where(np.less_equal(needed, node), copy, together).astype(float)


def _accelerators(terms: Terms, run: SolvedRuns) -> Array:
    """The fewest accelerators that keep the days, parts of one included; infinite where none do."""

    def gap(at: Array) -> Array:
        return np.log(terms.hours(run.parameters, run.tokens, np.exp(at))) - np.log(24 * run.allowed_days) - at

    ones = np.ones(run.price.shape)
    typed = terms.plan.typed_mfu
    if typed is None:
        flop = terms.flop_per_token(run.parameters) * run.tokens
        return terms.throughput.accelerators(run.parameters, flop / (86400 * run.allowed_days * terms.peak))
    start = np.log(terms.hours_at(typed_ends(typed) * ones, run.parameters, run.tokens) / (24 * run.allowed_days))
    # Failures grow with the cluster: from below, so that the smaller of two answers is found.
    return np.exp(_zero(gap, start, -ones, steep=0.02 if terms.plan.mfu_is_of_steps else 0.3))


def _zero(gap: Callable[[Array], Array], start: Array, slope: Array, *, steep: float = 0.3) -> Array:
    """Where ``gap`` of a logarithm is zero: secants, whose slope keeps its sign and is kept between ``steep`` and 3;
    infinite where there is none."""
    sign = np.sign(slope)
    at, value = start, gap(start)
    for _ in range(_ROUNDS):
        if not np.any((np.abs(value) >= _CLOSE) & np.isfinite(value)):
            break
        there = np.where(np.isfinite(value), at - value / slope, at)
        next_value = gap(there)
        moved = there - at
        measured = np.where(np.abs(moved) > 1e-12, (next_value - value) / np.where(moved == 0, 1.0, moved), slope)
        slope = sign * np.clip(sign * measured, steep, 3.0)
        at, value = there, next_value
    return np.where(np.abs(value) < 1e-9, at, math.inf)


_FIELD_AND_LIMIT = {"parameters": ("n", "parameters"), "tokens": ("tokens", "tokens")}


def _fault(terms: Terms, run: SolvedRuns, row: int, stuck: bool) -> BudgetError | None:
    """Why a row of ``run`` is no answer. stuck: it makes no progress."""
    plan = terms.plan
    parameters, accelerators, mfu = run.parameters[row], run.accelerators[row], run.mfu[row]
    if plan.find == "accelerators" and not np.all(accelerators <= limit("accelerators")):
        most, count = format_quantity(limit("accelerators"), "count"), float(accelerators[1])
        few = f"{format_quantity(count, 'count')} accelerators" if math.isfinite(count) else "more"
        why = ""
        if terms.plan.mfu_is_of_steps:
            why = " Failures grow with the cluster, and eat what more of it adds."
        elif plan.expects_mfu and not math.isfinite(count):
            why = " With this batch, more of them stay idle or wait: take more sequences a step."
        return BudgetError(
            "within", f"Cannot be met: it would take {few}, and {most} are the most here.{why} Allow more days."
        )
    if stuck:
        return no_progress(terms.interruptions(parameters, accelerators).at(0))
    for name, (field, cap) in _FIELD_AND_LIMIT.items():
        value = getattr(run, name)[row]
        if not np.all(np.isfinite(value)) or value.max() > limit(cap):
            most = format_quantity(limit(cap), "count")
            return BudgetError(field, f"The answer is beyond the {most} {name} that are the most here.")
        if value.min() < 1:
            return BudgetError("within", f"So little is enough for less than one of the {name}. Allow more.")
    if plan.find == "MFU" and (needed := float(mfu.min())) > 1:
        return BudgetError(
            "within",
            f"Cannot be met: it would take an MFU of {format_quantity(needed, 'ratio')}, more than the whole peak. "
            "Allow more days or accelerators, or fewer tokens or parameters.",
        )
    return None
