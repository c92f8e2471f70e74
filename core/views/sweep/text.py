"""Messages of a sweep: the recommended cell, the verdict of each cell, and notices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from core.messages import Message, message, pick_message
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import OWN_LAYOUT_FIELDS
from core.planning.form.plan_form import ACCELERATOR, COUNT, PRICE
from core.planning.plan_limits import Limited
from core.planning.sweep.axes import AXES, Axis
from core.planning.sweep.sweep import Bools, Recommendation, Result, Sweep, plan_of_texts
from core.units import format_count
from core.views.plan.text import typed_elsewhere
from core.views.plan.text_limits import limit_in_sentence
from core.wording import Amount, format_value, rent_or_none

Cell = tuple[int, int]

_ROWS = {"memory": "memory_bytes", "kg_co2": "carbon"}
"""Quantity of a cell → the row with its label, where that has another key."""

_UNKNOWN = {"days": "sweep.unknown.time", "dollars": "sweep.unknown.cost", "peak_watts": "sweep.unknown.power"}
_LIMITS: Mapping[str, Limited] = {"days": "deadline", "dollars": "money", "peak_watts": "power", "host": "host"}


def axis_label(axis: Axis) -> Message:
    """Return the label of an axis, with its unit."""
    return message(f"sweep.axis.{axis.id}")


def quantity_label(result: Result) -> Message:
    """Return the label of the quantity that cells show."""
    if result.quantity == "tokens_per_second":  # whose row names a unit
        return message("sweep.throughput")
    return message(f"row.{_ROWS.get(result.quantity, result.quantity)}")


def value_text(axis: Axis, text: str) -> str:
    """Return a value of an axis as the board shows it."""
    if not text:
        return axis.field.placeholder or message("sweep.default")
    value = axis.field.parse(text)
    if axis.ladder and isinstance(value, float) and value >= 1:
        return format_count(value)
    return re.sub(r"\s+%", "%", text.strip())


def cell_name(sweep: Sweep, cell: Cell) -> Message:
    """Return a cell by its two values, the number of accelerators first: ``2,048 H100 SXM with 45% MFU``."""
    sides = [(sweep.x.axis, sweep.x.texts[cell[1]]), (sweep.y.axis, sweep.y.texts[cell[0]])]
    sides.sort(key=lambda side: side[0].id != COUNT.id)
    device, axes = sweep.plans[cell[0]][cell[1]].accelerator, {axis.id for axis, _ in sides}
    values = [
        message("sweep.value.default", axis=axis.name)
        if axis.id == PRICE.id and not text
        else pick_message(f"sweep.value.{axis.id}", value=value_text(axis, text), device=device)
        for axis, text in sides
    ]
    if axes == {COUNT.id, ACCELERATOR.id}:
        return values[0]
    return message("sweep.cell.with" if COUNT.id in axes else "sweep.cell.and", first=values[0], second=values[1])


def limit_names(sweep: Sweep) -> tuple[Message, Message]:
    """Return what cells on either side of the limits are: ``within 90 days`` and ``over 90 days``."""
    within, limits = sweep.within, sweep.limits
    values = {"days": (within.days, limits.days), "dollars": (within.dollars, limits.dollars)}
    values |= {"W": (limits.watts,), "GiB": (limits.host,)}
    entered = {Amount(value, kind) for kind, some in values.items() for value in some if math.isfinite(value)}
    if len(entered) > 1:
        return message("sweep.within.all"), message("sweep.beyond.all")
    for limit in entered:
        return message("sweep.within.one", limit=limit), message("sweep.beyond.one", limit=limit)
    return message("sweep.within.none"), message("sweep.beyond.none")


def amount_text(result: Result, value: float) -> str:
    """Return a value of a cell with its unit."""
    if not math.isfinite(value):
        return message("sweep.unknown.value")
    return rent_or_none(value) if result.quantity == "dollars" else format_value(value, result.kind)


# ------------------------------------------------------------------------------ the answer


def answer(sweep: Sweep, picked: Recommendation | None) -> list[Message]:
    """Return the recommended cell and that the next smaller cluster is not enough, or else what comes nearest."""
    limit, unknown = limit_names(sweep)[0], _unknown(sweep, sweep.fits & sweep.may_meet_limits)
    if picked:
        cell = cell_name(sweep, picked.cell)
        said = message(f"sweep.answer.{picked.by}", limit=limit, cell=cell, result=_result_at(sweep, picked.cell))
        return [said, *_smaller(sweep, picked)]
    if not sweep.fits.any():
        return [message("sweep.answer.nothing_fits")]
    if not sweep.limited:
        fit, cells = float(sweep.fits.sum()), float(sweep.fits.size)
        return [message("sweep.answer.fit", fit=fit, cells=cells), *_nearest(sweep)]
    if unknown:
        return [message("sweep.answer.unknown", limit=limit, unknown=unknown)]
    return [message("sweep.answer.nothing_meets", limit=limit), *_nearest(sweep)]


def _result(days: float, dollars: float) -> Message:
    known = math.isfinite(dollars) and dollars > 0
    return pick_message("sweep.result.time_cost" if known else "sweep.result.time", days=days, dollars=dollars)


def _result_at(sweep: Sweep, cell: Cell) -> Message:
    return _result(float(sweep["days"][cell]), float(sweep["dollars"][cell]))


def _unknown(sweep: Sweep, cells: Bools) -> list[Message]:
    return [message(_UNKNOWN[name]) for name, unknown in sweep.limits_unknown.items() if (unknown & cells).any()]


def _nearest(sweep: Sweep) -> list[Message]:
    """Return the fitting cell that takes the least time, or costs the least under a budget."""
    by, then = ("dollars", "days") if sweep.within.in_money else ("days", "dollars")
    left = np.where(sweep.fits & ~sweep.impossible & np.isfinite(sweep[by]), sweep[by], np.inf)
    alike = left <= left.min() * (1 + 1e-9)
    at = np.unravel_index(int(np.argmin(np.where(alike, np.nan_to_num(sweep[then]), np.inf))), sweep.shape)
    cell = (int(at[0]), int(at[1]))
    if not np.isfinite(left[cell]):
        return []
    nearest = "sweep.answer.nearest" if sweep.limited else "sweep.answer.fastest"
    return [message(nearest, cell=cell_name(sweep, cell), result=_result_at(sweep, cell))]


def _smaller(sweep: Sweep, picked: Recommendation) -> list[Message]:
    """Return that the next smaller cluster is not enough at any value of the other axis, or with the plan’s work."""
    counts, other = (sweep.x, sweep.y) if sweep.x.axis.id == COUNT.id else (sweep.y, sweep.x)
    at, chosen = picked.cell[::-1] if counts is sweep.x else picked.cell
    if picked.by != "fewest" or at == 0:
        return []
    first = 0
    if other.axis.want == "more" and sweep.plan_cell:
        own = sweep.plan_cell[0 if other is sweep.y else 1]
        first = own if chosen >= own else 0
    ends = [value_text(other.axis, other.texts[place]) for place in (first, -1)]
    fewer = value_text(counts.axis, counts.texts[at - 1])
    return [message("sweep.answer.fewer", fewer=fewer, axis=other.axis.name, first=ends[0], last=ends[1])]


def plan_text(a: PlanEstimate) -> Message:
    """Return the result of the plan itself."""
    return message("sweep.yours", result=_result(a.middle.days, a.dollars.mid), mfu=a.middle.mfu)


# ------------------------------------------------------------------------------ under the board


def hint(sweep: Sweep) -> Message:
    """Return how many cells satisfy the limits, and what a click does."""
    if not sweep.limited:
        return message("sweep.hint")
    satisfying, limit = float(sweep.satisfies.sum()), limit_names(sweep)[0]
    return message("sweep.hint_count", satisfying=satisfying, cells=float(sweep.fits.size), limit=limit)


def notices(sweep: Sweep) -> list[str]:
    """Return at most three notices: what cells assume, why the plan is no cell, and why cells have no result."""
    plan, axes, said = plan_of_texts(sweep.base), [sweep.x.axis, sweep.y.axis], list[str]()
    reasons = [why for row in sweep.reasons for why in row if why]
    if reasons:
        cells, every = float(len(reasons)), float(sweep.fits.size)
        said.append(message("sweep.notice.no_result", cells=cells, all=every, reason=_sentence(reasons[0])))
    if sweep.plan_cell is None:
        layouts = any(axis.field in OWN_LAYOUT_FIELDS for axis in axes) and not plan.own_layout
        said.append(message("sweep.notice.not_in_layout" if layouts else "sweep.notice.not_in"))
    if sweep.limited and sweep.limits.certainty != "P50":
        said.append(message("sweep.notice.confidence", confidence=sweep.limits.certainty))
    if plan.catalog_model and AXES["parameters"] in axes:
        said.append(message("sweep.notice.sizes", model=plan.catalog_model.name))
    entered = replace(plan, prices=None) if AXES["price"] in axes else plan
    said.append(typed_elsewhere(entered, (cell.accelerator for row in sweep.plans for cell in row)))
    return [text for text in said if text][:3]


def _sentence(why: str) -> str:
    text = why.replace("**", "")
    return text if text.endswith(".") else f"{text}."


# ------------------------------------------------------------------------------ each cell


def cell_label(sweep: Sweep, cell: Cell, result: Result) -> Message:
    """Return a cell for a tooltip or a screen reader."""
    if why := sweep.reasons[cell[0]][cell[1]]:
        return message("sweep.label_reason", cell=cell_name(sweep, cell), reason=_sentence(why))
    value = amount_text(result, float(sweep[result.quantity][cell]))
    return message("sweep.label", cell=cell_name(sweep, cell), value=value, verdict=verdict(sweep, cell))


def verdict(sweep: Sweep, cell: Cell) -> Message:
    """Return whether a cell fits and meets every limit, or what it misses."""
    if sweep.reasons[cell[0]][cell[1]]:
        return message("sweep.verdict.none")
    if sweep.satisfies[cell]:
        limit = limit_names(sweep)[0]
        return message("sweep.verdict.meets", limit=limit) if sweep.limited else message("sweep.verdict.fits")
    here: Bools = np.zeros(sweep.shape, bool)
    here[cell] = True
    misses = [] if sweep.fits[cell] else [message("sweep.misses.memory")]
    misses += [message("sweep.misses.headroom")] if sweep.fits[cell] and not sweep.leaves_free[cell] else []
    misses += [message("sweep.misses.impossible")] if sweep.impossible[cell] else []
    misses += [
        message("sweep.misses.limit", limit=limit_in_sentence(_LIMITS[name]))
        for name, met in sweep.limits_met.items()
        if not met[cell] and not (name in sweep.limits_unknown and sweep.limits_unknown[name][cell])
    ]
    if misses:
        return message("sweep.verdict.misses", misses=misses)
    return message("sweep.verdict.unknown", unknown=_unknown(sweep, here))
