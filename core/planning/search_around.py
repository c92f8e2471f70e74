"""Around a search: other cluster sizes, what would make a plan fit, and a layout as texts of the plan’s fields."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from core.budget.errors import BudgetError
from core.limits import limit
from core.planning.evaluation import Answer, answer
from core.planning.memory_fixes import PIECES
from core.planning.plan import OWN_LAYOUT, Plan, whole_accelerators
from core.planning.plan_limits import missed_limits
from core.planning.plan_search import search_layouts
from core.planning.resolved_layout import FIELD_IDS, search_request, too_large
from core.planning.search_texts import Batch
from core.search.cluster_sizes import sizes_with_plans
from core.search.constraints import SpaceError, is_free
from core.search.result import LayoutResult
from core.search.space import count_plans
from core.training.layout import OFFLOAD_NAMES, Layout, LayoutError, layers_of, named_modules, recompute_name

_SIZES = 3
"""Clusters tried on each side, each twice as large as the one before."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The plan on so many accelerators: its layout there, and what the whole run comes to."""

    accelerators: int
    layout: Layout
    answer: Answer


def cluster_results(plan: Plan) -> tuple[ClusterResult, ...]:
    """The plan on clusters from an eighth to eight times as large, with the same batch; those that hold it."""
    results: list[ClusterResult] = []
    here, most = whole_accelerators(plan.accelerators), limit("accelerators")
    for count in sorted({min(most, here * 2**up // 2**_SIZES) for up in range(2 * _SIZES + 1)} - {0}):
        with suppress(BudgetError, LayoutError):
            a = answer(replace(plan, find="time", accelerators=float(count)))
            if a.memory.fits == "fits":
                results.append(ClusterResult(count, a.memory.layout, a))
    return tuple(results)


def _best(plan: Plan, most: int) -> tuple[LayoutResult | None, int]:
    """The best layout of a plan with at most so many to search, and how many there were."""
    try:
        request = search_request(plan)
        count, _ = count_plans(request)
        if count <= most and not too_large(plan):
            return search_layouts(request).best, count
    except (BudgetError, SpaceError):
        pass
    return None, 0


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
    here, request, how = plan.constraints, search_request(plan), plan.runtime_options
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
    count = request.cluster.count
    fewer = [int(size) for size in sizes_with_plans(request, count)[::-1] if size < count][:3]
    more = [count * 2**power for power in range(1, 8)]
    tried += [
        [((("count", f"{size:,}"),), replace(plan, accelerators=float(size))) for size in counts]
        for counts in (fewer, more)
    ]
    rounder = 2 ** max(0, request.batch.bit_length() - 1)
    if rounder != request.batch:
        tried.append([((("gb", f"{rounder:,}"),), replace(plan, batch=Batch(rounder, in_tokens=False)))])
    changes: list[FittingChange] = []
    left = limit("search_plans")  # for all of them together
    for kind in tried:
        fitting: list[FittingChange] = []
        for texts, other in kind:
            if any(set(change.texts) < set(texts) for change in changes):
                continue  # less is enough
            best, count = _best(other, left)
            left -= count
            if best:
                fitting.append(FittingChange(texts, other, best))
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
