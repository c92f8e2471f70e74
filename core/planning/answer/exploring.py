"""Around a plan that was found: a step in each direction, its stages, other cluster sizes, what would make one fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from core.planning.answer.searching import SPANS, Query, batched, judged, searched
from core.planning.answer.wishes import ANY
from core.planning.budget.errors import BudgetError
from core.planning.search.constraints import SpaceError
from core.planning.search.found import Found
from core.training import Layout, LayoutError, Recompute

_STEPS: tuple[str, ...] = (
    "tensor",
    "pipeline",
    "interleave",
    "context",
    "expert",
    "micro_batch",
    "zero",
    "recompute",
    "sequence_parallel",
    "offload",
)
"""Fields of a layout that neighbours differ in, in the order in which they are told."""

_MOST = {"zero": 3, "recompute": int(Recompute.FULL), "sequence_parallel": 1, "offload": 1}
_SIZES = 4
"""Clusters tried on each side, each twice as large as the one before."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A plan that differs from another in one field. found: None where it cannot be, and then ``why``."""

    field: str
    before: int
    after: int
    found: Found | None
    why: str = ""


@lru_cache(maxsize=32)
def neighbours(query: Query, layout: Layout) -> tuple[Neighbour, ...]:
    """One step in each direction of each degree and choice, on the same accelerators with the same batch."""
    found: list[Neighbour] = []
    for field in _STEPS:
        now = int(getattr(layout, field))
        if field == "expert" and not query.spec.experts:
            continue
        for after in _beside(field, now):
            try:
                made = judged(query, batched(query, replace(layout, **_moved(field, after, layout))))
            except LayoutError as problem:
                found.append(Neighbour(field, now, after, None, problem.rule))
                continue
            found.append(Neighbour(field, now, after, made))
    return tuple(found)


def _beside(field: str, now: int) -> Iterator[int]:
    """The next values below and above."""
    if field in _MOST:
        yield from (value for value in (now - 1, now + 1) if 0 <= value <= _MOST[field])
        return
    if now > 1:
        yield now // 2
    yield now * 2


def _moved(field: str, after: int, layout: Layout) -> dict[str, int]:
    """The fields that change with one: a single stage has nothing to interleave, fewer ranks shard in no old group."""
    changed = {field: after}
    if field == "pipeline" and after == 1:
        changed["interleave"] = 1
    if field in ("tensor", "pipeline", "context"):
        changed["shard_group"] = 0
    if field == "tensor":
        changed["sequence_parallel"] = int(after > 1 and (layout.sequence_parallel == 1 or layout.tensor == 1))
    return changed


@dataclass(frozen=True, slots=True)
class Size:
    """The best plan on so many accelerators; days and dollars for all tokens, dollars NaN where unknown."""

    accelerators: int
    best: Found
    days: float
    dollars: float


def days_for(tokens: float, query: Query, seconds: float) -> float:
    """Days of steps alone that all tokens take."""
    return tokens / (query.batch * query.seq_len) * seconds / 86400


def sizes(query: Query, tokens: float, price: float) -> tuple[Size, ...]:
    """The best plan on clusters from a sixteenth to sixteen times as large, with the same batch; those that have one.

    price: dollars per accelerator-hour, NaN where unknown.
    """
    found: list[Size] = []
    for power in range(-_SIZES, _SIZES + 1):
        count = query.accelerators * 2.0**power
        if count < 1 or not count.is_integer():
            continue
        best = _best(replace(query, accelerators=int(count)))
        if best:
            days = days_for(tokens, query, best.seconds)
            found.append(Size(int(count), best, days, days * 24 * count * price))
    return tuple(found)


def _best(query: Query) -> Found | None:
    try:
        return searched(query).best
    except (BudgetError, SpaceError):
        return None


@dataclass(frozen=True, slots=True)
class Rescue:
    """A change of the question under which a plan fits: the fields' texts by id, and the best plan then."""

    texts: tuple[tuple[str, str], ...]
    best: Found


@lru_cache(maxsize=32)
def rescues(query: Query) -> tuple[Rescue, ...]:
    """What would make a plan fit, the cheapest first: fewer constraints, offload, a shorter sequence, another cluster.

    No more than one of each kind.
    """
    w = query.wishes
    kept = [name for name in SPANS if not getattr(w, name).free]
    free = replace(w, zero=-1, recompute=None, in_node=True, offload=w.offload, **dict.fromkeys(SPANS, ANY))
    tried: list[list[tuple[tuple[tuple[str, str], ...], Query]]] = []
    if kept or w.zero >= 0 or w.recompute is not None:
        texts = tuple((FIELD_OF[name], "") for name in kept)
        texts += (("kzero", "any"),) * (w.zero >= 0) + (("krc", "any"),) * (w.recompute is not None)
        tried.append([(texts, replace(query, wishes=free))])
    if not w.offload:
        tried.append([((("koff", "true"),), replace(query, wishes=replace(w, offload=True)))])
    if w.in_node:
        tried.append([((("knode", "false"),), replace(query, wishes=replace(w, in_node=False)))])
    count = query.accelerators
    fewer = [size for step in (2, 4, 8, 64) if 0 < (size := count // step * step) < count]
    more = [count * 2**power for power in range(1, 8)]
    for counts in (fewer, more):
        tried.append([((("count", f"{size:,}"),), replace(query, accelerators=size)) for size in counts])
    rounder = 2 ** max(0, query.batch.bit_length() - 1)
    if rounder != query.batch:
        tried.append([((("gb", f"{rounder:,}"),), replace(query, batch=rounder))])
    found: list[Rescue] = []
    for kind in tried:
        for texts, other in kind:
            best = _best(other)
            if best:
                found.append(Rescue(texts, best))
                break
    return tuple(found)


FIELD_OF = {
    "tensor": "ktp",
    "pipeline": "kpp",
    "interleave": "kvpp",
    "context": "kcp",
    "expert": "kep",
    "micro_batch": "kmbs",
    "zero": "kzero",
    "recompute": "krc",
}
"""Field of a layout → the id of the plan's field that keeps it to something."""


def as_texts(layout: Layout) -> dict[str, str]:
    """A layout as texts of the plan's fields by id, as a form takes them."""
    named = {"tp": "tensor", "pp": "pipeline", "vpp": "interleave", "cp": "context", "ep": "expert"}
    named |= {"mbs": "micro_batch", "acc": "micro_batches", "zero": "zero"}
    texts = {id: f"{int(getattr(layout, field))}" for id, field in named.items()}
    group = int(layout.shard_group)
    texts |= {"hsdp": f"{group}" if group else "", "rc": Recompute(int(layout.recompute)).name.lower()}
    return texts | {"sp": str(bool(layout.sequence_parallel)).lower(), "off": str(bool(layout.offload)).lower()}
