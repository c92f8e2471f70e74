"""The layout algebra against torch: contiguity, cells, bounds, and every verdict of `explain_view`."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tensors import Boundary, Layout, Run, contiguous_strides, explain_view
from core.tensors.view import ShapeError, resolve_shape

STORAGE = torch.arange(1 << 16)
RANDOM_LAYOUTS = 30_000


def random_layouts(count: int, seed: int) -> Iterator[tuple[Layout, list[int]]]:
    """Layouts as slicing, permuting, expanding and as_strided make them, each with a new shape to try."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        rank = rng.randint(0, 5)
        sizes = [0, 1, 1, 2, 2, 3, 4, 6] if rng.random() < 0.1 else [1, 2, 2, 3, 4, 6]
        shape = [rng.choice(sizes) for _ in range(rank)]
        if rng.random() < 0.2:
            stride = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        else:
            order = list(range(rank))
            if rng.random() < 0.5:
                rng.shuffle(order)
            stride, step = [0] * rank, rng.choice([0, 1, 1, 1, 2])
            for dim in reversed(order):
                stride[dim] = step
                step *= max(shape[dim], 1) * rng.choice([1, 1, 1, 1, 2])
        layout = Layout(tuple(shape), tuple(stride), rng.choice([0, 5]))
        if not layout.fits(len(STORAGE)):
            continue
        made += 1
        yield layout, random_shape(rng, layout.numel)


def random_shape(rng: random.Random, numel: int) -> list[int]:
    """A factorisation of ``numel`` with ones strewn in; sometimes with -1, sometimes wrong."""
    if numel == 0:
        shape = [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.randint(1, 3))]
    else:
        shape, left = [], numel
        while left > 1:
            shape += [1] * (rng.random() < 0.2)
            shape.append(rng.choice([f for f in range(2, left + 1) if left % f == 0]))
            left //= shape[-1]
        shape += [1] * (rng.random() < 0.3)
    if shape and rng.random() < 0.3:
        shape[rng.randrange(len(shape))] = -1
    if rng.random() < 0.05:
        shape.append(rng.choice([2, -1, -2]))
    return shape


def in_torch(layout: Layout) -> torch.Tensor:
    return torch.as_strided(STORAGE, layout.shape, layout.stride, layout.offset)


def test_explain_view_agrees_with_torch_on_random_layouts() -> None:
    worked = 0
    for layout, shape in random_layouts(RANDOM_LAYOUTS, seed=20250401):
        tensor = in_torch(layout)
        verdict = explain_view(layout, shape)
        try:
            view = tensor.view(shape)
        except RuntimeError:
            assert not verdict.works, (layout, shape)
            assert verdict.stride is None
            assert verdict.reason
        else:
            worked += 1
            assert verdict.works, (layout, shape)
            assert (verdict.shape, verdict.stride) == (tuple(view.shape), view.stride()), (layout, shape)
        assert layout.is_contiguous == tensor.is_contiguous(), layout
    assert 0.3 * RANDOM_LAYOUTS < worked < 0.9 * RANDOM_LAYOUTS  # both verdicts are well represented


def test_refusals_name_a_boundary_that_is_one() -> None:
    """The two strides of every refusal differ as it says, its hops are uneven, and reshape copies every element."""
    with_hops = refused = 0
    for layout, shape in random_layouts(6_000, seed=3):
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
    assert refused > 1_000
    assert with_hops == refused


@pytest.mark.parametrize(
    ("layout", "shape", "boundary", "arithmetic"),
    [
        (Layout((3, 2), (1, 3)), (2, 3), Boundary(0, 1, 1, 3, 2, 1), "stride 1 ≠ 3 × 2"),
        (Layout((4, 4), (6, 1)), (16,), Boundary(0, 1, 6, 1, 4, 0), "stride 6 ≠ 1 × 4"),
        (Layout((2, 3, 2, 4), (24, 4, 12, 1)), (2, 3, 8), Boundary(2, 3, 12, 1, 4, 2), "stride 12 ≠ 1 × 4"),
        (Layout((3, 1, 2), (1, 9, 3)), (6,), Boundary(0, 2, 1, 3, 2, 0), "stride 1 ≠ 3 × 2"),
    ],
)
def test_boundary_in_words(layout: Layout, shape: tuple[int, ...], boundary: Boundary, arithmetic: str) -> None:
    verdict = explain_view(layout, shape)
    assert verdict.boundary == boundary
    assert boundary.arithmetic == arithmetic
    assert verdict.reason == f"dimensions {boundary.left} and {boundary.right} cannot merge: {arithmetic}"


def test_hops_of_the_lectures_transpose() -> None:
    hops = explain_view(Layout((3, 2), (1, 3)), (2, 3)).hops
    assert hops is not None
    assert (hops.new_dim, hops.cells, hops.steps, hops.elements) == (1, (0, 3, 1), (3, -2), (0, 1, 2))


@pytest.mark.parametrize(
    ("layout", "shape", "reason"),
    [
        (Layout.contiguous((2, 3)), (6,), "the tensor is contiguous, so any shape with as many elements fits"),
        (Layout((4, 3), (6, 2)), (-1,), "dimensions 0 and 1 merge: stride 6 = 2 × 3"),
        (
            Layout((2, 1, 3, 4), (24, 7, 8, 2)),
            (24,),
            "dimensions 0, 2 and 3 merge: stride 24 = 8 × 3, stride 8 = 2 × 4",
        ),
        (Layout((4,), (2,)), (2, 2), "each new dimension stays inside one old dimension"),
        (Layout((0, 3), (3, 1)), (5, 0), "there are no elements, so any shape fits"),
        (Layout((), ()), (1, 1), "a single element can be viewed with any number of size-1 dimensions"),
    ],
)
def test_why_a_view_works(layout: Layout, shape: tuple[int, ...], reason: str) -> None:
    verdict = explain_view(layout, shape)
    assert verdict.works
    assert verdict.copied_bytes(8) == 0
    assert verdict.reason == reason


@pytest.mark.parametrize(
    ("numel", "shape", "words"),
    [
        (6, (4, 2), "4 × 2 = 8 elements are asked for, but there are 6"),
        (6, (), "1 element is asked for, but there are 6"),
        (6, (-1, -1), "only one size may be -1"),
        (6, (-2, 3), "size -2 of dimension 0 is negative"),
        (6, (4, -1), "6 elements do not divide evenly by the other sizes (4)"),
        (0, (-1, 0), "-1 could be any size here"),
        (6, (0, -1), "a size of 0 leaves no place for 6 elements"),
    ],
)
def test_wrong_shapes_say_why(numel: int, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ShapeError) as problem:
        resolve_shape(numel, shape)
    assert words in str(problem.value)
    with pytest.raises(RuntimeError):
        torch.empty(numel).view(shape)
    verdict = explain_view(Layout.contiguous((numel,)), shape)
    assert (verdict.works, verdict.boundary, verdict.copied_bytes(8)) == (False, None, None)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=5),
    st.integers(0, 9),
    st.integers(1, 200),
)
def test_cells_span_and_bounds_match_torch(dims: list[tuple[int, int]], offset: int, storage: int) -> None:
    layout = Layout(tuple(size for size, _ in dims), tuple(stride for _, stride in dims), offset)
    base = torch.arange(storage)
    try:
        tensor = base.as_strided(layout.shape, layout.stride, layout.offset)
    except RuntimeError:
        assert not layout.fits(storage)
        return
    assert layout.fits(storage)
    values = tensor.flatten().tolist()
    assert layout.cells().tolist() == values
    assert layout.cells(3).tolist() == values[:3]
    assert layout.numel == len(values)
    assert layout.span == ((min(values), max(values)) if values else None)
    assert layout.is_contiguous == tensor.is_contiguous()


@given(st.lists(st.integers(0, 7), max_size=6))
def test_contiguous_strides_match_torch(shape: list[int]) -> None:
    assert contiguous_strides(shape) == torch.empty(shape, device="meta").stride()
    assert Layout.contiguous(shape).is_contiguous


def test_cell_of_an_index() -> None:
    layout = Layout.contiguous((4, 4))
    assert layout.cell(1, 2) == 6  # the lecture's example
    assert layout.cell(-1, -1) == 15
    assert Layout((2, 3), (1, 2), 5).cell(1, 2) == 10
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 1 with size 4"):
        layout.cell(0, 4)
    with pytest.raises(IndexError, match="1 indices for 2 dimensions"):
        layout.cell(0)


def test_runs_of_dimensions() -> None:
    assert Layout((2, 3, 4), (12, 4, 1)).runs == (Run(0, 2, 24, 1),)
    assert Layout((3, 2), (1, 3)).runs == (Run(0, 0, 3, 1), Run(1, 1, 2, 3))
    assert Layout((4, 2, 3), (1, 12, 4)).runs == (Run(0, 0, 4, 1), Run(1, 2, 6, 4))
    assert Layout((), ()).runs == ()


def test_negative_strides_have_a_span_too() -> None:
    """torch has none, numpy has: x[::-1] of six elements."""
    reverse = Layout((6,), (-1,), 5)
    assert reverse.span == (0, 5)
    assert reverse.cells().tolist() == [5, 4, 3, 2, 1, 0]
    assert reverse.fits(6)
    assert not Layout((6,), (-1,), 4).fits(6)


def test_layouts_that_are_none() -> None:
    with pytest.raises(ValueError, match="same length"):
        Layout((2, 3), (1,))
    with pytest.raises(ValueError, match="negative size"):
        Layout((-1,), (1,))
