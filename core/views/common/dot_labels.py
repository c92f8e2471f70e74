"""Labels of dots in a scatter plot: each beside its own dot or tied to it by a line, and none over another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from core.views.common.chart import Figure, label
from core.views.common.palette import Palette

WIDTHS = (600.0, 1500.0)
"""Of a plot in pixels, on a phone, where it scrolls, and on a large screen. Nothing overlaps at any width between."""

SIZE = 11
_CHARACTER, _LINE = 0.56, 1.35
"""Width of an average character and height of a line, per pixel of type."""

DOT = 6.0
"""Pixels from the middle of a dot to its edge."""

_GAP, _CLEAR = 9.0, 8.0
"""Pixels from the middle of a dot to its label, and from the label's other end to the next dot at least."""

_SLOPES = (0.0, -0.25, 0.25, -0.5, 0.5, -0.8, 0.8, -1.2, 1.2, -4.0, 4.0)
_DISTANCES = (20.0, 40.0, 65.0, 95.0, 130.0)
_STEP = 5.0

Boxes = npt.NDArray[np.float64]
"""Rectangles (n, 5) in a plot of unknown width: a share of the width, left and right as pixels from there, bottom and
top as pixels from the foot."""


def overlaps(boxes: Boxes, others: Boxes) -> npt.NDArray[np.bool_]:
    """Return (n, m): which of ``boxes`` lie on which of ``others`` at any of `WIDTHS`."""
    share, left, right, bottom, top = boxes.T[:, :, None]
    across = np.multiply.outer(np.array(WIDTHS), others[:, 0] - share)
    beside = (across.max(axis=0) <= left - others[:, 2]) | (across.min(axis=0) >= right - others[:, 1])
    return ~beside & (bottom < others[:, 4]) & (others[:, 3] < top)


def are_inside(boxes: Boxes, height: float) -> npt.NDArray[np.bool_]:
    """Return (n,): which of ``boxes`` a plot of this height and any of `WIDTHS` shows whole."""
    share, left, right, bottom, top = boxes.T
    narrow = min(WIDTHS)
    return (narrow * share + left >= 0) & (right <= narrow * (1 - share)) & (bottom >= 0) & (top <= height)


def text_box(text: str, share: float, across: float, up: float, size: float = SIZE, side: float = 1.0) -> Boxes:
    """Return the one box of ``text`` that begins ``across`` pixels from ``share`` and is centered ``up`` pixels above
    the foot. side: 1 where it lies to the right of that, −1 to the left, 0 on both sides."""
    half, width = 0.5 * _LINE * size, _CHARACTER * size * len(text)
    left = across - width * (1 - side) / 2
    return np.array([share, left, left + width, up - half, up + half])


def label_dots(
    palette: Palette, names: Sequence[str], at: Sequence[tuple[float, float]], height: float, taken: Sequence[Boxes]
) -> list[Figure | None]:
    """Return an annotation for each dot, without its ``x`` and ``y``; None where no label fits.

    Args:
        names: Of each dot.
        at: Of each dot, the share of the plot's width, and pixels above its foot.
        height: Of the plot, in pixels.
        taken: Boxes that no label may lie on.
    """
    used = np.array([*taken, *([share, -DOT, DOT, up - DOT, up + DOT] for share, up in at)])
    notes: list[Figure | None] = [None] * len(at)
    for i in sorted(range(len(at)), key=lambda i: (at[i][1], at[i][0]), reverse=True):
        places = list(_places(palette, names[i], *at[i]))
        texts = np.array([text for text, _, _ in places])
        free = are_inside(texts, height) & ~overlaps(texts, used).any(axis=1)
        for text, line, note in (places[k] for k in np.flatnonzero(free)):
            if not overlaps(line, used).any():
                used = np.concatenate((used, text[None], line))
                notes[i] = note
                break
    return notes


def _places(palette: Palette, name: str, share: float, up: float) -> Iterator[tuple[Boxes, Boxes, Figure]]:
    """Return where a label may be, the best place first: its box, those of its line, and how it is written."""
    text = label(palette, name, palette.muted, SIZE, bgcolor=palette.background, borderpad=0)
    for side, anchor in ((1, "left"), (-1, "right")):
        box = text_box(name, share, side * _GAP, up, side=side)
        box[1:3] += (DOT - _GAP, _CLEAR) if side > 0 else (-_CLEAR, _GAP - DOT)
        yield box, np.empty((0, 5)), {**text, "xanchor": anchor, "xshift": side * _GAP}
    tie: Figure = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": palette.muted, "standoff": DOT}
    for distance in _DISTANCES:
        steps = np.arange(DOT + 3, distance, _STEP)[:, None] / distance
        for slope in _SLOPES:
            across = distance / math.hypot(1, slope)
            for side, anchor in ((-1, "right"), (1, "left")):
                dx, dy = side * across, slope * across
                line = np.array([share, -1, 1, up - 1, up + 1]) + steps * np.array([0, dx, dx, dy, dy])
                note = {**text, **tie, "ax": dx, "ay": -dy, "xanchor": anchor}
                yield text_box(name, share, dx, up + dy, side=side), line, note
