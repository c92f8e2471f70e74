"""What would make a plan fit, in sentences: what each change leaves and costs, and which limits it still misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.hardware.accelerators import Accelerator
from core.messages import Message, message, pick_message
from core.planning.memory_estimate import MemoryEstimate
from core.planning.memory_fixes import Fix, cheapest_fix, fewest_accelerators, fixed_plan, largest, on_host
from core.views.plan.text_limits import but_misses
from core.views.plan.text_memory import sentence


def changes_of(fix: Fix) -> list[Message]:
    """Return what a fix changes: ``recompute full``, ``context parallelism 4``."""
    return [message(f"memory.change.{name}", value=text) for name, text in fix.texts.items()]


def _free(h: MemoryEstimate, fix: Fix) -> float:
    return h.usable - float(fix.device_memory.total)


def _caveats(h: MemoryEstimate, fix: Fix) -> list[Message]:
    host, misses = on_host(h, fix), but_misses(fixed_plan(h, fix))
    return [*([message("memory.fix.host", host=host)] if host else []), *misses]


def rescue(h: MemoryEstimate) -> list[Message]:
    """Return the cheapest change that makes a plan fit or meet its headroom, and its caveats; empty if it does."""
    if not h.lacks:
        return []
    over = h.fits == "over"
    if fix := cheapest_fix(h):
        key = "memory.fix.fits" if over else "memory.fix.enough"
        return [message(key, changes=changes_of(fix), free=_free(h, fix)), *_caveats(h, fix)]
    if more := fewest_accelerators(h):
        return on_more(h, more)
    return [message("memory.fix.none" if over else "memory.fix.none_enough")]


def on_more(h: MemoryEstimate, more: int) -> list[Message]:
    """Return on how many accelerators the plan fits, and which limits it then misses."""
    plan = replace(h.plan, accelerators=float(more))
    return [message("memory.fix.on_more", count=float(more), device=h.plan.accelerator), *but_misses(plan)]


def elsewhere(h: MemoryEstimate, other: Accelerator) -> list[Message]:
    """Return that the plan fits unchanged on another accelerator, and which limits it then misses."""
    plan, count = h.plan.on_accelerator(other.name), float(h.layout.accelerators)
    said = message("memory.fix.elsewhere", count=count, device=other.name, capacity=plan.usable_memory)
    return [said, *but_misses(plan)]


def verdict(h: MemoryEstimate) -> str:
    """Return whether a plan fits, and the cheapest change that would make it fit or meet its headroom."""
    return " ".join([sentence(h), *rescue(h)])


def why(h: MemoryEstimate, found: Sequence[Fix]) -> list[Message]:
    """Return what uses most of the memory, and how many changes make the plan fit, or how far it can grow."""
    classes = {
        "memory.why.states": float(h.device_memory.states - h.device_memory.later),
        "memory.why.activations": float(h.device_memory.activations),
        "memory.why.buffers": float(h.device_memory.buffers + h.device_memory.runtime),
    }
    key, most = max(classes.items(), key=lambda item: item[1])
    return [message(key, most=most, total=h.total), *_outlook(h, found)]


def _outlook(h: MemoryEstimate, found: Sequence[Fix]) -> list[Message]:
    if h.fits == "unknown":
        return []
    over, headroom = h.fits == "over", h.plan.limits.free
    if found:
        return [message("memory.why.fixes" if over else "memory.why.fixes_headroom", n=float(len(found)))]
    if h.lacks:
        return [message("memory.fix.none" if over else "memory.fix.none_enough")]
    now = {"micro_batch": int(h.layout.micro_batch), "length": h.plan.seq_len, "layers": h.spec.layers}
    sizes = zip(now, largest(h), strict=True)
    limits = [message(f"memory.why.{name}", value=float(most)) for name, most in sizes if most > now[name]]
    if not limits:
        return [message("memory.why.full", headroom=headroom)]
    return [message("memory.why.larger", limits=limits, headroom=headroom)]


def costs(fix: Fix) -> list[Message]:
    """Return what a change costs: FLOPs, bytes, and pipeline bubble, over those of the plan."""
    extras = {
        "memory.cost.flops": fix.extra_flop,
        "memory.cost.traffic": fix.extra_traffic,
        "memory.cost.bubble": fix.extra_bubble,
    }
    return [message(key, extra=extra) for key, extra in extras.items() if abs(extra) > 5e-4]


def priced(h: MemoryEstimate, fix: Fix) -> list[Message]:
    """Return a fix with what it saves, leaves free, and costs, and its caveats."""
    added = costs(fix)
    over_link = "memory.fix.option_link" if "off" in fix.texts else "memory.fix.option_free"
    said = pick_message(
        "memory.fix.option" if added else over_link,
        changes=changes_of(fix),
        saved=fix.saved,
        free=_free(h, fix),
        costs=added,
    )
    return [said, *_caveats(h, fix)]
