"""Copies: each timed here, with the work that a person would count."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from core.benchmark.points import Point
from core.benchmark.programme import SIZES
from core.benchmark.timing import memory
from core.benchmark.timing.timers import QueuedTimer
from tests.core.timing_bench import FakeCuda, bench, measured, programme, refusal, stand_in

pytestmark = pytest.mark.usefixtures("one_thread")


def test_copies_from_kilobytes_to_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in SIZES:
        sizes = [item.shape[0] for item in memory.items(programme(device=kind))]
        assert sizes[0] <= 4 * 2**10
        assert sizes[-1] >= 2**30
        assert all(big == 4 * small for small, big in pairwise(sizes))
    monkeypatch.setattr(memory, "LARGEST", {"cpu": 64 * 2**10})
    points = [measured(memory, item, programme()) for item in memory.items(programme())]
    for point, size in zip(points, (4096, 16384, 65536), strict=True):
        assert isinstance(point, Point)
        assert (point.shape, point.flop, point.bytes) == ((size,), 0, 2 * size)
        assert point.runs % 64 == 0, "copies of one call are copies"
        assert point.bandwidth == 2 * size / point.median_s


def test_a_copy_that_arrives_torn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.Tensor.copy_

    def torn(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        real(self, source)
        self.view(-1)[-1] += 1
        return self

    monkeypatch.setattr(torch.Tensor, "copy_", torn)
    assert refusal(memory, memory.items(programme())[0]).id == "measure.refused.copy"


def test_what_does_not_fit_is_skipped_before_it_is_tried() -> None:
    small = bench(room=1000)
    for item in memory.items(programme()):
        assert refusal(memory, item, on=small).values["free"] == 1000


@pytest.mark.parametrize(("launch_cycles", "sleeps"), [(10_000, 1), (30_000, 2), (70_000, 3)])
def test_only_calls_that_the_host_has_issued_in_time_count(launch_cycles: int, sleeps: int) -> None:
    cuda, emptied = FakeCuda(launch_cycles), list[int]()
    timer = QueuedTimer(stand_in(cuda=cuda), lambda: emptied.append(1))

    def run() -> None:
        for _ in range(200):
            cuda.launch()

    assert timer(run, 3) == pytest.approx([200 * cuda.KERNEL_S] * 3)
    assert cuda.log.count("sleep") == 3 + sleeps - 1, "each head start that was too short is made longer once"
    assert cuda.ahead >= 0
    assert len(emptied) == cuda.log.count("sleep")
    assert len(timer(run, 2, flush=False)) == 2
    assert len(emptied) == 3 + sleeps - 1


def test_a_host_that_is_never_in_time_ends_all_the_same() -> None:
    cuda = FakeCuda(10**9)
    assert len(QueuedTimer(stand_in(cuda=cuda))(lambda: cuda.launch(), 3)) == 3
