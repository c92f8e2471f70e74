"""How a matmul is timed, against torch on this CPU and against a stand-in for CUDA."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.measure import methods
from core.measure.device import GpuState
from core.measure.events import Outcome, Refusal, Result
from core.measure.methods import (
    MIN_RUNS,
    NUMERICS,
    SMALLEST,
    Bench,
    CudaTimer,
    Times,
    choose_size,
    cpu_timer,
    fp32_precision,
    ladder,
    relative_error,
)
from core.measure.spec import DTYPES, Spec
from core.measure.worker import context_lost, cuda_bench

SPEC = Spec("cpu", 96, 0.2)


def quiet(phase: str, fraction: float) -> None:
    assert phase
    assert 0 <= fraction <= 1


@given(st.integers(16, 16_384))
def test_the_ladder_climbs_to_the_size_asked_for(n: int) -> None:
    sizes = ladder(n)
    assert sizes[-1] == n
    assert sizes[0] <= SMALLEST
    assert all(small == big // 2 for small, big in pairwise(sizes))


@given(st.floats(1e6, 1e15), st.floats(1e-7, 1e-3), st.integers(16, 16_384), st.floats(0.04, 12))
def test_probing_never_runs_away(rate: float, launch: float, n: int, budget: float) -> None:
    """On a device of any speed: each probe takes at most about the budget, and what is chosen fits into it."""
    taken: list[float] = []

    def once(size: int) -> float:
        taken.append(launch + 2 * size**3 / rate)
        return taken[-1]

    choice = choose_size(n, budget, once)
    first = 2 * ladder(n)[0] ** 3 / rate + launch
    assert max(taken) <= max(first, 1.01 * budget * 8.2)
    assert all(seconds <= 1.1 * budget for seconds in taken[1:])
    if choice.n:
        assert choice.run_s <= budget
        assert choice.n in ladder(n)
    else:
        assert first > budget
    if choice.n < n:
        assert choice.asked_run_s > 0.5 * budget, "a size that fits was given up"


def test_a_slow_dtype_is_timed_at_a_size_that_fits() -> None:
    """fp16 at 2.7 GFLOP/s: 0.8 s for n = 1024 against 0.4 s per run, so 512."""
    choice = choose_size(1024, 2.0 / MIN_RUNS, lambda n: 2 * n**3 / 2.7e9)
    assert choice.n == 512
    assert choice.asked_run_s == pytest.approx(2 * 1024**3 / 2.7e9)


def test_a_hiccup_does_not_decide_the_size() -> None:
    times = {128: [1e-4], 256: [5.0, 8e-4]}
    assert choose_size(256, 0.4, lambda n: times[n].pop(0)).n == 256


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
    assert len(times.kept) <= cap
    assert times.kept == [float(x) for x in range(0, drawn, times.stride)]
    assert times.stride == 1 or len(times.kept) >= cap // 2


@pytest.mark.parametrize("n", [16, 48, 200])
def test_the_error_of_a_right_and_a_wrong_product(n: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(n, n), torch.randn(n, n)
    right = a @ b
    assert relative_error(torch, a, b, right) < NUMERICS["fp32"].tolerance
    # One row that every slice contains, and the whole of TF32's rounding of the inputs.
    wrong = right.clone()
    wrong[0] = 0
    assert relative_error(torch, a, b, wrong) > 0.05
    tf32 = [(x.view(torch.int32) & ~0x1FFF).view(torch.float32) for x in (a, b)]
    error = relative_error(torch, a, b, tf32[0] @ tf32[1])
    assert NUMERICS["fp32"].tolerance < error < NUMERICS["tf32"].tolerance


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_fp32_setting_is_put_back(device: Any) -> None:
    backend = torch.backends.cuda.matmul if device == "cuda" else torch.backends.mkldnn.matmul
    before = backend.fp32_precision
    with fp32_precision(torch, device, "ieee"):
        assert backend.fp32_precision == "ieee"
    assert backend.fp32_precision == before

    def fail() -> None:
        with fp32_precision(torch, device, "ieee"):
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert backend.fp32_precision == before


def test_tf32_is_a_setting_torch_knows() -> None:
    with fp32_precision(torch, "cuda", NUMERICS["tf32"].fp32_precision):
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"


@pytest.mark.parametrize("dtype", DTYPES["cpu"])
def test_measuring_on_this_cpu(dtype: str) -> None:
    phases: list[str] = []

    def report(phase: str, fraction: float) -> None:
        quiet(phase, fraction)
        phases.append(phase)

    result = Bench(torch, SPEC, cpu_timer, GpuState).measure(dtype, report)
    assert isinstance(result, Result)
    assert (result.dtype, result.n) == (dtype, SPEC.n)
    assert result.runs >= MIN_RUNS
    assert 0 < result.relative_error <= NUMERICS[dtype].tolerance
    assert list(dict.fromkeys(phases)) == ["probing sizes", "checking against float64", "warming up", "timing"]


def stand_in(**functions: Any) -> Any:
    """torch with some functions replaced."""

    class Torch:
        def __getattr__(self, name: str) -> Any:
            return functions.get(name) or getattr(torch, name)

    return Torch()


def measure(fake: Any, dtype: str = "bf16", timer: Callable[..., list[float]] = cpu_timer) -> Outcome:
    return Bench(fake, SPEC, timer, GpuState).measure(dtype, quiet)


def test_a_refusal_carries_the_librarys_words() -> None:
    def mm(*_: Any, **__: Any) -> None:
        raise RuntimeError('"addmm" not implemented for BFloat16')

    assert measure(stand_in(mm=mm)) == Refusal("bf16", "refused", 'RuntimeError: "addmm" not implemented for BFloat16')


def test_a_wrong_result_is_refused() -> None:
    def mm(a: Any, b: Any, out: Any) -> None:
        torch.mm(a, b, out=out)
        out *= 1.1

    outcome = measure(stand_in(mm=mm))
    assert isinstance(outcome, Refusal)
    assert outcome.kind == "refused"
    assert "wrong result" in outcome.text


def test_a_result_that_is_no_number_is_refused() -> None:
    def mm(a: Any, b: Any, out: Any) -> None:
        out.fill_(float("nan"))

    outcome = measure(stand_in(mm=mm))
    assert isinstance(outcome, Refusal)
    assert "wrong result" in outcome.text


def test_tf32_that_is_as_exact_as_fp32_is_no_tf32() -> None:
    outcome = measure(torch, "tf32")
    assert isinstance(outcome, Refusal)
    assert "no TF32" in outcome.text


def test_a_dtype_too_slow_at_every_size_is_skipped_with_a_reason() -> None:
    def timer(run: Any, count: int) -> list[float]:
        return [30.0] * count

    outcome = measure(torch, timer=timer)
    assert isinstance(outcome, Refusal)
    assert outcome.kind == "skipped"
    assert "30 s" in outcome.text


def test_matrices_beyond_free_memory_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "available_bytes", lambda: 1000.0)
    outcome = measure(torch)
    assert isinstance(outcome, Refusal)
    assert outcome.kind == "skipped"
    assert "1,000 B is free" in outcome.text


def full_gpu() -> Any:
    """torch on a GPU whose memory other programs hold."""

    def no_room(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1024.00 MiB. See documentation")

    cuda = SimpleNamespace(
        mem_get_info=lambda: (864 * 2**20, 140 * 2**30),
        empty_cache=lambda: None,
        get_device_properties=lambda _: SimpleNamespace(
            L2_cache_size=1, uuid="", name="NVIDIA H200", major=9, minor=0, total_memory=140 * 2**30
        ),
    )
    return stand_in(randn=no_room, empty=no_room, cuda=cuda)


def test_a_full_gpu_is_said_in_our_words() -> None:
    outcome = measure(full_gpu())
    assert outcome == Refusal(
        "bf16",
        "skipped",
        "no room for matrices of n = 96: 864 MiB of the GPU's 140 GiB is free; other programs may hold the rest",
    )


def test_a_gpu_too_full_to_begin_ends_the_worker_with_a_sentence() -> None:
    with pytest.raises(SystemExit, match="No room to measure: 864 MiB of the GPU's 140 GiB is free"):
        cuda_bench(full_gpu(), Spec("cuda", 64, 1.0))


def test_a_smaller_size_says_why() -> None:
    spec = Spec("cpu", 512, 0.2)

    def timer(run: Callable[[], Any], count: int) -> list[float]:
        n = run().shape[0]
        return [2 * n**3 / 3e9] * count

    outcome = Bench(torch, spec, timer, GpuState).measure("fp16", quiet)
    assert isinstance(outcome, Result)
    assert outcome.n == 256
    assert outcome.note.startswith("timed at n = 256: at n = 512 one run would take about 89 ms")


class FakeCuda:
    """As much of torch.cuda as the timer touches, writing down the order of what is queued."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.clock = 0.0
        log, outer = self.log, self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                self.at = -1.0

            def record(self) -> None:
                log.append("record")
                self.at = outer.clock

            def elapsed_time(self, end: Event) -> float:
                assert log[-1] == "synchronize"
                return (end.at - self.at) * 1e3

        self.Event = Event

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def get_device_properties(self, device: str) -> Any:
        return SimpleNamespace(L2_cache_size=50 * 2**20)

    def empty(self, size: int, dtype: Any, device: str) -> Any:
        self.flush_bytes = size
        return SimpleNamespace(zero_=lambda: self.log.append("flush"))

    def run(self) -> None:
        self.log.append("run")
        self.clock += 0.25


def test_cuda_runs_lie_between_events_after_a_flush() -> None:
    cuda = FakeCuda()
    timer = CudaTimer(SimpleNamespace(cuda=cuda, empty=cuda.empty, uint8="uint8"), "cuda:0")
    assert timer(cuda.run, 3) == pytest.approx([0.25] * 3)
    assert cuda.log == ["flush", "record", "run", "record"] * 3 + ["synchronize"]
    assert cuda.flush_bytes >= 2 * 50 * 2**20


def test_a_lost_cuda_context_is_noticed() -> None:
    def ones(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    assert "illegal memory access" in context_lost(stand_in(ones=ones), Spec("cuda", 64, 1.0))
    assert context_lost(stand_in(ones=ones), Spec("cpu", 64, 1.0)) == ""
