"""What would make a plan fit that does not, or leave free what it keeps: small changes of its layout and pieces of its
loss, every one with every other, the cheapest first; more accelerators, or others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.hardware.accelerators import Accelerator, accelerators
from core.limits import cached
from core.planning.largest_model import fewest_that_hold
from core.planning.layout import own_layout
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import Plan, whole_accelerators
from core.planning.plan_limits import missed_limits
from core.search.request import FREE, with_fsdp
from core.training.device.host import host_lacks, host_memory
from core.training.device.memory import DeviceMemory
from core.training.device.peak import largest_micro_batch, largest_seq_len, most_layers
from core.training.device.traffic import FLOP_PER_BYTE, INSIDE_FLOP_PER_BYTE, StepCost, step_cost
from core.training.layout import OFFLOADS, RECOMPUTES, Layout, LayoutError, allowed, filled

_DOUBLINGS = 4
PIECES = 16
"""Pieces of the loss that are tried; more hardly hold less."""

_LISTED = 6
_SETTLED = 0.01
"""Share of a step that one change fewer is worth."""


@dataclass(frozen=True, eq=False, slots=True)
class Fix:
    """One change with which the plan fits.

    texts: the plan's fields by id, as entered. saved: reduction of peak memory in bytes. extra_flop: relative change of
    the FLOPs of a step. extra_traffic: relative change of the bytes that an accelerator sends per token; NaN if it sent
    none. extra_bubble: added pipeline bubble, relative to compute. device_memory: memory after the change.
    """

    texts: Mapping[str, str]
    saved: float
    extra_flop: float
    extra_traffic: float
    extra_bubble: float
    device_memory: DeviceMemory


_FIELDS: Mapping[str, str] = {
    "rc": "recompute",
    "mbs": "micro_batch",
    "zero": "zero",
    "cp": "context",
    "tp": "tensor",
    "pp": "pipeline",
    "off": "offload",
}
"""What may change: the plan's field by id, and what it is of a layout; beside them the pieces of the loss."""


_NAMED: Mapping[str, Mapping[str, int]] = {"rc": RECOMPUTES, "off": OFFLOADS}
"""Of those the ones whose values have names."""


def _choices(h: MemoryEstimate) -> dict[str, tuple[int, ...]]:
    """Return the values tried of each field that may change, by id; the plan's own first."""
    layout = h.layout

    def doubled(now: int, most: int) -> tuple[int, ...]:
        return tuple(now * 2**k for k in range(_DOUBLINGS) if now * 2**k <= most or k == 0)

    ways = tuple(int(way) for way in RECOMPUTES.values())
    own = int(layout.recompute)
    again = ways[ways.index(own) :] if own in ways else (own,)
    stages = range(int(layout.zero), 4 if layout.data * layout.context > 1 else int(layout.zero) + 1)
    batch = int(layout.micro_batch)
    halves = tuple(dict.fromkeys((batch, max(1, batch // 2), max(1, batch // 4), 1)))
    node = max(1, h.plan.device.node_size)
    whole = h.plan.trained.everything  # what trains a part of a model splits no weights
    choices = {
        "rc": again,
        "mbs": halves,
        "zero": tuple(stages),
        "cp": doubled(int(layout.context), 64),
        "tp": doubled(int(layout.tensor), node if whole else 1),
        "pp": doubled(int(layout.pipeline), 64 if whole else 1),
        "off": tuple(dict.fromkeys((int(layout.offload), max(1, int(layout.offload))))),
        "chunks": tuple(dict.fromkeys((h.plan.runtime_options.chunks, max(h.plan.runtime_options.chunks, PIECES)))),
    }
    if not h.plan.trains_with_trl:
        return choices
    choices["off"] = tuple(dict.fromkeys((int(layout.offload), 2)))
    runs = with_fsdp(replace(FREE, offload=None))
    return choices | {
        name: (choices[name][0], *runs.choices(field, choices[name][1:]).tolist()) for name, field in _FIELDS.items()
    }


def _changed(h: MemoryEstimate, values: Mapping[str, Any]) -> Layout:
    """Return the layout with other values of fields by id, arrays of them too, on the same accelerators."""
    typed = own_layout(h.plan).micro_batches if h.plan.own_layout else 0
    laid = replace(h.layout, **{field: values[name] for name, field in _FIELDS.items() if name in values})
    count = whole_accelerators(h.plan.accelerators)
    return filled(replace(laid, micro_batches=typed), count, h.plan.sequences)[0]


@cached("results_kept")
def _search(plan: Plan) -> tuple[Fix, ...]:
    """Return what fits, the cheapest first."""
    h = memory_estimate(plan)
    choices = _choices(h)
    grids = np.meshgrid(*(np.arange(len(values)) for values in choices.values()), indexing="ij")
    places = np.stack([grid.reshape(-1) for grid in grids])  # of the value that each field takes, a row for each field

    def values(places: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
        return {name: np.asarray(choices[name])[row] for name, row in zip(choices, places, strict=True)}

    layout, count = _changed(h, values(places)), whole_accelerators(plan.accelerators)
    whole = count % (layout.tensor * layout.pipeline * layout.context) <= count - int(h.layout.accelerators)
    places = places[:, whole & allowed(h.spec, layout, plan.seq_len, count)]
    held = _held_by_host(h, _changed(h, values(places)))
    if h.host_holds:
        places, held = places[:, held], held[held]
    tried = values(places)
    memory = h.over_layouts(_changed(h, tried), chunks=tried["chunks"])
    total = np.asarray(memory.total)
    # With as much free as the plan keeps, or else without, where it does not fit; and of what the host holds, or else
    # of all, where it does not hold the plan.
    limits = (h.total + h.room, h.usable) if h.fits == "over" else (h.total + h.room,)
    fitting = [(total <= most) & host for host in (held, np.ones_like(held)) for most in limits]
    kept_in = np.flatnonzero(next((one for one in fitting if one.any()), ()))
    if not len(kept_in):
        return ()
    places = places[:, kept_in]
    cost = _cost(h, _changed(h, values(places)))
    again, sent, wait = _more(h, cost, kept_in.shape)
    # Of two that cost the same, the one that changes less.
    rank = np.asarray(cost.share) + _SETTLED * (places > 0).sum(axis=0)

    def fix(at: int) -> Fix:
        row: list[int] = places[:, at].tolist()
        texts = {name: _typed(name, choices[name][i]) for name, i in zip(choices, row, strict=True) if i}
        item = DeviceMemory(**{part.name: float(getattr(memory, part.name)[kept_in[at]]) for part in fields(memory)})
        return Fix(texts, h.total - float(item.total), float(again[at]), float(sent[at]), float(wait[at]), item)

    names, selected = np.array(list(choices)), list[Fix]()
    for at in np.argsort(rank, kind="stable").tolist():
        changed = set(names[places[:, at] > 0].tolist())
        if not any(other.texts.keys() <= changed for other in selected):
            selected.append(fix(at))
            if len(selected) == _LISTED:
                break
    return tuple(selected)


def _held_by_host(h: MemoryEstimate, layout: Layout) -> Any:
    """Return which layouts leave the host no more than it has."""
    lacks = host_lacks(replace(h.setup, layout=layout), h.plan.device.node_size, h.plan.limits.host)
    return np.broadcast_to(np.less_equal(lacks, 0), np.shape(layout.offload))


def _cost(h: MemoryEstimate, layout: Layout) -> StepCost:
    """Return what a step costs; a plan that one node holds sends nothing over a network."""
    inside = h.layout.accelerators <= h.plan.device.node_size
    return step_cost(h.setup, layout, per_byte=INSIDE_FLOP_PER_BYTE if inside else FLOP_PER_BYTE)


def _more(h: MemoryEstimate, cost: StepCost, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return FLOPs of a step and bytes sent for each token over those of the plan, less one, the latter NaN if it sends
    none; and the wait beyond the plan's."""
    now = _cost(h, h.layout)
    again = (1 + np.broadcast_to(cost.again, shape)) / (1 + float(now.again)) - 1
    sent = np.broadcast_to(cost.sent, shape) / float(now.sent) - 1 if now.sent else np.full(shape, math.nan)
    return again, sent, np.broadcast_to(cost.wait, shape) - float(now.wait)


def _typed(name: str, value: int) -> str:
    names = _NAMED.get(name)
    return next(text for text, way in names.items() if way == value) if names else f"{value}"


def _value(name: str, text: str) -> int:
    return int(_NAMED[name][text]) if name in _NAMED else int(text)


def fixed_plan(h: MemoryEstimate, fix: Fix) -> Plan:
    """Return the plan of ``h`` with a change, as its custom layout."""
    values = {name: _value(name, text) for name, text in fix.texts.items()}
    layout = h.plan.layout if h.plan.own_layout else replace(h.layout, micro_batches=0)
    how = h.plan.runtime_options
    return replace(
        h.plan,
        own_layout=True,
        layout=replace(layout, **{field: values[name] for name, field in _FIELDS.items() if name in values}),
        runtime_options=replace(how, chunks=values.get("chunks", how.chunks)),
    )


def _misses(h: MemoryEstimate, fix: Fix) -> bool:
    try:
        return bool(missed_limits(fixed_plan(h, fix)))
    except (BudgetError, LayoutError):
        return True


def fixes(h: MemoryEstimate) -> tuple[Fix, ...]:
    """Return layout changes with which the plan fits on the same accelerators, the cheapest first.

    Changes that miss no limit of the plan come first. Empty if the plan already fits with its memory headroom. Each
    change sets other fields than those before it, or fewer.
    """
    return tuple(sorted(_search(h.plan), key=lambda fix: _misses(h, fix))) if h.lacks else ()


def cheapest_fix(h: MemoryEstimate) -> Fix | None:
    """Return the first of `fixes`."""
    found = _search(h.plan) if h.lacks else ()
    return next((fix for fix in found if not _misses(h, fix)), found[0] if found else None)


@cached("results_kept")
def on_host(h: MemoryEstimate, fix: Fix) -> float:
    """Return the bytes of the host's memory for one accelerator that a plan takes with the change."""
    layout = _changed(h, {name: _value(name, text) for name, text in fix.texts.items()})
    return host_memory(replace(h.setup, layout=layout)).total


@cached("results_kept")
def largest(h: MemoryEstimate) -> tuple[int, int, int]:
    """Return the largest micro-batch, sequence length, and number of layers that meet the memory headroom, one at a
    time.

    Everything else is unchanged. 0 if no value meets it.
    """
    return largest_micro_batch(h.roomy), largest_seq_len(h.roomy), most_layers(h.roomy)


def fewest_accelerators(h: MemoryEstimate) -> int | None:
    """Return the fewest accelerators on which the plan fits with its memory headroom; None if it already fits, or never
    does."""
    return fewest_that_hold(h.plan) if h.lacks else None


@cached("results_kept")
def larger_accelerators(h: MemoryEstimate) -> tuple[Accelerator, ...]:
    """Return accelerators of the same vendor on which the unchanged plan fits with its headroom, by increasing memory.

    Of accelerators with the same memory, only the first in the catalog is returned.
    """
    result = [
        accelerator
        for accelerator in accelerators()
        if accelerator.vendor == h.plan.device.vendor
        and h.plan.on_accelerator(accelerator.name).usable_memory * (1 - h.plan.limits.free) >= h.total
    ]
    return tuple(
        sorted(
            {accelerator.memory_bytes: accelerator for accelerator in reversed(result)}.values(),
            key=lambda accelerator: accelerator.memory_bytes,
        )
    )
