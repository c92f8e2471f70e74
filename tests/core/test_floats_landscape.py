"""Reach, staircase and grid against decode, numpy's spacing and the formats' definitions; figures against both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from core.floats.codec import decode, decode_exact
from core.floats.custom import custom_format, parse_custom
from core.floats.formats import FORMATS, FloatFormat
from core.floats.range_and_precision import grid, reach, staircase
from core.floats.scaling.loss_scaling import scale_loss
from core.views.common.palette import LIGHT
from core.views.floats.charts import accumulation, dynamic_range, spacing, summation_lines
from core.views.floats.charts_scaling import gradients
from pages.common.figures import wire
from tests.every import every

SMALL = [f for f in FORMATS.values() if f.bits <= 8]
TABLED = [f for f in FORMATS.values() if f.bits <= 16]


@every("fmt", TABLED, ids=lambda f: f.name)
def test_reach_is_that_of_all_codes(fmt: FloatFormat) -> None:
    values = decode(np.arange(1 << fmt.bits), fmt)
    positive = values[np.isfinite(values) & (values > 0)]
    here = reach(fmt)
    assert here.smallest == pytest.approx(math.log2(positive.min()), abs=1e-12)
    assert here.largest == pytest.approx(math.log2(positive.max()), abs=1e-12)
    assert here.smallest <= here.normal <= here.largest


@pytest.mark.parametrize(("name", "dtype"), [("fp16", np.float16), ("fp32", np.float32), ("fp64", np.float64)])
def test_the_staircase_is_numpys_spacing(name: str, dtype: type) -> None:
    powers, steps = staircase(FORMATS[name], -40, 15)
    magnitudes = np.exp2(powers).astype(dtype)
    assert np.array_equal(np.log2(np.spacing(magnitudes).astype(np.float64) / magnitudes.astype(np.float64)), steps)


@every("fmt", TABLED, ids=lambda f: f.name)
def test_the_staircase_is_the_gap_to_the_next_value(fmt: FloatFormat) -> None:
    values = np.unique(decode(np.arange(1 << fmt.bits), fmt))
    values = values[np.isfinite(values) & (values > 0)]
    powers, steps = staircase(fmt, -40, 24)
    for power, step in zip(powers, steps, strict=True):
        place = int(np.searchsorted(values, 2.0**power))
        assert values[place] == 2.0**power
        if place + 1 < values.size:
            assert values[place + 1] - values[place] == 2.0 ** (step + power)


@every("fmt", SMALL, ids=lambda f: f.name)
def test_the_grid_has_every_code(fmt: FloatFormat) -> None:
    cells = grid(fmt)
    assert [c.code for c in cells] == list(range(1 << fmt.bits))
    for cell in cells:
        value = decode_exact(cell.code, fmt)
        assert (value is None) == (cell.kind in ("inf", "nan"))
        assert len(cell.short.lstrip("−")) <= 6 or fmt.fraction_bits == 0
        if value and fmt.signed and not fmt.twos_complement and cell.code < fmt.sign_mask:
            assert cells[cell.code | fmt.sign_mask].short == f"−{cell.short}"
        assert 0 <= cell.heat <= 1 + 1e-9
        if value:
            assert cell.short.startswith("−") == (value < 0)
            if fmt.fraction_bits:
                assert float(cell.short.replace("−", "-")) == pytest.approx(float(value), rel=0.05)


@every("fmt", [*FORMATS.values(), custom_format(3, 0, nan="none", infinity=False)], ids=lambda f: f.name)
def test_figures_are_plotly_figures(fmt: FloatFormat) -> None:
    formats = list(FORMATS.values())
    shown = formats if fmt in formats else [*formats, fmt]
    for figure in (
        dynamic_range(shown, fmt, LIGHT),
        spacing(shown, fmt, LIGHT),
        gradients(scale_loss(-8, 4, 3, fmt), LIGHT),
    ):
        go.Figure(wire(figure))
    bars = dynamic_range(shown, fmt, LIGHT)
    assert sum("<b>" in name for name in bars["layout"]["yaxis"]["ticktext"]) == 1
    assert len(bars["data"][0]["y"]) == len(shown)


def test_a_format_of_subnormals_alone_ends_where_its_largest_does() -> None:
    fmt = parse_custom("e1m3")
    assert not fmt.has_normals
    assert reach(fmt).normal == reach(fmt).largest == pytest.approx(math.log2(fmt.max_finite))


def figure(start: float, addend: float, steps: int, name: str) -> dict[str, Any]:
    runs, lots = summation_lines(start, addend, steps, FORMATS[name])
    made = accumulation(runs, lots, exact=(start, addend), palette=LIGHT)
    go.Figure(wire(made))
    return made


@every("name", ["fp32", "fp16", "fp8_e4m3fn", "fp8_e5m2"])
@every(("start", "addend"), [(60000, 1000), (465, 1), (0, 1e6), (448, 8), (1, 1e-9)])
def test_every_number_drawn_is_finite(name: str, start: float, addend: float) -> None:
    made = figure(start, addend, 40, name)
    for trace in made["data"]:
        assert np.isfinite(trace["y"]).all()
    assert np.isfinite(made["layout"]["yaxis"]["range"]).all()
