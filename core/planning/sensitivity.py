"""How an answer changes with what was said: with each input, and with the number of accelerators.

Every end is an answer of its own, so that what stands here is what one gets by typing it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.budget.equations import BudgetError, Interval
from core.limits import cached, limit
from core.planning.estimate import PlanEstimate, estimate
from core.planning.layout import FIELD_IDS
from core.planning.plan import OWN_LAYOUT, TYPED, Plan, whole_accelerators
from core.planning.solving import first_place
from core.training.layout import OFFLOAD_NAMES, Layout, LayoutError, layers_of, named_modules, recompute_name

Input: TypeAlias = Literal["tokens", "parameters", "accelerators", "MFU", "price"]


@dataclass(frozen=True, slots=True)
class Swing:
    """One input at its two ends with everything else as planned. days, dollars: at ``low`` and at ``high``."""

    input: Input
    low: float
    high: float
    days: tuple[float, float]
    dollars: tuple[float, float]

    def moved(self, *, dollars: bool) -> float:
        """How far days, or dollars, move, without sign."""
        low, high = self.dollars if dollars else self.days
        return abs(high - low)


def plan_as_answered(a: PlanEstimate) -> Plan:
    """The plan with what was found in its place, so that its time can be asked for."""
    m = a.middle
    filled = replace(a.plan, find="time", tokens=m.tokens, accelerators=m.accelerators)
    if a.find == "parameters":
        filled = replace(filled, model=TYPED, parameters=m.parameters)
    return replace(filled, mfu=Interval.point(m.mfu), mfu_kind="all hours") if a.find == "MFU" else filled


@cached("results_kept")
def swings(plan: Plan, share: float) -> tuple[Swing, ...]:
    """Days and dollars of a plan whose time is asked for, as each input runs over its range: the MFU over that of its
    answer and of published runs, the price over its own, the rest by ``share`` down and up.

    Another size of a dense model is one of unknown layers; a mixture has none. An end without an answer is left out.
    """
    here = estimate(plan)
    ends: dict[Input, tuple[tuple[float, Plan], tuple[float, Plan]]] = {}

    def pair(low: float, high: float, at: Mapping[float, Plan]) -> tuple[tuple[float, Plan], tuple[float, Plan]]:
        return (low, at[low]), (high, at[high])

    for name, value in (("tokens", plan.tokens), ("accelerators", plan.accelerators)):
        low, high = max(1.0, value * (1 - share)), value * (1 + share)
        ends[name] = pair(low, high, {end: replace(plan, **{name: end}) for end in (low, high)})  # type: ignore[index]
    if not (here.model and here.model.mixture):
        size = here.middle.parameters
        low, high = max(1.0, size * (1 - share)), size * (1 + share)
        ends["parameters"] = pair(low, high, {end: replace(plan, model=TYPED, parameters=end) for end in (low, high)})
    used, seen = here.range_of("mfu"), here.expected
    low, high = min(used.low, seen.low), max(used.high, seen.high)
    all_hours = {end: replace(plan, mfu=Interval.point(end), mfu_kind="all hours") for end in (low, high)}
    ends["MFU"] = pair(low, high, all_hours)  # type: ignore[arg-type]
    low, high = plan.price_range
    if low < high:
        ends["price"] = pair(low, high, {end: replace(plan, prices=(end, end)) for end in (low, high)})
    result: list[Swing] = []
    for name, (first, last) in ends.items():
        try:
            answers = [estimate(end) for _, end in (first, last)]
        except BudgetError:
            continue
        days = (answers[0].middle.days, answers[1].middle.days)
        result.append(Swing(name, first[0], last[0], days, (answers[0].middle.dollars, answers[1].middle.dollars)))
    return tuple(sorted(result, key=lambda swing: -swing.moved(dollars=False)))


_OCTAVES, _EACH = 3, 3
"""Clusters are tried from an eighth to eight times as large, so many in each doubling."""

_GAIN = 0.02
"""Share by which more accelerators have to be faster to be called better."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The plan on so many accelerators: its layout there, and what the whole run comes to."""

    accelerators: int
    layout: Layout
    answer: PlanEstimate


def cluster_results(plan: Plan) -> tuple[ClusterResult, ...]:
    """The plan on clusters from an eighth to eight times as large, with the same batch; those that hold it."""
    here, node, most = whole_accelerators(plan.accelerators), plan.device.node_size, limit("accelerators")
    sizes = {here}
    for step in range(-_OCTAVES * _EACH, _OCTAVES * _EACH + 1):
        size = here * 2 ** (step / _EACH)
        sizes.add(round(size) if size < node or not step % _EACH else node * round(size / node))
    results = (_on(plan, min(most, size)) for size in sorted(sizes - {0}))
    return tuple(result for result in results if result)


@cached("results_kept")
def next_better(plan: Plan) -> tuple[int, float] | None:
    """The fewest accelerators, in whole nodes, that train the plan faster by 2 % or more, and by what share they do;
    None where none do."""
    here, node, most = _on(plan, whole_accelerators(plan.accelerators)), plan.device.node_size, limit("accelerators")
    if here is None:
        return None
    first, enough = here.accelerators // node, here.answer.middle.days / (1 + _GAIN)

    def excess(place: int) -> float:
        there = _on(plan, node * (first + place))
        return there.answer.middle.days / enough if there else math.inf

    place = first_place(excess, max(1, round(first * _GAIN)), most // node - first)
    there = _on(plan, node * (first + place)) if place else None
    return (there.accelerators, here.answer.middle.days / there.answer.middle.days - 1) if there else None


def _on(plan: Plan, count: int) -> ClusterResult | None:
    """The plan on so many accelerators; None where it does not fit there."""
    with suppress(BudgetError, LayoutError):
        a = estimate(replace(plan, find="time", accelerators=float(count)))
        if a.memory.fits == "fits":
            return ClusterResult(count, a.memory.layout, a)
    return None


def layout_texts(layout: Layout) -> dict[str, str]:
    """A layout as texts of the plan's fields by id, as a form takes them."""
    texts = {name: f"{int(getattr(layout, field))}" for field, name in FIELD_IDS.items()}
    texts |= {"lay": OWN_LAYOUT, "acc": ""}
    for name in ("etp", "hsdp"):
        texts[name] = texts[name] if texts[name] != "0" else ""
    named, some = named_modules(layout.recompute), int(layers_of(layout.recompute))
    texts |= {"rc": recompute_name(layout.recompute), **({"rcm": " ".join(named)} if named else {})}
    texts["rcn"] = f"groups of {-some}" if some < 0 else f"{some}" if some else ""
    texts["off"] = OFFLOAD_NAMES[int(layout.offload)]
    return texts | {"sp": str(bool(layout.sequence_parallel)).lower()}


def made_own(plan: Plan, layout: Layout) -> dict[str, str]:
    """The texts by which the plan has the layout that it has as its own, so that a part of it can be changed."""
    return {} if plan.own_layout else layout_texts(layout)
