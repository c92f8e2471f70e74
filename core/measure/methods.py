"""How a matmul is timed. Runs in the worker process only; torch comes in as an argument.

Random normal inputs (zeros draw less power and run faster than real data), correctness against float64 on a slice
first, warm-up by time, a preallocated output, one timing per run, the median as headline. On CUDA the runs lie
between events and the L2 cache is overwritten before each; on a CPU ``perf_counter`` brackets the call.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from core.measure.device import GpuState, available_bytes
from core.measure.events import Outcome, Refusal, Result, clip
from core.measure.spec import DeviceKind, Spec
from core.units import format_bytes, format_duration

MIN_RUNS = 5
"""A dtype is timed at the largest size of which this many runs fit into its seconds."""

KEPT_TIMES = 20_000
"""Times kept per dtype; of tiny matmuls, which run millions of times, every second, fourth, … one is."""

SMALLEST = 128
"""Probing starts at or below this size."""

_SLICE = 48
_BATCH_S = 0.2
_L2_FLUSH_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Numeric:
    """How torch spells a dtype: storage, setting for fp32 arithmetic, and the largest error a right result has.

    tolerance: relative Frobenius error against float64. Rounding the result to p bits costs at most 2⁻ᵖ; fp32 gets
    room for √n growth over the sum, still far below what TF32's 11-bit inputs would cost.
    """

    torch_name: str
    fp32_precision: str
    tolerance: float
    bytes_per_element: int


NUMERICS: Mapping[str, Numeric] = {
    "fp32": Numeric("float32", "ieee", 2e-5, 4),
    "tf32": Numeric("float32", "tf32", 2e-3, 4),
    "fp16": Numeric("float16", "ieee", 2e-3, 2),
    "bf16": Numeric("bfloat16", "ieee", 2e-2, 2),
}

Report = Callable[[str, float], None]
"""Called with what is being done and how far the dtype is, 0 to 1."""


class Timer(Protocol):
    """Times ``count`` calls of ``run`` one by one, in seconds."""

    def __call__(self, run: Callable[[], object], count: int) -> list[float]: ...


def cpu_timer(run: Callable[[], object], count: int) -> list[float]:
    """Wall-clock seconds of each call. Matmuls on a CPU return when they are done."""
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


class CudaTimer:
    """Seconds of each call between CUDA events, with the L2 cache overwritten before each."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch = torch
        l2_bytes = int(torch.cuda.get_device_properties(device).L2_cache_size)
        self.flush = torch.empty(max(2 * l2_bytes, _L2_FLUSH_BYTES), dtype=torch.uint8, device=device)

    def __call__(self, run: Callable[[], object], count: int) -> list[float]:
        event = self.torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
        for start, end in pairs:
            # The write keeps the device busy long enough for the next launch to be queued behind it.
            self.flush.zero_()
            start.record()
            run()
            end.record()
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]


@contextlib.contextmanager
def fp32_precision(torch: Any, device: DeviceKind, value: str) -> Generator[None]:
    """Set the arithmetic of float32 matmuls on ``device`` ("ieee" or "tf32"), and put the old setting back."""
    backend = torch.backends.cuda.matmul if device == "cuda" else torch.backends.mkldnn.matmul
    before = backend.fp32_precision
    backend.fp32_precision = value
    try:
        yield
    finally:
        backend.fp32_precision = before


def ladder(n: int) -> tuple[int, ...]:
    """The sizes to probe on the way up to ``n``: halvings of it, the first at most `SMALLEST`."""
    sizes = [n]
    while sizes[-1] > SMALLEST:
        sizes.append(sizes[-1] // 2)
    return tuple(reversed(sizes))


@dataclass(frozen=True, slots=True)
class Choice:
    """The size to time (0 when none fits), its expected seconds per run, and those of the size asked for."""

    n: int
    run_s: float
    asked_run_s: float


def choose_size(n: int, budget_s: float, time_once: Callable[[int], float]) -> Choice:
    """Climb the `ladder` while the next size is expected to take at most ``budget_s`` per run.

    The expectation scales the last measured time by the work, 8 times for twice the size. Small sizes run below
    the full rate, so it errs on the high side and nothing ever runs much longer than the budget.
    """
    sizes = ladder(n)
    reached = Choice(0, 0.0, math.inf)
    for size in sizes:
        expected = reached.run_s * (size / reached.n) ** 3 if reached.n else 0.0
        if expected > budget_s:
            break
        seconds = time_once(size)
        if seconds > budget_s and seconds > 2 * expected > 0:
            seconds = min(seconds, time_once(size))  # a hiccup of a busy machine must not decide the size
        if seconds > budget_s:
            return Choice(reached.n, reached.run_s, seconds * (n / size) ** 3)
        reached = Choice(size, seconds, seconds * (n / size) ** 3)
    return reached


def relative_error(torch: Any, a: Any, b: Any, out: Any) -> float:
    """Relative Frobenius error of ``out`` against the float64 product of ``a`` and ``b`` on a slice.

    The slice is up to 48 evenly spread rows and columns, so that every tile of a blocked kernel is touched.
    """
    n = int(out.shape[0])
    picked = torch.linspace(0, n - 1, min(n, _SLICE)).long().to(out.device)
    exact = a[picked].double() @ b[:, picked].double()
    got = out[picked][:, picked].double()
    return float((got - exact).norm() / exact.norm())


@dataclass
class Times:
    """The times of any number of runs in bounded memory: beyond ``cap``, every second one is dropped, again and again.

    Thinning by a fixed stride leaves percentiles what they are; ``runs`` counts all, ``best`` is the best of all.
    """

    cap: int = KEPT_TIMES
    runs: int = field(default=0, init=False)
    best: float = field(default=math.inf, init=False)
    kept: list[float] = field(default_factory=list[float], init=False)
    stride: int = field(default=1, init=False)

    def add(self, batch: Sequence[float]) -> None:
        """Take the times of further runs."""
        self.kept += batch[-self.runs % self.stride :: self.stride]
        self.runs += len(batch)
        self.best = min(self.best, *batch)
        while len(self.kept) > self.cap:
            self.kept = self.kept[::2]
            self.stride *= 2

    def percentiles(self) -> tuple[float, float, float]:
        """p10, median and p90."""
        p10, median, p90 = np.quantile(self.kept, [0.1, 0.5, 0.9])
        return float(p10), float(median), float(p90)


def gpu_room(torch: Any) -> str:
    """How much of the GPU's memory is free for this process, in words."""
    torch.cuda.empty_cache()
    free, total = (format_bytes(size, system="binary", digits=3) for size in torch.cuda.mem_get_info())
    return f"{free} of the GPU's {total} is free; other programs may hold the rest"


class TooLargeError(Exception):
    """The operands do not fit into the memory that is free."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One device, ready to measure: the library, where tensors go, the timer, and what reports its clocks."""

    torch: Any
    spec: Spec
    timer: Timer
    state: Callable[[], GpuState]

    def measure(self, dtype: str, report: Report) -> Outcome:
        """Measure one dtype: check, warm up, time. Whatever the library refuses comes back in its own words."""
        numeric = NUMERICS[dtype]
        try:
            with fp32_precision(self.torch, self.spec.device, numeric.fp32_precision):
                return self._measure(dtype, numeric, report)
        except TooLargeError as problem:
            return Refusal(dtype, "skipped", str(problem))
        except self.torch.OutOfMemoryError:
            return Refusal(dtype, "skipped", f"no room for matrices of n = {self.spec.n:,}: {gpu_room(self.torch)}")
        except Exception as problem:
            # Support cannot be inferred from a name, so every dtype is tried; any error is the library's answer.
            return Refusal(dtype, "refused", clip(f"{type(problem).__name__}: {problem}"))

    def _operands(self, numeric: Numeric, n: int) -> tuple[Any, Any, Any]:
        need = 3 * n**2 * numeric.bytes_per_element
        # A GPU refuses an allocation that is too large; on a CPU the system would kill the process instead.
        if self.spec.device == "cpu" and need > (free := available_bytes()):
            sizes = [format_bytes(size, system="binary", digits=3) for size in (need, free)]
            raise TooLargeError(f"the three matrices at n = {n:,} take {sizes[0]}, and {sizes[1]} is free")
        dtype = getattr(self.torch, numeric.torch_name)
        options = {"dtype": dtype, "device": self.spec.device}
        a, b = (self.torch.randn(n, n, **options) for _ in range(2))
        return a, b, self.torch.empty(n, n, **options)

    def _time_once(self, numeric: Numeric, n: int) -> float:
        a, b, out = self._operands(numeric, n)
        first = self.timer(lambda: self.torch.mm(a, b, out=out), 1)[0]
        # The first run of a size may load a kernel; a second one tells, unless the first was slow enough to count.
        again = self.timer(lambda: self.torch.mm(a, b, out=out), 2) if first < 0.1 or n <= SMALLEST else [first]
        return min(first, *again)

    def _measure(self, dtype: str, numeric: Numeric, report: Report) -> Outcome:
        spec = self.spec
        self.torch.manual_seed(0)
        report("probing sizes", 0.0)
        choice = choose_size(spec.n, spec.seconds / MIN_RUNS, lambda n: self._time_once(numeric, n))
        if not choice.n:
            reason = f"one run at n = {spec.n:,} would take about {format_duration(choice.asked_run_s, 2)} here"
            return Refusal(
                dtype, "skipped", f"{reason}; {MIN_RUNS} runs do not fit into {spec.seconds:g} s at any size"
            )

        report("checking against float64", 0.05)
        a, b, out = self._operands(numeric, choice.n)
        run = lambda: self.torch.mm(a, b, out=out)  # noqa: E731
        run()
        error = relative_error(self.torch, a, b, out)
        if not error <= numeric.tolerance:
            text = f"wrong result: relative error {error:.1e} against float64, at most {numeric.tolerance:.0e} expected"
            return Refusal(dtype, "refused", text)
        if dtype == "tf32" and error < NUMERICS["fp32"].tolerance:
            return Refusal(dtype, "refused", f"relative error {error:.1e} is fp32's own: this device has no TF32 path")

        before = self.state()
        times, duration = self._timed(run, choice.run_s, report)
        after = self.state()
        p10, median, p90 = times.percentiles()
        return Result(
            dtype=dtype,
            n=choice.n,
            median_s=median,
            best_s=times.best,
            p10_s=p10,
            p90_s=p90,
            runs=times.runs,
            duration_s=duration,
            relative_error=error,
            note=_note(spec, choice),
            clock_before_mhz=before.clock_mhz,
            clock_after_mhz=after.clock_mhz,
            temperature_before_c=before.temperature_c,
            temperature_after_c=after.temperature_c,
        )

    def _timed(self, run: Callable[[], object], run_s: float, report: Report) -> tuple[Times, float]:
        """Warm up by time, then time run after run until the seconds are over. Gives times and duration."""
        spec = self.spec
        batch = min(max(int(_BATCH_S / run_s), 1), 512)
        whole = spec.warm_up_s + spec.seconds
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < spec.warm_up_s:
            report("warming up", 0.1 + 0.9 * elapsed / whole)
            self.timer(run, batch)
        times = Times()
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < spec.seconds or times.runs < MIN_RUNS:
            report("timing", min(0.1 + 0.9 * (spec.warm_up_s + elapsed) / whole, 1.0))
            times.add(self.timer(run, batch))
        return times, time.monotonic() - begun


def _note(spec: Spec, choice: Choice) -> str:
    if choice.n == spec.n:
        return ""
    slow = format_duration(choice.asked_run_s, 2)
    needed = format_duration(MIN_RUNS * choice.asked_run_s, 2)
    return (
        f"timed at n = {choice.n:,}: at n = {spec.n:,} one run would take about {slow}, "
        f"and {MIN_RUNS} runs about {needed}"
    )
