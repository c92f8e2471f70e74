"""A program that trains: the answer about all of it, its parameters, and what is saved for backward."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from core.messages import Message, message
from core.tensors.tracing.steps import Saved, Trace, TraceStep
from core.wording import format_value


def is_training(trace: Trace) -> bool:
    """Return whether a program trains, or ends with what a module computes."""
    parameters = trace.parameters
    if any(one.states or (one.module and one.gradient_bytes) for one in parameters):
        return True
    last = trace.last
    return any(one.module for one in parameters) and last.kind == "copy" and (last.asks_gradient or len(trace) < 3)


def training_headline(trace: Trace) -> list[Message]:
    """Return the parameters and the peak memory of the program, and what takes memory at its end."""
    names = list(dict.fromkeys(one.module for one in trace.parameters if one.module))
    count, peak = float(sum(prod(one.shape) for one in trace.parameters)), float(max(trace.at_once))
    if len(names) == 1:
        answer = message("tensors.trains.module", module=names[0], parameters=count, peak=peak)
    elif names:
        answer = message("tensors.trains.modules", modules=float(len(names)), parameters=count, peak=peak)
    else:
        answer = message("tensors.trains.program", parameters=count, peak=peak)
    parts = {
        "tensors.trains.parameters": sum(one.bytes for one in trace.parameters),
        "tensors.trains.gradients": sum(one.gradient_bytes for one in trace.parameters),
        "tensors.trains.states": sum(one.state_bytes for one in trace.parameters),
        "tensors.trains.saved": saved_bytes(trace),
    }
    used = [message(part, bytes=float(size)) for part, size in parts.items() if size]
    return [answer, message("tensors.trains.use", parts=used)] if used else [answer]


def parameter_headers() -> list[Message]:
    """Return the headers of `parameter_rows`."""
    return [
        message("tensors.table.parameter"),
        message("tensors.picture.shape"),
        message("tensors.table.type"),
        message("tensors.table.bytes"),
        message("tensors.table.gradient"),
        message("tensors.table.states"),
    ]


def parameter_rows(trace: Trace) -> list[tuple[str, ...]]:
    """Return name, shape, type, and bytes of each parameter, of its gradient, and of each state of optimizers."""
    return [
        (
            f"`{f'{one.module}.{one.name}' if one.module else one.name}`",
            str(one.shape),
            one.dtype,
            format_value(one.bytes, "B"),
            format_value(one.gradient_bytes, "B")
            if one.gradient_bytes
            else message("tensors.table.none" if one.is_trained else "tensors.table.frozen"),
            ", ".join(
                message("tensors.table.state", name=name.rpartition(": ")[2], bytes=float(size))
                for name, size in one.states
            )
            or message("tensors.table.none"),
        )
        for one in trace.parameters
    ]


def saved_tensors(trace: Trace) -> list[tuple[TraceStep, Saved]]:
    """Return what operations save for the last backward, or for one that is still to come, with their steps."""
    ends = [step.number for step in trace.steps if step.operation == "backward"]
    first, last = [0, *ends][-2:] if ends else (0, len(trace.steps))
    return [(step, saved) for step in trace.steps[first:last] for saved in step.keeps]


def saved_bytes(trace: Trace) -> int:
    """Return the bytes of what is saved, each storage counted once."""
    return sum({saved.storage: saved.bytes for _, saved in saved_tensors(trace)}.values())


def saved_headers() -> list[Message]:
    """Return the headers of `saved_rows`."""
    return [
        message("tensors.table.tensor"),
        message("tensors.table.by"),
        message("tensors.table.role"),
        message("tensors.table.bytes"),
    ]


def saved_rows(trace: Trace) -> Iterator[tuple[str, ...]]:
    """Yield each saved tensor by name, what saves it, torch's name for it there, and its bytes the first time."""
    counted: set[int] = set()
    for step, saved in saved_tensors(trace):
        size = message("tensors.table.again") if saved.storage in counted else format_value(saved.bytes, "B")
        counted.add(saved.storage)
        yield _saved_name(trace, step, saved), f"`{step.expression[:48]}`", f"{saved.by}: {saved.name}", size


def _saved_name(trace: Trace, step: TraceStep, saved: Saved) -> str:
    on = [other for other in trace.steps if other.storage == saved.storage and other.kind != "refused"]
    shown = next((other for other in on if other.name), on[0] if on else None)
    if shown is None or (not shown.name and shown.operation == "piece"):
        return message("tensors.table.inner")
    return f"`{trace.label(shown, max(shown.number, step.number))[:48]}`"
