"""Charts travel unvalidated at run time, so they are validated here: every spec of every page, by plotly itself."""

from __future__ import annotations

import base64
import json

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.common.figures import ready, wire
from pages.common.registry import PAGES, PageSpec
from tests.app.test_pages import run


@pytest.mark.parametrize("spec", PAGES, ids=lambda page: page.id)
def test_plotly_accepts_every_chart_as_it_was_sent(spec: PageSpec) -> None:
    for chart in run(spec).get("plotly_chart"):
        sent = json.loads(chart.proto.spec)
        assert sent["data"]
        assert set(sent) <= {"data", "layout"}
        go.Figure(sent)  # raises ValueError for an unknown property or a bad value


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan, -2.0]),
        np.array([1, 2, 300], dtype=np.int64),
        np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32),
        np.arange(12.0).reshape(3, 4)[:, ::2],
    ],
    ids=["float64", "int64", "matrix", "strided"],
)
def test_arrays_travel_in_binary_and_keep_their_values(values: np.ndarray) -> None:
    sent = wire(values)
    types = {"f8": "float64", "f4": "float32", "i4": "int32"}
    read = np.frombuffer(base64.b64decode(sent["bdata"]), types[sent["dtype"]])
    np.testing.assert_array_equal(read, values.ravel())
    if values.ndim > 1:
        assert sent["shape"] == ", ".join(map(str, values.shape))


@pytest.mark.parametrize(
    "values", [np.array(["a", "b"]), np.array([True, False]), np.array([2**40, 1]), np.array([])], ids=str
)
def test_arrays_without_a_binary_form_travel_as_lists(values: np.ndarray) -> None:
    assert wire(values) == values.tolist()


def test_the_figure_itself_is_left_alone() -> None:
    """Figures may be cached in core and shared by all visitors."""
    x = np.array([1.0, 2.0])
    figure = {"data": [{"type": "bar", "x": x}], "layout": {"height": 100}}
    sent = ready(figure).to_dict()
    assert figure["data"][0]["x"] is x
    assert sent is not figure
    assert isinstance(sent["data"][0]["x"], dict)
    assert go.Figure(sent).layout.height == 100
