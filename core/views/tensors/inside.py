"""What operations allocate inside and free again, in sentences: how much, what for, and how much there is at once."""

from __future__ import annotations

from core.tensors.tracing.operand_copies import operand_copies
from core.tensors.tracing.steps import Trace, TraceStep
from core.views.tensors.sizes import bytes_text

_WHAT = {
    "clone": ("a copy in order", "copies in order"),
    "contiguous": ("a copy in order", "copies in order"),
    "_to_copy": ("a copy in another element type", "copies in another element type"),
    "to": ("a copy in another element type", "copies in another element type"),
    "_log_softmax": ("the log-softmax", "log-softmaxes"),
    "_softmax": ("the softmax", "softmaxes"),
    "nonzero": ("the places that a mask picks", "lists of places that a mask picks"),
}
"""What a part of an operation makes, by torch's name for it: one, and several."""


_NUMBER = 8
"""Bytes of a single number, such as a sum before it is divided."""


def notable_bytes(step: TraceStep) -> int:
    """What an operation allocated besides its result, without single numbers."""
    return step.bytes_inside - sum(block.bytes for block in step.freed if block.bytes <= _NUMBER)


def inside(trace: Trace, step: TraceStep) -> str:
    """What the operation of ``step`` allocated besides its result, as a sentence in small markup; empty for nothing."""
    if not notable_bytes(step):
        return ""
    return _operands(trace, step) or f"{_code(step)} makes inside, and frees again: {_parts(step)}."


def _code(step: TraceStep) -> str:
    return f"`{step.source if len(step.source) <= 48 else f'{step.source[:47]}…'}`"


def _parts(step: TraceStep) -> str:
    """Everything that was freed again, alike blocks together, largest first."""
    sizes: dict[str, list[int]] = {}
    for block in (block for block in step.freed if block.bytes > _NUMBER):
        sizes.setdefault(block.by, []).append(block.bytes)
    texts: list[str] = []
    for name, blocks in sorted(sizes.items(), key=lambda item: -sum(item[1])):
        one, several = _WHAT.get(name, (f"what `{name}` works on", f"blocks that `{name}` works on"))
        texts.append(f"{one if len(blocks) == 1 else f'{len(blocks)} {several}'}, {bytes_text(sum(blocks))}")
    rest = notable_bytes(step) - sum(sum(blocks) for blocks in sizes.values())
    if rest > 0:
        texts.append(f"results that are not picked, {bytes_text(rest)}")
    return "; ".join(texts)


def _operands(trace: Trace, step: TraceStep) -> str:
    """Which operands a product copies, and why; empty where something else is copied."""
    planned = trace.calls[step.number - 1]
    is_product = step.operation == "matmul" or planned.symbol == "@"
    if not is_product or step.kind == "refused" or len(step.inputs) != 2:
        return ""
    taken = [trace.steps[number] for number in step.inputs]
    copies = operand_copies(*(item.layout for item in taken))
    sizes = [copy.elements * step.element_size for copy in copies]
    if not copies or sum(sizes) != step.bytes_inside or {block.by for block in step.freed} != {"clone"}:
        return ""
    names = [f"`{trace.label(taken[copy.operand], step.number - 1)}`" for copy in copies]
    each = " and ".join(map(bytes_text, sizes)) if len(set(sizes)) > 1 else bytes_text(sizes[0])
    whose = " each" if len(names) > 1 and len(set(sizes)) == 1 else ""
    both = "both" if len(names) > 1 else "it"
    return f"`@` copies {' and '.join(names)}, {each}{whose}, and frees {both}: {copies[0].reason}."


def most_inside(trace: Trace) -> str:
    """What the operation that allocates most besides its result does with it; empty where none does."""
    return inside(trace, max(trace.steps, key=notable_bytes))


def flops(step: TraceStep) -> str:
    """What the products of a step compute; empty for nothing."""
    return f"{step.flops:,} FLOP." if step.flops else ""


def memory(trace: Trace) -> str:
    """All that was allocated and the most there was at once, and of what; and FLOPs in all, as sentences."""
    total = sum(step.flops for step in trace.steps)
    counted = f" Matmuls, convolutions, and attention compute **{total:,} FLOP**." if total else ""
    return f"{_memory(trace)}{counted}".strip()


def _memory(trace: Trace) -> str:
    if not trace.last.bytes_total:
        return ""
    about = "about " if trace.counted else ""
    full = trace.fullest
    during = "" if full.kind == "start" else f", during {_code(full)}"
    once = f"at most {about}**{bytes_text(max(trace.at_once))}** at once{', x with it' * trace.starts_with_x}{during}."
    if not trace.bytes_inside:
        return once[:1].upper() + once[1:]
    kernels = "; what kernels work on is not counted at this size" if trace.counted else ""
    return (
        f"{'After x' if trace.starts_with_x else 'In all'} {about}**{bytes_text(trace.last.bytes_total)}**; {once} "
        f"torch’s profiler on the CPU{kernels}; fused kernels differ."
    )
