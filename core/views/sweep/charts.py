"""Picture of a sweep: cells with their numbers and shades, two named frontiers, and the plan’s cell outlined.

A grid of buttons and not a chart, so that keys reach every cell as well as a mouse; what it draws is plain data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.limits import cached
from core.messages import Message, message
from core.planning.solving import Array
from core.planning.sweep.sweep import Bools, Recommendation, Result, Sweep
from core.units import SI_POWERS, format_count, significant
from core.views.common.palette import DARK, LIGHT, shade
from core.views.sweep import text as sweep_text
from core.wording import plain

_WIDE = 4.0
"""If the largest value is this many times the smallest, equal steps of shade are equal ratios."""

_UNITS: dict[str, tuple[tuple[str, float, float], ...]] = {
    "days": (("years", 365.25, 2000.0), ("days", 1.0, 2.0), ("hours", 1 / 24, 1 / 12), ("minutes", 1 / 1440, 0.0)),
    "dollars": (("$ billions", 1e9, 1e9), ("$ millions", 1e6, 1e6), ("$ thousands", 1e3, 1e3), ("$", 1.0, 0.0)),
    "count": (("billions", 1e9, 1e9), ("millions", 1e6, 1e6), ("thousands", 1e3, 1e3), ("", 1.0, 0.0)),
    "rate": (("B tokens/s", 1e9, 1e9), ("M tokens/s", 1e6, 1e6), ("k tokens/s", 1e3, 1e3), ("tokens/s", 1.0, 0.0)),
    "percent": (("%", 0.01, 0.0),),
    "GiB": (("GiB", 2.0**30, 0.0),),
    "CO2": (("t", 1e3, 1e3), ("kg", 1.0, 0.0)),
    **{
        unit: tuple((f"{prefix}{unit}", 10.0**power, 10.0**power if power else 0.0) for prefix, power in powers)
        for powers in [sorted(SI_POWERS.items(), key=lambda item: -item[1])]
        for unit in ("Wh", "W")
    },
}
"""Format of a quantity → units, with the size of one and the least median for which it reads well."""


def unit_of(values: Array, kind: str) -> tuple[str, float]:
    """Return the one unit, and its size, in which all cells are written so that they compare by eye."""
    finite = values[np.isfinite(values)]
    median = float(np.median(finite)) if finite.size else 1.0
    return next((unit, size) for unit, size, least in _UNITS[kind] if median >= least)


def cell_text(value: float) -> str:
    """Return a value in the unit of all cells, at most five characters wide."""
    if not math.isfinite(value):
        return "—"
    if abs(value) >= 1e6:
        return format_count(value, 3)
    return f"{significant(value / 1e3, 3)}k" if abs(value) >= 1e4 else significant(value, 3)


@cached("sweeps_kept")
def grid(sweep: Sweep, result: Result, picked: Recommendation | None) -> dict[str, Any]:
    """Return all that is drawn, the largest value of the vertical axis first."""
    values = sweep[result.quantity]
    unit, size = unit_of(values, result.kind)
    shares = shares_of(values)
    order = range(sweep.shape[0] - 1, -1, -1)
    x, y = sweep.x, sweep.y

    def cell(i: int, j: int) -> dict[str, Any]:
        text, share, fits = cell_text(float(values[i, j]) / size), float(shares[i, j]), sweep.fits[i, j]
        tags = [message("sweep.tag.yours")] if sweep.plan_cell == (i, j) else []
        tags += [message(f"sweep.tag.{picked.by}")] if picked and picked.cell == (i, j) else []
        return {
            "id": f"{i},{j}",
            "text": text if fits else f"✕ {text}",
            "light": shade(LIGHT, share),
            "dark": shade(DARK, share),
            "stuck": not fits,
            "tag": " · ".join(tags),
            "here": sweep.plan_cell == (i, j),
            "label": sweep_text.cell_label(sweep, (i, j), result),
        }

    label = sweep_text.quantity_label(result)
    title = message("axis.scaled", quantity=label, unit=unit) if unit else label
    return {
        "title": message("sweep.title" if sweep.fits.all() else "sweep.title_marked", quantity=title),
        "x": {"title": sweep_text.axis_label(x.axis), "ticks": [sweep_text.value_text(x.axis, t) for t in x.texts]},
        "y": {
            "title": sweep_text.axis_label(y.axis),
            "ticks": [sweep_text.value_text(y.axis, y.texts[i]) for i in order],
        },
        "rows": [[cell(i, j) for j in range(sweep.shape[1])] for i in order],
        "lines": _lines(sweep),
    }


def grid_alt(sweep: Sweep, result: Result, answer: str) -> Message:
    """Return what the picture shows."""
    x, y = (sweep_text.axis_label(side.axis) for side in (sweep.x, sweep.y))
    return message("sweep.alt", x=x, y=y, quantity=sweep_text.quantity_label(result), answer=plain(answer))


def shares_of(values: Array) -> Array:
    """Return where each value is between the smallest and the largest, from 0 to 1; 0 if unknown."""
    finite = np.isfinite(values)
    low, high = (float(np.min(values[finite])), float(np.max(values[finite]))) if finite.any() else (0.0, 0.0)
    if low == high:
        return np.zeros(values.shape)
    if low > 0 and high / low >= _WIDE:
        values, low, high = np.log(np.where(finite, values, low)), math.log(low), math.log(high)
    return np.where(finite, (values - low) / (high - low), 0.0)


def _lines(sweep: Sweep) -> list[dict[str, Any]]:
    """Return the frontiers of memory and of the limits; names on one side of the board have lanes of their own."""
    within, beyond = sweep_text.limit_names(sweep)
    if sweep.may_meet_limits.any():
        beyond = message("sweep.beyond.unknown", beyond=beyond)
    limits = sweep.meets_limits if sweep.limited else ~sweep.impossible
    fits = (message("sweep.fits"), message("sweep.does_not_fit"))
    drawn = (_line("fits", sweep.fits[::-1], *fits), _line("within", limits[::-1], within, beyond))
    lines = [line for line in drawn if line]
    for i, line in enumerate(lines):
        line["lane"] = sum(other["side"] == line["side"] for other in lines[:i])
    return lines


def _line(kind: str, inside: Bools, yes: str, no: str) -> dict[str, Any] | None:
    """Return one frontier, named where it leaves the board: on top if it does, else right, below, or left; None if it
    does not leave the board.

    at: cells along that side. before: whether the name is left of that place, or above it, where there is more room.
    """
    rims = {"top": inside[0, :], "right": inside[:, -1], "bottom": inside[-1, :], "left": inside[:, 0]}
    for side, rim in rims.items():
        turns = np.flatnonzero(rim[1:] != rim[:-1])
        if turns.size:
            at = int(turns[-1] if side in ("top", "bottom") else turns[0]) + 1
            before = at * 2 >= len(rim)
            name = yes if rim[at - 1 if before else at] else no
            return {"kind": kind, "edges": edges(inside), "side": side, "at": at, "before": before, "name": name}
    return None


def edges(inside: Bools) -> list[tuple[int, int, int, int]]:
    """Return the x and y of both ends of every edge between a cell where it holds and one where it does not, in cells
    from the top left."""
    upright = np.argwhere(inside[:, 1:] != inside[:, :-1])
    level = np.argwhere(inside[1:, :] != inside[:-1, :])
    rows = [(int(j) + 1, int(i), int(j) + 1, int(i) + 1) for i, j in upright]
    return rows + [(int(j), int(i) + 1, int(j) + 1, int(i) + 1) for i, j in level]
