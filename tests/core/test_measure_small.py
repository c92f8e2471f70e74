"""Copies and memory-bound operations: each timed here, with the work that a person would count."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.points import Point, Refusal
from core.benchmark.programme import SIZES
from core.benchmark.timing import memory, operations
from core.benchmark.timing.timers import QueuedTimer
from tests.core.timing_bench import BF16, FP32, TINY, FakeCuda, bench, measured, processor, programme, stand_in

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=[BF16, FP32], ids=["bf16", "fp32"])
def element(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of what a processor with, and one without, instructions for bf16 computes in."""
    return processor(monkeypatch, request.param)


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
    found = measured(memory, memory.items(programme())[0], programme())
    assert isinstance(found, Refusal)
    assert found.text.startswith("wrong result")


def test_what_does_not_fit_is_skipped_before_it_is_tried() -> None:
    small = bench(room=1000)
    for module in (memory, operations):
        for item in module.items(programme()):
            found = measured(module, item, programme(), small)
            assert isinstance(found, Refusal)
            assert found.why == "skipped"
            assert "1,000 B is free" in found.text


FLOP_AND_BYTES: dict[str, tuple[float, float]] = {
    "LayerNorm": (8 * 64 * 64, 2 * 64 * 64),
    "RMSNorm": (4 * 64 * 64, 2 * 64 * 64),
    "GELU": (8 * 64 * 64, 2 * 64 * 64),
    "residual addition": (64 * 64, 3 * 64 * 64),
    "softmax": (5 * 64 * 32, 2 * 64 * 32),
    "cross-entropy": (4 * 64 * 100, 64 * 100),
}
"""FLOPs, and elements read and written, at the tiny layer: 64 tokens 64 wide, 32 keys, 100 logits."""


def test_operations_at_the_shape_of_a_plan(element: int) -> None:
    found = {item.name: measured(operations, item, programme()) for item in operations.items(programme())}
    update = found.pop("AdamW")
    assert isinstance(update, Point)
    assert (update.flop, update.bytes) == (15 * 3 * 64 * 96, 28 * 3 * 64 * 96)
    assert set(found) == set(FLOP_AND_BYTES)
    for name, point in found.items():
        assert isinstance(point, Point), point
        assert (point.flop, point.bytes) == (FLOP_AND_BYTES[name][0], element * FLOP_AND_BYTES[name][1])
        assert point.relative_error is not None
        assert point.relative_error < (1e-2 if element == BF16 else 1e-5)
        assert ("fp32" in point.note) == (element == FP32)


@given(st.integers(1, 200_000), st.integers(1, 64), st.sampled_from(sorted(SIZES)))
def test_operations_never_take_more_than_the_device_is_given(seq_len: int, micro_batch: int, kind: Any) -> None:
    layer = TINY.model_copy(update={"seq_len": seq_len, "micro_batch": micro_batch})
    for item in operations.items(programme(layer, kind)):
        assert math.prod(item.shape) <= max(operations.ELEMENTS[kind], item.shape[-1])
        assert item.shape[0] <= max(layer.tokens, 3 * 64 * 96)


WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "LayerNorm": (torch.nn.functional, "layer_norm", lambda x, width, gain, bias, eps: x),
    "RMSNorm": (torch.nn.functional, "rms_norm", lambda x, width, gain, eps: x * gain),
    "softmax": (torch, "softmax", lambda x, _: x.exp()),
    "GELU": (torch.nn.functional, "gelu", lambda x, approximate: x.relu()),
    "cross-entropy": (torch.nn.functional, "cross_entropy", lambda x, _: x.float().logsumexp(-1).sum()),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_operation_is_not_timed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is wrong in the format that is timed, and right in float64."""
    where, called, wrong = WRONG[name]
    real = getattr(where, called)
    monkeypatch.setattr(
        where, called, lambda x, *given, **more: (real if x.dtype is torch.float64 else wrong)(x, *given, **more)
    )
    found = measured(operations, next(i for i in operations.items(programme()) if i.name == name), programme())
    assert isinstance(found, Refusal)
    assert found.text.startswith("wrong result: relative error")


def test_a_wrong_update_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim, "AdamW", lambda w, **given: torch.optim.Adam(w, lr=given["lr"]))
    found = measured(operations, operations.items(programme())[-1], programme())
    assert isinstance(found, Refusal)
    assert found.text.startswith("wrong result: relative error")


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
