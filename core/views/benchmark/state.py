"""What is said while a measurement waits, runs, or has ended otherwise than by finishing."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

from core.benchmark.choices import CHOICES
from core.benchmark.datasheet import match
from core.benchmark.device import DeviceKind, Machine
from core.benchmark.points import Item, Kind, clip
from core.benchmark.programme import Programme
from core.benchmark.record import Record
from core.units import format_bytes, format_duration
from core.views.benchmark.common import SUSTAINED_S, device_phrase
from core.wording import listed

STEPS = ("Timed", "How many")

_WORDS: dict[Kind, str] = {
    "matmul": "Matmuls",
    "memory": "Memory",
    "attention": "Attention",
    "layer": "One layer’s step",
}

METHODS: dict[DeviceKind, str] = {
    "cpu": "Each run is one call of torch on random normal numbers into a preallocated output, bracketed by a wall "
    "clock; zeros would draw less power and run faster than real data does. Caches are left as the run before left "
    "them, and torch uses as many threads as it takes by default.",
    "cuda": "Each run is one call of torch on random normal numbers into a preallocated output, between two CUDA "
    "events; zeros would draw less power and run up to a tenth faster than real data does. Before each matmul the L2 "
    "cache is filled with other data. fp32 runs with TF32 off, tf32 with it on; all else is torch’s default.",
}
COMMON_METHOD = (
    "Before timing, part of each result is compared with float64, and what is wrong is refused. The error shown is "
    "that part’s, relative to the product of the numbers before they were rounded to the dtype: fast, and how wrong. "
    "Every dtype is tried, for a name does not tell what a device can do; what refuses says so in its own words.",
    "Sizes go up from small to large. One that is so slow that five runs do not fit into its seconds, or that does not "
    "fit into memory, is skipped with its reason, and the rest goes on.",
    "Warm-up is by time. The headline is the rate at the median time; best, p10 and p90 show the spread: a tenth of "
    "the runs were slower than p10, a tenth faster than p90.",
    f"Under {SUSTAINED_S:g} s a rate is a burst: the device may not hold it for hours.",
)


def method(kind: DeviceKind) -> tuple[str, ...]:
    """How things are measured on this kind of device, one paragraph each."""
    return (METHODS[kind], *COMMON_METHOD)


def machine_line(machine: Machine) -> str:
    """What would be measured here, and why not a GPU, in a line or two."""
    if machine.kind == "cuda":
        gpu = machine.gpus[0]
        sheet = match(gpu.name, gpu.memory_bytes, gpu.power_limit_w)
        known = f"datasheet {sheet.name}" if sheet.name else f"datasheet unknown: {sheet.reason}"
        more = f"; {len(machine.gpus)} GPUs here, the first one CUDA names is measured" if len(machine.gpus) > 1 else ""
        room = format_bytes(gpu.memory_bytes, system="binary", digits=3) if gpu.memory_bytes else "memory unknown"
        return f"**{gpu.name or 'NVIDIA GPU, name unknown'}**, {room}; {known}{more}."
    cpu = machine.cpu
    threads = f"{cpu.threads} logical processor{'s' if cpu.threads != 1 else ''}"
    return f"**{machine.why_not_cuda}** {' · '.join(part for part in (cpu.name, threads, cpu.detail) if part)}."


def invitation(machine: Machine, choice: str, programme: Programme, expected_s: float) -> tuple[str, str]:
    """Before the first run: what pressing the button will bring, how long it takes, on which device."""
    thing = device_phrase(programme.device, machine.name).replace("This", "this", 1)
    tells = CHOICES[choice].tells.format(it=thing)
    sentence = f"In about **{format_duration(expected_s, 2)}** you will know {tells}."
    tried = f" {listed(programme.dtypes)} will be tried." if programme.dtypes else ""
    return sentence, f"Nothing of it has been measured here yet.{tried}"


def steps(items: Sequence[Item], expected_s: float) -> tuple[tuple[str, str], ...]:
    """What a measurement will do: what is timed, and how many of it."""
    counts: dict[Kind, list[str]] = {}
    for item in items:
        counts.setdefault(item.kind, []).append(item.name)
    rows = [(_WORDS[kind], f"{len(names):,} of {listed(list(dict.fromkeys(names)))}") for kind, names in counts.items()]
    return (
        *rows,
        ("In all", f"{len(items):,} timings, each checked and warmed up, in about {format_duration(expected_s, 2)}"),
    )


def progress_line(item: Item | None, phase: str, place: int, of: int, left_s: float) -> str:
    """What a running measurement is doing and how long it will still take. place: of the item, from 1."""
    left = f"about {math.ceil(left_s)} s left" if left_s > 0 else "longer than expected, as on a busy machine"
    if item is None:
        doing = "Starting the measuring process" if place <= 1 else "Finishing" if place > of else "Preparing the next"
        return f"{doing}, {left}"
    return f"{item.name}, {item.label} ({place} of {of}): {phase}, {left}"


def waiting_line(place: int, left_s: float) -> str:
    """That a measurement waits, where in line, and about how long. place: 1 is next, 0 waits for another server."""
    if place == 0:
        return "**Waiting for the device.** Another Napkin server on this machine is measuring. Yours is next."
    ahead = (
        "It is next in line" if place == 1 else f"{place - 1} more {'is' if place == 2 else 'are'} before it in line"
    )
    return f"**Waiting for the device.** {ahead}; it starts by itself in about {format_duration(max(left_s, 1), 1)}."


def in_use(by: str) -> str:
    """That the device was in use when a measurement began, what that means, and what to do."""
    return (
        f"**The GPU was in use when this measurement began ({by}).** Its rates may be too low, so no plan can take "
        "them. Wait until the GPU is idle, then measure again."
    )


def ended(record: Record, items: Sequence[Item]) -> tuple[Literal["", "note", "error"], str]:
    """How an ended measurement that did not finish ended, and what is left of it. Empty for any other."""
    if record.stage in ("queued", "running", "finished"):
        return "", ""
    done = {outcome.item.key for outcome in record.outcomes}
    missing = [item for item in items if item.key not in done]
    count = len(record.points)
    text = f" Kept: {count} measured result{'s' if count != 1 else ''}." if count else " Nothing was measured yet."
    begun = {outcome.item.name for outcome in record.outcomes}
    lost = f" Not measured: {_short(missing, begun)}." if missing else ""
    when = f" after {format_duration(record.elapsed_s, 2)}"
    if record.stage == "cancelled":
        return "note", f"**Cancelled**{when}.{text}{lost}"
    return "error", f"**Failed**{when}. {clip(record.message, 600)}{text}{lost}"


def _short(items: Sequence[Item], begun: Collection[str]) -> str:
    """The names of items, each once, the first few of them; last those that are ``begun``, of which a rest is left."""
    alone = list(dict.fromkeys(item.name for item in items))
    names = [name for name in alone if name not in begun] + [f"the rest of {name}" for name in alone if name in begun]
    return listed(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"
