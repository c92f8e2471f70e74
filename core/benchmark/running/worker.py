"""The measuring process: ``python -m core.benchmark.running.worker --programme '{"device": "cpu", …}'``.

Prints one JSON event per line (see `core.benchmark.running.events`) and nothing else on its standard output. It
lives in a process of its own because a failed kernel can poison a CUDA context, and because it must be possible to
kill it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from core.benchmark import device
from core.benchmark.points import DeviceFacts, Item, Outcome, Refusal, State, clip
from core.benchmark.programme import METHOD, Programme
from core.benchmark.running.events import DeviceFound, Done, Event, Progress, Started, Tried, encode
from core.benchmark.timing import kinds, matmul
from core.benchmark.timing.bench import Bench, attempt
from core.benchmark.timing.timers import CudaTimer, QueuedTimer, cpu_timer
from core.jobs.process import end_with_parent
from core.messages import message

_PROGRESS_EVERY_S = 0.25
_NICE = 5


class Reporter:
    """Writes events to ``out``; progress at most four times a second."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.last = float("-inf")

    def write(self, event: Event) -> None:
        """Write ``event`` now."""
        print(encode(event), file=self.out, flush=True)

    def progress(self, item: Item, fraction: float) -> None:
        """Write the progress, unless the last one is recent. The start of an item is always written."""
        now = time.monotonic()
        if fraction == 0 or now - self.last >= _PROGRESS_EVERY_S:
            self.last = now
            self.write(Progress(item=item, fraction=fraction))


def _gpu_state(uuid: str) -> State:
    now = device.nvml_state(uuid)
    return State(**{name: getattr(now, name) for name in State.model_fields})


def cuda_bench(torch: Any) -> tuple[Bench, DeviceFacts]:
    """Return the first CUDA device, its timer, and its facts. Raises torch's error without one; exits if memory is too
    small."""
    place = "cuda:0"
    properties = torch.cuda.get_device_properties(place)
    uuid = str(getattr(properties, "uuid", ""))
    device.hold_nvml()
    now = device.nvml_state(uuid)
    facts = DeviceFacts(
        name=clip(str(properties.name)),
        detail=f"compute capability {properties.major}.{properties.minor}, CUDA {torch.version.cuda}",
        threads=0,
        memory_bytes=float(properties.total_memory),
        power_limit_w=now.power_limit_w,
        enforced_limit_w=now.enforced_limit_w,
    )

    def room() -> float:
        """Return what the driver has free, and what torch holds without using it."""
        idle = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)
        return float(torch.cuda.mem_get_info(place)[0] + idle)

    try:
        timer = CudaTimer(torch, place)
    except torch.OutOfMemoryError:
        free, total = map(float, torch.cuda.mem_get_info(place))
        sys.exit(message("measure.no_memory", free=free, total=total))
    queued = QueuedTimer(torch, timer.empty)
    return Bench(torch, "cuda", place, timer, partial(_gpu_state, uuid), room, torch.cuda.synchronize, queued), facts


def step_aside() -> None:
    """Lower the priority of this process, because a measurement of the CPU competes with the server for the same
    cores."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):  # Linux weighs sessions before processes, and this one is a session of its own
        Path("/proc/self/autogroup").write_text(str(_NICE))


def cpu_bench(torch: Any) -> tuple[Bench, DeviceFacts]:
    """Return the CPU as a device, with torch's default number of threads."""
    here = device.cpu()
    facts = DeviceFacts(
        name=here.name,
        detail="",
        threads=int(torch.get_num_threads()),
        memory_bytes=here.memory_bytes,
        power_limit_w=None,
    )
    return Bench(torch, "cpu", "cpu", cpu_timer, State, device.available_bytes), facts


_BENCHES = {"cpu": cpu_bench, "cuda": cuda_bench}


def context_lost(bench: Bench) -> str:
    """Return why nothing more can run on the device after a refusal, or empty when it still works."""
    if bench.kind == "cpu":
        return ""
    try:
        bench.torch.ones(8, device=bench.place).sum().item()
    except Exception as problem:
        return clip(message("measure.skipped.context", problem=str(problem)))
    return ""


def run(programme: Programme, reporter: Reporter, seconds: float = kinds.LONGEST_S) -> None:
    """Measure every item of ``programme``, saying everything through ``reporter``, in about ``seconds`` at most."""
    start = time.monotonic()
    torch: Any = importlib.import_module("torch")
    reporter.write(Started(method=METHOD, torch=str(torch.__version__)))
    in_use = device.other_users(device.machine().gpus[0]) if programme.device == "cuda" else ""
    bench, facts = _BENCHES[programme.device](torch)
    reporter.write(DeviceFound(facts=facts, in_use=clip(in_use)))
    outcomes: list[Outcome] = []
    lost = ""
    for planned in kinds.items(programme):
        item = matmul.instead(planned, outcomes)
        why = lost
        if not why and time.monotonic() - start + kinds.item_s(programme, item) > seconds:
            why = message("measure.skipped.late", limit=seconds)
        if why:
            outcome: Outcome = Refusal(item=item, why="skipped", text=why)
        else:
            make = partial(kinds.TIMINGS[item.kind].prepare, bench, programme, item)
            outcome = attempt(bench, item, make, partial(reporter.progress, item))
        outcomes.append(outcome)
        reporter.write(Tried(outcome=outcome))
        if isinstance(outcome, Refusal) and not why:
            lost = context_lost(bench)
    reporter.write(Done(elapsed_s=time.monotonic() - start))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Time what a programme asks for; one JSON event per line.")
    parser.add_argument("--programme", required=True, help="a core.benchmark.programme.Programme as JSON")
    parser.add_argument("--end-with-parent", action="store_true", help="end when standard input closes")
    options = parser.parse_args(arguments)
    if options.end_with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    programme = Programme.model_validate_json(options.programme)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML has it, so that the GPU is the one that the page names
    if programme.device == "cpu":
        step_aside()
    run(programme, Reporter(sys.stdout))


if __name__ == "__main__":
    main()
