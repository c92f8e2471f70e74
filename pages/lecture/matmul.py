"""The lecture, from one matmul to 6ND: every product of a two-layer model drawn, counted, and counted by torch."""

from __future__ import annotations

import html
import math

import streamlit as st

from core.fields import Field, quantity, switch
from core.limits import limit
from core.models.linear import Matrix, Product, TwoLayers, count_with_torch
from core.views.lecture import text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.server.torch_import import torch_ready

SIZES = {
    "The lecture’s": {"lb": "1024", "ld": "256", "lk": "64"},
    "A feed-forward layer of 8B": {"lb": "8192", "ld": "4096", "lk": "14336"},
    "One example": {"lb": "1", "ld": "4", "lk": "3"},
}
_SMALLEST, _LARGEST = 16, 62
"""Sides of a drawn matrix in pixels; between them the logarithm of its size decides."""


X_GRADIENT = switch(
    "xgrad",
    "x asks for its gradient",
    False,
    help="The gradient of the data. Training never needs it, so torch leaves that product out; every layer but the "
    "first does need the gradient of its input.",
)


def _size(id: str, label: str, default: str, help: str) -> Field:
    return quantity(id, label, default, "count", low=1, high=limit("model_dimension"), whole=True, help=help)


FIELDS = (
    _size("lb", "B, rows of x", "1024", "Examples, or tokens: one row of x each."),
    _size("ld", "D, width", "256", "Columns of x, and width of the hidden layer."),
    _size("lk", "K, outputs", "64", "Width of the output."),
    X_GRADIENT,
)


def matmul_panel(inputs: Inputs) -> None:
    """The panel's content."""
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field in FIELDS:
            inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in FIELDS))
    *sizes, x_gradient = (inputs.reading.values[field.id] for field in FIELDS)
    model = TwoLayers(*map(int, sizes), x_gradient=x_gradient)
    with head:
        show.takeaway(text.two_layers(model))
    inputs.presets(SIZES, into=head, key="sizes")
    show.small_table(
        text.PER_WEIGHT,
        [[show.remarked(*cell) if cell[1] else cell[0] for cell in row] for row in text.per_weight(model)],
        caption="FLOPs of one weight for each row of x",
    )
    show.note(text.totals(model))
    with st.container(key=inputs.key("products")):
        _draw(model)
    torch_ready()
    seen = count_with_torch(model)
    say = show.good if (seen.forward, seen.backward) == (model.flop("forward"), model.flop("backward")) else show.error
    say(text.torch_says(model, seen))
    show.how(model.explain, key="lecture:linear:how", notes=text.LINEAR_NOTES)


def _draw(model: TwoLayers) -> None:
    show.table_html(
        [show.Column(name, numeric=name == "FLOP") for name in ("pass", "product", "shapes", "FLOP", "what for")],
        "".join(_row(model, p) for p in model.products),
        caption="Each product of one training step, with its shapes and FLOPs. Sides are drawn on a logarithmic scale.",
        kind="np-products",
    )


def _row(model: TwoLayers, product: Product) -> str:
    run = model.run(product)
    pictures = f"{_box(product.left, model)}<i>@</i>{_box(product.right, model)}<i>=</i>{_box(product.out, model)}"
    flop = f"{product.flop:,}" if run else f"<s>{product.flop:,}</s>"
    why = product.purpose if run else f"{product.purpose}: skipped"
    return (
        f'<tr class="{"" if run else "skipped"}"><td>{product.phase}</td>'
        f'<td class="np-mono">{product.out.name} =<br>{product.left.name} @ {product.right.name}</td>'
        f'<td><div class="mats">{pictures}</div></td>'
        f'<td class="num" data-value="{product.flop if run else 0}">{flop}<small>{product.arithmetic}</small></td>'
        f"<td>{html.escape(why)}<small>{html.escape(product.sums)}</small></td></tr>"
    )


def _box(matrix: Matrix, model: TwoLayers) -> str:
    high, wide = (_side(size, model) for size in (matrix.rows, matrix.columns))
    return (
        f'<span class="mat"><b style="height:{high}px;width:{wide}px;--hue:var(--np-{matrix.kind})"></b>'
        f"<small>{matrix.rows:,} × {matrix.columns:,}</small></span>"
    )


def _side(size: int, model: TwoLayers) -> int:
    sides = (model.rows, model.width, model.outputs)
    low, high = (math.log(end) for end in (min(sides), max(sides)))
    share = (math.log(size) - low) / (high - low) if high > low else 0.5
    return round(_SMALLEST + share * (_LARGEST - _SMALLEST))
