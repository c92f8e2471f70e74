"""Model states, optimizers and memories as sentences, in the small markup of bold by two asterisks."""

from __future__ import annotations

import math
import re

from core.hardware.accelerators import Accelerator
from core.training.memory import PARTS, CheckpointSize, StateBytes
from core.training.optimizers import LEFT_OUT, Optimizer, optimizers
from core.training.precision import PrecisionPolicy
from core.units import QuantityText, format_bytes, format_count, format_quantity, significant

_USABLE = re.compile(r"^(\d+)(?: GB)? usable")


CHECKED = (
    "A test runs real training steps of small GPT-2, Llama, and Mixtral models on PyTorch: parameters, gradients, and "
    "master weights agree to the byte, and saved activations agree within 1%."
)
"""Which measurement the memory account was compared with."""


def summed(states: StateBytes) -> str:
    """ "4 + 4 + 0 + 8", in the order of `PARTS`."""
    return " + ".join(significant(float(getattr(states, part))) for part in PARTS)


def spelled(states: StateBytes, policy: PrecisionPolicy) -> str:
    """ "4 parameters + 4 gradients + 8 optimizer state"; parts of zero bytes are left out."""
    named = dict(PARTS) | ({"master": "master weights and gradients"} if policy.gradient_copy else {})
    sizes = ((float(getattr(states, part)), name) for part, name in named.items())
    return " + ".join(f"{significant(size)} {name}" for size, name in sizes if size)


def matrix_units(policy: PrecisionPolicy, device: Accelerator) -> str:
    """That ``device`` does not multiply in the 8- or 16-bit format of ``policy``, or that nobody says; else empty."""
    dtype = policy.multiplies.name
    if dtype not in ("bf16", "fp16", "fp8") or not math.isnan(device.peak(dtype)):
        return ""
    if not device.lacks(dtype):
        return f"**Whether {device.name} multiplies {dtype} is unknown:** its source gives no {dtype} rate."
    other = device.usable("fp16")
    rate = format_quantity(device.peak(other), "flop_per_s")
    return (
        f"**{device.name} has no {dtype} matrix units:** the bytes stay what they are, but its {rate} are for {other}."
    )


def measured_state(optimizer: Optimizer) -> str:
    """The measured state per parameter."""
    if math.isnan(optimizer.measured):
        return "unknown"
    size = f"{optimizer.measured:.5f} B" if optimizer.measured else "0 B"
    return QuantityText(size, optimizer.measured, "B")


def left_out() -> str:
    """How many optimizers there are, whose state depends on shapes, and which are left out."""
    shaped = sum(not optimizer.uniform for optimizer in optimizers().values())
    return (
        f"**The {len(optimizers())} optimizers** are all of torch.optim and the usual ones beyond it; the state of "
        f"{shaped} of them depends on the shapes of the tensors. Left out: {', '.join(LEFT_OUT)}."
    )


def memory_read_as(device: Accelerator, display: float = 0.0) -> str:
    """Where the memory capacity comes from, in one or two sentences. display: bytes that a desktop takes."""
    sheet, binary = _size(device.sheet_bytes), format_bytes(device.memory_bytes, system="binary", digits=3)
    less = f", less {format_bytes(display, system='binary', digits=3)} for the display" if display else ""
    if not math.isnan(device.reported_mib):
        return (
            f"**Memory:** Napkin counts the {device.reported_mib:,.0f} MiB ({binary}) that the driver reports{less}. "
            f"The datasheet says {sheet}."
        )
    if device.memory_unit == "GiB":
        return f"**Memory:** Napkin counts the {binary} of the documentation, which are {sheet}{less}."
    text = f"**Memory:** Napkin counts the datasheet’s decimal {sheet} ({binary}){less}"
    usable = _USABLE.match(device.memory_note)
    if usable and float(usable[1]) * 1e9 < device.memory_bytes:
        return f"{text}, of which {usable[1]} GB are usable, so what fits is an upper bound."
    return f"{text}."


def checkpoint(parameters: float, saved: CheckpointSize, policy: PrecisionPolicy) -> str:
    """What a checkpoint takes, what is counted, and what saving the low-precision weights as well would add."""
    kind = f"{policy.master.name} master weights" if policy.master else f"{policy.weights.name} weights"
    more = parameters * policy.weights.bytes if policy.master else 0.0
    copy = f" Saving the {policy.weights.name} weights as well adds {_size(more)}." if more else ""
    return (
        f"**A checkpoint** to resume from takes **{_size(saved.of(parameters))}** = {format_count(parameters)} × "
        f"({significant(saved.weights)} {kind} + {significant(saved.optimizer)} optimizer state) bytes; "
        f"gradients are not saved.{copy}"
    )


def cited(optimizer: Optimizer, policy: PrecisionPolicy) -> str:
    """Where the optimizer's and the policy's figures come from, separated by semicolons."""
    sources = dict.fromkeys((*optimizer.sources, *policy.sources))
    addresses = {source: source.url.removeprefix("https://") for source in sources}
    return "; ".join(
        f"{source}; {address}" if address and "arXiv:" not in source.title else str(source)
        for source, address in addresses.items()
    )


def _size(value: float) -> str:
    return format_bytes(value, system="decimal")
