"""Lecture, from one matmul to 6ND: every matmul of a two-layer model drawn, counted, and counted by torch."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping

import streamlit as st

from core.fields import Field, quantity, switch
from core.limits import limit
from core.messages import message
from core.models.linear import Matrix, Product, TwoLayers, count_with_torch
from core.views.lecture import text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.server.torch_import import torch_ready

SIZES: Mapping[str, Mapping[str, str]] = {
    message("lecture.matmul.lecture"): {"lb": "1024", "ld": "256", "lk": "64"},
    message("lecture.matmul.llama"): {"lb": "8192", "ld": "4096", "lk": "14336"},
    message("lecture.matmul.one"): {"lb": "1", "ld": "4", "lk": "3"},
}
_SMALLEST, _LARGEST = 16, 62
"""Sides of a drawn matrix in pixels, between which they grow with the logarithm of its size."""


def _size(id: str, label: str, default: str, help: str) -> Field:
    return quantity(id, label, default, "count", low=1, high=limit("model_dimension"), whole=True, help=help)


FIELDS = (
    _size("lb", message("lecture.matmul.rows"), "1024", message("lecture.matmul.rows_help")),
    _size("ld", message("lecture.matmul.width"), "256", message("lecture.matmul.width_help")),
    _size("lk", message("lecture.matmul.outputs"), "64", message("lecture.matmul.outputs_help")),
    switch("xgrad", message("lecture.matmul.xgrad"), False, help=message("lecture.matmul.xgrad_help")),
)


def matmul_panel(inputs: Inputs) -> None:
    """Draw the panel's content."""
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field in FIELDS:
            inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in FIELDS))
    *sizes, x_gradient = (inputs.reading.values[field.id] for field in FIELDS)
    model = TwoLayers(*map(int, sizes), x_gradient=x_gradient)
    with head:
        show.takeaway(text.two_layers_text(model))
    inputs.presets(SIZES, into=head, key="sizes")
    show.small_table(
        text.per_weight_headings(),
        [[show.remarked(*cell) if cell[1] else cell[0] for cell in row] for row in text.per_weight_rows(model)],
        caption=message("lecture.matmul.per_weight"),
    )
    show.note(text.totals_text(model))
    with st.container(key=inputs.key("products")):
        _draw(model)
    torch_ready()
    counted, same = text.torch_text(model, count_with_torch(model))
    (show.good if same else show.error)(counted)
    show.how(model.explain, key="lecture:linear:how", notes=text.two_layers_notes())


def _draw(model: TwoLayers) -> None:
    show.table_html(
        [
            show.Column(message("lecture.matmul.pass")),
            show.Column(message("lecture.matmul.product")),
            show.Column(message("lecture.matmul.shapes")),
            show.Column(message("lecture.matmul.flop"), numeric=True),
            show.Column(message("lecture.matmul.purpose")),
        ],
        "".join(_row(model, p) for p in model.products),
        caption=message("lecture.matmul.caption"),
        kind="np-products",
    )


def _row(model: TwoLayers, product: Product) -> str:
    runs = model.run(product)
    pictures = f"{_box(product.left, model)}<i>@</i>{_box(product.right, model)}<i>=</i>{_box(product.out, model)}"
    flop = f"{product.flop:,}" if runs else f"<s>{product.flop:,}</s>"
    return (
        f'<tr class="{"" if runs else "skipped"}"><td>{product.phase}</td>'
        f'<td class="np-mono">{product.out.name} =<br>{product.left.name} @ {product.right.name}</td>'
        f'<td><div class="mats">{pictures}</div></td>'
        f'<td class="num" data-value="{product.flop if runs else 0}">{flop}<small>{product.arithmetic}</small></td>'
        f"<td>{html.escape(text.result_text(product, runs=runs))}<small>{html.escape(product.sums)}</small></td></tr>"
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
