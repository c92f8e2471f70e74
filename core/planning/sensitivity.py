"""Sensitivity of an answer to each input, and to the number of accelerators. Every end is an evaluated plan."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """One input at both ends of its range, with all other inputs unchanged. days, dollars: at ``low`` and ``high``."""

    input: Input
    low: float
    high: float
    days: tuple[float, float]
    dollars: tuple[float, float]

    def moved(self, *, dollars: bool) -> float:
        """Return by how much days, or dollars, change, without sign."""
        low, high = self.dollars if dollars else self.days
        return abs(high - low)


def plan_as_answered(a: PlanEstimate) -> Plan:
    """Return the plan with its answer entered, solved for time."""
    m = a.middle
    filled = replace(a.plan, find="time", tokens=m.tokens, accelerators=m.accelerators)
    if a.find == "parameters":
        filled = replace(filled, model=TYPED, parameters=m.parameters)
    return replace(filled, mfu=Interval.point(m.mfu), mfu_kind="all hours") if a.find == "MFU" else filled


@cached("results_kept")
def swings(plan: Plan, share: float) -> tuple[Swing, ...]:
    """Return the days and dollars of a plan solved for time, as each input runs over its range.

    The MFU runs over the range of its answer and of published runs, the price over its own range, and the rest by
    ``share`` down and up. Another size of a dense model is one of unknown layers; a mixture has none. An input with an
    end that has no answer is omitted.
    """
    here = estimate(plan)
    mfu, seen = here.range_of("mfu"), here.expected

    def around(value: float) -> tuple[float, float]:
        return max(1.0, value * (1 - share)), value * (1 + share)

    def with_mfu(end: float) -> Plan:
        return replace(plan, mfu=Interval.point(end), mfu_kind="all hours")

    inputs: list[tuple[Input, tuple[float, float], Callable[[float], Plan]]] = [
        ("tokens", around(plan.tokens), lambda end: replace(plan, tokens=end)),
        ("accelerators", around(plan.accelerators), lambda end: replace(plan, accelerators=end)),
        ("MFU", (min(mfu.low, seen.low), max(mfu.high, seen.high)), with_mfu),
    ]
    if not (here.model and here.model.mixture):
        sizes = around(here.middle.parameters)
        inputs.insert(2, ("parameters", sizes, lambda end: replace(plan, model=TYPED, parameters=end)))
    if plan.price_range[0] < plan.price_range[1]:
        inputs.append(("price", plan.price_range, lambda end: replace(plan, prices=(end, end))))
    found: list[Swing] = []
    for name, (low, high), changed in inputs:
        with suppress(BudgetError):
            first, last = (estimate(changed(end)).middle for end in (low, high))
            found.append(Swing(name, low, high, (first.days, last.days), (first.dollars, last.dollars)))
    return tuple(sorted(found, key=lambda swing: -swing.moved(dollars=False)))


_OCTAVES, _EACH = 3, 3
"""Doublings of the cluster in each direction, and sizes in each doubling."""

_GAIN = 0.02
"""Share by which more accelerators must be faster to be better."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The plan on a number of accelerators, with its layout and answer."""

    accelerators: int
    layout: Layout
    answer: PlanEstimate


def cluster_results(plan: Plan) -> tuple[ClusterResult, ...]:
    """Return the plan on clusters from an eighth to eight times the size, with the same batch, where it fits."""
    here, node, most = whole_accelerators(plan.accelerators), plan.device.node_size, limit("accelerators")
    sizes = {here}
    for step in range(-_OCTAVES * _EACH, _OCTAVES * _EACH + 1):
        size = here * 2 ** (step / _EACH)
        sizes.add(round(size) if size < node or not step % _EACH else node * round(size / node))
    results = (_on(plan, min(most, size)) for size in sorted(sizes - {0}))
    return tuple(result for result in results if result)


@cached("results_kept")
def next_better(plan: Plan) -> tuple[int, float] | None:
    """Return the fewest accelerators, in whole nodes, with which the run is at least 2% faster, and by what share.

    None if there are no such accelerators.
    """
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
    """Return the plan on a number of accelerators; None if it does not fit."""
    with suppress(BudgetError, LayoutError):
        a = estimate(replace(plan, find="time", accelerators=float(count)))
        if a.memory.fits == "fits":
            return ClusterResult(count, a.memory.layout, a)
    return None


def layout_texts(layout: Layout) -> dict[str, str]:
    """Return a layout as texts of the plan's fields by id."""
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
    """Return the texts that turn the plan's layout into a custom one, so that its parts can be changed."""
    return {} if plan.own_layout else layout_texts(layout)
