"""The measuring process from within: clocks, devices, and what it says of each item, on this CPU and stand-ins."""

from __future__ import annotations

import io
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from core.benchmark.choices import programme
from core.benchmark.device import Gpu, GpuState, Machine
from core.benchmark.points import DeviceFacts, Outcome, Point, Refusal, State
from core.benchmark.programme import METHOD, SECONDS, SIZES, Programme
from core.benchmark.running import worker
from core.benchmark.running.events import DeviceFound, Done, Event, Progress, Started, Tried, decode
from core.benchmark.running.worker import Reporter, context_lost, cuda_bench, run
from core.benchmark.timing import bench as bench_module
from core.benchmark.timing import kinds
from core.benchmark.timing.bench import Bench
from core.benchmark.timing.timers import CudaTimer, cpu_timer
from core.limits import limit
from core.messages import message
from tests.core.timing_bench import FakeCuda

pytestmark = pytest.mark.usefixtures("one_thread")

PROGRAMME = Programme(device="cpu", kinds=("matmul",), dtypes=("fp32", "bf16"), sizes=(32, 16), seconds=0.02)
MIB = 2**20


def said_of(programme: Programme, *seconds: float) -> list[Event]:
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
    events = said_of(programme)
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
    found = outcomes(said_of(PROGRAMME, 0.0))
    assert len(found) == len(kinds.items(PROGRAMME))
    for one in found:
        assert isinstance(one, Refusal)
        assert (one.why, one.text) == ("skipped", message("measure.skipped.late", limit=0.0))


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
    first, *rest = outcomes(said_of(PROGRAMME))
    assert isinstance(first, Refusal)
    assert (first.why, len(tried)) == ("refused", 1)
    assert len(rest) == 3
    for one in rest:
        assert isinstance(one, Refusal)
        assert one.why == "skipped"
        assert "illegal memory access" in one.text
    assert context_lost(Bench(Poisoned(), "cpu", "cpu", cpu_timer, State, lambda: 1e12)) == ""


@pytest.mark.parametrize("said", ["", "1 other process"])
def test_who_else_uses_the_gpu_is_asked_before_it_is_used(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def other_users(gpu: Gpu) -> str:
        asked.append(gpu)
        return said

    def cuda_bench(torch: Any) -> Any:
        asked.append("begun")
        return worker.cpu_bench(torch)

    here = Machine((Gpu("NVIDIA H200", None, None, "GPU-1"),), worker.device.cpu(), "")
    monkeypatch.setattr(worker.device, "machine", lambda: here)
    monkeypatch.setattr(worker.device, "other_users", other_users)
    monkeypatch.setattr(worker, "_BENCHES", {"cuda": cuda_bench})
    events = said_of(PROGRAMME.model_copy(update={"device": "cuda"}), 0.0)
    assert asked == [here.gpus[0], "begun"]
    assert [event.in_use for event in events if isinstance(event, DeviceFound)] == [said]


def test_the_process_numbers_gpus_as_the_page_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    monkeypatch.setattr(worker, "run", lambda *_: None)
    worker.main(["--programme", PROGRAMME.model_copy(update={"device": "cuda"}).model_dump_json()])
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


# ------------------------------------------------------------------------------------------ how long it takes


def usual(choice: str, device: Any) -> Programme:
    """What a visitor starts who changes nothing."""
    return programme(choice, device, SIZES[device][-1], SECONDS[device])


@pytest.mark.parametrize("device", SIZES)
def test_a_default_programme_takes_little_more_than_a_minute(device: Any) -> None:
    asked = usual("dtypes", device)
    assert kinds.items(asked)
    assert kinds.expected_s(asked) < 90 < limit("measure_seconds")


def test_everything_says_how_long_it_takes() -> None:
    """Three dtypes are sustained, a layer is compiled, and large squares take their runs whatever their seconds."""
    asked = usual("all", "cuda")
    assert 90 < kinds.expected_s(asked) < 150
    small, large = (
        next(one for one in kinds.items(asked) if one.name == "fp64" and one.shape[0] == n) for n in (256, 16_384)
    )
    assert kinds.item_s(asked, small) < 0.5
    assert kinds.item_s(asked, large) > 1


def test_power_is_the_energy_of_a_long_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what the driver says at a moment, which is a mean over a second; below a second nothing is said."""
    monkeypatch.setattr(bench_module, "_ENERGY_S", 0.1)
    here = Bench(torch, "cpu", "cpu", cpu_timer, lambda: State(energy_j=700 * time.monotonic()), lambda: 1e12)
    prepared = bench_module.PreparedItem(lambda: time.sleep(0.01), (), 0.0, 0.0)
    item = kinds.items(PROGRAMME)[0]
    long, short = (
        bench_module.timed(here, item.model_copy(update={"seconds": seconds}), prepared, lambda _: None)
        for seconds in (0.2, 0.02)
    )
    assert long.mean_power_w == pytest.approx(700, rel=0.2)
    assert short.mean_power_w is None or short.duration_s >= 0.1


def test_a_programme_of_any_length_ends_before_it_is_stopped() -> None:
    most = limit("measure_dtype_seconds")
    asked = usual("all", "cuda").model_copy(update={"seconds": float(most), "sustained_s": float(most)})
    assert kinds.expected_s(asked) == kinds.LONGEST_S < limit("measure_seconds")


# ------------------------------------------------------------------------------------------ clocks


@pytest.mark.parametrize("flush", [True, False])
def test_cuda_runs_lie_between_events(flush: bool) -> None:
    cuda, sizes = FakeCuda(), list[int]()

    def empty(size: int, **_: object) -> Any:
        sizes.append(size)
        return SimpleNamespace(zero_=lambda: cuda.log.append("write"), sum=lambda: cuda.log.append("read"))

    cuda.get_device_properties = lambda _: SimpleNamespace(L2_cache_size=500 * MIB)
    timer = CudaTimer(SimpleNamespace(cuda=cuda, empty=empty, uint8="uint8"), "cuda:0")
    assert timer(cuda.launch, 3, flush=flush) == pytest.approx([cuda.KERNEL_S] * 3)
    each = ["write", "read", "record", "kernel", "record"] if flush else ["record", "kernel", "record"]
    assert cuda.log == each * 3 + ["synchronize"]
    assert len(sizes) == 2, "what is read is not what was written"
    assert min(sizes) >= 2 * 500 * MIB


# ------------------------------------------------------------------------------------------ devices


def gpu(full: bool = False) -> Any:
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
    error = torch.OutOfMemoryError
    return SimpleNamespace(
        cuda=cuda, version=SimpleNamespace(cuda="13.0"), empty=empty, uint8="uint8", OutOfMemoryError=error
    )


def test_a_gpu_says_what_it_is_and_how_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        worker.device, "nvml_state", lambda uuid: GpuState(1980.0, 41.0, 700.0, 300.0 + len(uuid), 500.0, 9e6, 4)
    )
    bench, facts = cuda_bench(gpu())
    assert facts == DeviceFacts(
        name="NVIDIA H200",
        detail="compute capability 9.0, CUDA 13.0",
        threads=0,
        memory_bytes=140.0 * 2**30,
        power_limit_w=700.0,
        enforced_limit_w=500.0,
    )
    moment = State(clock_mhz=1980.0, temperature_c=41.0, power_w=304.0, energy_j=9e6, clock_reasons=4)
    assert bench.state() == moment
    assert bench.room() == 2 * 864 * MIB
