"""Pictures of a budget: where the FLOPs of one token go, and where the hours of a published run went."""

from __future__ import annotations

import numpy as np

from core.figure import Figure, axis, label, layout
from core.models.flops import FlopCount
from core.palette import Palette
from core.planning.runs import Comparison
from core.units import format_count, format_quantity, significant

_ROW = 34
"""Height of one bar's row in pixels, so that bars of every figure are equally thick."""

_CHARACTER = 0.0105
"""Width of one character of a bar's text, as a share of the narrowest plot it is drawn in (about 690 pixels)."""

_SCALES = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3), ("FLOP", 1.0))


def flops_by_component(count: FlopCount, palette: Palette) -> Figure:
    """Forward FLOPs per token, one bar per component in the order a token meets them.

    Products with weights wear the parameters' colour, attention's products of activations that of activations.
    """
    total = count.forward
    parts = count.parts[::-1]
    values = np.array([part.flop for part in parts], dtype=np.float64)
    unit, scale = next((u, s) for u, s in _SCALES if float(values.max()) >= s)
    texts = [
        f"{significant(part.flop / scale)} {unit} · {100 * part.flop / total:.1f} %"
        + (" · grows with the sequence" if part.square else "")
        for part in parts
    ]
    # The longest bar is not always the one whose text reaches furthest.
    reach = max(value / (1 - len(text) * _CHARACTER) for value, text in zip(values, texts, strict=True))
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": values / scale,
                "y": [part.name for part in parts],
                "marker": {"color": [palette.activations if p.square else palette.parameters for p in parts]},
                "text": texts,
                "textposition": "outside",
                "cliponaxis": False,
                "constraintext": "none",
                "hovertemplate": "%{y}: %{text}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(parts) + 64,
            bargap=0.35,
            xaxis=axis(palette, f"{unit} per token, forward", range=[0, reach / scale]),
            yaxis=axis(palette, "", tickfont={"size": 13, "color": palette.text}, showgrid=False, ticksuffix="  "),
        ),
    }


def hours_of_a_run(comparison: Comparison, palette: Palette) -> Figure:
    """A staircase from the hours of 6ND at the assumed MFU to the published ones, each step labelled."""
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
    unit, size = ("million ", 1e6) if reach >= 1e6 else ("thousand ", 1e3) if reach >= 1e4 else ("", 1.0)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": lengths / size,
                "base": bases / size,
                "marker": {"color": [colour for *_, colour in steps]},
                "hovertemplate": "%{y}: %{x:.4g} " + unit + "h<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(steps) + 64,
            bargap=0.35,
            xaxis=axis(palette, f"{unit}accelerator-hours", range=[0, reach / size * 1.2]),
            yaxis=axis(palette, "", tickfont={"size": 13, "color": palette.text}, showgrid=False, ticksuffix="  "),
            annotations=[
                label(
                    palette,
                    f"{'+' if base and length > 0 else '−' if length < 0 else ''}{format_count(abs(length))} h",
                    x=max(base, base + length) / size,
                    y=name,
                    xanchor="left",
                    xshift=6,
                )
                for name, base, length, _ in steps
            ],
        ),
    }
