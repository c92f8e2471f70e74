"""Plans compared: names, differing fields, results, and what changed since they were saved."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.budget.equations import BudgetError, Interval
from core.fields import Field, ParsedForm
from core.limits import cached, limit
from core.models.configs.custom import NAME
from core.planning.comparison.entry import RESULTS, Entry, results_of
from core.planning.decide.decision import decision_results
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import KEPT_FIELDS, LAYING, MICRO_BATCH, OWN_LAYOUT_FIELDS, RECOMPUTE, ZERO
from core.planning.form.plan_form import (
    COUNT,
    MFU,
    MFU_KIND,
    MODEL_NAME,
    PARAMETERS,
    PLAN_FORM,
    SHAPE,
    TRAINED,
    WITHIN,
    plan_of,
)
from core.planning.form.training import METHOD, OWN_FIELDS, POLICY, not_of
from core.planning.memory_estimate import MemoryEstimate
from core.planning.plan import OWN_LAYOUT, OWN_POLICY, OWN_SHAPE, TYPED, Plan, whole_accelerators
from core.planning.plan_limits import MEMORY_UNKNOWN, Check, checks
from core.runs.run_efficiency import spread_of_like_runs
from core.training.layout import LayoutError
from core.units import format_count, format_duration, format_money

_FOUND = {"tokens": TRAINED.id, "parameters": PARAMETERS.id, "accelerators": COUNT.id, "MFU": MFU.id}


_BEGUN = PLAN_FORM.parse({})
_ANY_LAYOUT = frozenset((*KEPT_FIELDS, *OWN_LAYOUT_FIELDS)) - {ZERO, RECOMPUTE, MICRO_BATCH}
"""Fields of a layout that do nothing in any plan as long as they are as they begin: degrees of 1, nothing kept to."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A field in which plans differ, and each plan's text; None if the field does not count in that plan."""

    field: Field
    texts: tuple[str | None, ...]


def effective_fields(reading: ParsedForm) -> frozenset[str]:
    """Return the ids of the fields on which a plan's answer depends.

    Fields of another model, layout, precision, or fine-tuning method are left out, and so is the field to solve for.
    """
    values = reading.values
    find, model = values["find"], values[MODEL_NAME.id]
    own = values[LAYING.id] == OWN_LAYOUT
    silent = {field.id for field in (KEPT_FIELDS if own else OWN_LAYOUT_FIELDS)}
    silent |= {_FOUND.get(find, WITHIN.id), *not_of(values[METHOD.id])}
    if find == "parameters":
        silent.add(MODEL_NAME.id)
    if find == "parameters" or model != TYPED:
        silent.add(PARAMETERS.id)
    if find == "parameters" or model != OWN_SHAPE:
        silent.add(SHAPE.id)
    if find == "MFU" or values[MFU.id] is None:
        silent.add(MFU_KIND.id)
    if values[POLICY.id] != OWN_POLICY:
        silent |= {item.id for item in OWN_FIELDS.values()}
    return frozenset(item.id for item in PLAN_FORM.fields if item.id not in silent)


def same_value(form: ParsedForm, other: ParsedForm, field: Field) -> bool:
    """Return whether two plans have the same value of a field: 1024 is 1,024."""
    return form.texts[field.id] == other.texts[field.id] or form.values[field.id] == other.values[field.id]


def differing_fields(readings: Sequence[ParsedForm]) -> tuple[Differing, ...]:
    """Return the fields in which plans differ, in the form's order."""
    counts = [effective_fields(reading) for reading in readings]
    differences: list[Differing] = []
    for field in PLAN_FORM.fields:
        results = [field.id in there for there in counts]
        given = [r for r, there in zip(readings, results, strict=True) if there]
        silent = field in _ANY_LAYOUT and all(same_value(r, _BEGUN, field) for r in given)
        if any(not same_value(r, given[0], field) for r in given[1:]) or (given and not all(results) and not silent):
            texts = tuple(r.texts[field.id] if there else None for r, there in zip(readings, results, strict=True))
            differences.append(Differing(field, texts))
    return tuple(differences)


_BETWEEN = " · "
_TELLING = 3
"""A name says up to so many fields in which its plan differs from another of the same name."""


def suggested(texts: Mapping[str, str], among: Collection[Entry] = ()) -> str:
    """Return a name for the plan of ``texts``: model, tokens, and accelerators.

    If one ``among`` the others has it, also the fields that differ: ``70B · 15T · 1,024 × H100 SXM · MFU 40%``.
    """
    reading = PLAN_FORM.parse(texts)
    name = _named(plan_of(reading))
    other = next((entry for entry in among if entry.name == name), None)
    if other:
        counts = effective_fields(reading)
        parts = [
            f"{field.label} {reading.texts[field.id]}"
            for field in PLAN_FORM.fields
            if field.id in counts and reading.texts[field.id] and not same_value(reading, other.reading, field)
        ]
        name = _BETWEEN.join((name, *parts[:_TELLING]))
    return unique(name, [entry.name for entry in among])


def _named(plan: Plan) -> str:
    within = plan.within
    limited = format_money(within.dollars) if within.in_money else format_duration(86400 * within.days, 3)
    model = {TYPED: format_count(plan.parameters), OWN_SHAPE: NAME}.get(plan.model, plan.model)
    count = "" if plan.find == "accelerators" else f"{format_count(plan.accelerators)} × "
    parts = (
        "" if plan.find == "parameters" else model,
        "" if plan.find == "tokens" else format_count(plan.tokens),
        f"{count}{plan.accelerator}",
        "" if plan.find == "time" else f"{'for' if within.in_money else 'in'} {limited}",
    )
    return _BETWEEN.join(filter(None, parts))


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without the parts with which all of them begin."""
    parts = [name.split(_BETWEEN) for name in names]
    same = 0
    if len(names) > 1:
        most = min(map(len, parts)) - 1
        same = next((i for i in range(most) if len({each[i] for each in parts}) > 1), most)
    return tuple(_BETWEEN.join(each[same:]) for each in parts)


def unique(name: str, taken: Collection[str]) -> str:
    """Return ``name``, cut to the longest name allowed, with a number if it is taken."""
    most = limit("plan_name")
    text, number = name[:most], 1
    while text in taken:
        number += 1
        text = f"{name[: most - 5]} ({number})"
    return text


def distinct(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the plans with distinct names: a repeated name gets a number."""
    result: list[Entry] = []
    for entry in entries:
        name = unique(entry.name, [other.name for other in result])
        result.append(entry if name == entry.name else replace(entry, name=name))
    return tuple(result)


UNKNOWN = Interval.point(math.nan)

_MOVED = 1e-3
"""Share by which a result may be off what was kept of it before both are worth showing."""

SAME = 5e-4
"""Share below which two results are called the same: three digits do not tell them apart."""


@dataclass(frozen=True, eq=False, slots=True)
class ComparedPlan:
    """A plan in a comparison.

    answer: None without a result; ``problem`` is the reason. memory: None without a result or for an invalid layout;
    ``layout_problem`` is the reason.
    """

    entry: Entry
    reading: ParsedForm
    answer: PlanEstimate | None = None
    memory: MemoryEstimate | None = None
    problem: str = ""
    layout_problem: LayoutError | None = None
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
        """Whether the plan has a result but no cost."""
        return self.answer is not None and math.isnan(self.answer.dollars.mid)

    @property
    def owned(self) -> bool:
        """Whether the plan has a result without rent, because its accelerators are owned."""
        return self.answer is not None and self.answer.plan.owned

    @property
    def limits(self) -> tuple[Check, ...]:
        """The plan's limits, each met or missed; empty without limits or without a result."""
        if self.answer is None or not self.answer.plan.limits.has_limits:
            return ()
        return (*checks(self.answer, self.memory), *(() if self.memory else (MEMORY_UNKNOWN,)))


def compare_plan(entry: Entry) -> ComparedPlan:
    """Return a plan together with its result."""
    return replace(_answered(tuple(entry.texts[field.id] for field in PLAN_FORM.fields)), entry=entry)


def compare_plans(entries: Sequence[Entry]) -> tuple[ComparedPlan, ...]:
    """Return plans with their results, and with distinct short names."""
    names = short_names([entry.name for entry in entries])
    return tuple(replace(compare_plan(entry), told_apart=name) for entry, name in zip(entries, names, strict=True))


@cached("answers_kept")
def _answered(texts: tuple[str, ...]) -> ComparedPlan:
    """Return the plan of texts in the form's order, which are its key."""
    entry = Entry("", {field.id: text for field, text in zip(PLAN_FORM.fields, texts, strict=True)})
    try:
        plan = ComparedPlan(entry, entry.reading, entry.answer)
    except BudgetError as problem:
        return ComparedPlan(entry, entry.reading, problem=str(problem))
    try:
        return replace(plan, memory=entry.answer.memory)
    except LayoutError as problem:
        return replace(plan, layout_problem=problem)


def with_saved_results(entry: Entry) -> Entry:
    """Return a plan with its current results; with none if it has no answer."""
    a = compare_plan(entry).answer
    return replace(entry, results=results_of(a) if a else {})


@dataclass(frozen=True, slots=True)
class Quantity:
    """Result by which plans are compared, in the unit of `PlanEstimate`. fewer: whether less is better, or None for
    neither."""

    id: str
    of: Callable[[PlanEstimate, MemoryEstimate | None], Interval]
    fewer: bool | None = None


def _counted(a: PlanEstimate, _: MemoryEstimate | None) -> Interval:
    return a.range_of("accelerators").through(lambda n: float(whole_accelerators(n)))


def _rent(a: PlanEstimate, _: MemoryEstimate | None) -> Interval:
    return UNKNOWN if a.plan.owned else a.dollars


def _memory(_: PlanEstimate, h: MemoryEstimate | None) -> Interval:
    return Interval.point(h.total) if h else UNKNOWN


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("days", lambda a, _: a.on_found_accelerators.range_of("days"), True),
    Quantity("steps_days", lambda a, _: a.range_of("steps_days"), True),
    Quantity("dollars", _rent, True),
    Quantity("accelerators", _counted),
    Quantity("tokens", lambda a, _: a.range_of("tokens")),
    Quantity("parameters", lambda a, _: a.range_of("parameters")),
    Quantity("mfu", lambda a, _: a.range_of("mfu")),
    Quantity("memory_bytes", _memory),
    Quantity("usable_bytes", lambda a, _: Interval.point(a.plan.usable_memory)),
    Quantity("watt_hours", lambda a, _: a.energy, True),
    Quantity("peak_watts", lambda a, _: a.range_of("peak_watts"), True),
)
"""What is compared, in the order in which it is told."""

QUANTITY = {quantity.id: quantity for quantity in QUANTITIES}


def result(plan: ComparedPlan, quantity: Quantity) -> Interval:
    """Return a result of a plan with its range; all NaN if unknown."""
    return quantity.of(plan.answer, plan.memory) if plan.answer else UNKNOWN


def middles(plans: Sequence[ComparedPlan], quantity: Quantity) -> tuple[float, ...]:
    """Return the median of a result of every plan; NaN if unknown."""
    return tuple(result(plan, quantity).mid for plan in plans)


def sooner_probability(plan: ComparedPlan, other: ComparedPlan) -> float:
    """Return the probability that a plan's run ends before another's by the same team; NaN if an MFU was entered.

    The team's run efficiency changes both plans alike. They differ as much as similar runs of one lab do.
    """
    a, b = plan.answer, other.answer
    if a is None or b is None or not (a.plan.expects_mfu and b.plan.expects_mfu):
        return math.nan
    apart = math.log(b.middle.days / a.middle.days)
    return statistics.NormalDist(sigma=math.sqrt(2) * spread_of_like_runs()).cdf(apart)


def change(value: float, base: float) -> float:
    """Return ``value`` ÷ ``base`` − 1; NaN if either is unknown or the base is 0."""
    if value == base:
        return 0.0
    return (value - base) / base if base else math.nan


def least(values: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of the lowest known values; none if all known values are equal."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ()
    at = tuple(i for i, value in enumerate(values) if value <= min(known) * (1 + SAME))
    return at if len(at) < len(known) else ()


@dataclass(frozen=True, slots=True)
class Lead:
    """The plan with the lowest result, compared with the baseline, or if it is the baseline, with the next best."""

    plan: int
    against: int
    share: float


def lead(values: Sequence[float], base: int) -> Lead | None:
    """Return the plan with the lowest result; None if the first two are equal, or fewer than two are known."""
    order = sorted((i for i, value in enumerate(values) if math.isfinite(value)), key=lambda i: values[i])
    if len(order) < 2 or len(least(values)) != 1:
        return None
    first = order[0]
    against = base if base in order and base != first else order[1]
    return Lead(first, against, -change(values[first], values[against]))


def changed_results(plan: ComparedPlan) -> tuple[tuple[str, float, float], ...]:
    """Return results that have changed since a plan was saved: name, before, and now, in the units of `RESULTS`."""
    if plan.answer is None:
        return ()
    now, then = results_of(plan.answer), plan.entry.results
    both = ((name, then[name], now[name]) for name in RESULTS if name in then and name in now)
    return tuple(row for row in both if not math.isclose(row[1], row[2], rel_tol=_MOVED))


def with_results(entry: Entry) -> Entry:
    """Return a plan or decision with its current results; with none if it has no answer."""
    return (
        with_saved_results(entry) if entry.kind == "plan" else replace(entry, results=decision_results(entry.reading))
    )
