"""A clock per device.

On CUDA the runs lie between events and the L2 cache is overwritten before each, unless what is timed is the cache
itself; elsewhere a clock brackets the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

_L2_FLUSH_BYTES = 256 * 2**20

_SLEEP_CYCLES = 4_000_000
"""Cycles that the device is kept busy before a queued call, about 2 ms: mostly long enough to issue all of it."""

_LONGEST_SLEEP_CYCLES = 16 * _SLEEP_CYCLES
"""What the host cannot issue in so many waits for the device itself, and no head start helps."""


class Timer(Protocol):
    """Times ``count`` calls of ``run`` one by one, in seconds. flush: whether caches are emptied before each."""

    def __call__(self, run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]: ...


def cpu_timer(run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]:
    """Return the wall-clock seconds of each call, which on a CPU returns when it is done. Caches are left as they
    are."""
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


class CudaTimer:
    """Seconds of each call between CUDA events, with the L2 cache emptied before each: overwritten, then filled by
    reading other bytes, so that the call writes nothing back that is not its own."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch = torch
        l2_bytes = int(torch.cuda.get_device_properties(device).L2_cache_size)
        size = max(2 * l2_bytes, _L2_FLUSH_BYTES)
        self.written, self.read = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))

    def empty(self) -> None:
        """Leave nothing in the L2 cache that is used or still to be written."""
        self.written.zero_()
        self.read.sum()

    def __call__(self, run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]:
        event = self.torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
        for start, end in pairs:
            if flush:
                self.empty()  # keeps the device busy long enough for the next launch to be queued behind it
            start.record()
            run()
            end.record()
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]


@dataclass(frozen=True, slots=True)
class QueuedTimer:
    """Seconds of each call on the device, all of it queued before the first of it starts.

    empty: what overwrites the caches where that is asked for.
    """

    torch: Any
    empty: Callable[[], object] | None = None

    def __call__(self, run: Callable[[], object], count: int, *, flush: bool = True) -> list[float]:
        cuda, times, cycles = self.torch.cuda, list[float](), _SLEEP_CYCLES
        while len(times) < count:
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            if flush and self.empty is not None:
                self.empty()
            cuda._sleep(cycles)
            start.record()
            run()
            end.record()
            too_early = start.query()  # the device has begun, and may have waited for the host
            cuda.synchronize()
            if too_early and cycles < _LONGEST_SLEEP_CYCLES:
                cycles *= 2
                continue
            times.append(start.elapsed_time(end) / 1e3)
        return times
