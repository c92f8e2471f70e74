"""Shared memory counted cell by cell, and in-place operations replayed against torch's own result."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from core.tensors.examples.overlap import HAZARDS, HazardPreset, overlap_of, replay, sharing
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError


def test_a_sliding_window() -> None:
    overlap = overlap_of(TensorLayout((4, 3), (1, 1)), 8)
    assert (overlap.elements, overlap.cells) == (12, 6)
    assert "looks like 96 B and is 48 B" in overlap.headline[0]
    assert overlap.most == 3
    assert [e.value for e in overlap.explanations] == [2, 96, 48]
    assert overlap.headline[0] == "**12 elements share 6 cells**: the tensor looks like 96 B and is 48 B."


def test_no_overlap_but_gaps() -> None:
    overlap = overlap_of(TensorLayout((2, 3), (6, 2), 1), 4)
    assert (overlap.overlaps, overlap.cells, overlap.skipped) == (False, 6, 5)
    assert "5 cells between them belong to no element" in overlap.headline[1]
    assert sharing(overlap.elements, overlap.cells) == 1


def test_empty_and_scalar() -> None:
    empty = overlap_of(TensorLayout.contiguous((0, 3)), 8)
    assert (empty.elements, empty.cells, empty.overlaps, empty.explanations) == (0, 0, False, ())
    scalar = overlap_of(TensorLayout((), (), 5), 8)
    assert (scalar.cells, scalar.skipped, scalar.most) == (1, 0, 1)


def test_equals_counting_on_random_layouts() -> None:
    rng = random.Random(8)
    several = 0
    for _ in range(300):
        rank = rng.randint(0, 4)
        layout = TensorLayout(
            tuple(rng.randint(rng.random() > 0.1, 4) for _ in range(rank)),
            tuple(rng.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(rank)),
            rng.randint(0, 9),
        )
        overlap = overlap_of(layout, 2)
        counted = Counter(layout.cells().tolist())
        assert overlap.overlaps == layout.overlaps == any(count > 1 for count in counted.values())
        assert (overlap.cells, overlap.most) == (len(counted), max(counted.values(), default=0))
        several += overlap.overlaps
    assert 80 < several < 250


def test_caps() -> None:
    with pytest.raises(ValueError, match="too many"):
        overlap_of(TensorLayout((10**6,), (1,)), 8)
    with pytest.raises(ExpressionError, match="cannot be replayed"):
        replay("x", (3,), "pow_")
    with pytest.raises(ExpressionError, match="no view of x"):
        replay("x.clone()", (3,))
    with pytest.raises(ExpressionError, match="elements are replayed"):
        replay("x", (60_000,))


@pytest.mark.parametrize("preset", HAZARDS, ids=[preset.label for preset in HAZARDS])
def test_hazards_end_as_torch_ends(preset: HazardPreset) -> None:
    hazard = replay(preset.view, preset.shape, preset.method, preset.value)
    x = torch.arange(torch.Size(preset.shape).numel())
    layout = hazard.overlap.layout
    view = x.as_strided(layout.shape, layout.stride, layout.offset)
    if hazard.refused:
        with pytest.raises(RuntimeError) as raised:
            getattr(view, preset.method)(preset.value)
        assert hazard.error_message == str(raised.value)
        assert hazard.torch == ()
        return
    getattr(view, preset.method)(preset.value)
    assert list(hazard.torch) == x.tolist() == list(hazard.sequential)


def test_the_window_is_incremented_once_per_element() -> None:
    hazard = replay("x.as_strided((4, 3), (1, 1))", (6,))
    assert not hazard.refused
    assert hazard.counts == (1, 2, 3, 3, 2, 1)
    assert hazard.before == (0, 1, 2, 3, 4, 5)
    assert hazard.once == (1, 2, 3, 4, 5, 6)
    assert hazard.torch == hazard.sequential == (1, 3, 5, 6, 6, 6)
    assert len(hazard.writes) == 12
    assert [w.after for w in hazard.writes if w.cell == 2] == [3, 4, 5]
    assert hazard.headline[0] == (
        "torch **does not notice**: cell 2 lies in 3 elements and is updated 3 times, from 2 to **5** instead of 3."
    )


def test_expand_is_refused_with_the_advice_to_clone() -> None:
    hazard = replay("x.expand(3, 4)", (3, 1))
    assert hazard.refused
    assert "Please clone() the tensor" in hazard.error_message
    assert "`.clone()` first makes a copy of 96 B" in hazard.headline[1]
    cloned = replay("x.expand(3, 4)", (3, 1), "fill_", 7)
    assert (cloned.refused, cloned.torch) == (False, (7, 7, 7))
    assert "harmless" in cloned.headline[0]


def test_strides_that_never_meet_are_harmless() -> None:
    hazard = replay("x.as_strided((2, 2), (3, 2))", (6,))
    assert not hazard.overlap.overlaps
    assert "no two elements share a cell" in hazard.headline[0]
    assert replay("x[0]", (3,)).counts == (1, 0, 0)
    assert replay("x[:0]", (3,)).torch == (0, 1, 2)


@pytest.mark.parametrize("dtype", ["int32", "float64", "uint8", "bool", "complex64"])
def test_bytes_read_as_another_type_are_not_replayed(dtype: str) -> None:
    with pytest.raises(ExpressionError, match="int64"):
        replay(f"x.view(torch.{dtype})", (4,))


@pytest.mark.parametrize("view", ["x", "x # all of it", "x[0] = 7; x.t();", "y = x[1:]", "x.add_(1)\nx.view(-1)"])
def test_one_write_per_cell_is_what_torch_does_whatever_stands_around_the_view(view: str) -> None:
    hazard = replay(view, (3, 2), "mul_", 3)
    assert hazard.torch == hazard.once == hazard.sequential
    assert hazard.torch != hazard.before


@pytest.mark.parametrize("view", ["n = 3", "x.t()\nn = x.size(0)", "x[0] = 7"])
def test_what_ends_in_no_tensor_to_write_to_is_refused(view: str) -> None:
    with pytest.raises(ExpressionError):
        replay(view, (3, 2))


def test_a_replay_keeps_64_bits_as_torch_does() -> None:
    hazard = replay("x.as_strided((8, 8), (1, 1))", (15,), "mul_", 1000)
    assert hazard.torch == hazard.sequential
    assert hazard.sequential[7] == (7 * 1000**8 + 2**63) % 2**64 - 2**63
