"""Text of the lecture page: the answer, and the two-layer model from one matmul to 6ND."""

from __future__ import annotations

from collections.abc import Sequence

from core.lecture.claims import Claim
from core.messages import Message, message, messages, pick_message
from core.models.linear import Layer, Product, TorchCount, TwoLayers
from core.units import format_exact, significant


def answer_text(claims: Sequence[Claim]) -> Message:
    """Return the verdict of a single claim, or how many of several need care."""
    if len(claims) == 1:
        return message("lecture.answer.one", number=claims[0].number, verdict=claims[0].verdict)
    careful = sum(claim.verdict == "needs care" for claim in claims)
    return message("lecture.answer.many", claims=float(len(claims)), careful=float(careful))


def two_layers_text(model: TwoLayers) -> Message:
    """Return what each weight costs in both passes, and what the first layer saves."""
    full = "lecture.matmul.takeaway_full" if model.x_gradient else "lecture.matmul.takeaway"
    return pick_message(full, share=model.flop() / model.rule)


def totals_text(model: TwoLayers) -> Message:
    """Return the FLOPs of both passes, exactly below 10¹²."""
    forward, backward = float(model.flop("forward")), float(model.flop("backward"))
    large = "lecture.matmul.totals" if backward < 1e12 else "lecture.matmul.totals_large"
    return message(large, forward=forward, backward=backward)


def per_weight_headings() -> tuple[Message, ...]:
    """Return the headings of `per_weight_rows`."""
    return messages("lecture.matmul", "weight forward weight_gradient input_gradient sum")


def per_weight_rows(model: TwoLayers) -> list[tuple[tuple[str, str], ...]]:
    """Return the FLOPs per weight and row of x, one layer per row: the text of each cell and the matmul behind it."""
    two = format_exact(2)
    of_data = two if model.x_gradient else message("lecture.matmul.skipped")
    layers: tuple[tuple[Layer, int, str], ...] = (("w1", model.width, of_data), ("w2", model.outputs, two))
    rows: list[tuple[tuple[str, str], ...]] = []
    for layer, columns, of_input in layers:
        products = sorted((p for p in model.products if p.of == layer), key=_column)
        matmuls = [f"{p.left.name} @ {p.right.name}" for p in products]
        cells = zip((two, two, of_input), matmuls, strict=True)
        size = f"{model.width:,}\u00a0×\u00a0{columns:,}"
        rows.append(((layer, size), *cells, (significant(model.per_weight(layer)), "")))
    return rows


def _column(product: Product) -> tuple[bool, bool]:
    """Return the place of a matmul in its row: forward, gradient of the weight, gradient of the input."""
    return product.phase != "forward", not product.out.name.startswith("w")


def result_text(product: Product, *, runs: bool) -> Message:
    """Return what a matmul computes."""
    name = product.out.name.replace(".", "") if runs else "xgrad_skipped"
    return message(f"lecture.matmul.of.{name}")


def torch_text(model: TwoLayers, seen: TorchCount) -> tuple[Message, bool]:
    """Return what torch's FLOP counter says, and whether it agrees with Napkin."""
    same = (seen.forward, seen.backward) == (model.flop("forward"), model.flop("backward"))
    return message(
        "lecture.matmul.same" if same else "lecture.matmul.differs",
        version=seen.version,
        forward=float(seen.forward),
        backward=float(seen.backward),
    ), same


def two_layers_notes() -> list[Message]:
    """Return why each weight costs six FLOPs."""
    return [
        message("lecture.matmul.how.forward"),
        message("lecture.matmul.how.backward"),
        message("lecture.matmul.how.first"),
    ]
