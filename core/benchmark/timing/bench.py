"""What all timing shares: a device, a prepared item, and a point or a refusal at the end of it.

Warm-up by time, one timing per run, the median as headline.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.benchmark.device import DeviceKind
from core.benchmark.points import Item, Outcome, Point, Refusal, State, clip
from core.benchmark.timing.timers import Timer
from core.limits import limit
from core.messages import message

MIN_RUNS = 5
"""Fewer runs than these have no spread worth showing."""

LONGEST_S = 0.9 * limit("measure_seconds")
"""Nothing is begun that would not end by then, so that a measurement ends by itself before it is stopped."""

_ENERGY_S = 1.0
_BATCH_S = 0.2
"""Between two looks at the clock at most, a quarter of an item's seconds where these are few."""

Report = Callable[[float], None]
"""Called with how far an item is, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One device, ready to measure.

    place: where torch puts tensors ("cpu", "cuda:0"). state: what reports clocks. room: bytes that are free for this
    process, infinite if nothing tells; on a CPU the system kills a process that takes more. wait: waits for the device,
    None if a call is over when it returns. queued: a timer for calls that a device may work off faster than the host
    issues them, None if that cannot be.
    """

    torch: Any
    kind: DeviceKind
    place: str
    timer: Timer
    state: Callable[[], State]
    room: Callable[[], float]
    wait: Callable[[], object] | None = None
    queued: Timer | None = None
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds until a measurement ends."""
        return max(LONGEST_S - (time.monotonic() - self.begun), 0.01)

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of an NVIDIA GPU, (0, 0) of anything else."""
        nvidia = self.kind == "cuda" and self.torch.version.cuda
        return self.torch.cuda.get_device_capability(self.place) if nvidia else (0, 0)

    def need(self, size: float) -> None:
        """Raise `SkippedError` if ``size`` bytes are not free."""
        if size > (free := self.room()):
            raise SkippedError(message("measure.skipped.memory", needed=float(size), free=free))


class SkippedError(Exception):
    """Not tried, for the reason given."""


class RefusedError(Exception):
    """The library rejects the item, or its result is wrong."""


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """One item, made ready: what to call, how much work a run is, and what checking it has found; see `Point`.

    setting: what the library is set to while it is timed. flush: whether caches are emptied before each call.
    repeats: runs in one call, back to back, where one is too short for a clock; times are then means of so many.
    timer: in place of the bench's, where something else is timed than a device at work. peak: asked once all is
    timed, the most bytes that were allocated.
    """

    call: Callable[[], object]
    shape: tuple[int, ...]
    flop: float
    bytes: float
    relative_error: float | None = None
    dtype: str = ""
    note: str = ""
    flush: bool = True
    setting: Callable[[], AbstractContextManager[None]] = nullcontext
    repeats: int = 1
    timer: Timer | None = None
    peak: Callable[[], float] | None = None


def attempt(bench: Bench, item: Item, make: Callable[[], PreparedItem], report: Report) -> Outcome:
    """Prepare an item and time it. A rejection by the library keeps the words of the library."""
    try:
        report(0.0)
        run = make()
        with run.setting():
            return timed(bench, item, run, report)
    except SkippedError as problem:
        return Refusal(item=item, why="skipped", text=clip(str(problem)))
    except bench.torch.OutOfMemoryError as problem:
        return Refusal(item=item, why="skipped", text=clip(str(problem).partition("\n")[0]))
    except RefusedError as problem:
        return Refusal(item=item, why="refused", text=clip(str(problem)))
    except Exception as problem:
        # Support cannot be inferred from a name, so everything is tried; any error is the library's answer.
        return Refusal(item=item, why="refused", text=clip(f"{type(problem).__name__}: {problem}"))


def warm_up_s(seconds: float) -> float:
    """Return the seconds of untimed runs before ``seconds`` of timed runs, in which caches fill and clocks rise."""
    return min(max(seconds / 4, 0.05), 2.0)


def timed(bench: Bench, item: Item, run: PreparedItem, report: Report) -> Point:
    """Warm up by time, then time run after run until the item's seconds are over."""
    timer, warm, before = run.timer or bench.timer, warm_up_s(item.seconds), bench.state()
    whole, batch = warm + item.seconds, 1
    within = min(_BATCH_S, item.seconds / 4)
    start = now = time.monotonic()
    while (elapsed := now - start) < warm:
        report(min(0.05 + 0.95 * elapsed / whole, 1.0))
        timer(run.call, batch, flush=run.flush)
        before_it, now = now, time.monotonic()
        batch = _batch(batch, now - before_it, within)
    times, begun, energy = array("d"), now, bench.state().energy_j
    while (elapsed := now - begun) < item.seconds or len(times) < MIN_RUNS:
        report(min(0.05 + 0.95 * (warm + elapsed) / whole, 1.0))
        times.extend(each / run.repeats for each in timer(run.call, batch, flush=run.flush))
        before_it, now = now, time.monotonic()
        batch = _batch(batch, now - before_it, within)
    after = _state_at_work(bench, run, batch)
    p10, median, p90 = (float(each) for each in np.quantile(times, [0.1, 0.5, 0.9]))
    return Point(
        item=item,
        shape=run.shape,
        flop=run.flop,
        bytes=run.bytes,
        dtype=run.dtype,
        median_s=median,
        best_s=min(times),
        p10_s=p10,
        p90_s=p90,
        runs=len(times) * run.repeats,
        duration_s=now - begun,
        relative_error=run.relative_error,
        peak_memory_bytes=run.peak() if run.peak else None,
        mean_power_w=_mean_power(energy, after.energy_j, now - begun),
        before=before,
        after=after,
        note=clip(run.note),
    )


def _mean_power(before: float | None, after: float | None, seconds: float) -> float | None:
    """Return watts over so many seconds; None below `_ENERGY_S`, where the counter is too coarse, and where nothing
    counts."""
    if before is None or after is None or seconds < _ENERGY_S:
        return None
    return max(after - before, 0.0) / seconds


def _batch(count: int, took: float, within: float) -> int:
    """Return how many calls to time in ``within`` seconds, ``count`` having taken so long, with all that lay between
    them."""
    return min(max(int(within * count / max(took, 1e-9)), 1), 512)


def _state_at_work(bench: Bench, run: PreparedItem, count: int) -> State:
    """Return the device's state while it works on so many calls more: once it is idle, its clock says nothing of the
    runs."""
    if bench.wait is None:
        return bench.state()
    for _ in range(count):
        run.call()
    state = bench.state()
    bench.wait()
    return state
