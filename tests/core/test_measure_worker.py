"""The measuring process from within: clocks, devices, and what it says of each item, on this CPU and stand-ins."""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.choices import LARGEST, programme, usual_seconds
from core.benchmark.device import GpuState
from core.benchmark.points import DeviceFacts, Item, Outcome, Point, Refusal, State
from core.benchmark.programme import METHOD, SIZES, Programme
from core.benchmark.running import worker
from core.benchmark.running.events import DeviceFound, Done, Event, Progress, Started, Tried, decode
from core.benchmark.running.worker import Reporter, context_lost, cuda_bench, run
from core.benchmark.timing import kinds
from core.benchmark.timing.bench import Bench, PreparedItem, Times, timed
from core.benchmark.timing.timers import CudaTimer, cpu_timer
from core.limits import limit
from tests.core.timing_bench import FakeCuda

pytestmark = pytest.mark.usefixtures("one_thread")

PROGRAMME = Programme(device="cpu", kinds=("matmul",), dtypes=("fp32", "bf16"), sizes=(32, 16), seconds=0.02)
MIB = 2**20


def said(programme: Programme, *seconds: float) -> list[Event]:
    out = io.StringIO()
    run(programme, Reporter(out), *seconds)
    events = [decode(line.encode()) for line in out.getvalue().splitlines()]
    assert None not in events
    return [event for event in events if event is not None]


def outcomes(events: list[Event]) -> list[Outcome]:
    return [event.outcome for event in events if isinstance(event, Tried)]


# ------------------------------------------------------------------------------------------ what it says


def test_every_item_is_said_and_measured() -> None:
    programme = PROGRAMME.model_copy(update={"sustained_s": 0.05})
    events = said(programme)
    assert events[0] == Started(method=METHOD, torch=str(torch.__version__))
    assert isinstance(events[1], DeviceFound)
    assert events[1].facts.threads == 1
    assert isinstance(events[-1], Done)
    found = outcomes(events)
    assert [one.item for one in found] == list(kinds.items(programme))
    assert all(isinstance(one, Point) for one in found), found
    assert [one.item.key for one in found[-1:]] == [("matmul", "fp32", "n = 32", "sustained")]
    announced = [event.item for event in events if isinstance(event, Progress) and event.fraction == 0]
    assert announced == [one.item for one in found]


def test_what_comes_too_late_is_skipped_so_that_it_ends_by_itself() -> None:
    found = outcomes(said(PROGRAMME, 0.0))
    assert len(found) == len(kinds.items(PROGRAMME))
    for one in found:
        assert isinstance(one, Refusal)
        assert (one.why, "too late" in one.text) == ("skipped", True)


def test_once_the_context_is_lost_nothing_more_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    class Poisoned:
        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

        def mm(self, a: Any, *_: Any, **__: Any) -> None:
            tried.append(str(a.dtype))
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        def ones(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    facts = DeviceFacts(name="A GPU", detail="", threads=0, memory_bytes=None, power_limit_w=None)
    bench = Bench(Poisoned(), "cuda", "cpu", cpu_timer, State, lambda: 1e12)
    monkeypatch.setattr(worker, "_BENCHES", {"cpu": lambda torch: (bench, facts)})
    first, *rest = outcomes(said(PROGRAMME))
    assert isinstance(first, Refusal)
    assert (first.why, len(tried)) == ("refused", 1)
    assert len(rest) == 3
    for one in rest:
        assert isinstance(one, Refusal)
        assert one.why == "skipped"
        assert "context was lost" in one.text
        assert "illegal memory access" in one.text
    assert context_lost(Bench(Poisoned(), "cpu", "cpu", cpu_timer, State, lambda: 1e12)) == ""


# ------------------------------------------------------------------------------------------ how long it takes


def usual(choice: str, device: Any) -> Programme:
    """What a visitor starts who changes nothing."""
    return programme(choice, device, LARGEST[device], usual_seconds(device))


@pytest.mark.parametrize("device", SIZES)
def test_a_default_programme_takes_less_than_a_minute(device: Any) -> None:
    asked = usual("dtypes", device)
    assert kinds.items(asked)
    assert kinds.expected_s(asked) < 60 < limit("measure_seconds")


def test_a_programme_of_any_length_ends_before_it_is_stopped() -> None:
    most = limit("measure_dtype_seconds")
    asked = usual("all", "cuda").model_copy(update={"seconds": float(most), "sustained_s": float(most)})
    assert kinds.expected_s(asked) == kinds.LONGEST_S < limit("measure_seconds")


def test_what_is_left_shrinks_to_nothing() -> None:
    everything = len(kinds.items(PROGRAMME))
    left = [kinds.left_s(PROGRAMME, done, fraction) for done in range(everything + 2) for fraction in (0.0, 0.5)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert left[0] < kinds.expected_s(PROGRAMME)


# ------------------------------------------------------------------------------------------ clocks


def test_percentiles_agree_with_the_standard_library() -> None:
    drawn = [float(x) for x in np.random.default_rng(1).gamma(3.0, size=500)]
    times = Times()
    for start in range(0, 500, 50):
        times.add(drawn[start : start + 50])
    deciles = statistics.quantiles(drawn, n=10, method="inclusive")
    assert (times.runs, times.best) == (500, min(drawn))
    assert times.percentiles() == pytest.approx((deciles[0], statistics.median(drawn), deciles[-1]))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(2, 40))
def test_thinning_keeps_every_so_many_and_counts_all(batches: list[int], cap: int) -> None:
    times, drawn = Times(cap), 0
    for size in batches:
        times.add([float(x) for x in range(drawn, drawn + size)])
        drawn += size
    assert (times.runs, times.best) == (drawn, 0.0)
    assert len(times.times) <= cap
    assert times.times == [float(x) for x in range(0, drawn, times.stride)]
    assert times.stride == 1 or len(times.times) >= cap // 2


@pytest.mark.parametrize("flush", [True, False])
def test_cuda_runs_lie_between_events(flush: bool) -> None:
    cuda, sizes = FakeCuda(), list[int]()

    def empty(size: int, **_: object) -> Any:
        sizes.append(size)
        return SimpleNamespace(zero_=lambda: cuda.log.append("flush"))

    cuda.get_device_properties = lambda _: SimpleNamespace(L2_cache_size=500 * MIB)
    timer = CudaTimer(SimpleNamespace(cuda=cuda, empty=empty, uint8="uint8"), "cuda:0")
    assert timer(cuda.launch, 3, flush=flush) == pytest.approx([cuda.KERNEL_S] * 3)
    each = ["flush", "record", "kernel", "record"] if flush else ["record", "kernel", "record"]
    assert cuda.log == each * 3 + ["synchronize"]
    assert sizes[0] >= 2 * 500 * MIB


def test_a_device_is_looked_at_while_it_works_and_no_batch_outlasts_its_item() -> None:
    log: list[int] = []
    waiting = [0]

    def slow(run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]:
        log.append(count)
        for _ in range(count):
            time.sleep(1e-3)  # what lies between two calls: caches are emptied, a head start is given
        return [1e-6] * count

    def call() -> None:
        waiting[0] += 1

    def state() -> State:
        return State(clock_mhz=float(waiting[0]))

    def wait() -> None:
        waiting[0] = 0

    bench = Bench(torch, "cuda", "cpu", slow, state, lambda: 1e12, wait)
    item = Item(kind="memory", name="slow", label="slow", shape=(), seconds=0.04)
    point = timed(bench, item, PreparedItem(call, (), 1.0, 1.0), lambda *_: None)
    assert max(log) <= 10, "a quarter of 40 ms"
    assert point.after.clock_mhz
    assert waiting == [0], "and nothing is left to do"


# ------------------------------------------------------------------------------------------ devices


def gpu(full: bool = False, hip: str | None = None) -> Any:
    """torch on an H200 of which 864 MiB are free, and as much again held by torch itself without use."""

    def empty(*_: Any, **__: Any) -> Any:
        if full:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return SimpleNamespace(zero_=None)

    cuda = SimpleNamespace(
        mem_get_info=lambda place: (864 * MIB, 140 * 2**30),
        synchronize=lambda: None,
        memory_reserved=lambda place: 2000 * MIB,
        memory_allocated=lambda place: 1136 * MIB,
        get_device_properties=lambda place: SimpleNamespace(
            L2_cache_size=1, uuid="1234", name="NVIDIA H200", major=9, minor=0, total_memory=140 * 2**30
        ),
    )
    version = SimpleNamespace(cuda=None if hip else "13.0", hip=hip)
    error = torch.OutOfMemoryError
    return SimpleNamespace(cuda=cuda, version=version, empty=empty, uint8="uint8", OutOfMemoryError=error)


def test_a_gpu_says_what_it_is_and_how_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.device, "nvml_state", lambda uuid: GpuState(1980.0, 41.0, 700.0, 300.0 + len(uuid)))
    bench, facts = cuda_bench(gpu())
    assert facts == DeviceFacts(
        name="NVIDIA H200",
        detail="compute capability 9.0, CUDA 13.0",
        threads=0,
        memory_bytes=140.0 * 2**30,
        power_limit_w=700.0,
    )
    assert bench.state() == State(clock_mhz=1980.0, temperature_c=41.0, power_w=304.0)
    assert bench.room() == 2 * 864 * MIB
    assert "ROCm 7.1" in cuda_bench(gpu(hip="7.1"))[1].detail


def test_a_gpu_too_full_to_begin_ends_the_process_with_a_sentence() -> None:
    with pytest.raises(SystemExit, match=r"No room to measure: 864 MiB of the GPU's 140 GiB is free"):
        cuda_bench(gpu(full=True))


@pytest.mark.process
def test_without_a_gpu_the_library_says_so() -> None:
    """Also on a machine that has one: the process sees none."""
    program = f"import torch; from {cuda_bench.__module__} import cuda_bench; cuda_bench(torch)"
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "CUDA" in done.stderr.splitlines()[-1]
