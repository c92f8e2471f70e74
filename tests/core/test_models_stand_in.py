"""A stand-in for typed parameters has as many of them, and divides as models do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.models.parameters import parameters
from core.models.stand_in import stand_in


@given(st.floats(math.log(3e7), math.log(1e13)), st.sampled_from([1, 8192, 131_072]))
def test_the_count_is_met_to_within_a_row_of_the_embedding(log: float, seq_len: int) -> None:
    count = math.exp(log)
    spec = stand_in(count, seq_len)
    assert parameters(spec).total == pytest.approx(count, abs=spec.hidden)
    assert parameters(spec).total <= count
    assert spec.ffn % 8 == 0


def test_more_parameters_have_no_less_of_anything() -> None:
    """But for the feed-forward width, which begins anew where the layers become wider or more."""
    shapes = [stand_in(10 ** (6 + i / 40)) for i in range(320)]
    for name in ("layers", "hidden", "heads"):
        sizes = [getattr(shape, name) for shape in shapes]
        assert sizes == sorted(sizes), name
    assert all(shape.heads % 8 == 0 and shape.layers % 4 == 0 for shape in shapes if shape.hidden >= 4096)
    assert all(2.7 < shape.ffn / shape.hidden < 6 for shape in shapes if parameters(shape).total > 3e7)


@pytest.mark.parametrize("count", [1.0, 1e6, 1e16])
def test_any_typed_count_has_a_shape(count: float) -> None:
    assert stand_in(count).layers >= 1
