"""One plan, one answer: everything that any page, report or notebook says about a plan, worked out once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from core.formula import Explanation, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.hardware.matmul import best_matmul
from core.hardware.roofline import explain_device
from core.models.catalog import CatalogModel, nearest_dense
from core.planning.answer.holding import Held, held, settled
from core.planning.answer.plan import Find, Plan
from core.planning.answer.solving import Array, Solved, Terms, solve
from core.planning.budget.equations import (
    accelerators_needed,
    flop_of_a_run,
    flop_of_a_token,
    hours_affordable,
    mfu_needed,
    parameters_trainable,
    tokens_trainable,
)
from core.planning.budget.interval import Interval
from core.planning.budget.rule import accelerator_hours, rent, tokens_per_second, training_seconds
from core.planning.counting.lengths import Work
from core.planning.evidence import expectation
from core.planning.whole.energy import footprint
from core.planning.whole.goodput import Stops
from core.sources import OWN, PALM

_SHARE = Symbol("g", "goodput, the share of the time on the wall that trains", "ratio")
_ALL = Symbol("u", "MFU over all hours", "ratio")
_STEPS = Symbol("u_s", "MFU of the steps themselves", "ratio")
_DEFINED = (OWN.at("from MFU as PaLM defines it"), PALM.at("section 4.1"))


@formula(
    r"\v{steps} \cdot \v{goodput}",
    result=_ALL,
    symbols={"steps": _STEPS, "goodput": _SHARE},
    sources=_DEFINED,
)
def mfu_of_all_hours(steps: float, goodput: float) -> float:
    """MFU over all hours, from that of the steps."""
    return steps * goodput


@formula(
    r"\frac{\v{mfu}}{\v{goodput}}",
    result=_STEPS,
    symbols={"mfu": _ALL, "goodput": _SHARE},
    sources=_DEFINED,
)
def mfu_of_steps(mfu: float, goodput: float) -> float:
    """MFU of the steps themselves.

    All the work falls into the part of the time that trains, so the steps are faster than all hours together.
    """
    return mfu / goodput


@dataclass(frozen=True, slots=True)
class Column:
    """The budget at one end of its range, or in its middle.

    mfu: over all hours; steps: of the steps alone. hours: accelerator-hours. price: dollars per accelerator-hour, and
    dollars: NaN where unknown. tokens_per_second: of the whole cluster, over all hours. days: on the wall.
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
    steps: float
    dollars: float
    tokens_per_second: float


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What a plan comes to.

    low, middle, high: at the low end, the middle and the high end of the MFU. model: whose layers are known; None where
    only a number of parameters is. shape: that model, or the one whose layers stand in for it. expected: the MFU over
    all hours that published runs lead one to expect of this plan, of its own peak. stops: of the middle; all_stops: of
    the low end, the middle and the high end, in a row. stored: parameters of the middle, every expert included.
    """

    plan: Plan
    model: CatalogModel | None
    shape: CatalogModel
    device: Accelerator
    dtype: str
    peak: float
    scale: float
    low: Column
    middle: Column
    high: Column
    expected: Interval
    setting: expectation.Setting
    work: Work
    stops: Stops
    all_stops: Stops
    stored: float
    energy: Interval
    carbon: Interval
    dollars: Interval

    @property
    def find(self) -> Find:
        """What was asked for."""
        return self.plan.find

    @property
    def stands_in(self) -> bool:
        """Whether the layers of ``shape`` only stand in for those of the model."""
        return self.model is None or self.model.counted is not None

    @property
    def memory(self) -> Held:
        """What the fullest accelerator holds. Raises `LayoutError` where the plan cannot be laid out."""
        return held(settled(self.plan, self.stored, self.middle.accelerators))

    @property
    def published(self) -> bool:
        """Whether the MFU is that of published runs."""
        return self.plan.mfu is None and self.plan.find != "MFU"

    @property
    def typed(self) -> bool:
        """Whether the MFU was typed."""
        return self.plan.mfu is not None and self.plan.find != "MFU"

    def over(self, name: str) -> Interval:
        """The range of the column's quantity ``name``."""
        ends = sorted(float(getattr(end, name)) for end in (self.low, self.middle, self.high))
        return Interval(*ends)

    @property
    def found(self) -> Interval:
        """What was asked for, with its range: days, tokens, parameters, accelerators or MFU."""
        return self.over(COLUMN[self.find])

    @property
    def ceiling(self) -> float:
        """The best bare matmul of the accelerator, as a share of the peak: measured, or as its relatives do."""
        return ceiling_of(self.device, self.dtype)

    @property
    def impossible(self) -> bool:
        """Whether the steps would have to be faster than the accelerator's best matmul."""
        return bool(too_fast(self.middle.steps, self.ceiling))

    def explain(self) -> list[Explanation]:
        """Every number of the middle, from the answer down to what was given."""
        m = self.middle
        seconds = 86400 * m.days
        cluster = {"accelerators": m.accelerators, "peak": self.peak}
        money = [] if math.isnan(m.dollars) else [rent.explain(hours=m.hours, price=m.price)]
        count = accelerator_hours.explain(accelerators=m.accelerators, seconds=seconds)
        per_token = m.per_parameter * m.parameters
        work = [
            flop_of_a_run.explain(per_token=per_token, tokens=m.tokens),
            flop_of_a_token.explain(per_parameter=m.per_parameter, parameters=m.parameters),
            *self.work.explain(m.parameters),
        ]
        match self.find:
            case "time":
                first = [training_seconds.explain(flop=m.flop, mfu=m.mfu, **cluster)]
            case "tokens":
                first = [tokens_trainable.explain(mfu=m.mfu, seconds=seconds, per_token=per_token, **cluster)]
                work = work[1:]
            case "parameters":
                given = {"per_parameter": m.per_parameter, "tokens": m.tokens}
                first = [parameters_trainable.explain(mfu=m.mfu, seconds=seconds, **given, **cluster)]
                work = work[2:]
            case "accelerators":
                first = [accelerators_needed.explain(flop=m.flop, peak=self.peak, mfu=m.mfu, seconds=seconds)]
            case "MFU":
                first = [mfu_needed.explain(flop=m.flop, seconds=seconds, **cluster)]
        if self.find != "time" and self.plan.limits.in_money:
            first.append(hours_affordable.explain(dollars=self.plan.limits.dollars, price=m.price))
        rate = tokens_per_second.explain(tokens=m.tokens, seconds=seconds)
        return [*first, count, *money, rate, *work, *self.explain_mfu(), *explain_device(self.device, self.dtype)]

    def explain_mfu(self) -> list[Explanation]:
        """Where the MFU comes from: published runs, or goodput and the steps; and what stops the run."""
        m = self.middle
        steps = [] if self.published is False else expectation.explain(self.setting)
        if self.typed and self.plan.pace == "steady steps":
            return [mfu_of_all_hours.explain(steps=m.steps, goodput=m.goodput), *self.stops.explain()]
        return [*steps, mfu_of_steps.explain(mfu=m.mfu, goodput=m.goodput), *self.stops.explain()]


def ceiling_of(device: Accelerator, dtype: str) -> float:
    """The best bare matmul of an accelerator, as a share of its peak; 1 where nobody measured one."""
    share = best_matmul(device.name, dtype).share
    return 1.0 if math.isnan(share) else min(share, 1.0)


def too_fast(steps: Array | float, ceiling: float) -> Any:
    """Whether steps of this MFU are faster than the best matmul, beyond rounding."""
    return np.greater(steps, ceiling * (1 + 1e-9))


COLUMN: dict[Find, str] = {
    "time": "days",
    "tokens": "tokens",
    "parameters": "parameters",
    "accelerators": "accelerators",
    "MFU": "mfu",
}
"""What is asked for → the quantity of `Column` that answers it."""


@lru_cache(maxsize=1024)
def answer(plan: Plan) -> Answer:
    """Everything that follows from ``plan``.

    Raises `BudgetError`, whose field names what is at fault, where there is no answer: money without a price, a limit
    that no cluster can keep, failures that leave no progress, numbers that overflow.
    """
    terms = Terms(plan, plan.known)
    solved = solve(terms)
    stops = terms.stops(solved.parameters, solved.accelerators)
    low, middle, high = _columns(terms, solved, stops.goodput)
    setting = terms.setting(middle.parameters, middle.tokens, middle.accelerators)
    expected = Interval(*(float(end[1]) for end in terms.expected(solved.parameters, solved.tokens)))
    device, power = plan.device, plan.power
    watts = {"share": power.draw, "pue": power.pue, "intensity": power.grid}
    feet = [footprint(h, device.tdp_watts, **watts) for h in sorted((low.hours, middle.hours, high.hours))]
    return Answer(
        plan=plan,
        model=terms.model,
        shape=terms.model
        if terms.model and not terms.model.counted
        else nearest_dense(middle.parameters, plan.seq_len),
        device=device,
        dtype=terms.dtype,
        peak=terms.peak,
        scale=terms.scale,
        low=low,
        middle=middle,
        high=high,
        expected=expected,
        setting=setting,
        work=terms.work,
        stops=stops.at(1),
        all_stops=stops,
        stored=max(1.0, float(terms.total(middle.parameters))),
        energy=Interval(*(foot.energy for foot in feet)),
        carbon=Interval(*(foot.carbon for foot in feet)),
        dollars=_dollars(plan, low, middle, high),
    )


def dollars_over(a: Answer) -> str:
    """Of what the dollars are a range: of hours, of prices, or both; empty where they are one amount."""
    if not a.dollars.low < a.dollars.high:
        return ""
    over = ["hours"] if a.over("hours").low < a.over("hours").high else []
    over += ["prices"] if a.plan.price_range[0] < a.plan.price_range[1] else []
    return f"over the range of {' and '.join(over)}"


def columns(terms: Terms, s: Solved, goodput: Array) -> dict[str, Array]:
    """Every quantity of `Column` at the low end, the middle and the high end (last axis), of one plan or of many."""
    mfu = terms.plan.mfu
    per_parameter = terms.work.per_parameter(s.parameters)
    hours = 24 * s.days * s.accelerators
    # What failures leave no progress has no steps that are fast enough.
    goodput = np.broadcast_to(goodput, s.mfu.shape)
    steps = np.divide(s.mfu, goodput, out=np.full(s.mfu.shape, math.inf), where=goodput > 0)
    if terms.steady and mfu:
        steps = np.array([mfu.low, mfu.mid, mfu.high])
    named = {
        "parameters": s.parameters,
        "tokens": s.tokens,
        "accelerators": s.accelerators,
        "days": s.days,
        "mfu": s.mfu,
        "price": s.price,
        "hours": hours,
        "flop": per_parameter * s.parameters * s.tokens,
        "per_parameter": per_parameter,
        "goodput": goodput,
        "steps": steps,
        "dollars": hours * s.price,
        "tokens_per_second": s.tokens / (86400 * s.days),
    }
    return {name: np.broadcast_to(value, s.mfu.shape) for name, value in named.items()}


def _columns(terms: Terms, s: Solved, goodput: Array) -> list[Column]:
    named = columns(terms, s, goodput)
    return [Column(**{name: float(values[i]) for name, values in named.items()}) for i in range(3)]


def _dollars(plan: Plan, low: Column, middle: Column, high: Column) -> Interval:
    """Dollars over the range of the hours and that of the price."""
    if plan.limits.in_money and plan.find != "time":
        return Interval.point(plan.limits.dollars)
    least, most = plan.price_range
    hours = sorted((low.hours, middle.hours, high.hours))
    return Interval(hours[0] * least, middle.dollars, hours[2] * most)
