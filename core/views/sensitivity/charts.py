"""What moves the answer, as a picture: the tornado of days or dollars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.views.common.chart import Figure, axis, figure, label, lying_bars, named_axis, rule
from core.views.common.palette import Palette
from core.views.plan.charts import scale_for
from core.views.sensitivity.text import NamedSwing

_ROW = 46


def tornado(swings: Sequence[NamedSwing], here: float, dollars: bool, palette: Palette) -> Figure:
    """Return one bar per input from the answer at its low end to that at its high end, the widest on top.

    swings: with their names and ranges in words; here: the answer at the middle of everything.
    """
    scale = scale_for("cost" if dollars else "time", here)
    rows = list(swings)[::-1]
    ends = [sorted(s.swing.dollars if dollars else s.swing.days) for s in rows]
    low, high = (np.array([end[i] for end in ends]) / scale.size for i in (0, 1))
    middle = here / scale.size
    room = 0.27 * float(high.max() - low.min() or high.max())
    names = [s.name for s in rows]
    return figure(
        palette,
        [
            lying_bars(
                high - low,
                names,
                "%{y}: %{customdata}",
                base=low,
                width=0.42,
                marker={"color": palette.parameters},
                customdata=[message("sensitivity.hover", low=scale.show(a), high=scale.show(b)) for a, b in ends],
            )
        ],
        height=_ROW * len(rows) + 84,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        xaxis=axis(palette, scale.title, range=[max(0.0, float(low.min()) - room), float(high.max()) + room]),
        yaxis=named_axis(palette, names, [s.span for s in rows]),
        shapes=[rule(x=middle, line={"color": palette.accent, "width": 2})],
        annotations=[
            label(
                palette,
                message("sensitivity.yours", value=scale.show(here)),
                x=middle,
                y=1,
                yref="paper",
                yanchor="bottom",
                colour=palette.accent,
                size=13,
            ),
            *(
                label(palette, scale.show(value * scale.size), x=float(value), y=name, xanchor=anchor, xshift=shift)
                for values, anchor, shift in ((low, "right", -5), (high, "left", 5))
                for value, name in zip(values, names, strict=True)
            ),
        ],
    )
