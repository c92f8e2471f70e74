"""What the panels of a budget say: takeaways, table cells and notes with their numbers filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.models.flops import FlopCount
from core.models.linear import TorchCount, TwoLayers
from core.planning.answer.words import percent, signed, takes
from core.planning.budget.rule import Counted
from core.planning.counting.growth import Growth
from core.units import format_duration, format_quantity, scientific

PER_WEIGHT = ("FLOPs per weight and row of x", "forward", "gradient of the weight", "gradient of its input", "sum")
"""Headings of the table of `per_weight`."""

LINEAR_NOTES = (
    "**2 forward:** each weight multiplies one number of each row, and the product is added to a sum.",
    "**2 for the weight’s own gradient** and **2 for the gradient of its input**, which the layer below needs: the "
    "same two operations again, each time.",
    "**Of the six, the first layer can save two:** below it there is only the data. In a model of many layers that is "
    "one part in many, and 6ND stays a good rule.",
    "One formula to read with care: h1.grad[i, j] sums w2[j, k] · h2.grad[i, k] over k. Lecture notes circulate with "
    "w2[i, j] there, whose indices do not fit.",
)
"""Why each weight costs six."""


def _exact(flop: float) -> str:
    return f"{flop:,.0f} FLOP" if flop < 1e12 else format_quantity(flop, "flop")


def two_layers(model: TwoLayers) -> str:
    """Takeaway of the two-layer model: both passes, and how far 6ND is from them."""
    forward, backward = model.flop("forward"), model.flop("backward")
    rest = (
        "exactly **6 FLOPs per weight and row**, the 6 of 6ND"
        if model.x_gradient
        else f"**{model.flop() / model.rule:.1%}** of 6ND, because nobody asks for the gradient of the data".replace(
            "%", " %"
        )
    )
    return (
        f"Forward takes **{_exact(forward)}**, backward **{_exact(backward)}**, {backward / forward:.3g} times as "
        f"much; together {rest}."
    )


def per_weight(model: TwoLayers) -> list[tuple[str, str, str, str, str]]:
    """Rows of the table of FLOPs per weight: one layer each."""
    data = "2" if model.x_gradient else "skipped"
    return [
        (f"w1, {model.width:,} × {model.width:,}", "2", "2", data, f"{model.per_weight('w1'):g}"),
        (f"w2, {model.width:,} × {model.outputs:,}", "2", "2", "2", f"{model.per_weight('w2'):g}"),
    ]


def torch_says(model: TwoLayers, seen: TorchCount) -> str:
    """torch's counts beside ours."""
    counts = f"{_whole(seen.forward)} forward, {_whole(seen.backward)} backward"
    if (seen.forward, seen.backward) == (model.flop("forward"), model.flop("backward")):
        return f"**torch {seen.version} counts the same:** FlopCounterMode saw {counts}."
    return f"**torch {seen.version} counts differently:** FlopCounterMode saw {counts}."


def _whole(flop: int) -> str:
    return f"{flop:,}" if flop < 10**15 else scientific(flop, 4)


def where(counted: FlopCount, scale: float = 1.0) -> str:
    """Takeaway of the count by component; ``scale`` as in the pictures: the plan's parameters over the counted ones."""
    top = max(counted.parts, key=lambda part: part.flop)
    return (
        f"Of **{format_quantity(scale * counted.training, 'flop')}** per token of training, **{top.name}** "
        f"{takes(top.name)} **{percent(top.flop / counted.forward)}**; products with weights are "
        f"**{percent(counted.weights / counted.forward)}** of all."
    )


def growing(g: Growth) -> str:
    """Takeaway of the sweep over sequence lengths."""
    share = format_quantity(g.share, "ratio")
    here = f"At **{g.here:,}** tokens attention’s products are **{share}** of the FLOPs ({g.attention} count)."
    if math.isinf(g.crossing):
        return f"{here} They never overtake the rest: every layer looks at a window only."
    if g.crossing <= 1:
        return f"{here} They are the larger part at every length."
    rule = f"6H = {g.six_h:,}" if g.attention == "full" else f"12H = {2 * g.six_h:,}"
    return (
        f"{here} They overtake the rest at **{g.crossing:,.0f}** tokens; the rule of thumb for dense layers, with "
        f"heads that add up to H and a feed-forward network of 4H, says {rule} ({g.attention} count)."
    )


def ways_headings(*, typed: bool) -> tuple[str, ...]:
    """Headings of the table of `ways`.

    A published MFU is one by 6ND: counting otherwise changes the MFU and not the time. A typed one may be meant
    either way, and then the time depends on it.
    """
    last = "time, if your MFU is counted so" if typed else "MFU of the same run"
    return ("6ND beside the count by layer", "per token of training", "whole run", "relative to 6ND", last)


def ways(counts: Sequence[Counted], *, typed: bool) -> list[tuple[str, ...]]:
    """Rows of the table of counting conventions; ``typed`` as for `ways_headings`."""
    return [
        (
            way.name,
            format_quantity(way.per_token, "flop"),
            format_quantity(way.flop, "flop"),
            signed(way.against_rule) if way.against_rule else "",
            format_duration(way.seconds) if typed else percent(way.mfu),
        )
        for way in counts
    ]
