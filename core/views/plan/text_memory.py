"""What one accelerator holds, as sentences: whether it fits, what is counted, and how the step is laid out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.largest_model import Largest, largest_by_states
from core.planning.layout import FIELD_IDS, TRAINED_IDS, estimable_request, plan_checkpoint
from core.planning.memory_estimate import MemoryEstimate
from core.planning.plan import OWN_SHAPE, whole_accelerators
from core.training.activations.tensors import SavedTensor, Split
from core.training.device.inputs import explain_largest, kept_each
from core.training.device.memory import DeviceMemory
from core.training.device.peak import StepCurve
from core.training.device.traffic import Traffic
from core.training.layout import Layout, LayoutError
from core.training.memory import StateBytes, states_per_parameter
from core.training.optimizers import find_optimizer
from core.training.trained import TrainedError
from core.units import QuantityText, format_bytes, format_count, format_exact, significant
from core.views.plan.text_kernels import in_fp32
from core.views.plan.text_recomputed import recomputed
from core.views.training import text as training_text
from core.wording import percent, plural


def gib(value: float) -> str:
    """Bytes in GiB, MiB or whatever binary unit they come to, to three digits."""
    return format_bytes(value, system="binary", digits=3)


def model_of(h: MemoryEstimate) -> str:
    """What is trained: the model's name, or a model of so many parameters."""
    known = h.plan.catalog_model
    if known:
        return f"**{known.name}** ({known.sized})" if h.plan.model == OWN_SHAPE else f"**{known.name}**"
    count = format_count(h.parameters)
    return f"A model of **{count}** {plural(h.parameters, 'parameter')}"


def where(h: MemoryEstimate) -> str:
    """The accelerators: ``8 × H100 SXM``."""
    count = whole_accelerators(h.plan.accelerators)
    idle = count - int(h.layout.accelerators)
    named = f"**{count:,} × {h.plan.device.name}**" if count > 1 else f"one **{h.plan.device.name}**"
    return f"{named}, {idle:,} of them idle" if idle else named


def sentence(h: MemoryEstimate) -> str:
    """Whether it fits, by how much, and what the fullest accelerator holds."""
    each = "the fullest accelerator holds" if h.layout.pipeline > 1 else "each holds"
    each = each if h.layout.accelerators > 1 else "it holds"
    if h.fits == "unknown":
        return f"{model_of(h)} on {where(h)}: {each} **{gib(h.total)}**; how much memory there is, is unknown."
    if h.fits == "fits":
        spare = f"**{gib(h.spare)}** free"
        if h.lacks:
            spare = f"but leaves **{gib(h.spare)}**, less than the {percent(h.plan.limits.free)} that you keep free"
        return f"{model_of(h)} **fits** on {where(h)}: {each} {gib(h.total)} of {gib(h.usable)}, {spare}."
    return (
        f"{model_of(h)} does **not fit** on {where(h)}: {each} {gib(h.total)}, **{gib(-h.spare)} over** its "
        f"{gib(h.usable)}."
    )


def counted(h: MemoryEstimate, which: str = "") -> str:
    """The quieter line: under what all of it is counted. which: whose layout it is, where that is not the plan's."""
    layout = h.layout
    sequences = (
        f"{layout.micro_batch:,} {plural(int(layout.micro_batch), 'sequence')} of {h.plan.seq_len:,} tokens at a time"
    )
    which = f"{which or which_layout(h)}: {laid_out(layout)}"
    again = recomputed(int(layout.recompute), h.step.implementation.flash)
    return f"{h.optimizer.name} {h.policy.phrase} · {which} · {sequences} · {again}"


def which_layout(h: MemoryEstimate) -> str:
    """Whose layout it is."""
    if h.plan.own_layout:
        return "own layout"
    if estimable_request(h.plan) is None:
        return "usual layout, as no step can be estimated"
    return "layout that holds least, as none fits" if h.fits == "over" else "fastest layout"


def laid_out(layout: Layout) -> str:
    """The degrees that are more than one: ``tensor 8 · pipeline 16 · data 128 under ZeRO-1``."""
    degrees = (
        ("tensor", layout.tensor),
        ("pipeline", layout.pipeline),
        ("context", layout.context),
        ("expert", layout.expert),
        ("expert tensor", layout.expert_tensor),
        ("data", layout.data),
    )
    named = [f"{name} {int(degree):,}" for name, degree in degrees if degree > 1]
    if not named:
        return "one accelerator"
    stage = f" under ZeRO-{layout.zero}" if layout.zero and layout.data * layout.context > 1 else ""
    return " · ".join(named) + stage


def stood_in(h: MemoryEstimate) -> str:
    """Whose layers are counted where those of the model have no account, or nobody knows them; else empty."""
    if not h.stands_in:
        return ""
    s, model = h.spec, h.plan.catalog_model
    layers = (
        f"so the layers are those of a usual dense model as large: {s.layers:,} of width {s.hidden:,}, feed-forward "
        f"{s.ffn:,}."
    )
    if model and not model.counted:
        return f"**What {model.spec.unmodelled} keeps and how long it takes is not modelled**, {layers}"
    return f"**Only a number of parameters is known**, {layers} Choose a model for its own."


def field_of(problem: LayoutError) -> str:
    """The id of the plan's field that a layout's rule is about; a data-parallel degree is asked as accelerators."""
    return TRAINED_IDS[problem.field] if isinstance(problem, TrainedError) else FIELD_IDS.get(problem.field, "count")


def tunes(h: MemoryEstimate) -> bool:
    """Whether a plan that trains everything is about fine-tuning: by what saves memory, or few tokens on few cards."""
    how = h.plan.runtime_options
    few = h.plan.tokens <= _FEW_TOKENS and int(h.layout.accelerators) <= 8
    return how.in_backward or how.paged or how.offload_activations or h.plan.trained.storage.quantised or few


_FEW_TOKENS = 1e9


def remarks(h: MemoryEstimate) -> list[str]:
    """What is to be said beside the answer."""
    kept = (
        f"{h.plan.software} gathers them again and reduces gradients each time."
        if h.step.implementation.regathers
        else f"{h.plan.software} keeps them, and whole gradients, throughout the step."
    )
    zero_with_pipeline = (
        f"**ZeRO-3 with a pipeline** is seldom used: every micro-batch needs the weights of its stage again. {kept}"
        if h.layout.zero == 3 and h.layout.pipeline > 1
        else ""
    )
    later = float(h.device_memory.later)
    at_loss = f"**It is fullest at the loss:** gradients, {gib(later)}, come only as activations go." if later else ""
    return [line for line in (at_loss, zero_with_pipeline, *in_fp32(h), stood_in(h)) if line]


def counted_parameter(h: MemoryEstimate) -> str:
    """Of which parameters gradients, master weights and state are: what is frozen has none."""
    return "parameter" if h.plan.trained.everything else "trained parameter"


def each(h: MemoryEstimate) -> str:
    """The bytes of one parameter, those on one accelerator first: ``3.5 of the 16 bytes for each parameter: 2 ...``."""
    held, one = h.states_each, counted_parameter(h)
    kept = held.total
    if h.plan.trained.everything and not h.layout.sends_tokens:
        kept = kept_each(held, h.layout)
    part = "" if math.isclose(kept, held.total) else f"{significant(kept, 3)} of the "
    return f"{part}{significant(held.total)} bytes for each {one}: {training_text.spelled(held, h.policy)}"


def unsharded(h: MemoryEstimate) -> StateBytes:
    """Bytes of one parameter's states before anything is sharded, wherever they lie."""
    return states_per_parameter(h.optimizer, h.policy, h.spec)


def holding(item: Largest) -> str:
    """The largest model that the accelerators hold: ``8 × H100 SXM (79.6 GiB each) hold 42.8B parameters ...``."""
    h, count = item.memory, whole_accelerators(item.plan.accelerators)
    name, size = item.plan.device.name, gib(h.usable)
    who, hold = (f"{count:,} × {name} ({size} each)", "hold") if count > 1 else (f"One {name} ({size})", "holds")
    how = f"under {h.optimizer.name} {h.policy.phrase}"
    if math.isnan(item.parameters):
        return f"**{who}** {hold} an **unknown** number of parameters {how}: how much memory there is, is unknown."
    if not item.parameters:
        return f"**{who}** {hold} **no model** {how}, however small."
    alone = ", **by model states alone**" if item.counted != "everything" else ""
    size = f"**{format_count(item.parameters)} {plural(item.parameters, 'parameter')}**"
    return f"**{who}** {hold} {size} {how}{alone}."


def what_is_counted(item: Largest, everything: Largest) -> str:
    """What the largest model is held against; by states alone also how large it is with everything counted."""
    h = item.memory
    if item.counted == "everything":
        rest = float(h.device_memory.activations + h.device_memory.buffers + h.device_memory.runtime)
        own = item.plan.own_layout
        return (
            f"On each {gib(float(h.device_memory.states))} of model states, {each(h)}; {gib(rest)} of activations, "
            f"buffers and runtime; {gib(h.spare)} free. {counted(h, which_layout(h) if own else 'sharded')}"
            f"{'' if own or item.plan.accelerators <= 1 else '. Split in other ways they may hold more.'}"
        )
    rest = "an unknown number" if math.isnan(everything.parameters) else format_count(everything.parameters)
    on_top = f"Activations, buffers and the runtime come on top: with them it is **{rest}** parameters."
    text = f"Each accelerator uses {each(h)}. {on_top}"
    device = item.plan.device
    if math.isnan(device.reported_mib):
        return text
    by_sheet = explain_largest(h.states_each, h.layout, device.sheet_bytes)[-1].value
    sheet = format_bytes(device.sheet_bytes, system="decimal")
    return f"{text} The datasheet’s {sheet} would hold {format_count(by_sheet)}, by model states alone."


def typed(item: Largest) -> str:
    """The largest model’s parameters as one types them; empty where there are none."""
    return format_count(item.parameters).replace(" ", "") if item.parameters >= 1 else ""


def checkpoint(h: MemoryEstimate) -> str:
    """What a checkpoint of the model takes."""
    if not h.plan.trained.everything:
        return (
            f"**A checkpoint to resume from** takes **{gib(h.checkpoint)}**: weights and optimizer state of what is "
            "trained. What is frozen is in the model that one begins with."
        )
    return training_text.checkpoint(h.parameters, plan_checkpoint(h.plan), h.policy)


def states_alone(h: MemoryEstimate) -> str:
    """How large a dense model could be if model states were all; empty where the host or other ranks keep some."""
    if h.layout.sends_tokens or h.layout.offload or math.isnan(h.usable) or not h.plan.trained.everything:
        return ""
    return (
        f"**Upper bound from model states only: {format_count(largest_by_states(h))} parameters** on "
        f"{where(h).replace('**', '')} with this layout. Each accelerator uses {each(h)}."
    )


def left(h: MemoryEstimate) -> str:
    """What is left, or how much is missing: ``6.2 GiB``, ``−8.6 GiB``; unknown where the memory is."""
    if h.fits == "unknown":
        return "unknown"
    return QuantityText(f"{'−' if h.spare < 0 else ''}{gib(abs(h.spare))}", h.spare, "B")


def optimizer_row(h: MemoryEstimate, *, measured: bool) -> tuple[str, ...]:
    """The row of a plan's optimizer: states, bytes per parameter, what it leaves."""
    optimizer = h.optimizer
    return (
        optimizer.name,
        format_exact(optimizer.state_tensors),
        ", ".join(f"`{state}`" for state in optimizer.states) or "none",
        optimizer.formula(h.policy) or "0",
        significant(unsharded(h).total),
        gib(float(h.device_memory.states)),
        gib(h.total),
        left(h),
        *((training_text.measured_state(optimizer),) if measured else ()),
    )


def optimizers(h: MemoryEstimate, rows: Sequence[MemoryEstimate]) -> str:
    """How far the choice of an optimizer goes."""
    most, least = rows[0], rows[-1]
    fitting = [row.optimizer.name for row in rows if row.room >= 0]
    verdict = {0: f"none of them fits{kept_free(h)}.", len(rows): f"all of them fit{kept_free(h)}."}.get(
        len(fitting), f"{len(fitting)} of them fit{kept_free(h)}, {fitting[0] if fitting else ''} with the most state."
    )
    by_state = sorted(rows, key=lambda row: -unsharded(row).total)
    high, low = ((significant(unsharded(row).total, 3), row.optimizer.name) for row in (by_state[0], by_state[-1]))
    return (
        f"Unsharded states take from **{high[0]} B per {counted_parameter(h)}** under {high[1]} to **{low[0]} B** "
        f"under {low[1]}. Each accelerator uses {gib(least.total)} to {gib(most.total)} with this layout; {verdict}"
    )


def state_tensors() -> str:
    """How many numbers the usual optimizers keep for each parameter, by the table that memory is counted with."""
    kept = [f"{name} {len(find_optimizer(name).states)}" for name in ("Adam", "SGD momentum", "AdaGrad", "RMSProp")]
    return f"State tensors as large as the weights: {', '.join(kept)}, SGD none."


def zero_stages(h: MemoryEstimate, rows: Sequence[tuple[int, DeviceMemory]]) -> str:
    """What ZeRO's stages save."""
    shares = int(h.layout.data * h.layout.context)
    if shares == 1:
        return "**ZeRO has nothing to share:** one accelerator works on each part of the model."
    fitting = next((stage for stage, memory in rows if float(memory.total) <= h.total + h.room), None)
    first = f"ZeRO-{fitting} is the first stage that fits" if fitting is not None else "no stage fits"
    first += kept_free(h)
    return (
        f"**Over {shares:,} accelerators** ZeRO takes each from {gib(float(rows[0][1].total))} to "
        f"{gib(min(float(memory.total) for _, memory in rows))}; {first}."
    )


def growing(h: MemoryEstimate, degree: str, rows: Sequence[tuple[int, DeviceMemory]]) -> str:
    """What a growing degree saves."""
    if len(rows) < 2:
        return f"**No other {degree}-parallel degree** divides this model."
    (small, first), (large, last) = rows[0], rows[-1]
    fitting = next((size for size, memory in rows if float(memory.total) <= h.total + h.room), None)
    verdict = f"it fits from {fitting:,} on" if fitting is not None else "it fits nowhere"
    verdict += kept_free(h)
    return (
        f"**{degree.capitalize()} parallel {small:,} to {large:,}**, with all else as it is: from "
        f"{gib(float(first.total))} to {gib(float(last.total))} on each; {verdict}."
    )


def kept_free(h: MemoryEstimate) -> str:
    """`` with 8% free``: what the largest of anything leaves; empty where the plan keeps nothing free."""
    return f" with {percent(h.plan.limits.free)} free" if h.plan.limits.free else ""


def kept(h: MemoryEstimate, tensors: Sequence[tuple[SavedTensor, float]]) -> str:
    """What one layer keeps, and how often it is held."""
    whole = sum(size for _, size in tensors)
    name, most = max(((tensor.name, size) for tensor, size in tensors), key=lambda pair: pair[1])
    return f"**One layer keeps {gib(whole)}** of each micro-batch on each accelerator; the most is {name}, {gib(most)}."


def tensor_rows(h: MemoryEstimate, tensors: Sequence[tuple[SavedTensor, float]]) -> list[tuple[str, ...]]:
    """Rows of the tensors that one layer keeps: name, part, bytes per token before splitting, bytes, share, split."""
    whole = sum(size for _, size in tensors)
    tokens = int(h.layout.micro_batch) * h.plan.seq_len / int(h.layout.context)
    return [
        (
            tensor.name,
            tensor.part,
            QuantityText(f"{format_count(size / tokens)} B", size / tokens, "B"),
            gib(size),
            percent(size / whole),
            _ranks(tensor.split),
        )
        for tensor, size in tensors
    ]


def _ranks(split: Split) -> str:
    """Which ranks divide a tensor, as a cell."""
    if split == "sequence":
        return "tensor, under sequence parallelism"
    return {math.inf: "tensor", 1.0: "whole"}.get(split, f"tensor, at most {split:g} ranks")


_MOMENTS = {
    "start": "at the start",
    "forward": "in forward",
    "loss": "at the loss",
    "steady": "where backward and forward alternate",
    "backward": "in backward",
    "optimizer": "in the optimizer’s step",
}


def over_a_step(h: MemoryEstimate, curve: StepCurve) -> str:
    """Where a step needs most memory, and how much is held between steps."""
    total, peak = curve.total, curve.peak
    last = curve.phases[peak] == "steady" and curve.phases[peak + 1] != "steady"
    moment = "where the last backward begins" if last else _MOMENTS[curve.phases[peak]]
    many = curve.in_flight
    held_at_once = f", {significant(many, 3)} micro-batches held at once" if many > 1 else ""
    return (
        f"**Most is held {moment}**, {gib(float(total[peak]))}{held_at_once}; "
        f"between steps it is {gib(float(total[0]))}."
    )


def sent(h: MemoryEstimate, traffic: Traffic) -> str:
    """What one accelerator sends in one step, by what makes it send."""
    kinds = ("tensor", "pipeline", "data", "expert", "context")
    sizes = [(name, float(getattr(traffic, name))) for name in kinds]
    named = [f"{name} parallelism {gib(size)}" for name, size in sizes if size]
    if not named:
        return "One accelerator alone sends nothing."
    return f"**In one step each accelerator sends {gib(float(traffic.total))}**: {', '.join(named)}."
