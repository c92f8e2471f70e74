"""Measured matmul rates beside two other ways of timing the same call, on the device that the page would measure.

Back to back: one clock around many calls, caches left warm, which is how a training loop meets a matmul. The other is
torch's own benchmark timer. Where the three lie far apart, something other than the matmul is being timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.benchmark

from core.measure.device import machine
from core.measure.events import Result
from core.measure.jobs import Runner, Snapshot
from core.measure.methods import NUMERICS, fp32_precision
from core.measure.report import rate_text
from core.measure.spec import DeviceKind, Spec

SIZES: dict[DeviceKind, tuple[int, ...]] = {"cpu": (256, 1024), "cuda": (512, 2048, 8192)}
SECONDS = 2.0


def measured(spec: Spec) -> Snapshot:
    """The job as the page would run it, at its end; raises ``SystemExit`` when it fails."""
    runner = Runner()
    job, _ = runner.start(spec)
    while (now := runner.poll(job.id)) is not None and now.running:
        time.sleep(0.1)
    if now is None or now.state != "finished":
        raise SystemExit(f"the measurement did not finish: {now.message if now else 'forgotten'}")
    return now


def back_to_back(run: Callable[[], object], finish: Callable[[], object], batch: int) -> float:
    """Seconds per call of batches without a pause for `SECONDS`, after as long a warm-up."""
    per_call = 0.0
    for _ in ("warm up", "time"):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            for _ in range(batch):
                run()
            finish()
            count += batch
        per_call = (time.perf_counter() - start) / count
    return per_call


def others(kind: DeviceKind, result: Result) -> tuple[float, float]:
    """Seconds per call of the same matmul: back to back, and by torch's benchmark timer (its median)."""
    numeric = NUMERICS[result.dtype]
    options: dict[str, Any] = {"dtype": getattr(torch, numeric.torch_name), "device": kind}
    a, b = (torch.randn(result.n, result.n, **options) for _ in range(2))
    out = torch.empty(result.n, result.n, **options)
    finish = torch.cuda.synchronize if kind == "cuda" else lambda: None
    with fp32_precision(torch, kind, numeric.fp32_precision):
        looped = back_to_back(lambda: torch.mm(a, b, out=out), finish, max(int(0.2 / result.median_s), 1))
        timer = torch.utils.benchmark.Timer(
            "torch.mm(a, b, out=out)",
            globals={"torch": torch, "a": a, "b": b, "out": out},
            num_threads=torch.get_num_threads(),
        )
        return looped, float(timer.blocked_autorange(min_run_time=SECONDS).median)


def main() -> None:
    """Measure and print."""
    here = machine()
    print(f"matmul on {here.name}, torch {torch.__version__}; rates relative to the measured median\n")
    print(f"{'':<7}{'n':>7}{'median':>15}{'best':>15}{'back to back':>15}{'torch timer':>15}")
    for n in SIZES[here.kind]:
        for outcome in measured(Spec(here.kind, n, SECONDS)).outcomes:
            if not isinstance(outcome, Result):
                print(f"{outcome.dtype:<7}{n:>7}  {outcome.kind}: {outcome.text.splitlines()[0]}")
                continue
            ratios = [outcome.median_s / seconds for seconds in (outcome.best_s, *others(here.kind, outcome))]
            cells = "".join(f"{ratio:>14.2f}×" for ratio in ratios)
            print(f"{outcome.dtype:<7}{outcome.n:>7}{rate_text(outcome.rate):>15}{cells}", flush=True)
