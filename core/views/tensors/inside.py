"""What operations allocate besides their results, and the memory and FLOPs of a program."""

from __future__ import annotations

from core.messages import Message, message
from core.tensors.tracing.operand_copies import operand_copies
from core.tensors.tracing.steps import Trace, TraceStep

_NUMBER = 8
"""Bytes of a single number, such as a sum before it is divided."""


def notable_bytes(step: TraceStep) -> int:
    """Return what an operation allocated besides its result, in bytes, without single numbers."""
    return step.bytes_inside - sum(block.bytes for block in step.freed if block.bytes <= _NUMBER)


def inside(trace: Trace, step: TraceStep) -> list[Message]:
    """Return what the operation of ``step`` allocated besides its result; nothing if it did not."""
    if not (size := notable_bytes(step)):
        return []
    if operands := _operands(trace, step):
        return [operands]
    parts = list(dict.fromkeys(block.by for block in step.freed if block.bytes > _NUMBER)) or [step.operation]
    return [message("tensors.inside.parts", call=step.source, bytes=float(size), parts=parts)]


def _operands(trace: Trace, step: TraceStep) -> Message | None:
    """Return which operands a matmul copies, and why; None if something else is copied."""
    is_matmul = step.operation == "matmul" or step.symbol == "@"
    if not is_matmul or step.kind == "refused" or len(step.inputs) != 2:
        return None
    taken = [trace.steps[number] for number in step.inputs]
    copies = operand_copies(*(item.layout for item in taken))
    size = sum(copy.elements for copy in copies) * step.element_size
    if not copies or size != step.bytes_inside or {block.by for block in step.freed} != {"clone"}:
        return None
    names = [trace.label(taken[copy.operand], step.number - 1) for copy in copies]
    return message("tensors.inside.operands", names=names, bytes=float(size), reason=copies[0].reason)


def flops(step: TraceStep) -> list[Message]:
    """Return the FLOPs of a step; nothing if it has none."""
    return [message("tensors.memory.step_flops", flops=float(step.flops))] if step.flops else []


def memory(trace: Trace) -> list[Message]:
    """Return the bytes allocated in all where operations need temporary memory, peak memory, and FLOPs."""
    found: list[Message] = []
    if trace.last.bytes_total:
        peak, full = float(max(trace.at_once)), trace.fullest
        if full.kind == "start":
            found.append(message("tensors.memory.peak", peak=peak))
        else:
            found.append(message("tensors.memory.during", peak=peak, call=full.expression))
        if trace.bytes_inside:
            found.append(message("tensors.memory.total", total=float(trace.last.bytes_total)))
    if total := sum(step.flops * step.times for step in trace.steps):
        found.append(message("tensors.memory.flops", flops=float(total)))
    return found
