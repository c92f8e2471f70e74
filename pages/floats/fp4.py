"""Float formats, the panel about fp4: shared scales, a rotation and stochastic rounding against one outlier."""

from __future__ import annotations

import streamlit as st

from core.fields import choice
from core.floats.block_example import OUTLIER
from core.floats.fp4_outlier import SHARINGS, WIDTHS, explain
from core.limits import limit
from core.views.floats import text_fp4
from core.views.floats.charts_fp4 import error_maps, means
from core.wording import plain
from pages.common import show
from pages.common.figures import kept
from pages.common.theme import TOKENS, projecting
from pages.floats.inputs import FloatInputs
from pages.floats.rounding import two_lines

FP4 = {
    "One scale for 16 × 16": {"rout": f"{OUTLIER:g}", "share": "16x16", "turn": "16"},
    "A scale a row, rotated whole": {"rout": f"{OUTLIER:g}", "share": "row", "turn": "64"},
    "NVFP4’s own blocks": {"rout": f"{OUTLIER:g}", "share": "1x16", "turn": "16"},
    "MXFP4 clips": {"rout": "60", "share": "1x32", "turn": "32"},
    "No outlier": {"rout": "0", "share": "16x16", "turn": "16"},
}
STEPS_HELP = "Roundings of the same values, one a step, whose mean is compared with what was rounded."


def fp4(inputs: FloatInputs) -> None:
    """One outlier under every scale, plain and rotated; and what stochastic rounding comes to over steps."""
    head = show.slot()
    with show.errors_under(inputs), st.container(horizontal=True, vertical_alignment="bottom"):
        outlier = inputs.number("rout", "Outlier, σ", f"{OUTLIER:g}", 0.0, 1e4)
        sharing = inputs.ask(choice("share", "Values under one scale", tuple(SHARINGS), "16x16", few=True))
        width = int(inputs.ask(choice("turn", "Rotated together", tuple(map(str, WIDTHS)), "16", few=True)))
        steps = inputs.count("rsteps", "Steps", "64", 1, limit("rounded_steps"), STEPS_HELP)
    text = text_fp4.takeaway(outlier, sharing, width, steps)
    with head:
        show.takeaway(text)
    inputs.presets("Cases", FP4, into=head, key="fp4")
    show.chart(
        kept(error_maps, outlier, width, TOKENS, _on_a_wall(sharing) if projecting() else tuple(SHARINGS)),
        alt=f"Errors of 16 × 64 values under four ways to share a scale, plain and rotated. {plain(text)}",
        key="floats:fp4:maps",
    )
    show.small_table(
        (
            "Values under one scale",
            "To nearest",
            "Rotated, to nearest",
            "Stochastic, one step",
            f"Mean of {steps:,}",
            f"Rotated, mean of {steps:,}",
        ),
        [[two_lines(*cell) for cell in row] for row in text_fp4.table(outlier, width, steps)],
        caption="Root mean square error of all 1,024 values, in σ.",
        here=list(SHARINGS).index(sharing),
    )
    if steps > 1:
        show.chart(
            kept(means, outlier, sharing, width, steps, TOKENS),
            alt="Error of the mean of several roundings: to nearest it stays, stochastic it falls.",
            key="floats:fp4:means",
        )
    show.how(lambda: explain(outlier, width), key="floats:fp4:how", notes=text_fp4.NOTES)


def _on_a_wall(sharing: str) -> tuple[str, ...]:
    """The chosen way to share a scale, and one beside it."""
    return sharing, "1x16" if sharing != "1x16" else "16x16"
