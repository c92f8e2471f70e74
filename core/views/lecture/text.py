"""The two-layer model of the lecture in words and table cells."""

from __future__ import annotations

from core.models.linear import TorchCount, TwoLayers
from core.units import format_exact, format_quantity, scientific, significant

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
    two = format_exact(2)
    data = two if model.x_gradient else "skipped"
    return [
        (f"w1, {model.width:,} × {model.width:,}", two, two, data, significant(model.per_weight("w1"))),
        (f"w2, {model.width:,} × {model.outputs:,}", two, two, two, significant(model.per_weight("w2"))),
    ]


def torch_says(model: TwoLayers, seen: TorchCount) -> str:
    """torch's counts beside ours."""
    counts = f"{_whole(seen.forward)} forward, {_whole(seen.backward)} backward"
    if (seen.forward, seen.backward) == (model.flop("forward"), model.flop("backward")):
        return f"**torch {seen.version} counts the same:** FlopCounterMode saw {counts}."
    return f"**torch {seen.version} counts differently:** FlopCounterMode saw {counts}."


def _whole(flop: int) -> str:
    return f"{flop:,}" if flop < 10**15 else scientific(flop, 4)
