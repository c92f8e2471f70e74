"""A fine-tuning plan in sentences: what is trained, how long its data take, what of it would fit."""

from __future__ import annotations

import math

from core.formula import Explanation
from core.planning.fine_tuning import PRINTED, PRINTED_NF4, FineTuningTime, trained_parameters
from core.planning.memory_estimate import MemoryEstimate
from core.planning.trl import uses_fsdp
from core.step_time.running import EAGER
from core.training.device.host import deepspeed_setup, deepspeed_update, foreach_update
from core.training.layout import degrees_of
from core.units import format_count, format_duration, format_quantity
from core.views.plan.text_memory import gib, kept_free
from core.wording import percent, plural, rent

_MUCH = 0.2
"""Share of a step in waiting that is worth a sentence."""


def what_is_trained(h: MemoryEstimate) -> str:
    """How much is trained, and what the rest takes; empty where everything is."""
    t = h.plan.trained
    if t.everything:
        return ""
    number = trained_parameters(h)
    how = {
        "adapters": f"adapters of rank {t.rank:,} beside {', '.join(t.targets)}",
        "last layers": f"the last {t.last:,} layers",
        "named tensors": f"tensors named {', '.join(t.names)}",
    }[t.method]
    states = float(h.device_memory.gradients + h.device_memory.later + h.device_memory.optimizer_state)
    return (
        f"**{format_count(number)} parameters are trained** ({percent(number / h.parameters)}): {how}. The rest is "
        f"frozen in {t.frozen}; gradients and optimizer state take {gib(states)}."
    )


def likely(h: MemoryEstimate) -> str:
    """Between what the peak lies in eight of ten runs, and whether all of that fits; empty where none was printed."""
    if h.plan.device.vendor == "Apple":
        return ""
    if h.plan.trained.adapters and h.plan.trained.frozen.startswith("nf4"):
        low, high = (gib(share * h.total) for share in PRINTED_NF4)
        return (
            f"**With bitsandbytes before 0.43.2 (July 2024) {low} to {high}**: it kept the inputs of products for "
            "longer than they are needed. Between these lie eight in ten printed peaks of QLoRA, none of which is of "
            "later software."
        )
    low, high = (share * h.total for share in PRINTED)
    text = f"**Likely {gib(low)} to {gib(high)}**: between these lie eight in ten printed peaks of such runs"
    return f"{text}, and **the upper end is too much**." if h.fits == "fits" and high > h.usable else f"{text}."


def taken(h: MemoryEstimate, found: FineTuningTime | None) -> str:
    """Minutes for the data, tokens a second, and money; why not where the time of a step is not known."""
    if found is None:
        return "**How long it takes** is unknown: nobody measured a step on this accelerator."
    tokens = format_quantity(h.plan.tokens, "count")
    text = (
        f"**About {format_duration(60 * found.minutes, 3)}** for {tokens} tokens as it is laid out here, at "
        f"{format_count(found.tokens_per_second)} tokens/s, steps alone: loading, evaluation and stops come on top"
    )
    low, high = found.dollars
    slack = (
        f" **{percent(found.waiting)} of each step is spent waiting for the host** to start operations: with a larger "
        "micro-batch each token takes less."
        if found.waiting > _MUCH
        else ""
    )
    if math.isnan(low):
        return f"{text}; what the card costs an hour is unknown.{slack}"
    per_hour = " to ".join(dict.fromkeys(f"${price:,.2f}" for price in found.per_hour))
    money = " to ".join(dict.fromkeys(map(rent, (low, high))))
    return f"{text}. That is **{money}** at {per_hour} an hour.{slack}"


def update(h: MemoryEstimate) -> str:
    """What is fuller than any moment of the step in usual programs: an update of all tensors at once, or what
    DeepSpeed copies; empty where nothing is."""
    found = _outside(h)
    if not found:
        return ""
    when, held = max(((when, at.value) for when, at in found.items()), key=lambda item: item[1])
    who = (
        "**DeepSpeed** makes copies"
        if int(h.layout.zero) in (1, 2)
        else f"**Without `fused=True`** torch’s own {h.optimizer.name} makes roots of all second moments"
    )
    much = ", which is **more than there is**" if held > h.usable else ""
    return f"{who}: {gib(held)} while it {when}{much}."


def explain_update(h: MemoryEstimate) -> tuple[Explanation, ...]:
    """How that comes about; nothing where nothing is fuller than the step."""
    return tuple(_outside(h).values())


def _outside(h: MemoryEstimate) -> dict[str, Explanation]:
    """What of it there is, by what happens then; nothing where the step is fuller."""
    how, memory, layout = h.plan.runtime_options, h.device_memory, h.layout
    if how.in_backward or how.paged or layout.offload or h.plan.software != EAGER.id:
        return {}
    found: dict[str, Explanation] = {}
    if int(layout.zero) in (1, 2):
        shards = float(degrees_of(layout).shards)
        if memory.master_weights:
            found = {
                "takes the model over": deepspeed_setup(memory, shards),
                "updates": deepspeed_update(memory, shards),
            }
    elif h.optimizer.name in ("Adam", "AdamW"):
        found = {"updates": foreach_update(memory)}
    return {when: at for when, at in found.items() if at.value > h.total}


def launched(h: MemoryEstimate) -> str:
    """What the lines for TRL train, and how a step is made."""
    t, layout = h.plan.trained, h.layout
    what = f"adapters of rank {t.rank:,} on weights in {t.frozen}" if t.adapters else "all weights"
    stage = "2" if layout.zero == 2 else "3"
    how = f", with FSDP as in ZeRO-{stage}" if uses_fsdp(h) else ", with a full copy on each" if layout.data > 1 else ""
    data, batch, rounds = (int(n) for n in (layout.data, layout.micro_batch, layout.micro_batches))
    product = f"{data:,} × {batch:,} × {rounds:,} = **{data * batch * rounds:,}**"
    return (
        f"**TRL trains {what} in {data:,} {plural(data, 'process')}**{how}. Each step takes {product} sequences of up "
        f"to {h.plan.seq_len:,} tokens: processes × micro-batch × accumulated micro-batches."
    )


def fitting(h: MemoryEstimate) -> str:
    """What is offered beside the largest that may be."""
    host = ", if the host’s memory is enough" if math.isnan(h.plan.limits.host) and h.on_host else ""
    return f"Largest that fits{kept_free(h)}, all else as it is{host}"


def not_stored(h: MemoryEstimate) -> str:
    """That nothing is frozen where a quantised type was chosen for it; empty otherwise."""
    t = h.plan.trained
    if not t.everything or not t.storage.quantised:
        return ""
    return (
        f"**Everything is trained, so nothing is stored in {t.frozen}:** an update is smaller than its steps. Choose "
        f"adapters to keep weights in {t.frozen}."
    )
