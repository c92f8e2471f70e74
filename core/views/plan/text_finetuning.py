"""Fine-tuning: what is trained, how long it takes, and where real programs need more memory than the account."""

from __future__ import annotations

import math
from collections.abc import Iterator

from core.formula import Explanation
from core.messages import Message, message, pick_message
from core.planning.fine_tuning import PRINTED, Fitting, fine_tuning_time, trained_parameters
from core.planning.memory_estimate import MemoryEstimate
from core.step_time.running import EAGER
from core.training.device.host import foreach_update
from core.views.common.rows import Row
from core.wording import format_value

_WAITING = 0.2
"""Share of launch overhead in a step that is worth a note."""

_FEW_TOKENS = 1e9


def tunes(h: MemoryEstimate) -> bool:
    """Return whether a plan is about fine-tuning: by what is trained, by its memory options, or by few tokens on few
    GPUs."""
    how = h.plan.runtime_options
    few = h.plan.tokens <= _FEW_TOKENS and int(h.layout.accelerators) <= 8
    saving = how.in_backward or how.paged or how.offload_activations or h.plan.trained.storage.quantised
    return not h.plan.trained.everything or saving or few


def finetuning_rows(h: MemoryEstimate) -> list[Row]:
    """Return what fine-tuning trains, its measured peaks, its time, and its cost; nothing for pre-training."""
    if not tunes(h):
        return []
    rows: list[Row] = []
    if not h.plan.trained.everything:
        trained = float(trained_parameters(h))
        rows.append(
            Row(
                "trained",
                message("memory.row.trained"),
                trained,
                "parameters",
                note=_trained_note(h, trained / h.parameters),
            )
        )
    if ends := measured_peaks(h):
        rows.append(Row("measured_peak", message("memory.row.measured_peak"), format_value(ends, "GiB")))
    return [*rows, *_time_rows(h)]


def _trained_note(h: MemoryEstimate, share: float) -> Message:
    t = h.plan.trained
    return pick_message(
        f"memory.trained.{t.method.replace(' ', '_')}",
        share=share,
        rank=float(t.rank),
        targets=t.targets,
        layers=float(t.last),
        names=t.names,
        frozen=t.frozen,
    )


def _time_rows(h: MemoryEstimate) -> list[Row]:
    found, label = fine_tuning_time(h.plan), message("memory.row.time")
    if found is None:
        return [Row("tuning_time", label, math.nan, "seconds", note=message("memory.row.time_unknown"))]
    note = pick_message(
        "memory.row.time_waiting" if found.waiting > _WAITING else "memory.row.time_note",
        tokens=h.plan.tokens,
        rate=found.tokens_per_second,
        share=found.waiting,
    )
    rows = [Row("tuning_time", label, 60 * found.minutes, "seconds", note=note)]
    if not math.isnan(found.dollars[0]):
        low, high = found.dollars
        price = message("memory.row.cost_note", price=found.per_hour)
        rows.append(Row("tuning_cost", message("memory.row.cost"), format_value((low, high), "dollars"), note=price))
    return rows


def measured_peaks(h: MemoryEstimate) -> tuple[float, float] | None:
    """Return the 80% range of measured peaks of similar runs in bytes; None if none was published."""
    if h.plan.device.vendor == "Apple":
        return None
    return PRINTED[0] * h.total, PRINTED[1] * h.total


def fitting_label(one: Fitting) -> Message:
    """Return the label of the button that takes the largest value that fits."""
    return message(f"memory.fitting.{one.field}", value=one.text)


# ------------------------------------------------------------------------------ notices


def measured_over_notice(h: MemoryEstimate) -> Iterator[Message]:
    """Yield that a plan that fits may not, by the measured peaks of such runs."""
    ends = measured_peaks(h)
    if ends and tunes(h) and h.fits == "fits" and ends[1] > h.usable:
        yield message("memory.notice.measured_over", high=ends[1], capacity=h.usable)


def all_trained_notice(h: MemoryEstimate) -> Iterator[Message]:
    """Yield that nothing is frozen where a quantized type was chosen for it."""
    t = h.plan.trained
    if t.everything and t.storage.quantised:
        yield message("memory.notice.all_trained", frozen=t.frozen)


def foreach_notice(h: MemoryEstimate) -> Iterator[Message]:
    """Yield that torch's Adam needs more memory to update all tensors at once than any other moment of the step."""
    for step in explain_foreach(h):
        if not math.isnan(h.usable):
            yield message("memory.notice.foreach", peak=step.value, capacity=h.usable, optimizer=h.optimizer.name)


def explain_foreach(h: MemoryEstimate) -> tuple[Explanation, ...]:
    """Return how that comes about; nothing if the step has a fuller moment."""
    how = h.plan.runtime_options
    if how.in_backward or how.paged or h.layout.offload or h.plan.software != EAGER.id or int(h.layout.zero) in (1, 2):
        return ()
    step = foreach_update(h.device_memory)
    return (step,) if h.optimizer.name in ("Adam", "AdamW") and step.value > h.total else ()


# ------------------------------------------------------------------------------ launch settings


def launched(h: MemoryEstimate) -> Message:
    """Return what the lines for TRL train, and how a step is made."""
    t, layout = h.plan.trained, h.layout
    ranks, micro_batch, rounds = (float(n) for n in (layout.data, layout.micro_batch, layout.micro_batches))
    return pick_message(
        "memory.launch.adapters" if t.adapters else "memory.launch.all",
        rank=float(t.rank),
        frozen=t.frozen,
        ranks=ranks,
        micro_batch=micro_batch,
        rounds=rounds,
        sequences=ranks * micro_batch * rounds,
        length=float(h.plan.seq_len),
    )
