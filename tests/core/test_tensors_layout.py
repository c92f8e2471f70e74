"""The layout algebra against torch: contiguity, cells, bounds, and every verdict of `explain_view`."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.tensors.layout import StrideRun, TensorLayout, bounds, contiguous_strides
from core.tensors.view_rule import Boundary, ShapeError, explain_view, resolve_shape
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
        assert verdict.copied_bytes(2) == 2 * layout.numel
        if verdict.hops is not None:
            with_hops += 1
            hops = verdict.hops
            assert len(set(hops.steps)) > 1
            assert [layout.cells()[k] for k in hops.elements] == list(hops.cells)
            index = np.unravel_index(hops.elements, verdict.shape)
            assert all(len(set(i.tolist())) == 1 for d, i in enumerate(index) if d != hops.new_dim)
    assert refused > 700
    assert with_hops == refused


@pytest.mark.parametrize(
    ("layout", "shape", "boundary", "arithmetic"),
    [
        (TensorLayout((3, 2), (1, 3)), (2, 3), Boundary(0, 1, 1, 3, 2, 1), "stride 1 ≠ 3 × 2"),
        (TensorLayout((4, 4), (6, 1)), (16,), Boundary(0, 1, 6, 1, 4, 0), "stride 6 ≠ 1 × 4"),
        (TensorLayout((2, 3, 2, 4), (24, 4, 12, 1)), (2, 3, 8), Boundary(2, 3, 12, 1, 4, 2), "stride 12 ≠ 1 × 4"),
        (TensorLayout((3, 1, 2), (1, 9, 3)), (6,), Boundary(0, 2, 1, 3, 2, 0), "stride 1 ≠ 3 × 2"),
    ],
)
def test_boundary_in_words(layout: TensorLayout, shape: tuple[int, ...], boundary: Boundary, arithmetic: str) -> None:
    verdict = explain_view(layout, shape)
    assert verdict.boundary == boundary
    assert boundary.arithmetic == arithmetic
    assert verdict.reason == f"dimensions {boundary.left} and {boundary.right} cannot merge: {arithmetic}"


@pytest.mark.parametrize(
    ("layout", "shape", "reason"),
    [
        (TensorLayout.contiguous((2, 3)), (6,), "the tensor is contiguous, so any shape with as many elements fits"),
        (TensorLayout((4, 3), (6, 2)), (-1,), "dimensions 0 and 1 merge: stride 6 = 2 × 3"),
        (
            TensorLayout((2, 1, 3, 4), (24, 7, 8, 2)),
            (24,),
            "dimensions 0, 2 and 3 merge: stride 24 = 8 × 3, stride 8 = 2 × 4",
        ),
        (TensorLayout((4,), (2,)), (2, 2), "each new dimension stays inside one old dimension"),
        (TensorLayout((0, 3), (3, 1)), (5, 0), "there are no elements, so any shape fits"),
        (TensorLayout((), ()), (1, 1), "a single element can be viewed with any number of size-1 dimensions"),
    ],
)
def test_why_a_view_works(layout: TensorLayout, shape: tuple[int, ...], reason: str) -> None:
    verdict = explain_view(layout, shape)
    assert verdict.works
    assert verdict.copied_bytes(8) == 0
    assert verdict.reason == reason


@pytest.mark.parametrize(
    ("numel", "shape", "words"),
    [
        (6, (4, 2), "4 × 2 = 8 elements are asked for, but there are 6"),
        (6, (), "1 element is asked for, but there are 6"),
        (6, (-1, -1), "only one size may be negative: -1"),
        (6, (-2, 3), "only one size may be negative: -1"),
        (6, (4, -1), "6 elements do not divide evenly by the other sizes (4)"),
        (0, (-1, 0), "0 elements do not divide evenly by the other sizes (0)"),
        (6, (0, -1), "6 elements do not divide evenly by the other sizes (0)"),
    ],
)
def test_wrong_shapes_say_why(numel: int, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ShapeError) as problem:
        resolve_shape(numel, shape)
    assert words in str(problem.value)
    with pytest.raises(RuntimeError):
        torch.empty(numel).view(shape)
    verdict = explain_view(TensorLayout.contiguous((numel,)), shape)
    assert (verdict.works, verdict.boundary, verdict.copied_bytes(8)) == (False, None, None)


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


def test_cell_of_an_index() -> None:
    layout = TensorLayout.contiguous((4, 4))
    assert layout.cell(1, 2) == 6  # the lecture's example
    assert layout.cell(-1, -1) == 15
    assert TensorLayout((2, 3), (1, 2), 5).cell(1, 2) == 10
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 1 with size 4"):
        layout.cell(0, 4)
    with pytest.raises(IndexError, match="1 indices for 2 dimensions"):
        layout.cell(0)


def test_runs_of_dimensions() -> None:
    assert TensorLayout((2, 3, 4), (12, 4, 1)).runs == (StrideRun(0, 2, 24, 1),)
    assert TensorLayout((3, 2), (1, 3)).runs == (StrideRun(0, 0, 3, 1), StrideRun(1, 1, 2, 3))
    assert TensorLayout((4, 2, 3), (1, 12, 4)).runs == (StrideRun(0, 0, 4, 1), StrideRun(1, 2, 6, 4))
    assert TensorLayout((), ()).runs == ()


def test_negative_strides_have_a_span_too() -> None:
    """torch has none, numpy has: x[::-1] of six elements."""
    reverse = TensorLayout((6,), (-1,), 5)
    assert reverse.span == (0, 5)
    assert reverse.cells().tolist() == [5, 4, 3, 2, 1, 0]
    assert bounds(reverse, 6).inside
    assert not bounds(TensorLayout((6,), (-1,), 4), 6).inside


def test_layouts_that_are_none() -> None:
    with pytest.raises(ValueError, match="same length"):
        TensorLayout((2, 3), (1,))
    with pytest.raises(ValueError, match="negative size"):
        TensorLayout((-1,), (1,))


# ------------------------------------------------------------------------------------------ the cheapest fix


def test_narrowed_copies_are_what_they_say() -> None:
    """Wherever an expanded dimension stays whole, copying one index of it and expanding again gives the same tensor."""
    seen = 0
    for layout, shape in random_layouts(16_000, seed=11):
        verdict = explain_view(layout, shape)
        small = verdict.narrowed
        if small is None:
            continue
        seen += 1
        tensor = in_torch(layout)
        part = tensor[tuple(slice(0, 1) if d in small.dims else slice(None) for d in range(layout.rank))]
        again = part.reshape(small.shape).expand(verdict.shape)
        assert torch.equal(again, tensor.reshape(verdict.shape))
        assert part.numel() == small.elements
        assert small.elements < layout.numel == verdict.reshape_copies
    assert seen > 20


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


def test_overlap_is_exact() -> None:
    """Against all cells enumerated, on layouts where strides collide often; torch's own test gives up on many."""
    rng = random.Random(7)
    both = [0, 0]
    for _ in range(4_000):
        rank = rng.randint(1, 4)
        layout = TensorLayout(
            tuple(rng.choice([1, 2, 3, 4, 5]) for _ in range(rank)),
            tuple(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 15, -1, -4, 30]) for _ in range(rank)),
            200,
        )
        cells = layout.cells().tolist()
        assert layout.overlaps == (len(set(cells)) < len(cells)), layout
        both[layout.overlaps] += 1
    assert min(both) > 800


@every(
    ("layout", "overlaps"),
    [
        (TensorLayout((3, 4), (4, 3)), False),  # strides that interleave: no quick rule decides
        (TensorLayout((4, 5), (4, 3)), True),  # one column more: 3·4 = 4·3
        (TensorLayout((3, 4), (1, 0)), True),  # expand
        (TensorLayout((0, 4), (1, 0)), False),
        (TensorLayout((1, 1), (0, 0)), False),
        (TensorLayout((), ()), False),
        (TensorLayout((4096, 4096), (4096, 1)), False),
        (TensorLayout((4096, 4096), (4095, 1)), True),
        (TensorLayout((5000, 5000), (7, 5000)), False),
        (TensorLayout((5001, 5000), (7, 5000)), True),
    ],
)
def test_overlap_of_known_layouts(layout: TensorLayout, overlaps: bool) -> None:
    assert layout.overlaps is overlaps


def test_overlap_beyond_the_cap_says_so() -> None:
    far = TensorLayout((3, 3), (10**9, 10**9 - 1))
    with pytest.raises(ValueError, match="too many to test"):
        _ = far.overlaps


@pytest.mark.parametrize(
    ("layout", "storage", "inside", "arithmetic", "reason"),
    [
        (
            TensorLayout((4, 4), (1, 3)),
            6,
            False,
            "0 + 3·1 + 3·3 = 12",
            "the last element would be cell 12, but the storage has cells 0 to 5",
        ),
        (
            TensorLayout((4, 3), (1, 1)),
            6,
            True,
            "0 + 3·1 + 2·1 = 5",
            "the last element is cell 5, and the storage has cells 0 to 5",
        ),
        (
            TensorLayout((2,), (1,)),
            0,
            False,
            "0 + 1·1 = 1",
            "the last element would be cell 1, but the storage has no cells",
        ),
        (
            TensorLayout((3,), (-2,), 3),
            9,
            False,
            "3 − 2·2 = -1",
            "the first element would be cell -1, before the storage begins",
        ),
        (TensorLayout((0, 5), (9, 9), 99), 6, True, "", "there are no elements, so no cell is touched"),
        (TensorLayout((), (), 5), 6, True, "5 = 5", "the last element is cell 5, and the storage has cells 0 to 5"),
    ],
)
def test_bounds_show_their_arithmetic(
    layout: TensorLayout, storage: int, inside: bool, arithmetic: str, reason: str
) -> None:
    checked = bounds(layout, storage)
    assert (checked.inside, checked.arithmetic, checked.reason) == (inside, arithmetic, reason)


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
