"""A plan's budget equation, solved for whichever quantity is asked for, at each end of its range.

Accelerator-hours H(N, D, n) = k · N · D / (3600 · P · u), with k training FLOPs per token and parameter (6 by the
rule), P the dense peak and u the MFU over all hours: typed; or that of the layout's own steps with what published runs
reach of theirs; or that of typed steps times the goodput. H rises with D in proportion, so tokens are found by one
division. Days rise with N and fall with n, step by step, so the largest N and the smallest n are found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from core.budget.equations import (
    BudgetError,
    accelerator_hours,
    flop_of_a_run,
    flop_of_a_token,
    hours_affordable,
    training_seconds,
)
from core.hardware.accelerators import ceiling_of
from core.limits import limit
from core.messages import message, pick_message
from core.models.catalog import CatalogModel
from core.models.spec import SpecError
from core.planning.layout import (
    copy_size,
    estimable_request,
    found_layout,
    plan_checkpoint,
    resolved_plan,
    search_request,
)
from core.planning.measured import CarriedRates, OwnRun
from core.planning.plan import BY_AGE, FIRST_RUN, TYPED, Plan
from core.runs.conventions import TokenWork, token_work
from core.runs.goodput import LEAST_GOODPUT, Interruptions, interruptions, mfu_of_all_hours, most_useful, no_progress
from core.runs.published import Width, peak_16bit
from core.runs.run_efficiency import Shares, is_new, published_shares, usable_matmul
from core.search.fastest import FoundLayout
from core.training.layout import LayoutError
from core.training.trained import EVERYTHING

Array = npt.NDArray[np.float64]

WIDTHS: dict[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}

_SAME_SIZE = 0.1
"""Share by which a run of one's own may be larger or smaller than the plan's model and still be of its layers."""


ENDS = LOW, MIDDLE, HIGH = range(3)
"""The low end, the middle and the high end of a range of the MFU."""

_DIGITS = 4
"""Significant digits to which sizes are found."""

_USUAL_MFU = 0.4
"""Where a search for parameters begins."""

_ROUNDED_UP = 1 + 1e-12


def untrainable(plan: Plan) -> BudgetError | None:
    """Return why what a plan trains cannot be trained; None if it can be, or the model's layers are not known."""
    if plan.trained.everything:
        return None
    try:
        with suppress(SpecError):
            search_request(plan)
    except BudgetError as problem:
        return problem
    return None


@dataclass(frozen=True, eq=False)
class Terms:
    """Inputs of a plan's hours, for any number of active parameters and accelerators.

    model: the model whose layers are counted; None if only a parameter count is known.
    """

    plan: Plan
    model: CatalogModel | None

    @property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.plan.peak_dtype)

    @property
    def peak_ratio(self) -> float:
        """16-bit peak over the peak that counts, 1 if products are no narrower."""
        return min(1.0, peak_16bit(self.plan.accelerator) / self.peak) if self.plan.peak_dtype in WIDTHS else 1.0

    @cached_property
    def has_step_estimate(self) -> bool:
        """Whether the step time can be estimated; otherwise the best matmul rate is used instead."""
        if self.model and not self.model.laid_out:
            return False
        return estimable_request(self.plan) is not None

    @cached_property
    def work_share(self) -> float:
        """FLOPs of a step divided by those of full training; 1 if this model cannot be partly trained."""
        if not self.plan.trained.everything:
            with suppress(BudgetError, LayoutError, SpecError):
                request = search_request(self.plan)
                return request.work_share_of(request.spec)
        return 1.0

    def stored(self, parameters: float) -> float:
        """Return the stored parameters, all experts included, for a number of active ``parameters``."""
        return parameters * (self.model.parameters / self.model.active) if self.model else parameters

    def found(self, parameters: float, count: float) -> FoundLayout | None:
        """Return the layout for these parameters and accelerators; None if no step is timed, or no layout meets the
        constraints."""
        if not self.has_step_estimate:
            return None
        return found_layout(resolved_plan(self.plan, max(1.0, self.stored(parameters)), count))

    def interruptions(self, parameters: float, count: float) -> Interruptions:
        """Return what checkpoints, failures and restarts leave of the time of the accelerators that take part."""
        size = float(plan_checkpoint(self.plan).of(self.stored(parameters)))
        return interruptions(self._busy(parameters, count, size), size, self.plan.reliability)

    def _busy(self, parameters: float, count: float, checkpoint: float) -> float:
        """Return accelerators that take part: those of the layout, or as many as failures leave of use; all where the
        MFU is entered."""
        if not self.plan.expects_mfu:
            return count
        found = self.found(parameters, count)
        return found.busy if found else min(count, most_useful(checkpoint, self.plan.reliability))

    def steps_mfu_by_6n(self, parameters: float, count: float) -> float:
        """Return steady-state MFU, by 6 N; 0 if no layout fits that days would follow from."""
        found = self.found(parameters, count)
        if found is None and not (self.has_step_estimate and self.plan.expects_mfu):
            size = float(plan_checkpoint(self.plan).of(self.stored(parameters)))
            part = self._busy(parameters, count, size) / count
            width = WIDTHS.get(self.plan.peak_dtype, "16-bit")
            return part * self.peak_ratio * usable_matmul(self.plan.accelerator, width)
        if found is None or (self.plan.expects_mfu and not self.plan.own_layout and not found.fits):
            return 0.0
        return 6 * parameters * self.work_share * found.tokens_per_second / (count * self.peak)

    def whole_mfu_by_6n(self, parameters: float, count: float) -> Array:
        """Return end-to-end MFU, by 6 N, at the low end, the middle and the high end of what published runs reach of
        their steps; none of them above the best matmul."""
        goodput = float(self.interruptions(parameters, count).goodput)
        whole = self.steps_mfu_by_6n(parameters, count) * goodput * self.shares.ends
        return np.minimum(whole, ceiling_of(self.plan.device, self.plan.peak_dtype))

    @cached_property
    def shares(self) -> Shares:
        """Run efficiencies of published runs and of the plan's custom runs."""
        own = [self._own_share(run) for run in self.plan.own_runs]
        return published_shares(self.has_step_estimate, self.new_hardware).given(own)

    @property
    def new_hardware(self) -> bool:
        """Whether the accelerator counts as new."""
        maturity = self.plan.maturity
        return is_new(self.plan.accelerator) if maturity == BY_AGE else maturity == FIRST_RUN

    def _own_share(self, run: OwnRun) -> float:
        """Return the share of its steps that a run of one's own reached without failures: steps of the plan's model
        where that is as large, else of a stand-in, with the plan's batch and software."""
        plan, model = self.plan, self.model
        same_model = model is not None and abs(model.active / run.parameters - 1) < _SAME_SIZE
        its_plan = replace(
            plan,
            accelerator=run.accelerator,
            model=plan.model if same_model else TYPED,
            measured=plan.measured if run.accelerator == plan.accelerator else CarriedRates(),
            find="time",
            own_runs=(),
            own_layout=False,
            trained=EVERYTHING,
        )
        other = Terms(its_plan, model if same_model else None)
        steps_mfu = other.steps_mfu_by_6n(run.parameters, run.accelerators) * other.peak / peak_16bit(run.accelerator)
        parameters = model.parameters if same_model and model else run.parameters
        lost = interruptions(run.accelerators, plan_checkpoint(plan).of(parameters), plan.reliability)
        return run.mfu / steps_mfu / (1.0 if run.steady else float(lost.goodput))

    @cached_property
    def token_work(self) -> TokenWork:
        """What a token costs at the plan's sequence length."""
        return token_work(self.model, self.plan.mean_length)

    @property
    def in_money(self) -> bool:
        """Whether what a run may take is money."""
        return self.plan.find != "time" and self.plan.within.in_money

    def per_parameter(self, parameters: float) -> float:
        """Return the training FLOPs per token and parameter, counting only the matmuls that run."""
        return float(self.token_work.per_parameter(parameters)) * self.work_share

    def _by_counted(self, mfu: float, parameters: float) -> float:
        """Return an MFU by 6 N as one of all FLOPs that are counted. Where no step is timed it is taken to hold for
        these."""
        if not (self.has_step_estimate and self.token_work.long):
            return mfu
        return mfu * float(self.token_work.per_parameter(parameters)) / 6

    def expected(self, parameters: float, accelerators: float) -> tuple[float, ...]:
        """Return end-to-end MFU that steps and published runs lead one to expect, at each end."""
        ends = self.whole_mfu_by_6n(parameters, accelerators).tolist()
        return tuple(self._by_counted(mfu, parameters) for mfu in ends)

    def layout_mfu(self, parameters: float, accelerators: float) -> float:
        """Return steady-state MFU, of the plan's layout."""
        return self._by_counted(self.steps_mfu_by_6n(parameters, accelerators), parameters)

    def mfu(self, parameters: float, accelerators: float, end: int) -> float:
        """Return end-to-end MFU at one end."""
        if self.plan.typed_mfu is None:
            return self.expected(parameters, accelerators)[end]
        share = self.typed_mfu(end)
        if self.plan.mfu_is_of_steps:
            goodput = float(self.interruptions(parameters, accelerators).goodput)
            return float(mfu_of_all_hours.over(steps=share, goodput=goodput))
        return share

    def typed_mfu(self, end: int) -> float:
        """Return the MFU as entered, at one end; NaN if none is."""
        typed = self.plan.typed_mfu
        return (typed.low, typed.mid, typed.high)[end] if typed else math.nan

    def hours(self, run: SolvedRun) -> float:
        """Return the accelerator-hours of a run at the MFU that it has; infinite if that is 0."""
        per_token = flop_of_a_token.over(per_parameter=self.per_parameter(run.parameters), parameters=run.parameters)
        flop = flop_of_a_run.over(per_token=per_token, tokens=run.tokens)
        mfu = self.mfu(run.parameters, run.accelerators, run.end)
        if not mfu > 0:
            return math.inf
        seconds = training_seconds.over(flop=flop, accelerators=1.0, peak=self.peak, mfu=mfu)
        return float(accelerator_hours.over(accelerators=1.0, seconds=seconds))


@dataclass(frozen=True, slots=True)
class SolvedRun:
    """Run at one end of its range, with the solved quantity filled in.

    parameters: active parameters. mfu: end-to-end MFU. price: dollars per accelerator-hour. allowed_days,
    allowed_dollars: limits of the question, NaN without one.
    """

    end: int
    parameters: float
    tokens: float
    accelerators: float
    mfu: float
    price: float
    allowed_days: float
    allowed_dollars: float

    @property
    def allowed_hours(self) -> float:
        """The accelerator-hours that there are: days of all accelerators, or what the money pays for."""
        if math.isnan(self.allowed_days):
            return float(hours_affordable.over(dollars=self.allowed_dollars, price=self.price))
        return 24 * self.allowed_days * self.accelerators


def solve(terms: Terms, end: int) -> SolvedRun:
    """Return the run at one end of its range, with the quantity that the plan solves for."""
    plan, model = terms.plan, terms.model
    run = SolvedRun(
        end=end,
        parameters=float(model.active) if model else plan.parameters,
        tokens=plan.tokens,
        accelerators=plan.accelerators,
        mfu=math.nan,
        price=prices_of(plan)[end],
        allowed_days=math.nan if plan.find == "time" else plan.within.days,
        allowed_dollars=math.nan if plan.find == "time" else plan.within.dollars,
    )
    match plan.find:
        case "accelerators":
            run = replace(run, accelerators=_accelerators(terms, run))
        case "tokens":
            run = replace(run, tokens=run.allowed_hours / terms.hours(replace(run, tokens=1.0)))
        case "parameters":
            run = replace(run, parameters=_parameters(terms, run))
        case "MFU":
            return run
        case _:
            pass
    if not math.isfinite(run.parameters + run.accelerators):
        return run
    return replace(run, mfu=terms.mfu(run.parameters, run.accelerators, end))


def prices_of(plan: Plan) -> tuple[float, float, float]:
    """Return dollars per accelerator-hour at each end: the middle of the range, and at its ends the price that goes
    with them, since money buys least at the highest."""
    low, high = plan.price_range
    return high, (low + high) / 2, low


def allocation_unit(plan: Plan, needed: float) -> int:
    """Return the step by which the number of accelerators grows: whole nodes, or single ones inside the first node.

    In a custom layout, it is a model replica, because part of a replica is of no use; whole nodes if one divides the
    other.
    """
    node, copy = plan.device.node_size, copy_size(plan)
    if needed <= node:
        return copy
    return max(node, copy) if max(node, copy) % min(node, copy) == 0 else copy


def allocations(plan: Plan) -> tuple[Callable[[int], float], Callable[[float], int]]:
    """Return the possible numbers of accelerators, from the fewest, as two functions.

    The first maps a place, from 1 on, to a number, and the second maps a number to its place.
    """
    node, few, many = plan.device.node_size, allocation_unit(plan, 1), allocation_unit(plan, math.inf)
    small = node // few

    def size(place: int) -> float:
        return float(few * place if place <= small else many * (node // many + place - small))

    def place(count: float) -> int:
        return math.ceil(count / few) if count <= node else small + math.ceil(count / many) - node // many

    return size, place


def _accelerators(terms: Terms, run: SolvedRun) -> float:
    """Return the fewest accelerators, in whole units, that keep the days; infinite if none do."""
    size, place = allocations(terms.plan)

    def excess(at: int) -> float:
        return terms.hours(replace(run, accelerators=size(at))) / (24 * run.allowed_days * size(at) * _ROUNDED_UP)

    found = first_place(excess, float(terms.plan.device.node_size), limit("accelerators"), size, place)
    return math.inf if found is None else size(found)


def _parameters(terms: Terms, run: SolvedRun) -> float:
    """Return the most parameters that take no more hours than there are."""

    def load(parameters: float) -> float:
        return terms.hours(replace(run, parameters=parameters)) / run.allowed_hours

    work = 3600 * run.allowed_hours * terms.peak / (6 * run.tokens)
    return largest_size(load, _USUAL_MFU * work, limit("parameters"))


def largest_size(load: Callable[[float], float], guess: float, most: float) -> float:
    """Return the largest size, of four digits, at which ``load`` is at most 1. ``load`` must grow with the size.

    0 if there is none, infinite if even ``most`` is not too large.
    """
    over = first_place(
        lambda at: _ROUNDED_UP / load(_size(at - 1)),
        guess,
        most,
        lambda at: _size(at - 1),
        lambda size: _place(size) + 1,
    )
    return math.inf if over is None else _size(over - 2) if over > 1 else 0.0


_LOWEST = 10 ** (_DIGITS - 1)


def _size(place: int) -> float:
    power, digits = divmod(place, 9 * _LOWEST)
    return float((_LOWEST + digits) * 10**power) / _LOWEST


def _place(size: float) -> int:
    power = math.floor(math.log10(size))
    return power * 9 * _LOWEST + math.floor(size / 10.0**power * _LOWEST * _ROUNDED_UP) - _LOWEST


def rounded_down(size: float) -> float:
    """Return a size of 1 or more as one types it, of four digits."""
    return _size(_place(size))


def first_place(
    excess: Callable[[int], float],
    guess: float,
    most: float,
    size: Callable[[int], float] = float,
    place: Callable[[float], int] = int,
) -> int | None:
    """Return the first place, from 1 on, at which ``excess`` is at most 1; None if it exceeds 1 even at ``most``.

    size, place: map a place to its size, and a size to its place. ``excess`` must fall from place to place. As it falls
    about as sizes grow, each value suggests the next place to try.
    """
    last, low, high = place(most), 0, 0
    low_excess = high_excess = math.nan
    at, tries = min(max(1, place(max(1.0, guess))), last), 0
    while not high or high - low > 1:
        here, tries = excess(at), tries + 1
        if here <= 1:
            high, high_excess = at, here
        elif at == last:
            return None
        else:
            low, low_excess = at, here
        if not high:
            further = max(1 + 2**tries / 64, min(1.01 * here, 8.0))
            at = min(last, max(at + 1, place(min(most, size(at) * further))))
        elif not low:
            nearer = min(1 - 2**tries / 128 if tries < 6 else 0.5, max(0.99 * high_excess, 0.125))
            at = max(1, min(high - 1, place(max(1.0, size(high) * nearer))))
        else:
            at = (low + high) // 2
            if tries % 3 and math.isfinite(low_excess) and high_excess > 0:
                share = math.log(low_excess) / (math.log(low_excess) - math.log(high_excess))
                at = place(size(low) ** (1 - share) * size(high) ** share)
            at = max(low + 1, min(high - 1, at))
        if high == 1:
            return 1
    return high


def problem_of(terms: Terms, runs: Sequence[SolvedRun]) -> BudgetError | None:
    """Return why runs of one plan, an end of its range each, are no answer; the error names the field at fault."""
    plan = terms.plan
    accelerators = [run.accelerators for run in runs]
    if plan.find == "accelerators" and not max(accelerators) <= limit("accelerators"):
        count = accelerators[MIDDLE]
        finite = "needed" if math.isfinite(count) else "idle" if plan.expects_mfu else ""
        why = "failures" if plan.mfu_is_of_steps else finite
        return BudgetError("within", pick_message(_TOO_MANY[why], needed=count, most=float(limit("accelerators"))))
    for name, (field, beyond) in _BEYOND.items():
        values = [getattr(run, name) for run in runs]
        if not max(values) <= limit(name):
            return BudgetError(field, message(beyond, most=float(limit(name))))
        if min(values) < 1:
            return BudgetError("within", message("error.too_little"))
    if plan.mfu_is_of_steps or plan.typed_mfu is None:
        for run in runs:
            lost = terms.interruptions(run.parameters, run.accelerators)
            if not float(lost.goodput) > LEAST_GOODPUT:
                return no_progress(lost)
    return None


_TOO_MANY = {
    "": "error.too_many",
    "needed": "error.too_many_needed",
    "failures": "error.too_many_failures",
    "idle": "error.too_many_idle",
}
"""Why no number of accelerators is enough → the message."""

_BEYOND = {"parameters": ("n", "error.beyond_parameters"), "tokens": ("tokens", "error.beyond_tokens")}
"""What is too much → the field at fault, and the message."""


def unanswerable(plan: Plan) -> BudgetError | None:
    """Return the error of a question that cannot be answered, before anything is computed; None without one."""
    if plan.lacks_model:
        return BudgetError("shape", message("error.no_model"))
    if plan.find == "time" or not plan.within.in_money:
        return None
    if plan.find == "accelerators":
        return BudgetError("within", message("error.budget_needs_time"))
    low, high = plan.price_range
    if math.isnan(low + high):
        return BudgetError("price", message("error.budget_needs_price"))
    if low == 0:
        return BudgetError("price", message("error.budget_at_no_price"))
    return None
