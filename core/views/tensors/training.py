"""A program that trains, or has modules: the answer about all of it, its parameters, and what is saved for backward."""

from __future__ import annotations

from math import prod

from core.tensors.tracing.steps import Saved, Trace, TraceStep
from core.views.tensors.sizes import bytes_text


def is_training(trace: Trace) -> bool:
    """Whether a program has a module, or an optimizer that took a step."""
    return any(one.module or one.states for one in trace.parameters)


def training_headline(trace: Trace) -> tuple[str, str]:
    """Parameters, peak memory, and FLOPs of the program; and where the memory goes. In small markup."""
    names = list(dict.fromkeys(one.module for one in trace.parameters if one.module))
    who = f"`{names[0]}` has" if len(names) == 1 else f"{len(names)} modules have" if names else "The program has"
    count = sum(prod(one.shape) for one in trace.parameters)
    during = f" during `{trace.fullest.expression[:48]}`" if trace.fullest.expression else ""
    flops = sum(step.flops for step in trace.steps)
    computed = f", and the program computes **{flops:,} FLOP**" if flops else ""
    parts = {
        "parameters": sum(one.bytes for one in trace.parameters),
        "gradients": sum(one.gradient_bytes for one in trace.parameters),
        "optimizer state": sum(one.state_bytes for one in trace.parameters),
        "saved for backward": saved_bytes(trace),
    }
    texts = ", ".join(f"{name} {bytes_text(size)}" for name, size in parts.items() if size)
    return (
        f"{who} **{count:,} parameters**. Peak memory is **{bytes_text(max(trace.at_once))}**{during}{computed}.",
        f"Memory by use: {texts}.",
    )


PARAMETER_HEADERS = ("Parameter", "Shape", "Type", "Bytes", "Gradient", "Optimizer state")


def parameter_rows(trace: Trace) -> list[tuple[str, ...]]:
    """Name, shape, type, and bytes of each parameter, of its gradient, and of each state that an optimizer keeps."""
    return [
        (
            f"`{f'{one.module}.{one.name}' if one.module else one.name}`",
            str(one.shape),
            one.dtype,
            bytes_text(one.bytes),
            bytes_text(one.gradient_bytes) if one.gradient_bytes else "None" if one.is_trained else "frozen",
            ", ".join(f"{name.rpartition(': ')[2]} {bytes_text(size)}" for name, size in one.states) or "None",
        )
        for one in trace.parameters
    ]


def saved_tensors(trace: Trace) -> list[tuple[TraceStep, Saved]]:
    """What operations save for the last backward, or for one that is still to come, with their steps."""
    ends = [step.number for step in trace.steps if step.operation == "backward"]
    first, last = [0, *ends][-2:] if ends else (0, len(trace.steps))
    return [(step, saved) for step in trace.steps[first:last] for saved in step.keeps]


def saved_bytes(trace: Trace) -> int:
    """Bytes of what is saved, each storage counted once."""
    return sum({saved.storage: saved.bytes for _, saved in saved_tensors(trace)}.values())


SAVED_HEADERS = ("Tensor", "Saved by", "As", "Bytes")


def saved_rows(trace: Trace) -> list[tuple[str, ...]]:
    """Each saved tensor by name, what saves it, torch's name for it there, and its bytes where it is the first time."""
    counted: set[int] = set()
    rows: list[tuple[str, ...]] = []
    for step, saved in saved_tensors(trace):
        size = "counted above" if saved.storage in counted else bytes_text(saved.bytes)
        counted.add(saved.storage)
        rows.append((_saved_name(trace, step, saved), f"`{step.expression[:48]}`", f"{saved.by}: {saved.name}", size))
    return rows


def _saved_name(trace: Trace, step: TraceStep, saved: Saved) -> str:
    on = [other for other in trace.steps if other.storage == saved.storage and other.kind != "refused"]
    shown = next((other for other in on if other.name), on[0] if on else None)
    if shown is None or (not shown.name and shown.operation == "piece"):
        return "made inside"
    return f"`{trace.label(shown, max(shown.number, step.number))[:48]}`"
