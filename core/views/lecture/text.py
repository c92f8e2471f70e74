"""The two-layer model of the lecture in words and table cells."""

from __future__ import annotations

from core.models.linear import Layer, Product, TorchCount, TwoLayers
from core.units import format_exact, format_quantity, scientific, significant

PER_WEIGHT = ("weight", "forward", "weight’s gradient", "input’s gradient", "sum")
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
    """Takeaway of the two-layer model: what a weight costs in both passes, and the first layer's exception."""
    return "Each weight takes **2 FLOPs** for each row of x forward and **4** backward: together the **6 of 6ND**. " + (
        "Here x asks for its gradient too, and nothing is left out." if model.x_gradient else _exception(model)
    )


def _exception(model: TwoLayers) -> str:
    share = f"{model.flop() / model.rule:.1%}".replace("%", " %")
    return (
        "Only the first layer saves 2 of them, as nobody asks for the gradient of the data: "
        f"these two layers take {share} of 6ND, many layers nearly all of it."
    )


def totals(model: TwoLayers) -> str:
    """FLOPs of both passes in one sentence."""
    forward, backward = model.flop("forward"), model.flop("backward")
    return f"Forward takes {_exact(forward)}, backward {_exact(backward)}."


def per_weight(model: TwoLayers) -> list[tuple[tuple[str, str], ...]]:
    """Rows of the table of FLOPs per weight, one layer each: what stands in a cell, and the product that it is of."""
    two = format_exact(2)
    data = two if model.x_gradient else "skipped"
    layers: tuple[tuple[Layer, int, str], ...] = (("w1", model.width, data), ("w2", model.outputs, two))
    rows: list[tuple[tuple[str, str], ...]] = []
    for layer, columns, of_input in layers:
        products = _as_headed([p for p in model.products if p.of == layer])
        of = [f"{p.left.name} @ {p.right.name}" for p in products]
        cells = zip((two, two, of_input), of, strict=True)
        total = significant(model.per_weight(layer))
        rows.append(((layer, f"{model.width:,}\u00a0×\u00a0{columns:,}"), *cells, (total, "")))
    return rows


def _as_headed(products: list[Product]) -> list[Product]:
    """Forward, then the gradient of the weight, then that of its input."""
    return sorted(products, key=lambda p: (p.phase != "forward", not p.out.name.startswith("w")))


def torch_says(model: TwoLayers, seen: TorchCount) -> str:
    """torch's counts beside ours."""
    counts = f"{_whole(seen.forward)} forward, {_whole(seen.backward)} backward"
    if (seen.forward, seen.backward) == (model.flop("forward"), model.flop("backward")):
        return f"**torch {seen.version} counts the same:** FlopCounterMode saw {counts}."
    return f"**torch {seen.version} counts differently:** FlopCounterMode saw {counts}."


def _whole(flop: int) -> str:
    return f"{flop:,}" if flop < 10**15 else scientific(flop, 4)
