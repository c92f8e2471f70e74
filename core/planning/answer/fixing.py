"""What would make a plan fit that does not: every small change of its layout tried at once, the cheapest first.

Prices only rank; see `PRICES`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np

from core.planning.answer.holding import Held, held
from core.planning.answer.plan import Plan
from core.training import DeviceMemory, Layout, Recompute, allowed

PRICES = (
    "**Prices are rough and only rank.** Full recomputation does a forward pass again, a third of a step; selective "
    "only the core of attention. ZeRO-3 gathers weights that the other stages keep, half as much communication more. "
    "Every doubling of a degree adds communication, and an offloaded optimizer waits for the host’s link."
)
"""On what the order of the fixes rests."""

_DOUBLINGS = 4
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Fix:
    """One change that fits.

    texts: the plan's fields by id, as typed. price: rough share by which a step is longer. one: what it leaves.
    """

    texts: Mapping[str, str]
    price: float
    one: DeviceMemory


@dataclass(frozen=True, slots=True)
class _Choice:
    """One field of the layout that may change: its id, the values tried, the plan's own first, and their prices."""

    id: str
    field: str
    values: tuple[int, ...]
    prices: tuple[float, ...]


def _choices(h: Held) -> tuple[_Choice, ...]:
    one = h.layout

    def doubled(id: str, field: str, price: float, most: int) -> _Choice:
        now = int(getattr(one, field))
        values = tuple(now * 2**k for k in range(_DOUBLINGS) if now * 2**k <= most or k == 0)
        return _Choice(id, field, values, tuple(price * k for k in range(len(values))))

    again = range(int(one.recompute), int(Recompute.FULL) + 1)
    stages = range(int(one.zero), 4 if one.data * one.context > 1 else int(one.zero) + 1)
    batch = int(one.micro_batch)
    halves = tuple(dict.fromkeys((batch, max(1, batch // 2), max(1, batch // 4), 1)))
    offloads = tuple(dict.fromkeys((int(one.offload), 1)))
    node = max(1, h.plan.device.node_size)
    return (
        _Choice("rc", "recompute", tuple(again), tuple(_AGAIN[k] - _AGAIN[int(one.recompute)] for k in again)),
        _Choice("mbs", "micro_batch", halves, tuple(0.02 * k for k in range(len(halves)))),
        _Choice("zero", "zero", tuple(stages), tuple(_STAGE[k] - _STAGE[int(one.zero)] for k in stages)),
        doubled("cp", "context", 0.04, 64),
        doubled("tp", "tensor", 0.05, node),
        doubled("pp", "pipeline", 0.08, 64),
        _Choice("off", "offload", offloads, tuple(0.2 * k for k in range(len(offloads)))),
    )


_AGAIN = {0: 0.0, 1: 0.03, 2: 0.30}
_STAGE = {0: 0.0, 1: 0.001, 2: 0.002, 3: 0.05}


@lru_cache(maxsize=64)
def _fixes(plan: Plan) -> tuple[Fix, ...]:
    h = held(plan)
    choices = _choices(h)
    grids = np.meshgrid(*(np.arange(len(one.values)) for one in choices), indexing="ij")
    index = [grid.reshape(-1) for grid in grids]
    # Of two that cost the same, the one that changes less.
    price = sum(np.asarray(one.prices)[i] + 0.01 * (i > 0) for one, i in zip(choices, index, strict=True))
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
    order = fits[np.argsort(np.asarray(price)[fits], kind="stable")]
    kept: list[tuple[frozenset[str], Fix]] = []
    for at in order:
        texts = {one.id: _typed(one.id, one.values[int(i[at])]) for one, i in zip(choices, index, strict=True) if i[at]}
        changed = frozenset(texts)
        if any(other <= changed for other, _ in kept):
            continue
        one = DeviceMemory(**{part.name: float(getattr(found, part.name)[at]) for part in fields(found)})
        kept.append((changed, Fix(texts, float(np.asarray(price)[at]), one)))
        if len(kept) == _LISTED:
            break
    return tuple(fix for _, fix in kept)


def _typed(id: str, value: int) -> str:
    if id == "rc":
        return Recompute(value).name.lower()
    return "true" if id == "off" else f"{value}"


def fixes(h: Held) -> tuple[Fix, ...]:
    """Changes of the layout on the same accelerators that fit, the cheapest first; none of one that fits already.

    Each changes other fields than those before it, or fewer.
    """
    return _fixes(h.plan) if h.fits == "over" else ()


def fewest(h: Held) -> int | None:
    """Fewest accelerators, by doubling what there is, on which the plan fits as it is; None where none do."""
    for k in range(1, 11):
        more: Layout = replace(h.layout, data=int(h.layout.data) * 2**k)
        found = h.over(more)
        if float(found.total) <= h.usable:
            return math.prod((int(more.data), int(more.tensor), int(more.pipeline), int(more.context)))
    return None
