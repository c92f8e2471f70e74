"""A stand-in for typed parameters has as many of them, and divides as models do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.models.catalog import catalog, nearest_dense
from core.models.parameters import parameters
from core.models.stand_in import stand_in


@given(st.floats(math.log(3e7), math.log(1e13)), st.sampled_from([1, 8192, 131_072]))
def test_the_count_is_met_to_within_a_row_of_the_embedding(log: float, seq_len: int) -> None:
    count = math.exp(log)
    spec = stand_in(count, seq_len)
    assert parameters(spec).total == pytest.approx(count, abs=2 * spec.table_width)
    assert parameters(spec).total <= count
    assert spec.ffn % 64 == 0


def test_a_dense_model_of_the_catalogue_stands_in_for_its_own_count() -> None:
    own = [model for model in catalog() if nearest_dense(model.parameters) is model and model.spec.ffn % 64 == 0]
    assert own
    for model in own:
        assert stand_in(model.parameters) == model.spec


@pytest.mark.parametrize("count", [1.0, 1e6, 1e16])
def test_any_typed_count_has_a_shape(count: float) -> None:
    assert stand_in(count).layers >= 1
