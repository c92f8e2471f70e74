"""The rows of Training memory: what one accelerator uses, what the host does, and what a checkpoint takes."""

from __future__ import annotations

import math
import re

from core.formula import Explanation
from core.messages import Message, message, pick_message
from core.planning.largest_model import largest_by_states
from core.planning.layout import plan_checkpoint
from core.planning.memory_estimate import MemoryEstimate, held_by_host
from core.training.memory import StateBytes
from core.training.precision import PrecisionPolicy
from core.views.common.rows import Row
from core.views.plan.text_finetuning import finetuning_rows
from core.views.plan.text_memory import each

_USABLE = re.compile(r"^(\d+)(?: GB)? usable")


def memory_rows(h: MemoryEstimate) -> list[Row]:
    """Return the quantities under the picture that it does not show, those of fine-tuning first."""
    states = float(h.device_memory.states - h.device_memory.later)
    rows = [
        *finetuning_rows(h),
        *(
            Row(
                f"memory_{name}",
                pick_message(f"memory.reading.{name}"),
                size,
                "bytes_binary",
                note=pick_message(f"memory.reading.{name}_note"),
            )
            for name, size in h.readings.items()
        ),
        Row("model_states", message("memory.row.states"), states, "bytes_binary", note=_states_note(h)),
        Row("usable_bytes", message("row.usable_bytes"), h.usable, "bytes_binary", note=capacity_note(h)),
        *_host_rows(h),
        Row("checkpoint", message("row.checkpoint"), h.checkpoint, "bytes", note=_checkpoint_note(h)),
    ]
    if h.layout.sends_tokens or h.layout.offload or math.isnan(h.usable) or not h.plan.trained.everything:
        return rows
    return [*rows, Row("bound", message("memory.row.bound"), largest_by_states(h), "parameters")]


def parts_text(states: StateBytes, policy: PrecisionPolicy) -> Message:
    """Return the bytes of one parameter's states, part by part."""
    return message(
        "memory.parts.sum_copy" if policy.gradient_copy else "memory.parts.sum",
        parameters=states.parameters,
        gradients=states.gradients,
        master=states.master,
        optimizer=states.optimizer,
    )


def _states_note(h: MemoryEstimate) -> Message:
    total, parts = h.states_each.total, parts_text(h.states_each, h.policy)
    if not h.plan.trained.everything:
        return message("memory.row.states_note_trained", total=total, parts=parts)
    if math.isclose(kept := each(h), total):
        return message("memory.row.states_note_whole", total=total, parts=parts)
    return message("memory.row.states_note", each=kept, total=total, parts=parts)


def capacity_note(h: MemoryEstimate) -> Message:
    """Return where the memory capacity comes from, and what a desktop takes of it."""
    device, display = h.plan.device, h.plan.runtime_options.display
    usable = _USABLE.match(device.memory_note)
    above = usable is not None and float(usable[1]) * 1e9 < device.memory_bytes
    origin = "driver" if not math.isnan(device.reported_mib) else "usable" if above else "sheet"
    source = pick_message(
        f"memory.row.capacity_{origin}",
        mib=device.reported_mib,
        sheet=device.sheet_bytes,
        usable=1e9 * float(usable[1]) if usable else math.nan,
    )
    return message("memory.row.capacity_display", source=source, display=display) if display else source


def _checkpoint_note(h: MemoryEstimate) -> Message:
    if not h.plan.trained.everything:
        return message("memory.row.checkpoint_trained")
    saved = plan_checkpoint(h.plan)
    return message("memory.row.checkpoint_note", weights=saved.weights, state=saved.optimizer)


def _host_rows(h: MemoryEstimate) -> list[Row]:
    held = held_by_host(h)
    if not held.total:
        return []
    sizes = {
        "memory.host.state_master" if h.policy.master else "memory.host.state": held.state,
        "memory.host.gradients": held.gradients,
        "memory.host.parameters": held.parameters,
        "memory.host.activations": held.activations,
    }
    parts = [message(key, size=float(size)) for key, size in sizes.items() if size]
    if h.layout.offload:
        fsdp = h.plan.software == "FSDP2, compiled"
        note = (
            message("memory.row.host_fsdp", parts=parts, node=h.on_host)
            if fsdp
            else message("memory.row.host_node", parts=parts, node=h.on_host, fsdp=h.on_host_with_fsdp)
        )
    elif h.plan.runtime_options.paged:
        note = message("memory.row.host_paged", parts=parts)
    else:
        note = message("memory.row.host_note", parts=parts)
    return [Row("host", message("memory.row.host"), float(held.total), "bytes_binary", note=note)]


def explain_host(h: MemoryEstimate) -> tuple[Explanation, ...]:
    """Return how the bytes on the host come about; nothing if nothing is offloaded."""
    held = held_by_host(h)
    return (held.explain(),) if held.total else ()
