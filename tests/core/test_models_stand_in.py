"""A stand-in for typed parameters has as many of them, and divides as models do."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.catalog import catalog
from core.models.parameters import parameters
from core.models.stand_in import MIXTURE_ERROR, mixture_stand_in, stand_in
from core.search.fastest import searched
from core.search.request import SearchRequest


@given(st.floats(math.log(3e7), math.log(1e13)))
def test_the_count_is_met_to_within_a_row_of_the_embedding(log: float) -> None:
    count = math.exp(log)
    spec = stand_in(count)
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


@given(st.floats(math.log(2e9), math.log(1e12)), st.floats(3.0, 40.0))
def test_a_mixture_meets_both_counts(log: float, sparsity: float) -> None:
    total = math.exp(log)
    counts = parameters(mixture_stand_in(total, total / sparsity))
    assert counts.total == pytest.approx(total, rel=0.05)
    assert counts.active == pytest.approx(total / sparsity, rel=0.05)


def test_where_a_token_runs_nearly_all_the_model_is_dense() -> None:
    assert mixture_stand_in(7e9, 7e9) == mixture_stand_in(7e9, 6.9e9) == stand_in(7e9)


@pytest.mark.long
def test_steps_of_known_mixtures_are_met_as_nearly_as_is_said() -> None:
    """Each mixture of the catalog left out and approximated by its counts: the error that the page tells."""
    h100s, errors = cluster(find("H100 SXM"), 2048), list[float]()
    for model in catalog():
        if model.spec.experts and model.laid_out:
            shape = mixture_stand_in(model.parameters, model.active)
            found = [searched(SearchRequest(spec, h100s, 2048, 4096)).best for spec in (shape, model.spec)]
            approximated, own = (best.seconds for best in found if best)
            errors.append(abs(approximated / own - 1))
    assert statistics.median(errors) == pytest.approx(MIXTURE_ERROR, abs=0.08)
    assert max(errors) < 4 * MIXTURE_ERROR


@pytest.mark.parametrize("count", [1.0, 1e6, 1e16])
def test_any_typed_count_has_a_shape(count: float) -> None:
    assert stand_in(count).layers >= 1
