"""Plans evaluated, one or many: everything that a page, a report or a notebook says about a plan, worked out once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.budget.equations import (
    accelerators_needed,
    days_of,
    flop_of_a_run,
    flop_of_a_token,
    hours_affordable,
    mfu_needed,
    parameters_trainable,
    tokens_trainable,
    whole_units,
)
from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.budget.run import accelerator_hours, rent, tokens_per_second, training_seconds
from core.formula import Explanation, Formula, explain_run
from core.hardware.accelerators import Accelerator
from core.hardware.matmul import ceiling_of
from core.hardware.node_power import node_power, part_of_node
from core.hardware.roofline import explain_device
from core.models.catalog import CatalogModel, nearest_dense
from core.planning.memory_estimate import MemoryEstimate, memory_estimate, resolved_plan
from core.planning.plan import Find, Plan, Power, Within, whole_accelerators
from core.planning.resolved_layout import FIELD_IDS, constraints_of, plan_layout, too_large
from core.planning.solving import Array, SolvedRuns, Terms, allocation_units, problems_of, solve
from core.planning.throughput import WIDTHS, untrainable
from core.runs.energy import carbon, drawn_power, energy, footprint, most_drawn, peak_power
from core.runs.goodput import Interruptions, mfu_of_all_hours, mfu_of_steps
from core.runs.long_sequences import TokenWork
from core.runs.share import share_of_steps, whole_run_mfu
from core.runs.utilisation import peak_16bit
from core.search.constraints import ANY_LAYOUT
from core.training.layout import LayoutError

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The budget at one end of its range, or in its middle.

    parameters: those that work on each token. mfu: over all hours; steps_mfu: of the steps alone, as typed, or of the
    plan's layout and no slower than the whole run needs them; steps_days: days that they take by themselves;
    mfu_while_training: over the hours that lose and write nothing. hours: accelerator-hours. price: dollars per
    accelerator-hour, and dollars: NaN where unknown. tokens_per_second: of the whole cluster, over all hours. days: on
    the wall. peak_watts: most that the building draws for it at once, NaN where unknown."""

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
class Answer:
    """What a plan comes to.

    terms, run: what it was worked out from, `run` in plain numbers of the middle. peak_ratio: 16-bit peak over the peak
    that counts, 1 where products are no narrower. low, middle, high: at the low end, the middle and the high end of the
    MFU. model: whose layers are known; None where only a number of parameters is. shape: that model, or the one whose
    layers stand in for it. sizes: parameters and accelerators of all three. stored_parameters: of the middle, every
    expert included.
    """

    plan: Plan
    terms: Terms
    run: SolvedRuns
    model: CatalogModel | None
    shape: CatalogModel
    device: Accelerator
    dtype: str
    peak: float
    peak_ratio: float
    low: Estimate
    middle: Estimate
    high: Estimate
    token_work: TokenWork
    sizes: tuple[Array, Array]
    stored_parameters: float
    energy: Interval
    carbon: Interval
    dollars: Interval

    @cached_property
    def all_interruptions(self) -> Interruptions:
        """What interrupts the run: of the low end, the middle and the high end, in a row."""
        return self.terms.interruptions(*self.sizes)

    @cached_property
    def expected(self) -> Interval:
        """MFU over all hours that published runs lead one to expect of this plan, of its own peak."""
        return Interval(*map(float, self.terms.expected(*(size[1:2] for size in self.sizes))))

    @property
    def interruptions(self) -> Interruptions:
        return self.all_interruptions.at(1)

    @property
    def find(self) -> Find:
        """What was asked for."""
        return self.plan.find

    @property
    def stands_in(self) -> bool:
        """Whether the layers of ``shape`` only stand in for those of the model."""
        return self.model is None or self.model.counted is not None

    @property
    def count(self) -> int:
        """Accelerators of the middle, which come whole."""
        return whole_accelerators(self.middle.accelerators)

    @cached_property
    def on_found_accelerators(self) -> Answer:
        """The answer on the accelerators that were found, whose days have a range; itself where they were given."""
        if self.find != "accelerators":
            return self
        return answer(replace(self.plan, find="time", accelerators=float(self.count)))

    @property
    def memory(self) -> MemoryEstimate:
        """What the fullest accelerator holds. Raises `LayoutError` where the plan cannot be laid out."""
        return memory_estimate(resolved_plan(self.plan, self.stored_parameters, self.middle.accelerators))

    @property
    def layout_mfu(self) -> float:
        """MFU that the steps of the plan's layout are estimated at, whatever was typed."""
        m = self.middle
        return float(self.terms.layout_mfu(np.array(m.parameters), np.array(m.accelerators)))

    @property
    def layout_days(self) -> float:
        """Days that those steps would take."""
        return self.middle.days * self.middle.mfu / self.layout_mfu

    def range_of(self, name: str) -> Interval:
        """The range of a quantity of `Estimate`."""
        ends = sorted(float(getattr(end, name)) for end in (self.low, self.middle, self.high))
        return Interval(*ends)

    @property
    def result(self) -> Interval:
        """What was asked for, with its range: days, tokens, parameters, accelerators or MFU."""
        return self.range_of(_FOUND[self.find][0])

    @property
    def ceiling(self) -> float:
        """The best bare matmul of the accelerator, as a share of the peak: measured, or as its relatives do."""
        return ceiling_of(self.device, self.dtype)

    @property
    def impossible(self) -> bool:
        """Whether the steps would have to be faster than the accelerator's best matmul."""
        return bool(too_fast(self.middle.mfu_while_training, self.ceiling))

    def explain(self) -> list[Explanation]:
        """Every number of the middle, from the answer down to what was given: the formulas that it was worked out by.

        The very functions that worked it out run again on its plain numbers, and are recorded.
        """
        steps = [*reversed(explain_run(lambda: _quantities(self.terms, self.run), zeros=True))]
        answer_first = sorted(steps, key=lambda step: step.name != _FOUND[self.find][1].name)
        return [*answer_first, *explain_device(self.device, self.dtype)]

    def explain_power(self) -> list[Explanation]:
        """Carbon, energy and the most that is drawn at once; nothing of what is unknown."""
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
        """Where the MFU comes from: the steps, goodput and published runs; and what stops the run."""
        return [*reversed(explain_run(lambda: _goodput_and_mfus(self.terms, self.run), zeros=True))]


def too_fast(steps_mfu: Array | float, ceiling: Array | float) -> Any:
    """Whether steps of this MFU are faster than the best matmul, beyond rounding."""
    return np.greater(steps_mfu, ceiling * (1 + 1e-9))


_FOUND: dict[Find, tuple[str, Formula[...]]] = {
    "time": ("days", training_seconds),
    "tokens": ("tokens", tokens_trainable),
    "parameters": ("parameters", parameters_trainable),
    "accelerators": ("accelerators", whole_units),
    "MFU": ("mfu", mfu_needed),
}
"""What is asked for → the quantity of `Estimate` that answers it, and its formula."""


@dataclass(frozen=True, eq=False, slots=True)
class Evaluation:
    """What plans come to: a row each. Arrays of `quantities` also have a column each for low end, middle and high end.

    terms: of each row. run: what was given and found. quantities: all of `Estimate`. energy in Wh, carbon in kg.
    stored_parameters: of the middle. problems: why a row has no answer, whose numbers are NaN then.
    """

    plans: tuple[Plan, ...]
    terms: tuple[Terms, ...]
    run: SolvedRuns
    quantities: dict[str, Array]
    stored_parameters: Array
    energy: Array
    carbon: Array
    problems: tuple[BudgetError | None, ...]

    def middle(self, name: str) -> Array:
        """A quantity of `Estimate` in the middle of every row's range."""
        return self.quantities[name][:, 1]

    @property
    def impossible(self) -> Bools:
        """Whether the steps would have to be faster than the accelerator's best matmul."""
        ceilings = np.array([ceiling_of(t.plan.device, t.dtype) for t in self.terms])
        return np.asarray(too_fast(self.middle("mfu_while_training"), ceilings))

    def answer(self, row: int) -> Answer:
        """The answer of one plan. Raises its `BudgetError` where there is none."""
        if problem := self.problems[row]:
            raise problem
        plan, terms = self.plans[row], self.terms[row]
        low, middle, high = (
            Estimate(**{name: float(values[row, i]) for name, values in self.quantities.items()}) for i in range(3)
        )
        with_layers = terms.model if terms.model and not terms.model.counted else None
        return Answer(
            plan=plan,
            terms=terms,
            run=self.run.at_end(row, 1),
            model=terms.model,
            shape=with_layers or nearest_dense(middle.parameters, plan.seq_len),
            device=plan.device,
            dtype=terms.dtype,
            peak=terms.peak,
            peak_ratio=min(1.0, peak_16bit(plan.accelerator) / terms.peak) if terms.dtype in WIDTHS else 1.0,
            low=low,
            middle=middle,
            high=high,
            token_work=terms.token_work,
            sizes=(self.run.parameters[row], self.run.accelerators[row]),
            stored_parameters=float(self.stored_parameters[row]),
            energy=_ordered(self.energy[row]),
            carbon=_ordered(self.carbon[row]),
            dollars=_dollars(plan, low, middle, high),
        )


@lru_cache(maxsize=1024)
def answer(plan: Plan) -> Answer:
    """Everything that follows from ``plan``.

    Raises `BudgetError`, whose field names what is at fault, where there is no answer: money without a price, a limit
    that no cluster can keep, failures that leave no progress, numbers that overflow.
    """
    return evaluate((plan,)).answer(0)


def evaluate(plans: Sequence[Plan]) -> Evaluation:
    """What plans come to. Those that differ in numbers alone are worked out together, as arrays."""
    groups: dict[Plan, list[int]] = {}
    for i, plan in enumerate(plans):
        groups.setdefault(_group_key(plan), []).append(i)
    parts: list[tuple[list[int], Evaluation]] = []
    for shared, rows in groups.items():
        parts.append((rows, _evaluate_group(Terms(shared, shared.catalog_model), [plans[i] for i in rows])))
    return parts[0][1] if len(parts) == 1 else _concatenated(plans, parts)


def _concatenated(plans: Sequence[Plan], parts: Sequence[tuple[list[int], Evaluation]]) -> Evaluation:
    """Evaluations of some rows each, in the order of all plans."""
    order: list[int] = np.argsort(np.concatenate([rows for rows, _ in parts])).tolist()
    every = [part for _, part in parts]

    def concatenated(name: str, of: Callable[[Evaluation], Any] = lambda part: part) -> Array:
        return np.concatenate([getattr(of(part), name) for part in every])[order]

    terms = [term for part in every for term in part.terms]
    problems = [problem for part in every for problem in part.problems]
    return Evaluation(
        plans=tuple(plans),
        terms=tuple(terms[i] for i in order),
        run=SolvedRuns(**{field.name: concatenated(field.name, lambda part: part.run) for field in fields(SolvedRuns)}),
        quantities={
            name: np.concatenate([part.quantities[name] for part in every])[order] for name in every[0].quantities
        },
        problems=tuple(problems[i] for i in order),
        **{name: concatenated(name) for name in ("stored_parameters", "energy", "carbon")},
    )


_ANY = Plan()


def _group_key(plan: Plan) -> Plan:
    """What plans that are worked out together share: a plan without what its hours do not follow from, or follow from
    as arrays. How much less of the work frozen weights leave depends on the size of the model that stands in."""
    return replace(
        plan,
        within=Within(math.nan) if plan.find != "time" and plan.within.in_money else _ANY.within,
        parameters=_ANY.parameters if plan.trained.everything else plan.parameters,
        tokens=_ANY.tokens,
        accelerators=_ANY.accelerators,
        attention=_ANY.attention,
        prices=None,
        layout=plan.layout if plan.own_layout else _ANY.layout,
        power=Power(),
        objective=_ANY.objective,
        limits=_ANY.limits,
    )


def _evaluate_group(terms: Terms, plans: Sequence[Plan]) -> Evaluation:
    """Plans that share ``terms``."""
    run, device = solve(terms, plans), terms.plan.device
    power = {name: np.array([[getattr(plan.power, name)] for plan in plans]) for name in ("pue", "grid")}
    watts, share = np.array([drawn_power(device, plan.power.draw) for plan in plans]).T[..., None]
    most = np.array([[most_drawn(device, plan.power.draw)] for plan in plans])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        quantities = {name: np.broadcast_to(value, run.mfu.shape) for name, value in _quantities(terms, run).items()}
        quantities["peak_watts"] = peak_power.over(
            accelerators=quantities["accelerators"], watts=most, pue=power["pue"]
        )
        used = energy.over(hours=quantities["hours"], watts=watts, share=share, pue=power["pue"])
        emitted = carbon.over(energy=used, intensity=power["grid"])
    days = quantities["days"]
    countable = np.all(np.isfinite(days) & (days > 0), axis=1)
    why, beyond = (
        _unsearchable(terms.plan) or untrainable(terms.plan),
        BudgetError(terms.plan.find, "These numbers go beyond what can be counted."),
    )
    problems = [
        problem or why or (None if fine else beyond)
        for problem, fine in zip(problems_of(terms, plans, run, quantities["goodput"]), countable, strict=True)
    ]
    has_constraints = terms.plan.own_layout or constraints_of(terms.plan) != ANY_LAYOUT
    if has_constraints and terms.plan.expects_mfu and terms.throughput.has_step_estimate:
        middles = zip(quantities["parameters"][:, 1], quantities["accelerators"][:, 1], strict=True)
        layout_problems = [_layout_problem(terms, plan, *middle) for plan, middle in zip(plans, middles, strict=True)]
        problems = [problem or why for problem, why in zip(problems, layout_problems, strict=True)]
    bad = np.array([problem is not None for problem in problems])
    for name, values in quantities.items():
        quantities[name] = np.where(bad[:, None], np.nan, values)
    stored = np.asarray(terms.stored_parameters(quantities["parameters"][:, 1]))
    return Evaluation(
        plans=tuple(plans),
        terms=(terms,) * len(plans),
        run=run,
        quantities=quantities,
        stored_parameters=np.where(bad, np.nan, np.maximum(1.0, stored)),
        energy=np.where(bad[:, None], np.nan, used),
        carbon=np.where(bad[:, None], np.nan, emitted),
        problems=tuple(problems),
    )


def _unsearchable(plan: Plan) -> BudgetError | None:
    """Why too many layouts would be tried for a plan; None where they are not."""
    problem = too_large(plan)
    return BudgetError(FIELD_IDS.get(problem.field, problem.field), str(problem)) if problem else None


def _layout_problem(terms: Terms, plan: Plan, params: float, accelerators: float) -> BudgetError | None:
    """Why a plan cannot have the layout that its days would follow from."""
    try:
        if math.isfinite(params + accelerators):
            plan_layout(resolved_plan(plan, float(terms.stored_parameters(params)), float(accelerators)))
    except LayoutError as problem:
        return BudgetError(FIELD_IDS.get(problem.field, problem.field), f"The layout cannot be: {problem}")
    return None


def _goodput_and_mfus(terms: Terms, run: SolvedRuns) -> dict[str, Any]:
    """Goodput, and the MFU over all hours, of the steps alone, and while it trains.

    Typed of the steps: that is both the steps' and the one while it trains. Typed over all hours: while it trains it is
    that over the goodput, and the steps' no lower. Expected: the layout's is both. A run is never faster than its
    steps: where its MFU is above the layout's, as one that is typed or the early end of a range may be, its steps are
    faster than the layout's are estimated at.
    """
    goodput = terms.interruptions(run.parameters, run.accelerators).goodput
    if terms.plan.mfu_is_of_steps:
        typed = terms.typed_mfu(run)
        mfu = mfu_of_all_hours.over(steps=typed, goodput=goodput)
        return {"goodput": goodput, "steps_mfu": typed, "mfu": mfu, "mfu_while_training": typed}
    steps, mfu = terms.layout_mfu(run.parameters, run.accelerators), run.mfu
    with np.errstate(divide="ignore", invalid="ignore"):  # no time that trains has no steps that are fast enough
        if terms.plan.expects_mfu:
            others = mfu / steps / goodput  # what published runs lose beside failures; the MFU again, as its formulas
            mfu = whole_run_mfu.over(steps=steps, share=share_of_steps.over(goodput=goodput, without_failures=others))
            steps = while_training = np.maximum(steps, mfu)
        else:
            while_training = mfu_of_steps.over(mfu=mfu, goodput=goodput)
            steps = np.maximum(steps, while_training)
    return {"goodput": goodput, "steps_mfu": steps, "mfu": mfu, "mfu_while_training": while_training}


def _quantities(terms: Terms, run: SolvedRuns) -> dict[str, Any]:
    """Every quantity of `Estimate` of runs, as arrays or as the numbers of one end: tokens times FLOPs of each, over
    what the accelerators do in a second, are days.

    What was asked for comes from its own form of the budget equation, at the MFU that the root was found with.
    """
    n, peak, mfu, find = run.accelerators, terms.peak, run.mfu, terms.plan.find
    per_parameter = terms.per_parameter(run.parameters)
    per_token = flop_of_a_token.over(per_parameter=per_parameter, parameters=run.parameters)
    parameters, tokens, days = run.parameters, run.tokens, run.allowed_days
    seconds: Any = 86400 * days
    if terms.in_money:
        hours = hours_affordable.over(dollars=run.allowed_dollars, price=run.price)
        days = days_of.over(hours=hours, accelerators=n)
        seconds = 3600 * hours / n
    match find:
        case "tokens":
            tokens = tokens_trainable.over(accelerators=n, peak=peak, mfu=mfu, seconds=seconds, per_token=per_token)
        case "parameters":
            given = {"per_parameter": per_parameter, "tokens": tokens}
            parameters = parameters_trainable.over(accelerators=n, peak=peak, mfu=mfu, seconds=seconds, **given)
        case _:
            pass
    flop = flop_of_a_run.over(per_token=per_token, tokens=tokens)
    match find:
        case "time":
            seconds = training_seconds.over(flop=flop, accelerators=n, peak=peak, mfu=mfu)
            days = seconds / 86400
        case "accelerators":
            needed = accelerators_needed.over(flop=flop, peak=peak, mfu=run.mfu_before_rounding, seconds=seconds)
            n = whole_units.over(needed=needed, unit=allocation_units(terms.plan, needed))
            seconds = training_seconds.over(flop=flop, accelerators=n, peak=peak, mfu=mfu)
            days = seconds / 86400
        case "MFU":
            mfu = mfu_needed.over(flop=flop, accelerators=n, peak=peak, seconds=seconds)
        case _:
            pass
    hours = accelerator_hours.over(accelerators=n, seconds=seconds)
    goodput_and_mfus = _goodput_and_mfus(terms, replace(run, mfu=mfu))
    return {
        "parameters": parameters,
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


def _ordered(values: Array) -> Interval:
    return Interval(*sorted(map(float, values)))


def _dollars(plan: Plan, low: Estimate, middle: Estimate, high: Estimate) -> Interval:
    """Dollars over the range of the hours and that of the price."""
    if plan.within.in_money and plan.find != "time":
        return Interval.point(plan.within.dollars)
    least, most = plan.price_range
    hours = sorted((low.hours, middle.hours, high.hours))
    return Interval(hours[0] * least, middle.dollars, hours[2] * most)
