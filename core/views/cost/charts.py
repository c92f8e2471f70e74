"""Picture of the bill: one bar for each way of paying, its lines one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.planning.cost.bill import CostOption
from core.views.common.chart import NAMED_ROW, Figure, axis, layout, named_axis
from core.views.common.palette import Palette
from core.views.cost.text import NAMES, ROLES
from core.views.plan.charts import scale_for
from core.wording import rent

_PATTERN = {
    "idle": "/",
    "idle_pools": "/",
    "power": "x",
    "staff": ".",
    "space": "+",
    "checkpoints": "\\",
    "dataset": "-",
    "network": "|",
}
"""Id of a line → its hatching, so that colour is never alone."""

_CHARACTER = 0.009
"""Share of the longest bar that a character of a name takes; a line that is too short for its name has none on it."""


def bills(ways: Sequence[CostOption], palette: Palette) -> Figure:
    """Stacked bars in dollars; a way without a total has an empty row that says so."""
    options = [way for way in ways if way.total.known]
    most = max((way.total.mid for way in options), default=1.0) or 1.0
    scale = scale_for("cost", most)
    ids = list(dict.fromkeys(line.id for way in options for line in way.lines if line.amount.mid > 0))
    names = [way.id for way in ways]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": NAMES[which],
            "y": [way.id for way, _ in rows],
            "x": np.array([amount / scale.size for _, amount in rows]),
            "text": [NAMES[which] if amount > _CHARACTER * len(NAMES[which]) * most else "" for _, amount in rows],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "insidetextfont": {"color": palette.background, "size": 12},
            "constraintext": "none",
            "marker": {
                "color": palette.role(ROLES[which]),
                "line": {"color": palette.background, "width": 1},
                "pattern": {
                    "shape": _PATTERN.get(which, ""),
                    "size": 6,
                    "solidity": 0.15,
                    "fillmode": "overlay",
                    "fgcolor": palette.background,
                },
            },
            "customdata": [rent(amount) for _, amount in rows],
            "hovertemplate": f"%{{y}}, {NAMES[which]}: %{{customdata}}<extra></extra>",
        }
        for which in ids
        if (rows := [(way, line.amount.mid) for way in options if (line := way.line(which)) and line.amount.mid > 0])
    ]
    return {
        "data": data,
        "layout": layout(
            palette,
            height=NAMED_ROW * len(names) + 74,
            barmode="stack",
            bargap=0.35,
            xaxis=axis(palette, scale.title, range=[0, most / scale.size * 1.04]),
            yaxis={
                **named_axis(palette, names, [rent(way.total.mid) for way in ways]),
                "categoryorder": "array",
                "categoryarray": names[::-1],
                "range": [-0.5, len(names) - 0.5],
            },
        ),
    }
