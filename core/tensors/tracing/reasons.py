"""Why a step is a view, a copy or refused, in words; and what would work instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.operations.table import PART, PICKING, REPEATED, SHORT_CASTS
from core.tensors.tracing.call import Call
from core.tensors.tracing.steps import Kind, Remedy, TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view

_REGROUPING = ("view", "view_as", "reshape", "reshape_as", "flatten", "ravel")
_CASTS = ("to", "type_as", "contiguous", *SHORT_CASTS)


def view_verdict(operation: str, inputs: Sequence[TraceStep], shape: Sequence[int], dtype: str) -> ViewVerdict | None:
    """What the layout algebra says of an operation that regroups dimensions, ``None`` for any other."""
    if operation not in _REGROUPING or dtype != inputs[0].dtype:
        return None
    return explain_view(inputs[0].layout, shape)


def reason(
    step: Call,
    kind: Kind,
    inputs: Sequence[TraceStep],
    layout: TensorLayout,
    dtype: str,
    verdict: ViewVerdict | None,
) -> str:
    """Why ``step`` gave the very same tensor, a view or a copy, as the end of a sentence."""
    name = step.operation.name
    if name in _CASTS:
        return _cast_reason(name, kind, inputs[0], layout, dtype)
    if verdict is not None:
        if name == "ravel" and kind == "copy" and verdict.works:
            return "ravel copies whatever is not contiguous, even where a view would work"
        return verdict.reason
    if name == "view":
        return f"the same bytes, read as {dtype}"
    if step.form == "piece" and kind != "same":
        return inputs[0].reason if inputs[0].kind == kind else "the same operation made it"
    if step.operation.group == "Gradients and devices" and not (name in ("cuda", "cpu") and kind == "same"):
        return step.operation.why
    if (
        kind == "same"
        and step.form not in ("name", "piece")
        and step.operation.group != "Memory layout changed in place"
    ):
        return "there is nothing to do, so it is the same tensor"
    if name == PICKING.name and kind == "view":
        return PART  # a tensor that holds a single whole number picks as that number does
    if step.operation.why == REPEATED and not any(
        n > 1 and not s for n, s in zip(layout.shape, layout.stride, strict=True)
    ):
        return "no size grows, so nothing is repeated: the same cells"
    if step.operation.group == "Named axes":
        return _pattern_reason(step, kind)
    return step.operation.why


def _cast_reason(name: str, kind: Kind, tried: TraceStep, layout: TensorLayout, dtype: str) -> str:
    if kind == "same":
        what = "contiguous" if name == "contiguous" else f"{dtype} laid out as asked"
        return f"it is already {what}, so it is the same tensor"
    if dtype != tried.dtype:
        return f"{dtype} is written differently from {tried.dtype}, so every element is converted"
    old, new = _steps(tried.layout), _steps(layout)
    if old == new:
        return "a copy was asked for"
    if 0 in (stride for size, stride in zip(tried.layout.shape, tried.layout.stride, strict=True) if size > 1) or (
        tried.layout.numel <= limit("tensor_elements") and tried.layout.overlaps
    ):
        how = "each element gets a cell of its own"
    elif _order(old) == _order(new):
        how = "the gaps between the elements close"
    else:
        how = "the elements are written in another order"
    return f"strides {tried.layout.stride} become {layout.stride}: {how}"


def _steps(layout: TensorLayout) -> list[int]:
    """The strides of the dimensions that take a step at all."""
    return [stride for size, stride in zip(layout.shape, layout.stride, strict=True) if size != 1]


def _order(strides: Sequence[int]) -> list[int]:
    return sorted(range(len(strides)), key=strides.__getitem__)


def _pattern_reason(step: Call, kind: Kind) -> str:
    text = next((value for value in step.args if isinstance(value, str)), "")
    left, _, right = text.partition("->")
    if kind == "view":
        terms = [re.findall(r"[A-Za-z]" if step.form == "torch" else r"\w+", term) for term in left.split(",")]
        if any(len(set(term)) < len(term) for term in terms):
            return "a name that stands twice reads the diagonal: one step is one in both dimensions, so strides add up"
        return "the pattern permutes, splits, repeats or merges axes in a way that strides can say"
    if step.operation.name in ("einsum", "reduce"):
        return "computed values need cells of their own"
    known = set(re.findall(r"\w+", left))
    merged = (re.findall(r"\w+", group) for group in re.findall(r"\(([^)]*)\)", right))
    if step.operation.name == "repeat" and any(set(names) - known and len(names) > 1 for names in merged):
        return "repeating alone would be a stride of 0, which cannot merge with another axis, so elements are copied"
    return "the pattern merges axes that do not lie in order, so the elements are rearranged"


def fixes(text: str, step: Call, tried: TraceStep, verdict: ViewVerdict | None) -> tuple[Remedy, ...]:
    """Expressions that work instead of a refused ``.view(…)``, those that copy least first; at the end one that gives
    the elements in the order of memory, where that differs."""
    if verdict is None or verdict.boundary is None or step.form != "method" or step.operation.name != "view":
        return ()
    start, end = step.at
    before, after = text[:start], text[end:]
    arguments = text[start + len("view") : end]
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
