"""Optimizers, parallelism, activations, and one step of training: takeaways, headings, and rows of the panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.messages import Message, message, messages, pick_message
from core.planning.memory_estimate import MemoryEstimate
from core.training.activations.tensors import LayerKind, Split
from core.training.device.memory import DeviceMemory
from core.training.device.peak import StepCurve
from core.training.device.traffic import Traffic
from core.training.layout import Recompute
from core.training.memory import states_per_parameter
from core.training.optimizers import LEFT_OUT, Optimizer, find_optimizer, optimizers
from core.training.precision import PrecisionPolicy
from core.units import QuantityText, format_bytes, significant
from core.views.plan.text_recomputed import recomputed

# ------------------------------------------------------------------------------ optimizers


def headroom_cell(h: MemoryEstimate) -> str:
    """Return what is free, or how much is missing: ``6.2 GiB``, ``−8.6 GiB``; unknown if the capacity is."""
    if h.fits == "unknown":
        return message("training.cell.unknown")
    sign = "−" if h.spare < 0 else ""
    return QuantityText(f"{sign}{format_bytes(abs(h.spare), system='binary', digits=3)}", h.spare, "B")


def optimizer_headings() -> tuple[Message, ...]:
    """Return the headings of `optimizer_row`."""
    return (
        *messages("training.optimizer", "name states formula"),
        message("training.heading.per_parameter"),
        message("memory.row.states"),
        *messages("training.heading", "peak free"),
        message("training.optimizer.measured"),
    )


def optimizer_row(h: MemoryEstimate) -> tuple[str, ...]:
    """Return the row of a plan's optimizer: states, bytes per parameter, memory use."""
    optimizer = h.optimizer
    return (
        optimizer.name,
        ", ".join(f"`{state}`" for state in optimizer.states) or message("training.cell.none"),
        optimizer.formula(h.policy) or "0",
        significant(states_per_parameter(optimizer, h.policy, h.spec).total),
        format_bytes(float(h.device_memory.states), system="binary", digits=3),
        format_bytes(h.total, system="binary", digits=3),
        headroom_cell(h),
        measured_state(optimizer),
    )


def measured_state(optimizer: Optimizer) -> str:
    """Return the measured state per parameter."""
    if math.isnan(optimizer.measured):
        return message("training.cell.unknown")
    return QuantityText(f"{optimizer.measured:.5f} B", optimizer.measured, "B")


def optimizers_text(rows: Sequence[MemoryEstimate]) -> Message:
    """Return how far the choice of an optimizer goes. rows: the plan under each, from the most memory to the least."""
    sizes = {row.optimizer.name: states_per_parameter(row.optimizer, row.policy, row.spec).total for row in rows}
    high, low = max(sizes, key=sizes.__getitem__), min(reversed(sizes), key=sizes.__getitem__)
    fitting = [row.optimizer.name for row in rows if row.room >= 0]
    verdict = "none_fits" if not fitting else "all_fit" if len(fitting) == len(rows) else "some_fit"
    return pick_message(
        f"training.optimizers.{verdict}",
        high=sizes[high],
        highest=high,
        low=sizes[low],
        lowest=low,
        memory=(rows[-1].total, rows[0].total),
        fitting=float(len(fitting)),
        first=next(iter(fitting), ""),
    )


def states_note() -> Message:
    """Return how many state tensors the common optimizers have, by the table that memory is computed with."""
    names = ("Adam", "SGD momentum", "AdaGrad", "RMSProp", "SGD")
    counts = [
        message("training.optimizers.count", optimizer=name, n=float(len(find_optimizer(name).states)))
        for name in names
    ]
    return message("training.optimizers.states", counts=counts)


def optimizers_note() -> Message:
    """Return how many optimizers there are, whose state depends on shapes, and which are left out."""
    shaped = sum(not optimizer.uniform for optimizer in optimizers().values())
    return message(
        "training.optimizers.note", n=float(len(optimizers())), shaped=float(shaped), excluded=list(LEFT_OUT)
    )


def cited(optimizer: Optimizer, policy: PrecisionPolicy) -> str:
    """Return where the optimizer's and the policy's figures come from, separated by semicolons."""
    sources = dict.fromkeys((*optimizer.sources, *policy.sources))
    addresses = {source: source.url.removeprefix("https://") for source in sources}
    return "; ".join(
        f"{source}; {address}" if address and "arXiv:" not in source.title else str(source)
        for source, address in addresses.items()
    )


# ------------------------------------------------------------------------------ ZeRO and parallelism


def zero_text(h: MemoryEstimate, rows: Sequence[tuple[int, DeviceMemory]]) -> Message:
    """Return what the stages of ZeRO save."""
    ranks = int(h.layout.data * h.layout.context)
    if ranks == 1:
        return message("memory.zero.single")
    totals = {stage: float(memory.total) for stage, memory in rows}
    fitting = next((stage for stage, total in totals.items() if total <= h.total + h.room), None)
    return pick_message(
        "memory.zero.none" if fitting is None else "memory.zero.fits",
        ranks=float(ranks),
        first=totals[0],
        last=min(totals.values()),
        stage=float(fitting or 0),
    )


def sent_text(traffic: Traffic) -> Message:
    """Return what one accelerator sends in one step, by what makes it send."""
    sizes = [(kind, float(getattr(traffic, kind))) for kind in ("tensor", "pipeline", "data", "expert", "context")]
    kinds = [message("memory.zero.kind", size=size, kind=kind) for kind, size in sizes if size]
    if not kinds:
        return message("memory.zero.nothing_sent")
    return message("memory.zero.sent", total=float(traffic.total), kinds=kinds)


# ------------------------------------------------------------------------------ activations


def checkpointing_text(h: MemoryEstimate, rows: Sequence[tuple[Recompute, DeviceMemory, float]]) -> Message:
    """Return what selective and full recomputation save, and the FLOPs that they add. rows: none first, full last."""
    (_, none, _), (mode, selective, little), (_, full, much) = rows
    return message(
        "memory.checkpointing.takeaway",
        full=float(none.total) - float(full.total),
        much=much,
        what=recomputed(int(mode), h.step.implementation.flash),
        selective=float(none.total) - float(selective.total),
        little=little,
    )


def checkpointing_bars(rows: Sequence[tuple[Recompute, DeviceMemory, float]]) -> list[tuple[Message, DeviceMemory]]:
    """Return a named bar for each, with the FLOPs that it adds."""
    return [
        (
            message("memory.checkpointing.row", mode=message(f"memory.checkpointing.{mode.name.lower()}"), extra=extra),
            memory,
        )
        for mode, memory, extra in rows
    ]


_MODES = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)


def tensor_headings() -> tuple[Message, ...]:
    """Return the headings of `tensor_rows`."""
    return (
        *messages("memory.activations", "tensor part"),
        *messages("memory.checkpointing", "none selective full"),
        message("memory.activations.split"),
    )


def tensor_rows(h: MemoryEstimate, kind: LayerKind) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the tensors that one layer saves under no, selective, and full recomputation, in bytes per accelerator,
    and the row of their sums."""
    saved = [{(tensor.name, tensor.part): (tensor, size) for tensor, size in h.tensors(kind, mode)} for mode in _MODES]
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys(key for tensors in saved for key in tensors):
        sizes = (format_bytes(of[key][1], system="binary", digits=3) if key in of else "–" for of in saved)
        tensor = next(of[key][0] for of in saved if key in of)
        rows.append((*key, *sizes, _split_text(tensor.split)))
    sums = (format_bytes(sum(size for _, size in of.values()), system="binary", digits=3) for of in saved)
    return rows, (message("memory.activations.total"), "", *sums, "")


def _split_text(split: Split) -> Message:
    if split == "sequence":
        return message("memory.split.sequence")
    if split == 1:
        return message("memory.split.whole")
    return message("memory.split.tensor") if math.isinf(split) else message("memory.split.ranks", ranks=split)


# ------------------------------------------------------------------------------ one step


def step_text(curve: StepCurve) -> Message:
    """Return where a step needs most memory, and how much remains between steps."""
    total, peak, phase = curve.total, curve.peak, curve.phases[curve.peak]
    last = phase == "steady" and curve.phases[peak + 1] != "steady"
    return pick_message(
        "memory.step.takeaway_in_flight" if curve.in_flight > 1 else "memory.step.takeaway",
        moment=message(f"memory.moment.{'last' if last else phase}"),
        peak=float(total[peak]),
        many=float(curve.in_flight),
        rest=float(total[0]),
    )
