"""One outlier in fp4: orthogonal rotations, scales shared as they say, stochastic rounding right on average."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.blocks import BLOCK_FORMATS, quantize_block
from core.floats.codec import decode, encode
from core.floats.formats import FORMATS
from core.floats.fp4_outlier import (
    AT,
    COLUMNS,
    ROWS,
    SHARINGS,
    WIDTHS,
    errors_of_means,
    explain,
    matrix,
    rotate,
    rotated_outlier,
    rotation,
    stochastic_variance,
    through_fp4,
    treat,
)
from core.views.common.palette import LIGHT
from core.views.floats import text_fp4
from core.views.floats.charts_fp4 import error_maps, means
from pages.common.figures import wire
from tests.every import every

OUTLIER = 21.3


@pytest.mark.parametrize("width", WIDTHS)
def test_a_rotation_is_orthogonal_with_elements_of_one_size(width: int) -> None:
    turned = rotation(width)
    np.testing.assert_allclose(turned @ turned.T, np.eye(width), atol=1e-12)
    np.testing.assert_allclose(np.abs(turned), width**-0.5, rtol=1e-12)
    values = matrix(OUTLIER)
    np.testing.assert_allclose(rotate(rotate(values, width), width, back=True), values, atol=1e-12)
    alone = np.zeros((ROWS, COLUMNS))
    alone[AT] = OUTLIER
    spread = rotate(alone, width)
    assert np.count_nonzero(np.abs(spread) > 1e-12) == width
    np.testing.assert_allclose(np.abs(spread[spread != 0]), rotated_outlier(OUTLIER, width), rtol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_product_of_two_rotated_matrices_is_that_of_the_matrices(width: int) -> None:
    left, right = matrix(OUTLIER), np.random.default_rng(0).standard_normal((8, COLUMNS))
    np.testing.assert_allclose(rotate(left, width) @ rotate(right, width).T, left @ right.T, atol=1e-10)


@every("name", SHARINGS)
def test_values_share_a_scale_in_blocks_of_the_shape_that_is_said(name: str) -> None:
    """Each block alone goes to the values that the whole matrix goes to, under the tensor's one scale."""
    how, values = SHARINGS[name], matrix(OUTLIER)
    back = through_fp4(values, how)
    held = float(np.abs(values).max())
    for top in range(0, ROWS, how.rows):
        for left in range(0, COLUMNS, how.columns):
            part = values[top : top + how.rows, left : left + how.columns].reshape(-1)
            beside = np.zeros(how.block_format.size)
            beside[0] = held  # keeps the tensor's scale what it is
            alone = quantize_block(np.concatenate([part, beside]), how.block_format).values[: part.size]
            np.testing.assert_array_equal(back[top : top + how.rows, left : left + how.columns].reshape(-1), alone)


def test_one_row_of_blocks_is_nvfp4_itself() -> None:
    values = matrix(OUTLIER)
    done = quantize_block(values.reshape(-1), BLOCK_FORMATS["nvfp4"])
    np.testing.assert_array_equal(through_fp4(values, SHARINGS["1x16"]).reshape(-1), done.values)
    assert treat(OUTLIER, "1x16", 0).sqnr_db == pytest.approx(done.sqnr_db)


def test_the_more_values_share_a_scale_the_more_a_rotation_saves() -> None:
    """What the panel says of these pictures, for other outliers as well."""
    for outlier in (10.0, 15.0, OUTLIER, 30.0):
        gain = {name: treat(outlier, name, 0).rms / treat(outlier, name, 16).rms for name in SHARINGS}
        assert gain["1x16"] < 1 < gain["row"] < gain["16x16"]
        assert treat(outlier, "16x16", 0).neighbours > 1.8 * treat(outlier, "16x16", 16).neighbours


@every("name", SHARINGS)
@every("width", (0, *WIDTHS))
def test_stochastic_rounding_is_right_on_average_but_for_what_is_clipped(name: str, width: int) -> None:
    found = errors_of_means(OUTLIER, name, width, 256)
    assert found.shape == (256,)
    assert found[0] > treat(OUTLIER, name, width).rms  # one step errs more than to nearest
    assert found[0] / 16 * 0.9 < found[-1]
    if name != "1x32":  # MX's powers of two clip more, and what is clipped stays wrong
        assert found[-1] < found[0] / 9


@given(value=st.floats(0, 6), seed=st.integers(0, 99))
def test_the_variance_of_a_value_is_that_of_many_roundings(value: float, seed: int) -> None:
    fp4 = FORMATS["fp4_e2m1fn"]
    drawn = decode(encode(np.full(4000, value), fp4, rounding="stochastic", seed=seed), fp4)
    below, above = float(drawn.min()), float(drawn.max())
    assert below <= value <= above or below == above
    if below < above:
        assert drawn.var() == pytest.approx(stochastic_variance(value, below, above), abs=0.15 * (above - below) ** 2)
        assert drawn.mean() == pytest.approx(value, abs=0.05 * (above - below))


@every("outlier", [0.0, OUTLIER, 1e4])
@every("width", WIDTHS)
@every("name", SHARINGS)
def test_pictures_and_words_of_any_outlier(name: str, width: int, outlier: float) -> None:
    go.Figure(wire(error_maps(outlier, width, LIGHT)))
    go.Figure(wire(means(outlier, name, width, 64, LIGHT)))
    assert f"{text_fp4.sigmas(treat(outlier, name, width).rms)}" in text_fp4.takeaway(outlier, name, width, 64)
    rows = text_fp4.table(outlier, width, 2)
    assert len(rows) == len(SHARINGS)
    assert all(len(row) == 6 for row in rows)
    assert len(explain(outlier, width)) == 2
