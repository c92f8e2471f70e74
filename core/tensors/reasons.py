"""Why a step is a view, a copy or refused, in words; and what would work instead."""

from __future__ import annotations

from collections.abc import Sequence

from core.tensors.layout import Layout, bounds
from core.tensors.plan import PlanStep
from core.tensors.steps import Fix, Kind, Step
from core.tensors.table import PART, PICKING, SHORT_CASTS
from core.tensors.values import DType, Value, integers, named
from core.tensors.view import ViewVerdict, explain_view

_REGROUPING = ("view", "view_as", "reshape", "flatten", "ravel")
_CASTS = ("to", "contiguous", *SHORT_CASTS)


def view_verdict(operation: str, inputs: Sequence[Step], shape: Sequence[int], dtype: str) -> ViewVerdict | None:
    """What the layout algebra says of an operation that regroups dimensions, ``None`` for any other."""
    if operation not in _REGROUPING or dtype != inputs[0].dtype:
        return None
    return explain_view(inputs[0].layout, shape)


def reason(
    step: PlanStep, kind: Kind, inputs: Sequence[Step], layout: Layout, dtype: str, verdict: ViewVerdict | None
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
    if kind == "same" and step.form not in ("name", "piece"):
        return "there is nothing to do, so it is the same tensor"
    if name == PICKING.name and kind == "view":
        return PART  # a tensor that holds a single whole number picks as that number does
    if step.operation.group == "Named axes":
        return _pattern_reason(step, kind)
    return step.operation.why


def _cast_reason(name: str, kind: Kind, tried: Step, layout: Layout, dtype: str) -> str:
    if kind == "same":
        what = "contiguous" if name == "contiguous" else f"{dtype} laid out as asked"
        return f"it is already {what}, so it is the same tensor"
    if dtype != tried.dtype:
        return f"{dtype} is written differently from {tried.dtype}, so every element is converted"
    if tried.layout.stride != layout.stride:
        return f"strides {tried.layout.stride} become {layout.stride}: every element moves"
    return "a copy was asked for"


def _pattern_reason(step: PlanStep, kind: Kind) -> str:
    if kind == "view":
        return "the pattern only permutes, splits or repeats axes, which strides can say"
    if step.operation.name in ("einsum", "reduce"):
        return "computed values need cells of their own"
    return "the pattern merges axes that do not lie in order, so the elements are rearranged"


def refusal_reason(step: PlanStep, inputs: Sequence[Step]) -> tuple[ViewVerdict | None, str]:
    """The layout algebra's account of a refused ``view`` or ``as_strided``; nothing for other operations."""
    values: tuple[Value, ...] = (*step.args, *(value for _, value in step.keywords))
    if step.operation.name == "view" and not any(isinstance(value, DType) for value in values):
        verdict = explain_view(inputs[0].layout, integers(values))
        return verdict, verdict.reason
    if step.operation.name == "view_as" and len(inputs) == 2:
        verdict = explain_view(inputs[0].layout, inputs[1].layout.shape)
        return verdict, verdict.reason
    if step.operation.name == "as_strided":
        given = named(("size", "stride", "storage_offset"), step.args, dict(step.keywords))
        size, stride = integers((given.get("size"),)), integers((given.get("stride"),))
        offset = (*integers((given.get("storage_offset"),)), inputs[0].layout.offset)[0]
        if len(size) == len(stride) and min((*size, *stride, offset), default=0) >= 0:
            checked = bounds(Layout(size, stride, offset), inputs[0].storage_elements)
            if not checked.inside:
                return None, f"{checked.reason}: {checked.arithmetic}"
    if step.operation.writes or step.form == "write":
        return None, _write_reason(step, inputs)
    return None, ""


def _write_reason(step: PlanStep, inputs: Sequence[Step]) -> str:
    """The in-place hazards: one cell written for several elements, or read after it was written."""
    target = inputs[0]
    if step.index is None and target.layout.overlaps:
        return (
            f"several elements of the tensor are one cell (strides {target.layout.stride}): whose value should it keep?"
        )
    others = [other for other in inputs[1:] if other.storage == target.storage]
    if step.index is None and others and others[0].layout != target.layout:
        return "the values are read from cells that the same step is writing"
    return ""


def fixes(text: str, step: PlanStep, tried: Step, verdict: ViewVerdict | None) -> tuple[Fix, ...]:
    """Expressions that work instead of a refused ``.view(…)``, those that copy least first."""
    if verdict is None or verdict.boundary is None or step.form != "method" or step.operation.name != "view":
        return ()
    start, end = step.at
    before, after = text[:start], text[end:]
    arguments = text[start + len("view") : end]
    as_shape = arguments.replace("size=", "shape=", 1)  # what the parameter is called in reshape
    whole = tried.layout.numel * tried.element_size
    found = [
        Fix(f".reshape{as_shape}", f"{before}reshape{as_shape}{after}", whole),
        Fix(f".contiguous().view{arguments}", f"{before}contiguous().view{arguments}{after}", whole),
    ]
    smaller = verdict.narrowed
    if smaller is not None:
        brackets = ", ".join(":1" if dim in smaller.dims else ":" for dim in range(max(smaller.dims) + 1))
        instead = f"[{brackets}].reshape{smaller.shape}.expand{verdict.shape}"
        dot = before.rstrip().removesuffix(".").rstrip()
        found.insert(0, Fix(instead, f"{dot}{instead}{after}", smaller.elements * tried.element_size))
    return tuple(found)
