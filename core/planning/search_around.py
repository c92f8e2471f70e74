"""Around a search: other cluster sizes, what would make a plan fit, and a layout as texts of the plan’s fields."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from core.budget.errors import BudgetError
from core.limits import limit
from core.planning.evaluation import Answer, answer, fewest_that_hold
from core.planning.memory_fixes import PIECES
from core.planning.plan import OWN_LAYOUT, Plan, whole_accelerators
from core.planning.plan_limits import missed_limits
from core.planning.plan_search import evaluate_layout
from core.planning.resolved_layout import FIELD_IDS, found_layout, search_request, tried_layouts
from core.planning.solving import first_place
from core.search.constraints import is_free
from core.search.result import LayoutResult
from core.training.layout import OFFLOAD_NAMES, Layout, LayoutError, layers_of, named_modules, recompute_name

_OCTAVES, _EACH = 3, 3
"""Clusters are tried from an eighth to eight times as large, so many in each doubling."""

_GAIN = 0.02
"""Share by which more accelerators have to be faster to be called better."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The plan on so many accelerators: its layout there, and what the whole run comes to."""

    accelerators: int
    layout: Layout
    answer: Answer


def cluster_results(plan: Plan) -> tuple[ClusterResult, ...]:
    """The plan on clusters from an eighth to eight times as large, with the same batch; those that hold it."""
    here, node, most = whole_accelerators(plan.accelerators), plan.device.node_size, limit("accelerators")
    sizes = {here}
    for step in range(-_OCTAVES * _EACH, _OCTAVES * _EACH + 1):
        size = here * 2 ** (step / _EACH)
        sizes.add(round(size) if size < node or not step % _EACH else node * round(size / node))
    results = (_on(plan, min(most, size)) for size in sorted(sizes - {0}))
    return tuple(result for result in results if result)


@lru_cache(maxsize=64)
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
        a = answer(replace(plan, find="time", accelerators=float(count)))
        if a.memory.fits == "fits":
            return ClusterResult(count, a.memory.layout, a)
    return None


@dataclass(frozen=True, slots=True)
class FittingChange:
    """A change of the question under which a plan fits: the fields' texts by id, the plan, and the best layout then."""

    texts: tuple[tuple[str, str], ...]
    plan: Plan
    best: LayoutResult

    @property
    def misses(self) -> bool:
        """Whether the plan then misses one of its limits."""
        return bool(missed_limits(self.plan))


@lru_cache(maxsize=32)
def fitting_changes(plan: Plan) -> tuple[FittingChange, ...]:
    """What would make a plan fit, those first that miss no limit of it, the cheapest first: fewer constraints, offload,
    the loss in pieces, another cluster.

    No more than one of each kind.
    """
    here, how = plan.constraints, plan.runtime_options
    free = {name: None for name in FIELD_OF if not is_free(getattr(here, name))}
    if here.expert_tensor == 0:
        del free["expert_tensor"]
    tried: list[list[tuple[tuple[tuple[str, str], ...], Plan]]] = []

    def changed(**pins: Any) -> Plan:
        return replace(plan, constraints=replace(here, **pins))

    if free:
        texts = tuple((FIELD_OF[name], "any" if name in ("zero", "recompute") else "") for name in free)
        tried.append([(texts, changed(**free, tensor_in_node=True))])
    if here.offload is not None:
        tried.append([((("koff", "true"),), changed(offload=None))])
    if how.chunks < PIECES:
        pieces, less = ("chunks", f"{PIECES}"), replace(how, chunks=PIECES)
        both = replace(changed(offload=None), runtime_options=less)
        tried.append([((pieces,), replace(plan, runtime_options=less)), ((pieces, ("koff", "true")), both)])
    if here.tensor_in_node:
        tried.append([((("knode", "false"),), changed(tensor_in_node=False))])
    left = limit("layouts_tried")  # for all of them together
    if (
        tried_layouts((plan,)) <= limit("repeated_search")
        and (needed := fewest_that_hold(plan))
        and needed > plan.accelerators
    ):
        tried.append([((("count", f"{needed:,}"),), replace(plan, accelerators=float(needed)))])
    changes: list[FittingChange] = []
    for kind in tried:
        fitting: list[FittingChange] = []
        for texts, other in kind:
            if any(set(change.texts) < set(texts) for change in changes):
                continue  # less is enough
            left -= tried_layouts((other,))
            found = found_layout(other) if left > 0 else None
            if found and found.fits:
                fitting.append(FittingChange(texts, other, evaluate_layout(search_request(other), found.layout)))
                if not fitting[-1].misses:
                    break
        changes += sorted(fitting, key=lambda change: change.misses)[:1]
    return tuple(sorted(changes, key=lambda change: change.misses))


FIELD_OF = {
    "tensor": "ktp",
    "pipeline": "kpp",
    "interleave": "kvpp",
    "context": "kcp",
    "expert": "kep",
    "expert_tensor": "ketp",
    "micro_batch": "kmbs",
    "zero": "kzero",
    "recompute": "krc",
}
"""Field of a layout → the id of the plan's field that keeps it to something."""


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
