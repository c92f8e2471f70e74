"""Published runs as pictures: every one as a point among its kind, and the hours of one taken apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.runs.published import Comparison
from core.units import format_quantity, significant
from core.views.common.chart import NAMED_ROW, Figure, axis, figure, label, lying_bars, marks, named_axis
from core.views.common.palette import Palette


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A published run, or the plan, as a point: size against MFU or hours per token. here: it is the plan."""

    name: str
    params: float
    value: float
    hover: str
    alike: bool = False
    here: bool = False


def evidence_scatter(points: Sequence[RunPoint], measure: Literal["MFU", "hours"], palette: Palette) -> Figure:
    """Every published run by size: filled where comparable with the plan, hollow elsewhere; the plan as a cross."""
    unit = 0.01 if measure == "MFU" else 1.0
    title = "utilisation by 6ND, %" if measure == "MFU" else "accelerator-hours per billion tokens"

    def cloud(chosen: list[RunPoint], marker: Figure) -> Figure:
        return marks(
            "markers",
            np.array([point.params for point in chosen]),
            np.array([point.value / unit for point in chosen]),
            [point.hover for point in chosen],
            marker=marker,
            cliponaxis=False,
        )

    others = [p for p in points if not p.here and not p.alike]
    alike = [p for p in points if not p.here and p.alike]
    yours = [p for p in points if p.here]
    ring = {"color": palette.parameters, "width": 1.5}
    clouds = [
        cloud(others, {"size": 9, "color": palette.background, "line": ring}),
        cloud(alike, {"size": 10, "color": palette.parameters}),
        cloud(yours, {"size": 15, "symbol": "cross", "color": palette.accent, "line": {"color": palette.background}}),
    ]
    across: Figure = {"type": "log", "exponentformat": "none", "tickvals": _SIZES, "ticktext": _SIZE_NAMES}
    values = np.array([p.value / unit for p in points])
    up: Figure = (
        {"range": [0, float(values.max()) * 1.08]}
        if measure == "MFU"
        else {"type": "log", "dtick": 1, "tickformat": ",~r"}
    )
    return figure(
        palette,
        clouds,
        height=420,
        hovermode="closest",
        xaxis=axis(palette, "parameters that work on each token", **across),
        yaxis=axis(palette, title, **up),
        annotations=[
            label(
                palette,
                "yours",
                x=math.log10(p.params),
                y=p.value / unit if measure == "MFU" else math.log10(p.value),
                xanchor="left",
                xshift=12,
                colour=palette.accent,
                size=13,
            )
            for p in yours
        ],
    )


_SIZES = [1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13]
_SIZE_NAMES = ["10M", "100M", "1B", "10B", "100B", "1T", "10T"]


def hours_of_a_run(comparison: Comparison, palette: Palette) -> Figure:
    """A staircase from the hours of 6ND at the assumed MFU to the published ones, each step labelled in one unit."""
    c = comparison
    steps = (
        (f"6ND at {format_quantity(c.mfu, 'ratio')} MFU", 0.0, c.rule_hours, palette.parameters),
        ("attention’s products", c.rule_hours, c.square_hours, palette.activations),
        ("everything else", c.rule_hours + c.square_hours, c.other_hours, palette.buffers),
        ("published", 0.0, c.hours.value, palette.text),
    )[::-1]
    names = [name for name, *_ in steps]
    bases = np.array([base for _, base, _, _ in steps])
    lengths = np.array([length for _, _, length, _ in steps])
    reach = float(np.max(np.maximum(bases, bases + lengths)))
    letter, unit, size = ("M", "million ", 1e6) if reach >= 1e6 else ("", "", 1.0)
    texts = [
        f"{'+' if base and length > 0 else '−' if length < 0 else ''}{significant(abs(length) / size)}{letter} h"
        for _, base, length, _ in steps
    ]
    return figure(
        palette,
        [
            lying_bars(
                lengths / size,
                names,
                "%{y}: %{customdata}",
                base=bases / size,
                marker={"color": [colour for *_, colour in steps]},
                customdata=texts,
            )
        ],
        height=NAMED_ROW * len(steps) + 64,
        bargap=0.45,
        xaxis=axis(palette, f"{unit}accelerator-hours", range=[0, reach / size * 1.04], tickformat=","),
        yaxis=named_axis(palette, names, texts),
    )
