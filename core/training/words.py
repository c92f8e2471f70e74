"""The accounts of `core.training.memory` as sentences, in the small markup of bold by two asterisks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.hardware.accelerators import Accelerator
from core.limits import limit
from core.training.memory import StateBytes, TrainingMemory
from core.training.optimizers import LEFT_OUT, Optimizer, optimizers
from core.training.precision import PrecisionPolicy
from core.units import format_bytes, format_count, format_quantity, significant
from core.wording import plural

PARTS: tuple[tuple[str, str], ...] = (
    ("parameters", "parameters"),
    ("gradients", "gradients"),
    ("master", "master weights"),
    ("optimizer", "optimizer state"),
)
"""Parts of the model states in stacking order: the field of `StateBytes` (also the palette's role), and its name."""


_UNITS: tuple[tuple[float, str], ...] = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_LETTERED = re.compile(r"[\d.,]+[KMBT]")

_LIKE_EIGHT = re.compile(r"8|1[18](?!\d)")
_REPORTED = re.compile(r"([\d,]+) MiB")
_USABLE = re.compile(r"^(\d+)(?: GB)? usable")


def article(count: str) -> str:
    """The article before a count that is read aloud: "A" 70B model, "An" 8B, 11B or 18B model."""
    return "An" if _LIKE_EIGHT.match(count) else "A"


def part(states: StateBytes, field: str) -> float:
    """The bytes of the part ``field`` of `PARTS`."""
    return float(getattr(states, field))


def summed(states: StateBytes) -> str:
    """ "4 + 4 + 0 + 8", in the order of `PARTS`."""
    return " + ".join(significant(part(states, field)) for field, _ in PARTS)


def part_names(policy: PrecisionPolicy) -> tuple[str, ...]:
    """What the parts of `PARTS` are called under ``policy``, whose master copies may include gradients."""
    master = "master weights and gradients" if policy.gradient_copy else "master weights"
    return tuple(master if field == "master" else name for field, name in PARTS)


def spelled(plan: TrainingMemory) -> str:
    """ "4 parameters + 4 gradients + 8 optimizer state"; parts of zero bytes are left out."""
    sizes = (part(plan.per_parameter, field) for field, _ in PARTS)
    named = zip(sizes, part_names(plan.policy), strict=True)
    return " + ".join(f"{significant(size)} {name}" for size, name in named if size)


def device_name(name: str, memory: float) -> str:
    """An accelerator's ``name`` with its ``memory`` in GB, which many names contain already."""
    return name if "GB" in name else f"{name} {_size(memory)}"


def holding(plan: TrainingMemory, device: str) -> str:
    """ "**8 × H100 SXM 80 GB** hold **40 B parameters** under AdamW in fp32": the largest model."""
    several = plan.accelerators > 1
    who = f"{plan.accelerators:,} × {device}" if several else f"One {device}"
    where = f", {plan.sharding.phrase}" if several and plan.sharding.phrase else ""
    largest = (
        f"**{format_count(plan.largest)} {plural(plan.largest, 'parameter')}**"
        if plan.fit != "unknown"
        else "an **unknown** number"
    )
    return (
        f"**{who}** {'hold' if several else 'holds'} {largest} under {plan.optimizer.name} {plan.policy.phrase}{where}."
    )


def shared_among(plan: TrainingMemory) -> int:
    """By how many to divide totals so that they mean something: 1 for one copy over all accelerators, else each."""
    return 1 if plan.sharding.complete else plan.accelerators


@dataclass(frozen=True, slots=True)
class ByteUnit:
    """The unit in which picture, table and headline say their bytes, so that they can be compared at a glance."""

    size: float
    name: str

    def say(self, value: float) -> str:
        """``value`` bytes in this unit; what is less than one of it, in a unit of its own."""
        if math.isnan(value):
            return "unknown"
        return f"{significant(value / self.size)} {self.name}" if value >= self.size else _size(value)


def unit_of(plans: Sequence[TrainingMemory]) -> ByteUnit:
    """The unit for ``plans``, which share a model and its accelerators: that of the most there is to show.

    Ten of a unit are needed, so that 1,120 GB are said beside 640 GB and not as 1.12 TB.
    """
    amounts = [amount for plan in plans for amount in (plan.total, plan.capacity) if not math.isnan(amount)]
    most = max(amounts, default=0.0) / shared_among(plans[0])
    return next((ByteUnit(*pair) for pair in _UNITS if most >= 10 * pair[0]), ByteUnit(*_UNITS[-1]))


def verdict(plan: TrainingMemory, unit: ByteUnit | None = None) -> str:
    """How the model stands to the memory, in one or two sentences: what its states take, leave or lack.

    In total over all accelerators where there is one copy of everything, else on each of them.
    unit: that of the picture beside it; without one, what `unit_of` gives for ``plan`` alone.
    """
    say = (unit or unit_of([plan])).say
    several, share = plan.accelerators > 1, shared_among(plan)
    on_each = " on each" if share > 1 else ""
    each = f", {say(abs(plan.spare) / plan.accelerators)} on each" if several and not on_each else ""
    takes = f"{_model(plan.parameters)} takes"
    total, spare = say(plan.total / share) + on_each, say(abs(plan.spare) / share)
    if plan.fit == "unknown":
        return f"{takes} **{total}**; how much there is, is unknown."
    if plan.fit == "full":
        return f"{takes} all **{total}**, to the last byte; nothing is left for activations."
    if plan.fit == "room":
        return f"{takes} {total} and leaves **{spare}**{each}."
    needed = plan.fewest
    rescue = "More of them would not help." if needed is None else f"At least **{needed:,}** of them would hold it."
    return f"{takes} {total}: **{spare} too much**{each}. {rescue}"


def _model(parameters: float) -> str:
    """ "A **70B** model"; where the count has no letter to be named by, "A model of **9 × 10¹⁵ parameters**"."""
    size = format_count(parameters)
    if _LETTERED.fullmatch(size):
        return f"{article(size)} **{size}** model"
    return f"A model of **{size} {plural(parameters, 'parameter')}**"


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
    return f"{optimizer.measured:.5f} B" if optimizer.measured else "0 B"


def left_out() -> str:
    """How many optimizers there are, whose state depends on shapes, and which are left out."""
    shaped = sum(not optimizer.uniform for optimizer in optimizers().values())
    return (
        f"**The {len(optimizers())} optimizers** are all of torch.optim and the usual ones beyond it; the state of "
        f"{shaped} of them depends on the shapes of the tensors. Left out: {', '.join(LEFT_OUT)}."
    )


def stood_in(plan: TrainingMemory) -> str:
    """Which model's shape the optimizer's state is worked out on where the model's own is unknown; else empty."""
    if not plan.stand_in:
        return ""
    each = plan.optimizer.formula(plan.policy)
    return (
        f"**{plan.optimizer.name}’s state** depends on the shapes of the tensors: {each} bytes for an m × n matrix. "
        f"Only the number of parameters is known here, so the tensors of **{plan.stand_in}** stand in."
    )


def per_each(plan: TrainingMemory) -> str:
    """ "That is 16 bytes each: 4 parameters + 4 gradients + 8 optimizer state." """
    return f"That is {significant(plan.per_parameter.total)} bytes each: {spelled(plan)}."


def what_is_counted(plan: TrainingMemory) -> str:
    """ "16 bytes each: 4 parameters + 4 gradients + 8 optimizer state; ... come on top." """
    states = plan.per_parameter
    return (
        f"{significant(states.total)} bytes each: {spelled(plan)}; activations, buffers and fragmentation come on top."
    )


def checkpoint(plan: TrainingMemory, unit: ByteUnit | None = None) -> str:
    """What a checkpoint takes, what is counted, and what saving the low-precision weights as well would add.

    unit: as in `verdict`.
    """
    say = (unit or unit_of([plan])).say
    saved = (plan.policy.master or plan.policy.weights).bytes
    state = plan.per_parameter.optimizer
    more = plan.checkpoint(with_compute_copy=True) - plan.checkpoint()
    kind = f"{plan.policy.master.name} master weights" if plan.policy.master else f"{plan.policy.weights.name} weights"
    copy = f" Saving the {plan.policy.weights.name} weights as well adds {say(more)}." if more else ""
    return (
        f"**A checkpoint** to resume from takes **{say(plan.checkpoint())}** = {format_count(plan.parameters)} × "
        f"({significant(saved)} {kind} + {significant(state)} optimizer state) bytes; "
        f"gradients are not saved.{copy}"
    )


def memory_read_as(memory: float, printed: str) -> str:
    """How the datasheet's memory is read, in one sentence; ``printed`` is the catalogue's remark on it.

    Where the remark has what the part itself reports, or how much of it is usable, the sentence says so.
    """
    size, binary = _size(memory), format_bytes(memory, system="binary")
    if printed.startswith("GiB"):
        return f"**Memory:** Napkin counts the {binary} of the documentation, which are {size}."
    reported, usable = _REPORTED.search(printed), _USABLE.match(printed)
    said = f"**Memory:** Napkin counts the datasheet’s decimal {size} ({binary})"
    if reported:
        own = float(reported[1].replace(",", "")) * 2**20
        side = "on the safe side because the part reports more" if own >= memory else "more than the part reports"
        return f"{said}, which is {side}: {reported[1]} MiB in nvidia-smi, which are {_size(own)}."
    if usable and float(usable[1]) * 1e9 < memory:
        return f"{said}, of which {usable[1]} GB are usable, so what fits is an upper bound."
    return f"{said}."


def largest_typed(plan: TrainingMemory) -> str:
    """The largest model as one types it, rounded down to four significant digits so that it fits: "61.68B".

    Never beyond the cap on typed parameters. Empty when the memory is unknown.
    """
    if plan.fit == "unknown":
        return ""
    # One part in 10¹⁴ forgives the division's rounding, so that 640 GB / 16 B is 40B and never 39.99B.
    whole = int(min(plan.largest * (1 + 1e-14), limit("parameters")))
    step = 10 ** max(0, len(str(whole)) - 4)
    return format_count(whole // step * step).replace(" ", "")


def cited(plan: TrainingMemory) -> str:
    """Where the optimizer's, the policy's and the sharding's figures come from, separated by semicolons."""
    sources = dict.fromkeys((*plan.optimizer.sources, *plan.policy.sources, *plan.sharding.sources))
    addresses = {source: source.url.removeprefix("https://") for source in sources}
    return "; ".join(
        f"{source}; {address}" if address and "arXiv:" not in source.title else str(source)
        for source, address in addresses.items()
    )


def _size(value: float) -> str:
    return format_bytes(value, system="decimal")
