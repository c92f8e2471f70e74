"""Loss against parameters for one budget of compute."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.budget.compute_optimal import LAWS, Allocation, LossLaw, loss_along_budget
from core.units import format_count
from core.views.common.chart import Figure, axis, figure, label, log_axis, marks
from core.views.common.palette import Palette


def loss_curves(flop: float, params: float, splits: Sequence[Allocation], palette: Palette) -> Figure:
    """Loss by each law for every size that spends the same FLOPs: the bottom is the best split, a ring marks yours."""
    sizes = np.geomspace(min(params, *(s.params for s in splits)) / 8, max(params, *(s.params for s in splits)) * 8, 81)
    data: list[Figure] = []
    notes: list[Figure] = []
    for law, colour, dash in zip(LAWS, (palette.parameters, palette.optimizer), ("solid", "dash"), strict=True):
        curve = loss_along_budget(law, flop, sizes)
        best = next(s for s in splits if s.id == law.id)
        data += _curve(law, curve, sizes, best, flop, params, colour, dash, palette)
        notes.append(
            label(
                palette,
                f"{law.name}<br>best: {format_count(best.params, 3)}",
                x=math.log10(best.params),
                y=best.loss,
                yanchor="top",
                yshift=-8,
                colour=colour,
            )
        )
    ticks = [10.0**k * m for k in range(6, 17) for m in (1, 3)]
    return figure(
        palette,
        data,
        height=380,
        xaxis=log_axis(
            palette,
            "parameters, tokens following from the budget",
            float(sizes[0]),
            float(sizes[-1]),
            tickvals=ticks,
            ticktext=[format_count(tick, 2) for tick in ticks],
        ),
        yaxis=axis(palette, "loss, nats per token", range=_around(data)),
        annotations=notes,
    )


def _curve(
    law: LossLaw,
    curve: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64],
    best: Allocation,
    flop: float,
    params: float,
    colour: str,
    dash: str,
    palette: Palette,
) -> list[Figure]:
    here = float(loss_along_budget(law, flop, np.array([params]))[0])
    return [
        marks(
            "lines",
            sizes,
            curve,
            f"{law.name}: %{{x:.3s}} parameters, loss %{{y:.4f}}",
            line={"color": colour, "width": 2.5, "dash": dash},
        ),
        marks(
            "markers",
            np.array([best.params, params]),
            np.array([best.loss, here]),
            "%{text}: %{x:.3s} parameters, loss %{y:.4f}",
            text=["best", "yours"],
            marker={"size": [9, 14], "symbol": ["circle", "cross"], "color": [colour, palette.accent]},
        ),
    ]


def _around(data: Sequence[Figure]) -> list[float]:
    low = min(float(np.min(trace["y"])) for trace in data)
    high = max(float(np.max(trace["y"])) for trace in data if trace["mode"] == "markers")
    high = max(high, low + 0.15)
    return [low - 0.35 * (high - low), high + 0.25 * (high - low)]
