"""The measuring process: ``python -m core.measure.worker --device cpu --n 1024 --seconds 2``.

Prints one JSON event per line (see `core.measure.events`) and nothing else on its standard output. It lives in a
process of its own because a failed kernel can poison a CUDA context, and because it must be possible to kill it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

from core.measure import device
from core.measure.events import DeviceFacts, Done, Event, Outcome, Progress, Refusal, Started, clip, encode
from core.measure.methods import Bench, CudaTimer, cpu_timer, gpu_room
from core.measure.process import end_with_parent
from core.measure.spec import METHOD, Spec

_PROGRESS_EVERY_S = 0.25


class Reporter:
    """Writes events to ``out``; progress at most four times a second."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.last = float("-inf")

    def say(self, event: Event) -> None:
        """Write ``event`` now."""
        print(encode(event), file=self.out, flush=True)

    def progress(self, dtype: str, phase: str, fraction: float) -> None:
        """Write progress unless the last one is recent; the start of a dtype is always said."""
        now = time.monotonic()
        if fraction == 0 or now - self.last >= _PROGRESS_EVERY_S:
            self.last = now
            self.say(Progress(dtype, phase, fraction))


def cuda_bench(torch: Any, spec: Spec) -> tuple[Bench, DeviceFacts]:
    """The first CUDA device, its timer and facts. Raises what torch raises without one, exits where it has no room."""
    properties = torch.cuda.get_device_properties("cuda:0")
    uuid = str(getattr(properties, "uuid", ""))
    first = device.nvml_state(uuid)
    facts = DeviceFacts(
        name=str(properties.name),
        detail=f"compute capability {properties.major}.{properties.minor}, CUDA {torch.version.cuda}",
        threads=0,
        memory_bytes=float(properties.total_memory),
        power_limit_w=first.power_limit_w,
    )
    try:
        timer = CudaTimer(torch, "cuda:0")
    except torch.OutOfMemoryError:
        sys.exit(f"No room to measure: {gpu_room(torch)}.")
    return Bench(torch, spec, timer, lambda: device.nvml_state(uuid)), facts


def cpu_bench(torch: Any, spec: Spec) -> tuple[Bench, DeviceFacts]:
    """The processor, with as many threads as torch takes by default."""
    here = device.cpu()
    facts = DeviceFacts(here.name, here.detail, int(torch.get_num_threads()), here.memory_bytes, None)
    return Bench(torch, spec, cpu_timer, device.GpuState), facts


def context_lost(torch: Any, spec: Spec) -> str:
    """Why nothing more can run on the device after a refusal, or empty when it still works."""
    if spec.device == "cpu":
        return ""
    try:
        torch.ones(8, device="cuda").sum().item()
        torch.cuda.synchronize()
    except Exception as problem:
        return clip(f"not tried, the CUDA context was lost before: {problem}")
    return ""


def run(spec: Spec, reporter: Reporter) -> None:
    """Measure every dtype of ``spec``, saying everything through ``reporter``."""
    start = time.monotonic()
    torch: Any = importlib.import_module("torch")
    reporter.say(Started(METHOD, str(torch.__version__)))
    bench, facts = (cuda_bench if spec.device == "cuda" else cpu_bench)(torch, spec)
    reporter.say(facts)
    lost = ""
    for dtype in spec.dtypes:
        outcome: Outcome = Refusal(dtype, "skipped", lost)
        if not lost:
            outcome = bench.measure(dtype, lambda phase, fraction, d=dtype: reporter.progress(d, phase, fraction))
        reporter.say(outcome)
        if isinstance(outcome, Refusal) and not lost:
            lost = context_lost(torch, spec)
    reporter.say(Done(time.monotonic() - start))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Time square matmuls; one JSON event per line.")
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--n", type=int, required=True, help="matrix size")
    parser.add_argument("--seconds", type=float, required=True, help="timed seconds per dtype")
    parser.add_argument("--end-with-parent", action="store_true", help="end when standard input closes")
    options = parser.parse_args(arguments)
    if options.end_with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    run(Spec(options.device, options.n, options.seconds), Reporter(sys.stdout))


if __name__ == "__main__":
    main()
