"""Picture of the whole run: what the time on the wall goes to, part after part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.views.common.chart import MONO, Figure, axis, figure, lying_bars, rows_axis
from core.views.common.palette import Palette
from core.wording import percent_of_whole

_ROW = 38


def hours_of_the_run(parts: Sequence[tuple[str, float, str]], palette: Palette) -> Figure:
    """Return a staircase of the end-to-end time, from 0 to 100%: each part starts where the one above it ends.

    parts: name, share, and color role. The numbers are next to the names, so that small parts are readable.
    """
    shares = np.array([100 * share for _, share, _ in parts])
    starts = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    names = [name for name, _, _ in parts]
    ticks = [
        f"{name} <span style='font-family:{MONO};font-size:12px'> {percent_of_whole(share)}</span>"
        for name, share, _ in parts
    ]
    return figure(
        palette,
        [
            lying_bars(
                shares[::-1],
                names[::-1],
                "%{y}: %{customdata}",
                base=starts[::-1],
                marker={"color": [palette.role(role) for _, _, role in parts][::-1]},
                customdata=[percent_of_whole(share) for _, share, _ in parts][::-1],
            )
        ],
        height=_ROW * len(parts) + 64,
        bargap=0.45,
        xaxis=axis(palette, message("whole.chart.axis"), range=[0, 101], tickvals=[0, 20, 40, 60, 80, 100]),
        yaxis=rows_axis(palette, names, ticks),
    )
