"""What would make a plan fit, in sentences: what each change leaves and costs, and which limits it still misses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from core.hardware.accelerators import Accelerator
from core.planning.memory_estimate import MemoryEstimate
from core.planning.memory_fixes import Fix, cheapest_fix, fewest_accelerators, fixed_plan, largest, on_host
from core.views.plan.text_limits import but_misses
from core.views.plan.text_memory import gib, kept_free, sentence
from core.wording import listed, percent, plural

_CHANGES = {
    "rc": "recompute {}",
    "mbs": "micro-batch {}",
    "zero": "ZeRO-{}",
    "cp": "context parallel {}",
    "tp": "tensor parallel {}",
    "pp": "pipeline of {} stages",
    "off": "{} offloaded",
    "chunks": "the loss in {} pieces",
}


def change(fix: Fix) -> str:
    """What a fix changes: ``recompute full and context parallel 4``."""
    return listed([_CHANGES[name].format(text) for name, text in fix.texts.items()])


def _then(h: MemoryEstimate, fix: Fix) -> str:
    host = on_host(h, fix)
    each = " for each accelerator" if h.layout.accelerators > 1 else ""
    beside = f", taking {gib(host)} of the host’s memory{each}" if host else ""
    return f"{gib(h.usable - float(fix.device_memory.total))} free{beside}{but_misses(fixed_plan(h, fix))}"


def rescue(h: MemoryEstimate) -> str:
    """The cheapest change that would make it fit, or leave free what it keeps, and the limits that it still misses;
    empty where it does."""
    if not h.lacks:
        return ""
    would = "It would fit" if h.fits == "over" else "It leaves enough"
    if fix := cheapest_fix(h):
        return f"{would} with **{change(fix)}**, {_then(h, fix)}."
    if more := fewest_accelerators(h):
        return f"{would} o{on_more(h, more)[1:]}."
    return f"No small change of its layout {'makes it fit' if h.fits == 'over' else 'leaves as much'}."


def on_more(h: MemoryEstimate, more: int) -> str:
    """On how many accelerators the plan fits."""
    return f"On **{more:,} × {h.plan.accelerator}**{but_misses(replace(h.plan, accelerators=float(more)))}"


def verdict(h: MemoryEstimate) -> str:
    """Whether it fits, and the cheapest change that would make it fit or leave free what it keeps."""
    return f"{sentence(h)} {rescue(h)}".strip()


def why(h: MemoryEstimate, result: Sequence[Fix], more: int | None, others: Sequence[Accelerator]) -> str:
    """What fills the accelerator most, and how many changes would do; more: accelerators that hold it as it is."""
    classes = {
        "model states": float(h.device_memory.states - h.device_memory.later),
        "activations": float(h.device_memory.activations),
        "buffers and runtime": float(h.device_memory.buffers + h.device_memory.runtime),
    }
    name, most = max(classes.items(), key=lambda item: item[1])
    share = f"**{name.capitalize()} are the most of it**, {gib(most)} of {gib(h.total)}."
    if h.fits == "unknown":
        return share
    if not h.lacks:
        batch, length, layers = largest(h)
        larger = [f"a micro-batch of up to **{batch:,}**"] if batch > int(h.layout.micro_batch) else []
        larger += [f"sequences of up to **{length:,}** tokens"] if length > h.plan.seq_len else []
        larger += [f"up to **{layers:,}** layers of these"] if layers > h.spec.layers else []
        room = f"there is room for {', or '.join(larger)}" if larger else "nothing of it can be larger"
        return f"{share} It fits. All else as it is{kept_free(h)}, {room}."
    enough = "No change of its layout on these accelerators is enough."
    if result:
        to = "to make it fit" if h.fits == "over" else "to leave as much free as you keep"
        enough = f"{len(result)} {plural(len(result), 'way')} {to} on the same accelerators, the cheapest first."
    count = int(h.layout.accelerators)
    onto = [f"**{more:,} × {h.plan.device.name}**"] if more else []
    plans = [h.plan.on_accelerator(other.name) for other in others[:2]]
    onto += [f"{count:,} × {plan.accelerator} with {gib(plan.usable_memory)}{but_misses(plan)}" for plan in plans]
    so = "fits" if h.fits == "over" else "does"
    return f"{share} {enough}" + (f" Unchanged it {so} on {listed(onto, 'or')}." if onto else "")


def costs(fix: Fix) -> str:
    """What a change costs: FLOPs, bytes and waiting, over those of the plan as it is."""
    sentences = [
        f"{percent(abs(extra))} {more if extra > 0 else fewer} {what}"
        for extra, more, fewer, what in (
            (fix.extra_flop, "more", "fewer", "FLOPs"),
            (fix.extra_traffic, "more", "fewer", "bytes sent for each token"),
            (fix.extra_bubble, "longer", "shorter", "for the pipeline’s wait"),
        )
        if abs(extra) > 5e-4
    ]
    if math.isnan(fix.extra_traffic) and "off" in fix.texts:
        sentences.append("gradients and weights cross to the host")
    return ", ".join(sentences) or "no more FLOPs or bytes sent"


def priced(h: MemoryEstimate, fix: Fix) -> str:
    """A fix with what it saves and leaves, and what it costs."""
    name = change(fix)
    return f"**{name[0].upper()}{name[1:]}** saves {gib(fix.saved)}: {_then(h, fix)}; {costs(fix)}."
