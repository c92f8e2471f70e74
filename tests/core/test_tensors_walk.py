"""Cache lines of both walks against a plain simulation and closed forms; timing as far as it must hold anywhere."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import torch

from core.tensors.examples.cache_walk import (
    _TIMING,
    LINE_BYTES,
    Fetches,
    WalkBusyError,
    WalkTiming,
    explanations,
    headline,
    line_use,
    lines_of_far_walk,
    lines_of_walk,
    time_walks,
    walk,
    walks,
)
from core.tensors.layout import TensorLayout


def simulate(cells: list[int], element_size: int, cache_lines: int) -> tuple[list[bool], int]:
    """Misses and used bytes, one access at a time, in the plainest way."""
    lines_in_cache: list[int] = []
    used: dict[int, set[int]] = {}
    missed: list[bool] = []
    total = 0
    for cell in cells:
        line = cell * element_size // LINE_BYTES
        missed.append(line not in lines_in_cache)
        if line in lines_in_cache:
            lines_in_cache.remove(line)
        else:
            used[line] = set()
            if len(lines_in_cache) == cache_lines:
                total += len(used.pop(lines_in_cache.pop(0)))
        lines_in_cache.append(line)
        used[line].add(cell)
    return missed, (total + sum(len(cells) for cells in used.values())) * element_size


def test_both_caches_equal_a_plain_simulation() -> None:
    rng = random.Random(3)
    for _ in range(60):
        rank = rng.randint(1, 4)
        shape = tuple(rng.randint(1, 6) for _ in range(rank))
        layout = TensorLayout(
            shape, tuple(rng.choice((0, 1, 2, 7, 16, 40, 100)) for _ in range(rank)), rng.randint(0, 20)
        )
        size, capacity = rng.choice((1, 2, 4, 8)), rng.choice((2, 3, 5))
        for order in ("row", "column"):
            measured = walk(layout, size, order, cache_bytes=capacity * LINE_BYTES)
            for fetches, lines in ((measured.single, 1), (measured.cache, capacity)):
                missed, used = simulate(measured.cells.tolist(), size, lines)
                assert fetches.missed.tolist() == missed
                assert (fetches.fetched, fetches.used_bytes) == (sum(missed), used)
                assert 0 < fetches.use <= 1
            assert measured.touched == len(set(measured.lines.tolist()))


def test_orders_are_those_of_numpy() -> None:
    cells = np.arange(24).reshape(2, 3, 4)
    row, column = walks(TensorLayout.contiguous((2, 3, 4)), 8)
    assert row.cells.tolist() == cells.ravel("C").tolist()
    assert column.cells.tolist() == cells.ravel("F").tolist()
    back = walks(TensorLayout((4, 3, 2), (1, 4, 12)), 8)
    assert back[1].cells.tolist() == row.cells.tolist()


def test_closed_forms() -> None:
    # a contiguous float32 matrix of 64 × 64: each row is four lines
    row, column = walks(TensorLayout.contiguous((64, 64)), 4)
    assert row.single.fetched == lines_of_walk(64 * 64, 1, 4, LINE_BYTES) == 256
    assert column.single.fetched == lines_of_far_walk(64, 64) == 4096
    assert row.single.use == 1
    assert column.single.use == line_use(4 * 4096, 4096, 64) == 1 / 16
    # 256 lines fit into the 512 of the level-1 cache
    assert row.cache.fetched == column.cache.fetched == row.touched == 256
    # 1,024 rows, each on a line of its own: a column no longer fits, so every access fetches
    row, column = walks(TensorLayout((1024, 4), (16, 1)), 4)
    assert (row.cache.fetched, column.cache.fetched) == (1024, lines_of_far_walk(1024, 4))
    # every other element: half of each line is used, twice the lines per element
    skip = walk(TensorLayout((512,), (2,)), 4, "row")
    assert skip.single.fetched == lines_of_walk(512, 2, 4, LINE_BYTES) == 64
    assert skip.single.use == 0.5


def test_expanded_and_empty_tensors() -> None:
    row, column = walks(TensorLayout((4, 3), (0, 1)), 8)
    assert (row.single.fetched, row.single.used_bytes, row.accesses) == (1, 24, 12)
    assert column.single.fetched == 1
    empty = walk(TensorLayout.contiguous((0, 3)), 8, "row")
    assert (empty.accesses, empty.single.fetched, empty.cache.fetched) == (0, 0, 0)
    assert np.isnan(empty.single.use)
    assert headline(empty, empty) == ("There are no elements to walk.", "")
    assert explanations(empty, empty) == ()


def test_words() -> None:
    sentence, detail = headline(*walks(TensorLayout.contiguous((64, 64)), 8))
    assert sentence.startswith(
        "Row by row fetches **512 cache lines** of 64 B, column by column **4,096**; 100 % and 12.5 %"
    )
    assert "512 lines (32 KiB) fetches 512 either way" in detail
    assert "lines leave before" in headline(*walks(TensorLayout((1024, 4), (16, 1)), 4))[1]
    assert "a line stays until" in headline(*walks(TensorLayout.contiguous((256, 256)), 8))[1]
    assert headline(*walks(TensorLayout.contiguous((4,)), 8))[0].startswith("Both walks fetch **1 cache line** of 64 B")
    assert [explanation.value for explanation in explanations(*walks(TensorLayout.contiguous((64, 64)), 8))] == [
        1,
        0.125,
    ]


def test_a_line_never_splits_an_element_and_storage_is_aligned() -> None:
    assert all(torch.empty(n).data_ptr() % LINE_BYTES == 0 for n in (1, 3, 1000, 100_000))
    with pytest.raises(ValueError, match="too many to go through"):
        walk(TensorLayout.contiguous((70_000,)), 8, "row")
    with pytest.raises(ValueError, match="before the storage"):
        walk(TensorLayout((3,), (-1,)), 8, "row")


def test_timing_times_both_walks() -> None:
    measured = time_walks(1024, 1024, seconds=0.05)
    assert "(4 MiB)" in measured.headline[1]
    assert min(measured.row_seconds, measured.column_seconds) > 0
    assert 1 <= measured.repeats <= 9
    assert measured.ratio == measured.column_seconds / measured.row_seconds
    assert [e.value for e in measured.explanations] == [2**20 / 16, 2**20]


def test_a_large_matrix_is_the_default_and_its_words() -> None:
    measured = WalkTiming(16_384, 1_040, 4, 0.005, 0.04, 9)
    assert measured.headline[0] == "Here, column by column takes **8.0 times** as long: 40 ms against 5.0 ms."
    assert "65 MiB" in measured.headline[1]


def test_only_one_times_at_once() -> None:
    refused: list[bool] = []

    def late() -> None:
        try:
            time_walks(64, 64, seconds=0.01)
        except WalkBusyError:
            refused.append(True)

    with _TIMING:
        visitors = [threading.Thread(target=late) for _ in range(5)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
    assert refused == [True] * 5
    assert time_walks(64, 64, seconds=0.01).repeats >= 1  # free again


def test_a_fetch_that_never_happened_has_no_share() -> None:
    assert np.isnan(Fetches(1, np.zeros(0, dtype=np.bool_), 0, 0).use)
