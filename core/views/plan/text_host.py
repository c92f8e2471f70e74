"""What a plan that offloads takes of the host's memory, in a sentence."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from core.budget.equations import BudgetError
from core.formula import Explanation
from core.models.spec import SpecError
from core.planning.estimate import timed_estimate
from core.planning.memory_estimate import MemoryEstimate, held_by_host
from core.training.layout import LayoutError
from core.units import format_duration
from core.views.plan.text_memory import gib
from core.wording import listed


def host(h: MemoryEstimate) -> str:
    """What lies in the host's memory, for one accelerator and for those of a node; empty where nothing is offloaded."""
    held = held_by_host(h)
    if not held.total:
        return ""
    node = min(int(h.layout.accelerators), h.plan.device.node_size)
    what = {
        "optimizer state and master weights" if h.policy.master else "optimizer state": held.state,
        "gradients in fp32": held.gradients,
        "parameters": held.parameters,
        "activations": held.activations,
    }
    parts = listed([f"{name} {gib(size)}" for name, size in what.items() if size])
    every = f" for each accelerator, **{gib(node * held.total)}** for the {node:,} of a node" if node > 1 else ""
    most = "up to " if h.plan.runtime_options.paged and not h.layout.offload else ""
    text = f"**The host’s memory** takes {most}**{gib(held.total)}**{every}: {parts}."
    if not h.layout.offload:
        return text
    most = h.plan.limits.host
    short = "" if h.host_holds else f", which is **more than the {gib(most)}** that there are"
    buffers = f"DeepSpeed reckons with half as much again for buffers, {gib(h.on_host)}{short}."
    return f"{text} {buffers}{_time(h)}"


def _time(h: MemoryEstimate) -> str:
    """How long the update takes there, and what weights that come from there wait; empty where no step is timed."""
    with suppress(BudgetError, SpecError, LayoutError):
        at = timed_estimate(h.plan)
        layout = at.step.layout
        step = at.request.step(layout)
        update, whole = (format_duration(float(seconds), 2) for seconds in (step.optimizer, step.total))
        text = f" The update there takes {update} of a step of {whole}."
        if int(layout.offload) < 2:
            return text
        waited = float(step.data) - float(at.request.step(replace(layout, offload=1)).data)
        return (
            f"{text} Each layer’s weights come over the host’s link for forward and again for backward of every "
            f"micro-batch; {format_duration(waited, 2)} of that is not hidden behind computing."
        )
    return ""


def explain_host(h: MemoryEstimate) -> tuple[Explanation, ...]:
    """How the bytes come about; nothing where nothing is offloaded."""
    held = held_by_host(h)
    return (held.explain(),) if held.total else ()
