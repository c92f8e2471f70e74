"""Pictures of a budget: where the FLOPs of one token go, and where the hours of a published run went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.figure import MONO, Figure, axis, layout
from core.models.flops import FlopCount
from core.palette import Palette
from core.planning.runs import Comparison
from core.units import format_quantity, significant

_ROW = 42
"""Height of one bar's row in pixels: two lines of text beside it."""

_CHARACTER = 0.018
"""Width of one character of a bar's text, as a share of the narrowest plot it is drawn in (about 400 pixels)."""

_GROWS = "grows with the sequence"

_SCALES = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3), ("FLOP", 1.0))


def flops_by_component(count: FlopCount, palette: Palette, scale: float = 1.0) -> Figure:
    """Forward FLOPs per token, one bar per component in the order a token meets them.

    Figures stand under the components' names, where no width of the page can cut them off. Products with weights wear
    the parameters' colour, attention's products of activations that of activations.
    scale: factor on every count, for a plan of other parameters than the model whose layers were counted.
    """
    total = count.forward * scale
    parts = count.parts[::-1]
    values = np.array([part.flop * scale for part in parts], dtype=np.float64)
    unit, size = next(((u, s) for u, s in _SCALES if float(values.max()) >= s), _SCALES[-1])
    texts = [f"{significant(v / size)} {unit} · {100 * v / total:.1f} %" for v in values.tolist()]
    notes = [_GROWS if part.square else "" for part in parts]
    # The longest bar is not always the one whose note reaches furthest.
    reach = max(v / (1 - len(note) * _CHARACTER) for v, note in zip(values.tolist(), notes, strict=True))
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": values / size,
                "y": [part.name for part in parts],
                "marker": {"color": [palette.activations if p.square else palette.parameters for p in parts]},
                "text": notes,
                "textposition": "outside",
                "textfont": {"size": 12, "color": palette.text},
                "cliponaxis": False,
                "constraintext": "none",
                "customdata": texts,
                "hovertemplate": "%{y}: %{customdata}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(parts) + 64,
            bargap=0.45,
            xaxis=axis(palette, f"{unit} per token, forward", range=[0, 1.02 * reach / size]),
            yaxis=_names(palette, [part.name for part in parts], texts),
        ),
    }


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
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": lengths / size,
                "base": bases / size,
                "marker": {"color": [colour for *_, colour in steps]},
                "customdata": texts,
                "hovertemplate": "%{y}: %{customdata}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(steps) + 64,
            bargap=0.45,
            xaxis=axis(palette, f"{unit}accelerator-hours", range=[0, reach / size * 1.04], tickformat=","),
            yaxis=_names(palette, names, texts),
        ),
    }


def _names(palette: Palette, names: Sequence[str], texts: Sequence[str]) -> Figure:
    """The axis of the bars: each name with its figure on a second line."""
    ticks = [
        f"{name}<br><span style='font-family:{MONO};font-size:12px'>{text}</span>"
        for name, text in zip(names, texts, strict=True)
    ]
    font = {"size": 13, "color": palette.text}
    return axis(palette, "", tickvals=list(names), ticktext=ticks, tickfont=font, showgrid=False, ticksuffix="  ")
