"""Picture of a sweep: cells with their numbers and shades, two named frontiers, the plan's own cell outlined.

A grid of buttons and not a chart, so that a key reaches every cell as well as a mouse; what it draws is plain data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.limits import cached
from core.planning.solving import Array
from core.planning.sweep.sweep import Bools, Recommendation, Result, Sweep, edges, frontier_end, scale_of
from core.views.common.palette import DARK, LIGHT, shade
from core.views.sweep import text as sweep_text

_WIDE = 4.0
"""Where the largest value is so many times the smallest, equal steps of shade are equal ratios."""


@cached("sweeps_kept")
def grid(sweep: Sweep, result: Result, picked: Recommendation | None) -> dict[str, Any]:
    """All that is drawn, rows from the top: the largest value of the side that runs upwards first.

    What was drawn lately is remembered; nobody changes it.
    """
    scale = scale_of(sweep, result)
    values = result.of(sweep)
    shares = shares_of(values)
    rows, columns = sweep.shape
    order = range(rows - 1, -1, -1)
    x, y = sweep.x.axis, sweep.y.axis

    def cell(i: int, j: int) -> dict[str, Any]:
        text, share = scale.cell(float(values[i, j])), float(shares[i, j])
        stuck = not sweep.fits[i, j]
        tags = ["yours"] * (sweep.plan_cell == (i, j))
        tags += [picked.by] if picked and picked.cell == (i, j) else []
        return {
            "id": f"{i},{j}",
            "text": f"✕ {text}" if stuck else text,
            "light": shade(LIGHT, share),
            "dark": shade(DARK, share),
            "stuck": stuck,
            "tag": " · ".join(tags),
            "here": sweep.plan_cell == (i, j),
            "label": sweep_text.cell(sweep, (i, j), scale),
        }

    return {
        "title": sweep_text.heading(sweep, scale),
        "x": {"title": sweep_text.side(x), "ticks": [x.format_value(text) for text in sweep.x.texts]},
        "y": {"title": sweep_text.side(y), "ticks": [y.format_value(sweep.y.texts[i]) for i in order]},
        "rows": [[cell(i, j) for j in range(columns)] for i in order],
        "lines": _lines(sweep),
    }


def _lines(sweep: Sweep) -> list[dict[str, Any]]:
    """The frontiers that there are; names on one side of the sweep lie in lanes of their own."""
    yes, no = sweep_text.stays(sweep.within, sweep.limits)
    within = (yes, f"{no}, or unknown" if sweep.may_meet_limits.any() else no)
    rows = [("fits", sweep.fits, "fits", "does not fit"), ("within", sweep.meets_limits, *within)]
    if not sweep.limited:
        rows[1] = ("within", ~sweep.impossible, *within)
    result = [line for kind, holds, yes, no in rows if (line := _line(kind, holds[::-1], yes, no))]
    for i, line in enumerate(result):
        line["lane"] = sum(other["side"] == line["side"] for other in result[:i])
    return result


def shares_of(values: Array) -> Array:
    """Where each value stands between the smallest and the largest, 0 to 1; 0 where there is none."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(values.shape)
    low, high = float(values[finite].min()), float(values[finite].max())
    if low == high:
        return np.zeros(values.shape)
    if low > 0 and high / low >= _WIDE:
        values, low, high = np.log(np.where(finite, values, low)), float(np.log(low)), float(np.log(high))
    return np.where(finite, (values - low) / (high - low), 0.0)


def _line(kind: str, inside: Bools, yes: str, no: str) -> dict[str, Any] | None:
    """One frontier and its name, which says what holds on the side of the line where it stands."""
    out = frontier_end(inside)
    if not out:
        return None
    length = inside.shape[1] if out.side in ("top", "bottom") else inside.shape[0]
    # The name stands where there is more room for it.
    before = out.at * 2 >= length
    return {
        "kind": kind,
        "edges": edges(inside),
        "side": out.side,
        "at": out.at,
        "before": before,
        "name": yes if before == out.before else no,
    }
