"""A plan evaluated: everything that a page, a report or a notebook says about a plan, worked out once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from core.budget.equations import (
    BudgetError,
    Interval,
    accelerator_hours,
    days_of,
    days_of_steps,
    flop_of_a_run,
    flop_of_a_token,
    hours_affordable,
    mfu_needed,
    rent,
    tokens_per_second,
    tokens_trainable,
    training_seconds,
)
from core.formula import Explanation, Formula, explain_run
from core.hardware.accelerators import Accelerator, ceiling_of
from core.hardware.operations import explain_device
from core.limits import cached
from core.messages import message
from core.models.catalog import CatalogModel
from core.models.configs.custom import proxy_model
from core.planning.largest_model import DoesNotFitError
from core.planning.layout import (
    FIELD_IDS,
    constraints_of,
    estimable_request,
    evaluate_layout,
    found_layout,
    plan_layout,
    resolved_plan,
    search_request,
    spec_of,
    too_large,
)
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import Find, Plan, whole_accelerators
from core.planning.solving import ENDS, MIDDLE, SolvedRun, Terms, problem_of, solve, unanswerable, untrainable
from core.planning.trl import cannot_run, trl
from core.runs.conventions import TokenWork
from core.runs.energy import carbon, drawn_power, energy, footprint, most_drawn, node_power, part_of_node, peak_power
from core.runs.goodput import Interruptions, mfu_of_all_hours, mfu_of_steps
from core.runs.run_efficiency import share_of_steps, whole_run_mfu
from core.search.launch import Launch, launches
from core.search.request import LayoutResult, SearchRequest
from core.training.layout import LayoutError


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The budget at one end of its range, or in its middle.

    parameters: those that work on each token. mfu: over all hours; steps_mfu: in steady state, as entered, or of the
    plan's layout and no slower than the whole run needs them; steps_days: days that they take by themselves;
    mfu_while_training: over the hours that lose and write nothing. hours: accelerator-hours. price: dollars per
    accelerator-hour, and dollars: NaN if unknown. tokens_per_second: of the whole cluster, over all hours. days: on the
    wall. peak_watts: most that the building draws for it at once, NaN if unknown.
    """

    parameters: float
    tokens: float
    accelerators: float
    days: float
    mfu: float
    price: float
    hours: float
    flop: float
    per_parameter: float
    goodput: float
    steps_mfu: float
    steps_days: float
    mfu_while_training: float
    dollars: float
    tokens_per_second: float
    peak_watts: float


@dataclass(frozen=True, eq=False)
class PlanEstimate:
    """Everything that follows from a plan.

    terms, run: the inputs of the computation; ``run`` has the plain numbers of the median. peak_ratio: 16-bit peak
    divided by the peak that MFU refers to; 1 if matmuls are not narrower. low, middle, high: the run at the low end,
    the median, and the high end of the MFU. model: the model, None if only a parameter count is known. shape: the
    model, or the proxy for its layers. stored_parameters: parameters of the median, all experts included.
    """

    plan: Plan
    terms: Terms
    run: SolvedRun
    model: CatalogModel | None
    shape: CatalogModel
    device: Accelerator
    dtype: str
    peak: float
    peak_ratio: float
    low: RunEstimate
    middle: RunEstimate
    high: RunEstimate
    token_work: TokenWork
    stored_parameters: float
    energy: Interval
    carbon: Interval
    dollars: Interval

    @property
    def ends(self) -> tuple[RunEstimate, RunEstimate, RunEstimate]:
        """The low end, the middle and the high end."""
        return self.low, self.middle, self.high

    @cached_property
    def expected(self) -> Interval:
        """End-to-end MFU that published runs predict for this plan, relative to its own peak."""
        return Interval(*self.terms.expected(self.middle.parameters, self.middle.accelerators))

    def interruptions_at(self, end: RunEstimate) -> Interruptions:
        """Return what interrupts the run at one end of its range."""
        return self.terms.interruptions(end.parameters, end.accelerators)

    @cached_property
    def interruptions(self) -> Interruptions:
        """The same in the middle."""
        return self.interruptions_at(self.middle)

    @property
    def find(self) -> Find:
        """Quantity that the plan solves for."""
        return self.plan.find

    @property
    def stands_in(self) -> bool:
        """Whether ``shape`` is only a proxy for the model's layers."""
        return self.model is None or self.model.counted is not None

    @property
    def count(self) -> int:
        """Accelerators of the middle, which come whole."""
        return whole_accelerators(self.middle.accelerators)

    @cached_property
    def on_found_accelerators(self) -> PlanEstimate:
        """The estimate on the accelerators that were solved for, with a range of days; the estimate itself if they were
        entered."""
        if self.find != "accelerators":
            return self
        return estimate(replace(self.plan, find="time", accelerators=float(self.count)))

    @property
    def memory(self) -> MemoryEstimate:
        """Memory of the accelerator that uses the most. Raises `LayoutError` for an invalid layout."""
        return memory_estimate(resolved_plan(self.plan, self.stored_parameters, self.middle.accelerators))

    @cached_property
    def whole(self) -> Plan:
        """The plan with every solved value filled in."""
        plan = resolved_plan(self.plan, self.stored_parameters, self.middle.accelerators)
        return replace(plan, tokens=self.middle.tokens)

    @cached_property
    def request(self) -> SearchRequest:
        """Search request of the plan, with the accelerators and sequences per step of its layout.

        For a model without layer formulas, it is the request of its proxy. Raises `LayoutError` if the plan has no
        layout, and `BudgetError` if no step is timed.
        """
        request = estimable_request(self.whole)
        if request is None:
            search_request(self.whole)  # says what is unknown
            raise BudgetError("gpu", message("error.no_step_time", device=self.plan.accelerator))
        layout = plan_layout(self.whole)
        batch = int(layout.data * layout.micro_batch * layout.micro_batches)
        return replace(request, batch=batch, constraints=constraints_of(self.plan)).on(int(layout.accelerators))

    @cached_property
    def step(self) -> LayoutResult:
        """The plan's layout and its step, the MFU that of all accelerators. Raises as `request` does."""
        result = evaluate_layout(self.request, plan_layout(self.whole))
        return replace(result, mfu=result.mfu * self.request.cluster.count / self.whole.accelerators)

    @property
    def idle(self) -> int:
        """Accelerators that have nothing to do."""
        return self.count - self.request.cluster.count

    def days_of_steps(self, seconds: float) -> float:
        """Return the steady-state days for all tokens, at ``seconds`` per step."""
        return days_of_steps(self.middle.tokens, seconds, self.step.tokens, 1)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Launch settings of the plan: for pre-training programs, or for TRL if part of the model is trained."""
        if not self.plan.trained.everything:
            try:
                return (trl(memory_estimate(self.whole)),)
            except LayoutError as problem:
                return (cannot_run(message("launch.trl.invalid", problem=str(problem))),)
        return launches(self.request, self.step.layout)

    @property
    def step_values(self) -> dict[str, float]:
        """Results for one step, by name and in base units, without unknown ones."""
        result = self.step
        values = {
            "step_seconds": result.seconds,
            "step_seconds_low": result.low,
            "step_seconds_high": result.high,
            "step_mfu": self.request.by_6n(result.mfu),
            "step_days": self.days_of_steps(result.seconds),
            "step_memory_bytes": float(result.memory.total),
            "step_usable_bytes": result.usable,
        }
        return {name: float(value) for name, value in values.items() if math.isfinite(value)}

    @property
    def layout_mfu(self) -> float:
        """Estimated steady-state MFU of the plan's layout, whatever MFU was entered."""
        m = self.middle
        return self.terms.layout_mfu(m.parameters, m.accelerators)

    @property
    def layout_days(self) -> float:
        """Steady-state days of the layout's steps."""
        return self.middle.days * self.middle.mfu / self.layout_mfu

    def range_of(self, name: str) -> Interval:
        """Return the range of a quantity of `RunEstimate`."""
        ends = sorted(float(getattr(end, name)) for end in (self.low, self.middle, self.high))
        return Interval(*ends)

    @property
    def result(self) -> Interval:
        """The solved quantity with its range: days, tokens, parameters, accelerators, or MFU."""
        return self.range_of(_FOUND[self.find][0])

    @property
    def ceiling(self) -> float:
        """The best bare matmul of the accelerator, as a share of the peak: measured, or as its relatives do."""
        return ceiling_of(self.device, self.dtype)

    @property
    def impossible(self) -> bool:
        """Whether the steps would have to be faster than the accelerator's best matmul."""
        return self.middle.mfu_while_training > self.ceiling * (1 + 1e-9)

    def explain(self) -> list[Explanation]:
        """Return the formulas of every number of the median, from the answer down to the inputs.

        The same functions run again on plain numbers, and their calls are recorded.
        """
        steps = [*reversed(explain_run(lambda: _quantities(self.terms, self.run), zeros=True))]
        answer_first = sorted(steps, key=lambda step: step.name != _FOUND[self.find][1].name)
        return [*answer_first, *explain_device(self.device, self.dtype)]

    def explain_power(self) -> list[Explanation]:
        """Return the formulas of carbon, energy, and peak power, without unknown ones."""
        node, power, n = node_power(self.device), self.plan.power, self.middle.accelerators
        watts, share = drawn_power(self.device, power.draw)
        used = footprint(self.middle.hours, watts, share=share, pue=power.pue, intensity=power.grid)
        most = most_drawn(self.device, power.draw)
        steps = [
            *used.explanations[::-1],
            peak_power.explain(accelerators=n, watts=most, pue=power.pue),
            part_of_node.explain(watts=node.watts, accelerators=node.accelerators),
        ]
        return [step for step in steps if math.isfinite(step.value)]

    def explain_mfu(self) -> list[Explanation]:
        """Return where the MFU comes from: the steps, goodput, published runs, and failures."""
        return [*reversed(explain_run(lambda: _goodput_and_mfus(self.terms, self.run), zeros=True))]


_FOUND: dict[Find, tuple[str, Formula[...]]] = {
    "time": ("days", training_seconds),
    "tokens": ("tokens", tokens_trainable),
    "parameters": ("parameters", training_seconds),
    "accelerators": ("accelerators", training_seconds),
    "MFU": ("mfu", mfu_needed),
}
"""What is asked for → the quantity of `RunEstimate` that answers it, and the formula that says why."""


@cached("small_results_kept")
def estimate(plan: Plan) -> PlanEstimate:
    """Return everything that follows from ``plan``.

    Raises `BudgetError`, whose field names the cause, if there is no result: a budget without a price, a limit that no
    cluster meets, a layout that does not fit, failures that leave no progress, or numbers that overflow.
    """
    terms = Terms(plan, plan.catalog_model)
    if problem := unanswerable(plan) or _unsearchable(plan) or untrainable(plan):
        raise problem
    runs = [solve(terms, end) for end in ENDS]
    if problem := problem_of(terms, runs) or _layout_problem(terms, runs[MIDDLE]):
        raise problem
    low, middle, high = (_estimate(terms, run) for run in runs)
    if not all(math.isfinite(end.days) and end.days > 0 for end in (low, middle, high)):
        raise BudgetError(plan.find, message("error.too_large"))
    if plan.find == "MFU" and low.mfu > 1:
        raise BudgetError("within", message("error.mfu_above_peak", mfu=low.mfu))
    with_layers = terms.model if terms.model and not terms.model.counted else None
    watts, share = drawn_power(plan.device, plan.power.draw)
    used = [
        float(energy.over(hours=end.hours, watts=watts, share=share, pue=plan.power.pue)) for end in (low, middle, high)
    ]
    return PlanEstimate(
        plan=plan,
        terms=terms,
        run=runs[MIDDLE],
        model=terms.model,
        shape=with_layers or proxy_model(spec_of(plan, middle.parameters)[0]),
        device=plan.device,
        dtype=plan.peak_dtype,
        peak=terms.peak,
        peak_ratio=terms.peak_ratio,
        low=low,
        middle=middle,
        high=high,
        token_work=terms.token_work,
        stored_parameters=max(1.0, terms.stored(middle.parameters)),
        energy=_ordered(used),
        carbon=_ordered(float(carbon.over(energy=wh, intensity=plan.power.grid)) for wh in used),
        dollars=_dollars(plan, low, middle, high),
    )


def timed_estimate(plan: Plan) -> PlanEstimate:
    """Return the estimate of a plan whose layout has a step time.

    Raises `LayoutError` if the plan has no layout, and `BudgetError` if its step cannot be timed.
    """
    a = estimate(plan)
    _ = a.step
    return a


def estimates(plans: Iterable[Plan]) -> list[PlanEstimate | BudgetError]:
    """Return the estimate of each plan, or the error if it has none."""
    results: list[PlanEstimate | BudgetError] = []
    for plan in plans:
        try:
            results.append(estimate(plan))
        except BudgetError as problem:
            results.append(problem)
    return results


def _unsearchable(plan: Plan) -> BudgetError | None:
    """Return why too many layouts would be tried for a plan; None if they are not."""
    problem = too_large(plan)
    return BudgetError(FIELD_IDS.get(problem.field, problem.field), str(problem)) if problem else None


def _layout_problem(terms: Terms, run: SolvedRun) -> BudgetError | None:
    """Return why a plan cannot have the layout that its days follow from."""
    plan = terms.plan
    if not plan.expects_mfu or not terms.has_step_estimate:
        return None
    whole = resolved_plan(plan, terms.stored(run.parameters), run.accelerators)
    try:
        plan_layout(whole)
    except LayoutError as problem:
        return BudgetError(
            FIELD_IDS.get(problem.field, problem.field), message("error.invalid_layout", problem=str(problem))
        )
    found = found_layout(whole)
    if found is None or found.fits or plan.own_layout:
        return None
    return DoesNotFitError(whole)


def _estimate(terms: Terms, run: SolvedRun) -> RunEstimate:
    """Return a run at one end, with everything that follows from it."""
    plan = terms.plan
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = _quantities(terms, run)
        most = most_drawn(plan.device, plan.power.draw)
        values["peak_watts"] = peak_power.over(accelerators=values["accelerators"], watts=most, pue=plan.power.pue)
    return RunEstimate(**{name: float(value) for name, value in values.items()})


def _goodput_and_mfus(terms: Terms, run: SolvedRun) -> dict[str, Any]:
    """Return goodput, and the end-to-end MFU, in steady state, and while it trains.

    Typed of the steps: that is both the steps' and the one while it trains. Typed over all hours: while it trains it is
    that over the goodput, and the steps' no lower. Expected: the layout's is both. A run is never faster than its
    steps: where its MFU is above the layout's, as one that is entered or the early end of a range may be, its steps are
    faster than the layout's are estimated at.
    """
    goodput = float(terms.interruptions(run.parameters, run.accelerators).goodput)
    if terms.plan.mfu_is_of_steps:
        typed = terms.typed_mfu(run.end)
        mfu = mfu_of_all_hours.over(steps=typed, goodput=goodput)
        return {"goodput": goodput, "steps_mfu": typed, "mfu": mfu, "mfu_while_training": typed}
    steps, mfu = terms.layout_mfu(run.parameters, run.accelerators), run.mfu
    with np.errstate(divide="ignore", invalid="ignore"):  # no time that trains has no steps that are fast enough
        if terms.plan.expects_mfu:
            others = mfu / steps / goodput  # what published runs lose beside failures; the MFU again, as its formulas
            mfu = whole_run_mfu.over(steps=steps, share=share_of_steps.over(goodput=goodput, without_failures=others))
            steps = while_training = max(steps, mfu)
        else:
            while_training = mfu_of_steps.over(mfu=mfu, goodput=goodput)
            steps = max(steps, while_training)
    return {"goodput": goodput, "steps_mfu": steps, "mfu": mfu, "mfu_while_training": while_training}


def _quantities(terms: Terms, run: SolvedRun) -> dict[str, Any]:
    """Return every quantity of `RunEstimate` but power: tokens times FLOPs of each, over what the accelerators do in a
    second, are days. Tokens and MFU that were asked for come from their own form of the budget equation."""
    n, peak, mfu, tokens, find = run.accelerators, terms.peak, run.mfu, run.tokens, terms.plan.find
    per_parameter = terms.per_parameter(run.parameters)
    per_token = flop_of_a_token.over(per_parameter=per_parameter, parameters=run.parameters)
    days = run.allowed_days
    seconds: Any = 86400 * days
    if terms.in_money and find != "parameters":
        hours = hours_affordable.over(dollars=run.allowed_dollars, price=run.price)
        days = days_of.over(hours=hours, accelerators=n)
        seconds = 3600 * hours / n
    if find == "tokens":
        tokens = tokens_trainable.over(accelerators=n, peak=peak, mfu=mfu, seconds=seconds, per_token=per_token)
    flop = flop_of_a_run.over(per_token=per_token, tokens=tokens)
    if find == "MFU":
        mfu = mfu_needed.over(flop=flop, accelerators=n, peak=peak, seconds=seconds)
    elif find != "tokens":
        seconds = training_seconds.over(flop=flop, accelerators=n, peak=peak, mfu=mfu)
        days = seconds / 86400
    hours = accelerator_hours.over(accelerators=n, seconds=seconds)
    goodput_and_mfus = _goodput_and_mfus(terms, replace(run, mfu=mfu))
    return {
        "parameters": run.parameters,
        "tokens": tokens,
        "accelerators": n,
        "days": days,
        "price": run.price,
        "hours": hours,
        "flop": flop,
        "per_parameter": per_parameter,
        "dollars": rent.over(hours=hours, price=run.price),
        "tokens_per_second": tokens_per_second.over(tokens=tokens, seconds=seconds),
        **goodput_and_mfus,
        "steps_days": days * goodput_and_mfus["mfu"] / goodput_and_mfus["steps_mfu"],
    }


def _ordered(values: Iterable[float]) -> Interval:
    return Interval(*sorted(map(float, values)))


def _dollars(plan: Plan, low: RunEstimate, middle: RunEstimate, high: RunEstimate) -> Interval:
    """Return dollars over the range of the hours and that of the price."""
    if plan.within.in_money and plan.find != "time":
        return Interval.point(plan.within.dollars)
    least, most = plan.price_range
    hours = sorted((low.hours, middle.hours, high.hours))
    return Interval(hours[0] * least, middle.dollars, hours[2] * most)
