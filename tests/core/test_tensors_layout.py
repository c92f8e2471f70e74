"""Layouts, views and shared cells against torch: contiguity, bounds, verdicts of `explain_view`, replayed writes."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.tensors.examples.overlap import overlap_of, replay
from core.tensors.examples.presets import PRESETS
from core.tensors.layout import TensorLayout, bounds, contiguous_strides
from core.tensors.tracing.trace import follow, trace
from core.tensors.view_rule import explain_view
from tests.core.tensors_random import compare_views, in_torch, random_layouts
from tests.every import every


def test_explain_view_agrees_with_torch_on_random_layouts() -> None:
    worked = compare_views(40_000, seed=20250401)
    assert 0.3 * 40_000 < worked < 0.9 * 40_000  # both verdicts are well represented


def test_refusals_name_a_boundary_that_is_one() -> None:
    """The two strides of every refusal differ as it says, its hops are uneven, and reshape copies every element."""
    with_hops = refused = 0
    for layout, shape in random_layouts(4_000, seed=3):
        verdict = explain_view(layout, shape)
        edge = verdict.boundary
        if edge is None:
            continue
        refused += 1
        assert edge.left < edge.right
        assert edge.left_stride == layout.stride[edge.left] != edge.right_stride * edge.right_size
        assert (edge.right_stride, edge.right_size) == (layout.stride[edge.right], layout.shape[edge.right])
        assert layout.shape[edge.left] != 1
        assert layout.shape[edge.right] != 1
        assert verdict.reshape_copies == layout.numel
        if verdict.hops is not None:
            with_hops += 1
            hops = verdict.hops
            assert len(set(hops.steps)) > 1
            assert [layout.cells()[k] for k in hops.elements] == list(hops.cells)
            index = np.unravel_index(hops.elements, verdict.shape)
            assert all(len(set(i.tolist())) == 1 for d, i in enumerate(index) if d != hops.new_dim)
    assert refused > 700
    assert with_hops == refused


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=5),
    st.integers(0, 9),
    st.integers(1, 200),
)
def test_cells_span_and_bounds_match_torch(dims: list[tuple[int, int]], offset: int, storage: int) -> None:
    layout = TensorLayout(tuple(size for size, _ in dims), tuple(stride for _, stride in dims), offset)
    base = torch.arange(storage)
    try:
        tensor = base.as_strided(layout.shape, layout.stride, layout.offset)
    except RuntimeError:
        assert not bounds(layout, storage).inside
        return
    assert bounds(layout, storage).inside
    values = tensor.flatten().tolist()
    assert layout.cells().tolist() == values
    assert layout.cells(3).tolist() == values[:3]
    assert layout.numel == len(values)
    assert layout.span == ((min(values), max(values)) if values else None)
    assert layout.is_contiguous == tensor.is_contiguous()


@given(st.lists(st.integers(0, 7), max_size=6))
def test_contiguous_strides_match_torch(shape: list[int]) -> None:
    assert contiguous_strides(shape) == torch.empty(shape, device="meta").stride()
    assert TensorLayout.contiguous(shape).is_contiguous


def test_negative_strides_have_a_span_too() -> None:
    """torch has none, numpy has: x[::-1] of six elements."""
    reverse = TensorLayout((6,), (-1,), 5)
    assert reverse.span == (0, 5)
    assert reverse.cells().tolist() == [5, 4, 3, 2, 1, 0]
    assert bounds(reverse, 6).inside
    assert not bounds(TensorLayout((6,), (-1,), 4), 6).inside


# --------------------------------------------------------------------- channels last, overlap, bounds


def test_channels_last_agrees_with_torch() -> None:
    rng = random.Random(5)
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    both = [0, 0]
    for _ in range(3_000):
        rank = rng.choice([4, 5])
        shape = [rng.choice([1, 1, 2, 3]) for _ in range(rank)]
        order = rng.choice([(0, *range(2, rank), 1), tuple(range(rank)), tuple(rng.sample(range(rank), rank))])
        stride, step = [0] * rank, rng.choice([1, 1, 1, 2])
        for dim in reversed(order):
            stride[dim] = step if shape[dim] > 1 else rng.choice([step, 1, 7])
            step *= shape[dim]
        layout = TensorLayout(tuple(shape), tuple(stride))
        packed = in_torch(layout).is_contiguous(memory_format=formats[rank])
        assert layout.is_channels_last == packed, layout
        both[packed] += 1
    assert min(both) > 500
    assert not TensorLayout((2, 3), (3, 1)).is_channels_last


def test_overlap_equals_counting_the_cells() -> None:
    """On layouts where strides collide often; torch's own test gives up on many."""
    rng = random.Random(7)
    both = [0, 0]
    for _ in range(4_000):
        rank = rng.randint(0, 4)
        layout = TensorLayout(
            tuple(rng.choice([0, 1, 2, 2, 3, 3, 4, 5]) for _ in range(rank)),
            tuple(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 15, -1, -4, 30]) for _ in range(rank)),
            200,
        )
        overlap, counted = overlap_of(layout, 2), Counter(layout.cells().tolist())
        assert overlap.overlaps == layout.overlaps == any(count > 1 for count in counted.values()), layout
        assert (overlap.cells, overlap.most) == (len(counted), max(counted.values(), default=0))
        both[layout.overlaps] += 1
    assert min(both) > 800


HAZARDOUS = [
    *((preset.source, preset.shape) for preset in PRESETS if preset.group == "shared"),
    *((text, (3, 2)) for text in ("x *= 3", "x.t().mul_(3)", "y = x[1:]\ny -= 1", "x.add_(1)\nx", "x[:0].add_(1)")),
]


@every(("text", "shape"), HAZARDOUS)
def test_a_replayed_write_ends_as_torch_ends(text: str, shape: tuple[int, ...]) -> None:
    hazard = replay(trace(text, shape))
    assert hazard is not None
    x, layout = torch.tensor(hazard.before), hazard.layout
    target = x.as_strided(layout.shape, layout.stride, layout.offset)
    if not hazard.torch:
        with pytest.raises(RuntimeError):
            getattr(target, hazard.method)(hazard.value)
        return
    getattr(target, hazard.method)(hazard.value)
    now = list(hazard.before)
    for cell, before, after in hazard.writes:
        assert now[cell] == before
        now[cell] = after
    assert list(hazard.torch) == x.tolist() == now
    assert hazard.overlap.overlaps or hazard.torch == hazard.once


def test_the_window_is_incremented_once_per_element() -> None:
    hazard = replay(trace("x.as_strided((4, 3), (1, 1)).add_(1)", (6,)))
    assert hazard is not None
    assert (hazard.once, hazard.torch) == ((1, 2, 3, 4, 5, 6), (1, 3, 5, 6, 6, 6))
    assert [after for cell, _, after in hazard.writes if cell == 2] == [3, 4, 5]
    assert [e.value for e in hazard.overlap.explanations] == [2, 96, 48]


@every("text", ["x.t()", "x[0] += 1", "x.add_(1, alpha=2)", "x.mul_(10**9)", "x.view(torch.int16).add_(1)", "x.exp_()"])
def test_what_cannot_be_replayed_is_left_out(text: str) -> None:
    assert replay(follow(text, (3, 2))) is None
    assert replay(trace("x.add_(1)", (60_000,))) is None


def test_the_example_of_a_refusal_lies_among_drawn_cells_where_one_does() -> None:
    """The first uneven line of the second leaves the drawn cells, another does not; the third has only far ones."""
    drawn = limit("storage_cells_drawn")
    for layout, shape in (
        (TensorLayout((256, 200), (256, 1)), (51_200,)),
        (TensorLayout((3, 16, 100), (1, 3, 48)), (100, 48)),
        (TensorLayout((40, 2, 100), (100, 4_000, 1)), (100, 80)),
    ):
        hops = explain_view(layout, shape).hops
        assert hops is not None
        assert max(*hops.cells, *hops.elements) < drawn
        assert len(set(hops.steps)) > 1
        wanted = np.moveaxis(np.arange(layout.numel).reshape(shape), hops.new_dim, -1).reshape(-1, shape[hops.new_dim])
        assert any(hops.elements == tuple(line[at : at + 6]) for line in wanted for at in range(len(line) - 5))
        assert layout.cells()[list(hops.elements)].tolist() == list(hops.cells)
    far = explain_view(TensorLayout((256, 256), (1, 256)), (65_536,)).hops
    assert far is not None
    assert 65_280 in far.cells
