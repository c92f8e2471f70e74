"""Measured matmul rates beside other ways of timing the same call, on the device that would be measured.

Three measurements after each other say how far a median is from itself. Back to back: one clock around many calls,
caches left warm, which is how a training loop meets a matmul. torch's own benchmark timer is the second judge, and on
a GPU a plain loop of events with a cleared cache the third. A shared processor changes its rate from second to second,
by three times where neighbours use its matrix unit; so the judges take turns with the method itself, a quarter of a
second each, and what is printed is the middle one of the ratios of neighbouring turns. Where that is far from one,
something other than the matmul is being timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils.benchmark

from core.benchmark.device import DeviceKind, machine
from core.benchmark.points import Outcome, Point
from core.benchmark.programme import CPU_DTYPES, DTYPES, Programme
from core.benchmark.running.jobs import Runner
from core.benchmark.running.worker import cpu_bench, cuda_bench
from core.benchmark.timing import matmul
from core.benchmark.timing.bench import Bench, timed
from core.units import format_quantity
from tests.perf.options import FULL, Options

SIZES: dict[DeviceKind, tuple[int, ...]] = {"cpu": (256, 1024), "cuda": (512, 2048, 8192)}
TURN_S = 0.25
_CLEARED_BYTES = 512 * 2**20


def measured(programme: Programme) -> tuple[Outcome, ...]:
    """What the page would find; raises ``SystemExit`` when it fails."""
    runner = Runner()
    job, _ = runner.start(programme)
    while (now := runner.poll(job.id)) is not None and now.running:
        time.sleep(0.1)
    if now is None or now.record.stage != "finished":
        raise SystemExit(f"the measurement did not finish: {now.record.message if now else 'forgotten'}")
    return now.record.outcomes


def back_to_back(run: Callable[[], object], finish: Callable[[], object], batch: int) -> float:
    """Seconds per call of batches without a pause, for `TURN_S`."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < TURN_S:
        for _ in range(batch):
            run()
        finish()
        count += batch
    return (time.perf_counter() - start) / count


def plain_loop(run: Callable[[], object], cleared: torch.Tensor) -> float:
    """Median seconds of single calls on a GPU, each between two events after the cache was written over."""
    values: list[float] = []
    until = time.perf_counter() + TURN_S
    while time.perf_counter() < until:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        cleared.fill_(1)
        start.record()
        run()
        end.record()
        end.synchronize()
        values.append(start.elapsed_time(end) / 1e3)
    return statistics.median(values)


def others(bench: Bench, point: Point, turns: int) -> Mapping[str, float]:
    """Rate by other clocks over the rate by the method, of the same product: the middle of ``turns`` ratios each."""
    item = point.item.model_copy(update={"seconds": TURN_S})
    prepared = matmul.prepare(bench, Programme(device=bench.kind, kinds=("matmul",), dtypes=(item.name,), sizes=(),
                                               seconds=TURN_S), item)  # fmt: skip
    run, batch = prepared.call, max(int(TURN_S / 4 / point.median_s), 1)
    timer = torch.utils.benchmark.Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    finish: Callable[[], Any] = torch.cuda.synchronize if bench.kind == "cuda" else lambda: None
    ways: dict[str, Callable[[], float]] = {
        "back to back": lambda: back_to_back(run, finish, batch),
        "torch timer": lambda: float(timer.blocked_autorange(min_run_time=TURN_S).median),
    }
    if bench.kind == "cuda":
        cleared = torch.empty(_CLEARED_BYTES, dtype=torch.int8, device="cuda")
        ways["plain loop"] = lambda: plain_loop(run, cleared)
    by_name: dict[str, list[float]] = {way: [] for way in ways}
    with prepared.setting():
        for _ in range(turns):
            for way, seconds in ways.items():
                own = timed(bench, item, prepared, lambda *_: None).median_s
                by_name[way].append(own / seconds())
    return {way: statistics.median(ratios) for way, ratios in by_name.items()}


def main(options: Options = FULL) -> None:
    """Measure and print."""
    runs = options.measurements
    here = machine()
    kind = here.kind
    dtypes = CPU_DTYPES if kind == "cpu" else DTYPES
    seconds = options.measured_s
    programme = Programme(device=kind, kinds=("matmul",), dtypes=dtypes, sizes=SIZES[kind], seconds=seconds)
    print(f"matmul on {here.name}, torch {torch.__version__}; rates relative to the measured median\n")
    ways = ["best", "back to back", "torch timer", *(["plain loop"] if kind == "cuda" else [])]
    print(f"{'':<11}{'':>11}{'median':>15}{f'spread of {runs}':>14}" + "".join(f"{way:>14}" for way in ways))
    first, *again = [measured(programme) for _ in range(runs)]
    bench, _ = (cuda_bench if kind == "cuda" else cpu_bench)(torch)
    for i, outcome in enumerate(first):
        head = f"{outcome.item.name:<11}{outcome.item.label:>11}"
        points = [item for item in (outcome, *(run[i] for run in again)) if isinstance(item, Point)]
        if not isinstance(outcome, Point) or len(points) < runs:
            refusal = next(item for item in (outcome, *(run[i] for run in again)) if not isinstance(item, Point))
            print(f"{head}  {refusal.why}: {refusal.text.splitlines()[0]}")
            continue
        medians = [point.median_s for point in points]
        middle = statistics.median(medians)
        ratios = {"best": middle / min(point.best_s for point in points), **others(bench, outcome, options.turns)}
        cells = "".join(f"{ratios[way]:>13.2f}×" for way in ways)
        rate = format_quantity(outcome.flop / middle, "flop_per_s", 3)
        print(f"{head}{rate:>15}{max(medians) / min(medians) - 1:>13.1%} {cells}", flush=True)
