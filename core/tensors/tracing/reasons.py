"""Why a step is a view, a copy or refused, in words; and what would work instead."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import message
from core.tensors.operations.table import SHORT_CASTS, find
from core.tensors.tracing.steps import Remedy, TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view

_REGROUPING = ("view", "view_as", "reshape", "reshape_as", "flatten", "ravel")
_CASTS = ("to", "type_as", "contiguous", *SHORT_CASTS)


def view_verdict(step: TraceStep, inputs: Sequence[TraceStep]) -> ViewVerdict | None:
    """Return what the layout algebra says of an operation that regroups dimensions, ``None`` for any other."""
    if step.kind == "write" or step.operation not in _REGROUPING or not inputs or step.dtype != inputs[0].dtype:
        return None
    return explain_view(inputs[0].layout, step.layout.shape)


def reason(step: TraceStep, inputs: Sequence[TraceStep]) -> str:
    """Return why ``step`` gave the same tensor, a view, or a copy, as the end of a sentence."""
    name, kind, verdict, layout = step.operation, step.kind, step.verdict, step.layout
    if name in _CASTS:
        return _cast_reason(step, inputs[0])
    if verdict is not None:
        if name == "ravel" and kind == "copy" and verdict.works:
            return message("tensors.why.ravel")
        return verdict.reason
    if name == "view":
        return message("tensors.why.bytes", dtype=step.dtype)
    if step.form == "piece" and kind != "same":
        return inputs[0].reason if inputs[0].kind == kind else message("tensors.why.together")
    row = find(step.form, name)
    if row.group == "Gradients and devices" and not (name in ("cuda", "cpu") and kind == "same"):
        return row.why
    if kind == "same" and step.form not in ("name", "piece") and row.group != "Memory layout changed in place":
        return message("tensors.why.nothing")
    if name == "picking" and kind == "view":
        return find("index", "indexing").why  # a tensor that holds a single whole number picks as that number does
    if row.why == find("method", "expand").why and not any(
        n > 1 and not s for n, s in zip(layout.shape, layout.stride, strict=True)
    ):
        return message("tensors.why.unrepeated")
    if row.group == "Named axes":
        return message(_PATTERNS["computed" if kind == "copy" and name in ("einsum", "reduce") else kind])
    return row.why


_PATTERNS = {
    "view": "tensors.why.pattern_view",
    "copy": "tensors.why.pattern_copy",
    "computed": "tensors.why.computed",
}


def _cast_reason(step: TraceStep, tried: TraceStep) -> str:
    layout, dtype = step.layout, step.dtype
    if step.kind == "same":
        contiguous = step.operation == "contiguous"
        return message("tensors.why.contiguous") if contiguous else message("tensors.why.already", dtype=dtype)
    if dtype != tried.dtype:
        return message("tensors.why.cast", old=tried.dtype, new=dtype)
    steps = [[s for n, s in zip(at.shape, at.stride, strict=True) if n != 1] for at in (tried.layout, layout)]
    if steps[0] == steps[1]:
        return message("tensors.why.asked")
    return message("tensors.why.packed", old=tried.layout.stride, new=layout.stride)


def fixes(text: str, step: TraceStep, tried: TraceStep) -> tuple[Remedy, ...]:
    """Return expressions that work instead of a rejected ``.view(…)``, those that copy least first; at the end one that
    gives the elements in the order of memory, where that differs."""
    verdict, arguments = step.verdict, step.source.removeprefix(".view")
    line = sum(len(line) + 1 for line in text.split("\n")[: step.line - 1])
    start = text.find(step.expression, line)
    if verdict is None or verdict.boundary is None or (step.form, step.operation) != ("method", "view") or start < 0:
        return ()
    before, after = text[: start + len(step.expression) - len(arguments)], text[start + len(step.expression) :]
    if not (step.expression.endswith(arguments) and before.endswith("view")):  # written over several lines
        return ()
    before = before.removesuffix("view")
    as_shape = arguments.replace("size=", "shape=", 1)  # what the parameter is called in reshape
    whole = tried.layout.numel * tried.element_size
    result = [
        Remedy(f".reshape{as_shape}", f"{before}reshape{as_shape}{after}", whole),
        Remedy(f".contiguous().view{arguments}", f"{before}contiguous().view{arguments}{after}", whole),
    ]
    order = sorted(range(tried.layout.rank), key=lambda dim: -tried.layout.stride[dim])
    if explain_view(tried.layout.permuted(order), verdict.shape).works:
        instead = f"permute{tuple(order)}.view{arguments}"
        result.append(Remedy(f".{instead}", f"{before}{instead}{after}", 0, reorders=True))
    return tuple(result)
