"""Pictures of the walks: the surface from above with every optimizer's path, and how long their steps are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from core.training.optimizer_paths.path import OptimizerPath
from core.training.optimizer_paths.surfaces import SURFACES, Surface
from core.views.common.chart import MONO, SANS, Figure, apart, axis, figure, label, layout, marks, rule
from core.views.common.palette import Palette
from core.views.training.text_optimizer_paths import height_left, number, standing

_GRID = 61
_LEVELS = 14
_FRAMES = 60
_NAMES_PX = 146  # right of the picture, for the names
_HEIGHT, _LOW_HEIGHT = 440, 250
_ROW_PX = 33

_LOOKS: dict[str, tuple[str, str, str, str]] = {
    "SGD": ("buffers", "solid", "square", "■"),
    "SGD momentum": ("master", "solid", "diamond", "◆"),
    "AdaGrad": ("activations", "dash", "triangle-up", "▲"),
    "RMSProp": ("gradients", "dot", "triangle-down", "▼"),
    "Adam": ("parameters", "solid", "circle", "●"),
    "AdamW": ("optimizer", "dash", "star", "★"),
}
"""Optimizer → its hue (by the role whose hue it borrows), its dash, its marker, and that marker as a letter."""


def descent(walks: Sequence[OptimizerPath], step: int, chosen: str, palette: Palette) -> Figure:
    """Every walk's path as far as ``step`` on the surface's contours; the chosen one's is thick.

    Its button replays the steps. Names stand at the right, the lowest walk first, with heights over the minimum.
    """
    ground = SURFACES[walks[0].surface]
    here = standing(walks, step)
    return {
        "data": [
            _contours(walks[0].surface, palette),
            *(_path(w, step, w.optimizer == chosen, ground, palette) for w in walks),
            _points([ground.minima[0], *ground.minima[1:]], "x-thin", "minimum", palette),
            _points([tuple(walks[0].points[0])], "circle-open", "start", palette),
            _markers(here, step, chosen, palette),
        ],
        "frames": _frames(here, step, len(walks) + 3),
        "layout": layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": _NAMES_PX, "t": 16, "b": 8},
            xaxis=axis(palette, "first weight x", range=list(ground.across), showgrid=False, fixedrange=True),
            yaxis=axis(palette, "second weight y", range=list(ground.along), showgrid=False, fixedrange=True),
            annotations=[
                *_names(here, step, chosen, palette),
                *_gone(walks, step, len(here), palette),
                _at(ground.minima[0], "minimum", palette),
                _at(tuple(walks[0].points[0]), "start", palette),
            ],
            updatemenus=[_button(palette)] if here else [],
        ),
    }


def _colour(optimizer: str, palette: Palette) -> str:
    return palette.role(_LOOKS[optimizer][0])


@lru_cache(maxsize=8)
def _contours(surface: str, palette: Palette) -> dict[str, Any]:
    """Lines of equal height, each at twice to ten times the height of the one inside it."""
    ground = SURFACES[surface]
    x, y = (np.linspace(*ends, _GRID) for ends in (ground.across, ground.along))
    height = ground.height.over(x=x[None, :], y=y[:, None]) - ground.lowest
    low, high = np.log10(np.quantile(height, 0.01)), np.log10(height.max())
    floor = 10.0 ** (low - 1)
    return {
        "type": "contour",
        "x": x.astype(np.float32),
        "y": y.astype(np.float32),
        "z": np.log10(height + floor).astype(np.float32),
        "autocontour": False,
        "contours": {"coloring": "none", "start": low, "end": high, "size": (high - low) / _LEVELS},
        "line": {"color": palette.border, "width": 1},
        "hoverinfo": "skip",
        "showscale": False,
    }


def _shown(done: OptimizerPath, step: int, ground: Surface) -> np.ndarray[Any, Any]:
    """The points until ``step``, or until the walk has left the picture for good."""
    points = done.points[: step + 1]
    reach = [3 * max(map(abs, ends)) for ends in (ground.across, ground.along)]
    outside = np.flatnonzero((np.abs(points) > reach).any(axis=1))
    return points[: outside[0]] if outside.size else points


def _path(done: OptimizerPath, step: int, chosen: bool, ground: Surface, palette: Palette) -> dict[str, Any]:
    points = _shown(done, step, ground).astype(np.float32)
    _, dash, _, _ = _LOOKS[done.optimizer]
    return marks(
        "lines",
        points[:, 0],
        points[:, 1],
        "",
        line={"color": _colour(done.optimizer, palette), "width": 3.5 if chosen else 1.75, "dash": dash},
    )


def _points(points: Sequence[tuple[float, float]], symbol: str, name: str, palette: Palette) -> dict[str, Any]:
    return marks(
        "markers",
        [x for x, _ in points],
        [y for _, y in points],
        f"{name} (%{{x:.3g}}, %{{y:.3g}})",
        marker={"symbol": symbol, "size": 10, "color": palette.text, "line": {"width": 1.5, "color": palette.text}},
    )


def _markers(here: Sequence[OptimizerPath], step: int, chosen: str, palette: Palette) -> dict[str, Any]:
    """Where each stands after ``step``; the only thing that the frames move."""
    return marks(
        "markers",
        [float(w.points[step, 0]) for w in here],
        [float(w.points[step, 1]) for w in here],
        [f"{w.optimizer}: {number(height_left(w, step))} over the minimum" for w in here],
        marker={
            "symbol": [_LOOKS[w.optimizer][2] for w in here],
            "size": [14 if w.optimizer == chosen else 10 for w in here],
            "color": [_colour(w.optimizer, palette) for w in here],
            "line": {"width": 1.5, "color": palette.background},
        },
    )


def _frames(here: Sequence[OptimizerPath], step: int, trace: int) -> list[dict[str, Any]]:
    """The markers from the start to ``step``, in at most so many pictures."""
    steps = np.unique(np.linspace(0, step, min(step, _FRAMES) + 1).astype(int))
    places = np.array([w.points[steps] for w in here]).round(4)
    return [
        {
            "name": str(at),
            "traces": [trace],
            "data": [{"type": "scatter", "x": places[:, i, 0].tolist(), "y": places[:, i, 1].tolist()}],
        }
        for i, at in enumerate(steps.tolist())
        if here
    ]


def _button(palette: Palette) -> dict[str, Any]:
    timing = {"frame": {"duration": 45, "redraw": False}, "transition": {"duration": 0}, "mode": "immediate"}
    return {
        "type": "buttons",
        "showactive": False,
        "x": 0.0,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "top",
        "pad": {"l": 12, "t": 12},
        "bgcolor": palette.surface,
        "bordercolor": palette.border,
        "font": {"family": SANS, "size": 13, "color": palette.text},
        "buttons": [{"label": "▶ Replay", "method": "animate", "args": [None, timing]}],
    }


def _names(here: Sequence[OptimizerPath], step: int, chosen: str, palette: Palette) -> list[dict[str, Any]]:
    return [
        _name(
            f"{_marked(w, chosen)}<br><span style='font-family:{MONO}'>{number(height_left(w, step))}</span>",
            _ROW_PX * i,
            _colour(w.optimizer, palette),
            palette,
        )
        for i, w in enumerate(here)
    ]


def _gone(walks: Sequence[OptimizerPath], step: int, above: int, palette: Palette) -> list[dict[str, Any]]:
    gone = [w for w in walks if w.steps < step]
    return [
        _name(f"{w.optimizer}<br>diverged, step {w.diverged}", _ROW_PX * (above + i), palette.muted, palette)
        for i, w in enumerate(gone)
    ]


def _name(text: str, down: float, colour: str, palette: Palette, anchor: str = "top") -> dict[str, Any]:
    """A name right of the picture, so many pixels under its upper edge."""
    place = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 26, "align": "left", "y": 1, "yref": "paper"}
    return label(palette, text, colour, **place, yanchor=anchor, yshift=-down)


def _marked(done: OptimizerPath, chosen: str) -> str:
    """The name of an optimizer behind its marker, bold where it is chosen."""
    name = done.optimizer
    return f"{_LOOKS[name][3]} <b>{name}</b>" if name == chosen else f"{_LOOKS[name][3]} {name}"


def _at(point: Sequence[float], text: str, palette: Palette) -> dict[str, Any]:
    x, y = point
    return label(palette, text, palette.muted, x=float(x), y=float(y), yshift=-16, bgcolor=palette.background)


def step_lengths(walks: Sequence[OptimizerPath], step: int, chosen: str, palette: Palette) -> Figure:
    """How far each step went, log scale, over all steps; a thin line marks ``step``."""
    longest = max((w.steps for w in walks), default=1)
    drawn = [(w, np.log10(w.lengths[w.lengths > 0])) for w in walks]
    ends = sorted(((w, float(logs[-1])) for w, logs in drawn if logs.size), key=lambda end: -end[1])
    inside = [logs[w.lengths[w.lengths > 0] < 1e3] for w, logs in drawn]
    every = np.concatenate([*inside, np.zeros(1)])
    low, high = max(float(every.min()), -8.0) - 0.3, float(every.max()) + 0.3
    scale = (_LOW_HEIGHT - 70) / (high - low)
    wanted = [(high - min(max(at, low), high)) * scale for _, at in ends]
    places = apart(wanted, [13.0] * len(ends))
    return figure(
        palette,
        [_lengths(w, w.optimizer == chosen, palette) for w in walks],
        height=_LOW_HEIGHT,
        margin={"l": 8, "r": _NAMES_PX, "t": 16, "b": 8},
        xaxis=axis(palette, "step", range=[1, longest], tickformat=",d", showgrid=False, fixedrange=True),
        yaxis=axis(
            palette,
            "length of the step",
            type="log",
            range=[low, high],
            fixedrange=True,
            dtick=2 if high - low > 5 else 1,
            exponentformat="power",
        ),
        shapes=[rule(x=step, line={"color": palette.muted, "width": 1, "dash": "dot"})],
        annotations=[
            _name(_marked(w, chosen), place, _colour(w.optimizer, palette), palette, "middle")
            for (w, _), place in zip(ends, places, strict=True)
        ],
    )


def _lengths(done: OptimizerPath, chosen: bool, palette: Palette) -> dict[str, Any]:
    lengths = done.lengths
    selected = np.flatnonzero(lengths > 0)
    _, dash, _, _ = _LOOKS[done.optimizer]
    return marks(
        "lines",
        selected + 1,
        lengths[selected],
        f"{done.optimizer}, step %{{x}}: %{{y:.3g}}",
        line={"color": _colour(done.optimizer, palette), "width": 3 if chosen else 1.5, "dash": dash},
    )
