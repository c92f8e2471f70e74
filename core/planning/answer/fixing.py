"""What would make a plan fit that does not: every small change of its layout tried at once, the cheapest first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from core.planning.answer.holding import Held, held
from core.planning.answer.plan import Plan
from core.training import (
    DeviceMemory,
    Layout,
    allowed,
    largest_micro_batch,
    largest_of_family,
    largest_seq_len,
    step_cost,
)
from core.training.layout import RECOMPUTES

ORDER = (
    "The first costs a step least: FLOPs computed again, bytes sent, and the pipeline’s wait, with a byte over the "
    "network taken as 10,000 FLOPs and one of tensor parallelism, inside a node, as 1,000. That only ranks."
)
"""On what the order of the fixes rests."""

_DOUBLINGS = 4
_LISTED = 6
_SETTLED = 0.01
"""Share of a step that one change fewer is worth."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One change that fits.

    texts: the plan's fields by id, as typed.  saved: bytes that the fullest accelerator holds less.  again: FLOPs of a
    step, over those without the change, less one.  sent: the same of the bytes that an accelerator sends for each of
    its tokens; NaN where it sent none.  one: what it then holds.
    """

    texts: Mapping[str, str]
    saved: float
    again: float
    sent: float
    one: DeviceMemory


@dataclass(frozen=True, slots=True)
class _Choice:
    """One field of the layout that may change: its id, and the values tried, the plan's own first."""

    id: str
    field: str
    values: tuple[int, ...]


def _choices(h: Held) -> tuple[_Choice, ...]:
    one = h.layout

    def doubled(id: str, field: str, most: int) -> _Choice:
        now = int(getattr(one, field))
        return _Choice(id, field, tuple(now * 2**k for k in range(_DOUBLINGS) if now * 2**k <= most or k == 0))

    ways = tuple(int(way) for way in RECOMPUTES.values())
    again = ways[ways.index(int(one.recompute)) :]
    stages = range(int(one.zero), 4 if one.data * one.context > 1 else int(one.zero) + 1)
    batch = int(one.micro_batch)
    halves = tuple(dict.fromkeys((batch, max(1, batch // 2), max(1, batch // 4), 1)))
    offloads = tuple(dict.fromkeys((int(one.offload), 1)))
    node = max(1, h.plan.device.node_size)
    return (
        _Choice("rc", "recompute", again),
        _Choice("mbs", "micro_batch", halves),
        _Choice("zero", "zero", tuple(stages)),
        doubled("cp", "context", 64),
        doubled("tp", "tensor", node),
        doubled("pp", "pipeline", 64),
        _Choice("off", "offload", offloads),
    )


@lru_cache(maxsize=64)
def _fixes(plan: Plan) -> tuple[Fix, ...]:
    h = held(plan)
    choices = _choices(h)
    grids = np.meshgrid(*(np.arange(len(one.values)) for one in choices), indexing="ij")
    index = [grid.reshape(-1) for grid in grids]
    taken = {one.field: np.asarray(one.values)[i] for one, i in zip(choices, index, strict=True)}
    count = int(h.layout.accelerators)
    model = taken["tensor"] * taken["pipeline"] * taken["context"]
    whole = count % model == 0
    flowing = taken["pipeline"] if h.layout.micro_batches == h.layout.pipeline else h.layout.micro_batches
    layout = replace(h.layout, **taken, data=np.maximum(1, count // model), micro_batches=flowing)
    sound = whole & allowed(h.spec, layout, plan.seq_len, count)
    found = h.over(layout)
    total = np.asarray(found.total)
    fits = np.flatnonzero(sound & (total <= h.usable))
    cost, now = step_cost(h.setup, layout), step_cost(h.setup, h.layout)
    # Of two that cost the same, the one that changes less.
    changes = sum((i > 0).astype(float) for i in index)
    order = fits[np.argsort((np.asarray(cost.share) + _SETTLED * changes)[fits], kind="stable")]
    again = (1 + np.broadcast_to(cost.again, total.shape)) / (1 + float(now.again)) - 1
    sent = np.broadcast_to(cost.sent, total.shape) / float(now.sent) - 1 if now.sent else np.full(total.shape, math.nan)
    kept: list[tuple[frozenset[str], Fix]] = []
    for at in order:
        texts = {one.id: _typed(one.id, one.values[int(i[at])]) for one, i in zip(choices, index, strict=True) if i[at]}
        changed = frozenset(texts)
        if any(other <= changed for other, _ in kept):
            continue
        one = DeviceMemory(**{part.name: float(getattr(found, part.name)[at]) for part in fields(found)})
        kept.append((changed, Fix(texts, h.total - float(one.total), float(again[at]), float(sent[at]), one)))
        if len(kept) == _LISTED:
            break
    return tuple(fix for _, fix in kept)


def _typed(id: str, value: int) -> str:
    if id == "rc":
        return next(name for name, way in RECOMPUTES.items() if way == value)
    return "true" if id == "off" else f"{value}"


def fixes(h: Held) -> tuple[Fix, ...]:
    """Changes of the layout on the same accelerators that fit, the cheapest first; none of one that fits already.

    Each changes other fields than those before it, or fewer.
    """
    return _fixes(h.plan) if h.fits == "over" else ()


def largest(h: Held) -> tuple[int, int, int]:
    """What would just fit with all else as it is: micro-batch, sequence length and layers; 0 where nothing does."""
    deeper = largest_of_family(h.setup)
    return largest_micro_batch(h.setup), largest_seq_len(h.setup), deeper.layers if deeper else 0


def fewest(h: Held) -> int | None:
    """Fewest accelerators, by doubling what there is, on which the plan fits as it is; None where none do."""
    for k in range(1, 11):
        more: Layout = replace(h.layout, data=int(h.layout.data) * 2**k)
        found = h.over(more)
        if float(found.total) <= h.usable:
            return math.prod((int(more.data), int(more.tensor), int(more.pipeline), int(more.context)))
    return None
