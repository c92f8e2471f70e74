"""What one accelerator uses, as sentences: whether a plan fits, its layout, and what to know about both."""

from __future__ import annotations

import math
from collections.abc import Iterator

from core.messages import Message, message, pick_message
from core.planning.largest_model import Largest
from core.planning.layout import FIELD_IDS, TRAINED_IDS, estimable_request
from core.planning.memory_estimate import MemoryEstimate
from core.planning.plan import OWN_SHAPE, whole_accelerators
from core.training.activations.tensors import IMPLEMENTATIONS
from core.training.device.inputs import explain_largest, kept_each
from core.training.layout import Layout, LayoutError
from core.training.trained import TrainedError
from core.units import format_bytes, format_count
from core.views.plan.text_finetuning import all_trained_notice, foreach_notice, measured_over_notice
from core.views.plan.text_recomputed import recomputed


def gib(value: float) -> str:
    """Return bytes in the fitting binary unit, such as GiB or MiB, to three digits."""
    return format_bytes(value, system="binary", digits=3)


DEGREES = ("tensor", "pipeline", "context", "expert", "expert_tensor", "data")
"""Fields of a layout, in the order in which a layout is written."""

# ------------------------------------------------------------------------------ the answer


def sentence(h: MemoryEstimate) -> Message:
    """Return whether a plan fits, by how much, and its peak memory."""
    return pick_message(
        f"memory.headline.{'headroom' if h.fits == 'fits' and h.lacks else h.fits}",
        model=_model_text(h),
        where=_where_text(h),
        needed=h.total,
        capacity=h.usable,
        free=h.spare,
        over=-h.spare,
        headroom=h.plan.limits.free,
    )


def _model_text(h: MemoryEstimate) -> Message:
    known = h.plan.catalog_model
    if not known:
        return message("memory.model.parameters", parameters=h.parameters)
    if h.plan.model == OWN_SHAPE:
        return message("memory.model.sized", model=known.name, size=known.sized)
    return message("memory.model.name", model=known.name)


def _where_text(h: MemoryEstimate) -> Message:
    count = whole_accelerators(h.plan.accelerators)
    return where_text(count, h.plan.device.name, count - int(h.layout.accelerators))


def where_text(count: int, device: str, idle: int = 0) -> Message:
    """Return a number of accelerators as text: ``8 × H100 SXM``."""
    if count == 1:
        return message("memory.where.one", device=device)
    if idle:
        return message("memory.where.idle", count=float(count), device=device, idle=float(idle))
    return message("memory.where.many", count=float(count), device=device)


def counted(h: MemoryEstimate) -> Message:
    """Return the line under the headline: the layout and its recomputation."""
    return message(
        "memory.layout.line",
        source=message(f"memory.layout.{_layout_source(h)}"),
        layout=laid_out(h.layout),
        micro_batch=float(h.layout.micro_batch),
        recompute=recomputed(int(h.layout.recompute), h.step.implementation.flash),
    )


def reading_text(h: MemoryEstimate, reading: str) -> Message:
    """Return the peak as one program shows it. reading: a key of `MemoryEstimate.readings`."""
    return message(
        "memory.reading.line", size=h.readings[reading], shown=pick_message(f"memory.reading.{reading}_note")
    )


def _layout_source(h: MemoryEstimate) -> str:
    if h.plan.own_layout:
        return "custom"
    if estimable_request(h.plan) is None:
        return "default"
    return "smallest" if h.fits == "over" else "fastest"


def laid_out(layout: Layout) -> Message:
    """Return the degrees of a layout that are more than one: ``tensor 8 · pipeline 16 · data 128 · ZeRO-1``."""
    degrees = [
        message(f"memory.layout.{name}", n=float(degree))
        for name in DEGREES
        if (degree := int(getattr(layout, name))) > 1
    ]
    if not degrees:
        return message("memory.layout.single")
    if layout.zero and layout.data * layout.context > 1:
        return message("memory.layout.zero", degrees=degrees, n=float(layout.zero))
    return message("memory.layout.degrees", degrees=degrees)


def field_of(problem: LayoutError) -> str:
    """Return the id of the plan's field that a rule of layouts is about; accelerators for a data-parallel degree."""
    return TRAINED_IDS[problem.field] if isinstance(problem, TrainedError) else FIELD_IDS.get(problem.field, "count")


# ------------------------------------------------------------------------------ notices


def remarks(h: MemoryEstimate) -> list[Message]:
    """Return what to know about the answer, the most important first."""
    return [notice for part in _NOTICES for notice in part(h)]


def _units_notice(h: MemoryEstimate) -> Iterator[Message]:
    dtype, device = h.policy.multiplies.name, h.plan.device
    if dtype not in ("bf16", "fp16", "fp8") or not math.isnan(device.peak(dtype)):
        return
    if not device.lacks(dtype):
        yield message("memory.notice.unknown_units", device=device.name, dtype=dtype)
        return
    other = device.usable("fp16")
    yield message("memory.notice.no_units", device=device.name, dtype=dtype, other=other, rate=device.peak(other))


def _fp32_notices(h: MemoryEstimate) -> Iterator[Message]:
    how = h.step.implementation
    if h.spec.experts and how.grouped_experts and how.autocasts:
        yield message("memory.notice.fp32_experts")
    if not how.flash and IMPLEMENTATIONS[h.plan.runtime_options.implementation].flash:
        yield message("memory.notice.fp32_attention")


def _proxy_notice(h: MemoryEstimate) -> Iterator[Message]:
    if not h.stands_in:
        return
    layers, width, model = float(h.spec.layers), float(h.spec.hidden), h.plan.catalog_model
    if model and not model.counted:
        what = model.spec.unmodelled
        yield message("memory.notice.proxy_unmodeled", what=what, layers=layers, width=width)
    else:
        yield message("memory.notice.proxy", layers=layers, width=width)


def _pipeline_notice(h: MemoryEstimate) -> Iterator[Message]:
    if h.layout.zero == 3 and h.layout.pipeline > 1:
        regathers = h.step.implementation.regathers
        yield message(
            "memory.notice.zero3_regathers" if regathers else "memory.notice.zero3_keeps", software=h.plan.software
        )


def _peak_notice(h: MemoryEstimate) -> Iterator[Message]:
    if later := float(h.device_memory.later):
        yield message("memory.notice.peak_at_loss", gradients=later)


_NOTICES = (
    measured_over_notice,
    foreach_notice,
    all_trained_notice,
    _units_notice,
    _fp32_notices,
    _proxy_notice,
    _pipeline_notice,
    _peak_notice,
)


# ------------------------------------------------------------------------------ the largest model


def each(h: MemoryEstimate) -> float:
    """Return the bytes of one parameter's states that stay on one accelerator after sharding."""
    if h.plan.trained.everything and not h.layout.sends_tokens:
        return kept_each(h.states_each, h.layout)
    return h.states_each.total


def holding(item: Largest) -> Message:
    """Return the largest model that the accelerators hold."""
    h, where = item.memory, _where_text(item.memory)
    if math.isnan(item.parameters):
        return message("memory.largest.unknown", where=where)
    whole = "memory.largest.headline" if item.counted == "everything" else "memory.largest.headline_states"
    return pick_message(
        whole if item.parameters else "memory.largest.none",
        where=where,
        parameters=item.parameters,
        optimizer=h.optimizer.name,
        policy=h.policy.phrase,
    )


def what_is_counted(item: Largest, everything: Largest) -> str:
    """Return the memory of the largest model; by states only also how large it is with everything counted."""
    h, device = item.memory, item.plan.device
    if item.counted != "everything":
        said = pick_message(
            "memory.largest.detail_unknown" if math.isnan(everything.parameters) else "memory.largest.detail_states",
            each=each(h),
            total=h.states_each.total,
            parameters=everything.parameters,
        )
        if math.isnan(device.reported_mib):
            return said
        by_sheet = explain_largest(h.states_each, h.layout, device.sheet_bytes)[-1].value
        return " ".join([said, message("memory.largest.sheet", sheet=device.sheet_bytes, parameters=by_sheet)])
    memory = h.device_memory
    return message(
        "memory.largest.detail",
        capacity=h.usable,
        states=float(memory.states),
        rest=float(memory.activations + memory.buffers + memory.runtime),
        free=h.spare,
        layout=counted(h) if item.plan.own_layout else message("memory.layout.sharded"),
    )


def typed(item: Largest) -> str:
    """Return the largest model's parameters as one types them; empty if there are none."""
    return format_count(item.parameters).replace(" ", "") if item.parameters >= 1 else ""
