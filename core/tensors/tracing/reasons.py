"""Why a step is a view, a copy or refused, in words; and what would work instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.limits import limit
from core.messages import message
from core.tensors.layout import TensorLayout
from core.tensors.operations.table import SHORT_CASTS, find
from core.tensors.tracing.steps import Remedy, TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view

_REGROUPING = ("view", "view_as", "reshape", "reshape_as", "flatten", "ravel")
_CASTS = ("to", "type_as", "contiguous", *SHORT_CASTS)


def view_verdict(step: TraceStep, inputs: Sequence[TraceStep]) -> ViewVerdict | None:
    """What the layout algebra says of an operation that regroups dimensions, ``None`` for any other."""
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
    return _pattern_reason(step) if row.group == "Named axes" else row.why


def _cast_reason(step: TraceStep, tried: TraceStep) -> str:
    layout, dtype = step.layout, step.dtype
    if step.kind == "same":
        contiguous = step.operation == "contiguous"
        return message("tensors.why.contiguous") if contiguous else message("tensors.why.already", dtype=dtype)
    if dtype != tried.dtype:
        return message("tensors.why.cast", old=tried.dtype, new=dtype)
    old, new = _steps(tried.layout), _steps(layout)
    if old == new:
        return message("tensors.why.asked")
    if 0 in (stride for size, stride in zip(tried.layout.shape, tried.layout.stride, strict=True) if size > 1) or (
        tried.layout.numel <= limit("tensor_elements") and tried.layout.overlaps
    ):
        how = "tensors.why.own_cells"
    elif _order(old) == _order(new):
        how = "tensors.why.gaps"
    else:
        how = "tensors.why.order"
    return message(how, old=tried.layout.stride, new=layout.stride)


def _steps(layout: TensorLayout) -> list[int]:
    """The strides of the dimensions that take a step at all."""
    return [stride for size, stride in zip(layout.shape, layout.stride, strict=True) if size != 1]


def _order(strides: Sequence[int]) -> list[int]:
    return sorted(range(len(strides)), key=strides.__getitem__)


def _pattern_reason(step: TraceStep) -> str:
    text = next((value for value in step.args if isinstance(value, str)), "")
    left, _, right = text.partition("->")
    if step.kind == "view":
        terms = [re.findall(r"[A-Za-z]" if step.form == "torch" else r"\w+", term) for term in left.split(",")]
        if any(len(set(term)) < len(term) for term in terms):
            return message("tensors.why.diagonal")
        return message("tensors.why.pattern_view")
    if step.operation in ("einsum", "reduce"):
        return message("tensors.why.computed")
    known = set(re.findall(r"\w+", left))
    merged = (re.findall(r"\w+", group) for group in re.findall(r"\(([^)]*)\)", right))
    if step.operation == "repeat" and any(set(names) - known and len(names) > 1 for names in merged):
        return message("tensors.why.repeated")
    return message("tensors.why.pattern_copy")


def fixes(text: str, step: TraceStep, tried: TraceStep) -> tuple[Remedy, ...]:
    """Expressions that work instead of a refused ``.view(…)``, those that copy least first; at the end one that gives
    the elements in the order of memory, where that differs."""
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
    smaller = verdict.narrowed
    if smaller is not None:
        brackets = ", ".join(":1" if dim in smaller.dims else ":" for dim in range(max(smaller.dims) + 1))
        instead = f"[{brackets}].reshape{smaller.shape}.expand{verdict.shape}"
        dot = before.rstrip().removesuffix(".").rstrip()
        result.insert(0, Remedy(instead, f"{dot}{instead}{after}", smaller.elements * tried.element_size))
    order = sorted(range(tried.layout.rank), key=lambda dim: -tried.layout.stride[dim])
    if explain_view(tried.layout.permuted(order), verdict.shape).works:
        instead = f"permute{tuple(order)}.view{arguments}"
        result.append(Remedy(f".{instead}", f"{before}{instead}{after}", 0, reorders=True))
    return tuple(result)
