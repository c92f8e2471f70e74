"""Probes of one CUDA device, each in a process of its own: ``python -m tests.gpu.probe NAME`` prints a JSON object of
figures by name. `tests.gpu.checks` has the bands that they should lie in."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias
from unittest.mock import patch

import torch

from core.benchmark import device
from core.benchmark.points import State
from core.benchmark.running.worker import context_lost, cuda_bench
from core.benchmark.timing.bench import Bench
from core.benchmark.timing.timers import CudaTimer, QueuedTimer, Timer

SIZES, RUNS, REPLAYED = (4096, 8192), 20, 10
_LAUNCHES = 1000

Clock: TypeAlias = Callable[[Callable[[], object]], float]
"""Gives the seconds of a run."""


def launch() -> dict[str, float]:
    """Seconds of the host for each launch of a small kernel."""
    small = torch.ones(8, device="cuda:0")
    for _ in range(_LAUNCHES):
        small.add_(1)
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(_LAUNCHES):
        small.add_(1)
    took = time.perf_counter() - begun
    torch.cuda.synchronize()
    return {"seconds": took / _LAUNCHES}


def relative(timers: Mapping[str, Clock], run: Callable[[], object]) -> dict[str, float]:
    """Seconds of each timer over those of the first."""
    seconds = {name: timer(run) for name, timer in timers.items()}
    first = next(iter(seconds.values()))
    return {name: each / first for name, each in seconds.items()}


def median_of(timer: Timer, run: Callable[[], object]) -> float:
    """Seconds of a run by one of Measure's timers."""
    timer(run, RUNS // 2)
    return statistics.median(timer(run, RUNS))


def replayed(run: Callable[[], object]) -> float:
    """Seconds of a run in a graph of several, which the host issues as one."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPLAYED):
            run()
    graph.replay()
    return median_of(CudaTimer(torch, "cuda:0"), graph.replay) / REPLAYED


def do_bench(run: Callable[[], object]) -> float:
    """Seconds of a run by Triton's own timer."""
    from triton.testing import do_bench as bench  # only where torch has CUDA

    return float(bench(run, return_mode="median")) / 1e3


def timers() -> dict[str, float]:
    """A matmul in bf16 by every timer, over the time between events."""
    events = CudaTimer(torch, "cuda:0")
    by = {
        "events": partial(median_of, events),
        "queued": partial(median_of, QueuedTimer(torch, events.empty)),
        "graph": replayed,
        "do_bench": do_bench,
    }
    found: dict[str, float] = {}
    for n in SIZES:
        a, b = (torch.randn(n, n, device="cuda:0", dtype=torch.bfloat16) for _ in range(2))
        run = partial(torch.mm, a, b.t(), out=torch.empty_like(a))
        found |= {f"{name}, n = {n:,}": share for name, share in relative(by, run).items()}
    return found


def failures(bench: Bench | None = None) -> dict[str, float]:
    """1 for each failure that Measure takes as it should: no memory leaves the device usable, a failed assertion of a
    kernel is found out. The last one leaves the process without a device."""
    here = bench or cuda_bench(torch)[0]
    try:
        torch.empty(2**50, dtype=torch.uint8, device=here.place)
        refused = False
    except (torch.OutOfMemoryError, RuntimeError):
        refused = True
    usable = not context_lost(here)
    try:
        torch.zeros(4, device=here.place)[torch.tensor([9], device=here.place)].sum().item()
        asserted = False
    except Exception:
        asserted = True
    return {
        "out of memory": float(refused),
        "usable after it": float(usable),
        "failed assertion": float(asserted),
        "found out": float(bool(context_lost(here))),
    }


def hidden() -> dict[str, float]:
    """1 where torch sees no device that the environment hides."""
    return {"no device": float(not torch.cuda.is_available())}


def silent() -> dict[str, float]:
    """1 where a device is measured although NVML tells nothing, its state unknown."""
    with patch.object(device, "_nvml", lambda: None):
        here, facts = cuda_bench(torch)
        return {"device": float(bool(facts.name)), "state unknown": float(here.state() == State())}


PROBES: Mapping[str, Callable[[], dict[str, float]]] = {
    "launch": launch,
    "timers": timers,
    "failures": failures,
    "hidden": hidden,
    "silent": silent,
}


def main(name: str) -> None:
    """Print what a probe finds."""
    print(json.dumps(PROBES[name]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
