"""Plans beside each other: each with its answer or why it has none, their results, and how far these are apart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.fields import ParsedForm
from core.limits import cached
from core.planning.comparison.entry import RESULTS, Entry, results_of
from core.planning.comparison.names import short_names
from core.planning.estimate import PlanEstimate
from core.planning.form.plan_form import PLAN_FORM
from core.planning.memory_estimate import MemoryEstimate
from core.planning.plan import whole_accelerators
from core.planning.plan_limits import MEMORY_UNKNOWN, Check, checks
from core.runs.share import spread_of_like_runs
from core.training.layout import LayoutError

UNKNOWN = Interval.point(math.nan)

_MOVED = 1e-3
"""Share by which a result may be off what was kept of it before both are worth showing."""

SAME = 5e-4
"""Share below which two results are called the same: three digits do not tell them apart."""


@dataclass(frozen=True, eq=False, slots=True)
class ComparedPlan:
    """A plan in a comparison. answer: None where there is none, and why then says the reason. memory: None where the
    plan cannot be laid out, and unlaid then is the reason; or where there is no answer."""

    entry: Entry
    reading: ParsedForm
    answer: PlanEstimate | None
    memory: MemoryEstimate | None
    problem: str
    layout_problem: LayoutError | None
    told_apart: str = ""

    @property
    def name(self) -> str:
        """The plan's name."""
        return self.entry.name

    @property
    def short_name(self) -> str:
        """Its name without what all plans that it is compared with are called as well."""
        return self.told_apart or self.entry.name

    @property
    def price_unknown(self) -> bool:
        """Whether it has an answer without dollars."""
        return self.answer is not None and math.isnan(self.answer.dollars.mid)

    @property
    def owned(self) -> bool:
        """Whether it has an answer without rent, which no other can be cheaper than."""
        return self.answer is not None and self.answer.plan.owned

    @property
    def limits(self) -> tuple[Check, ...]:
        """Its limits, each kept or missed; none where nobody typed any, or it has no answer."""
        if self.answer is None or not self.answer.plan.limits.has_limits:
            return ()
        return (*checks(self.answer, self.memory), *(() if self.memory else (MEMORY_UNKNOWN,)))


def compare_plan(entry: Entry) -> ComparedPlan:
    """A plan with its answer."""
    plan = _answered(tuple(entry.texts[field.id] for field in PLAN_FORM.fields))
    return ComparedPlan(entry, plan.reading, plan.answer, plan.memory, plan.problem, plan.layout_problem)


def compare_plans(entries: Sequence[Entry]) -> tuple[ComparedPlan, ...]:
    """Plans with their answers, and with names that tell them apart."""
    names = short_names([entry.name for entry in entries])
    return tuple(replace(compare_plan(entry), told_apart=name) for entry, name in zip(entries, names, strict=True))


@cached("answers_kept")
def _answered(texts: tuple[str, ...]) -> ComparedPlan:
    """The same of a plan's texts in the form's order, by which it is kept."""
    entry = Entry("", {field.id: text for field, text in zip(PLAN_FORM.fields, texts, strict=True)})
    try:
        a = entry.answer
    except BudgetError as problem:
        return ComparedPlan(entry, entry.reading, None, None, str(problem), None)
    try:
        return ComparedPlan(entry, entry.reading, a, a.memory, "", None)
    except LayoutError as problem:
        return ComparedPlan(entry, entry.reading, a, None, "", problem)


def with_saved_results(entry: Entry) -> Entry:
    """A plan with the results of now; with none where it has no answer."""
    a = compare_plan(entry).answer
    return replace(entry, results=results_of(a) if a else {})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A result that plans are compared by, in the unit of `PlanEstimate`. fewer: whether less of it is better; None
    where neither is."""

    id: str
    label: str
    of: Callable[[PlanEstimate, MemoryEstimate | None], Interval]
    fewer: bool | None = None


def _counted(a: PlanEstimate, _: MemoryEstimate | None) -> Interval:
    return a.range_of("accelerators").through(lambda n: float(whole_accelerators(n)))


def _rent(a: PlanEstimate, _: MemoryEstimate | None) -> Interval:
    return UNKNOWN if a.plan.owned else a.dollars


def _memory(_: PlanEstimate, h: MemoryEstimate | None) -> Interval:
    return Interval.point(h.total) if h else UNKNOWN


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("days", "Whole run", lambda a, _: a.on_found_accelerators.range_of("days"), True),
    Quantity("steps_days", "Steps alone", lambda a, _: a.range_of("steps_days"), True),
    Quantity("dollars", "Rent", _rent, True),
    Quantity("accelerators", "Accelerators", _counted),
    Quantity("tokens", "Tokens trained on", lambda a, _: a.range_of("tokens")),
    Quantity("parameters", "Parameters that work on each token", lambda a, _: a.range_of("parameters")),
    Quantity("mfu", "MFU over all hours", lambda a, _: a.range_of("mfu")),
    Quantity("memory_bytes", "Peak memory per accelerator", _memory),
    Quantity("usable_bytes", "Memory capacity", lambda a, _: Interval.point(a.plan.usable_memory)),
    Quantity("watt_hours", "Energy", lambda a, _: a.energy, True),
    Quantity("peak_watts", "Peak power", lambda a, _: a.range_of("peak_watts"), True),
)
"""What is compared, in the order in which it is told."""

QUANTITY = {quantity.id: quantity for quantity in QUANTITIES}


def result(plan: ComparedPlan, quantity: Quantity) -> Interval:
    """What a plan comes to; all NaN where that is unknown."""
    return quantity.of(plan.answer, plan.memory) if plan.answer else UNKNOWN


def middles(plans: Sequence[ComparedPlan], quantity: Quantity) -> tuple[float, ...]:
    """The middle of a result of every plan; NaN where unknown."""
    return tuple(result(plan, quantity).mid for plan in plans)


def sooner_probability(plan: ComparedPlan, other: ComparedPlan) -> float:
    """How likely it is that a plan's run ends before another's, by the same people; NaN where an MFU is typed.

    What a team reaches of its steps moves both alike; as far as like runs of one lab differ, they move apart.
    """
    a, b = plan.answer, other.answer
    if a is None or b is None or not (a.plan.expects_mfu and b.plan.expects_mfu):
        return math.nan
    apart = math.log(b.middle.days / a.middle.days)
    return statistics.NormalDist(sigma=math.sqrt(2) * spread_of_like_runs()).cdf(apart)


def change(value: float, base: float) -> float:
    """``value`` as a share more than ``base``; NaN where either is unknown or there is nothing to be a share of."""
    if value == base:
        return 0.0
    return (value - base) / base if base else math.nan


def least(values: Sequence[float]) -> tuple[int, ...]:
    """Where the least of the known values stand, several where they are the same; none where all of them are."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ()
    at = tuple(i for i, value in enumerate(values) if value <= min(known) * (1 + SAME))
    return at if len(at) < len(known) else ()


@dataclass(frozen=True, slots=True)
class Lead:
    """The plan with the least of something, held against the baseline, or where it is that itself, the next best."""

    plan: int
    against: int
    less: float
    share: float


def lead(values: Sequence[float], base: int) -> Lead | None:
    """Who leads by having less; None where the first two are the same, or fewer than two are known."""
    order = sorted((i for i, value in enumerate(values) if math.isfinite(value)), key=lambda i: values[i])
    if len(order) < 2 or len(least(values)) != 1:
        return None
    first = order[0]
    against = base if base in order and base != first else order[1]
    return Lead(first, against, values[against] - values[first], -change(values[first], values[against]))


def changed_results(plan: ComparedPlan) -> tuple[tuple[str, float, float], ...]:
    """Results that were kept with a plan and are others now: name, then and now, in the units of `RESULTS`."""
    if plan.answer is None:
        return ()
    now, then = results_of(plan.answer), plan.entry.results
    both = ((name, then[name], now[name]) for name in RESULTS if name in then and name in now)
    return tuple(row for row in both if not math.isclose(row[1], row[2], rel_tol=_MOVED))
