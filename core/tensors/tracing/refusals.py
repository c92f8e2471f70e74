"""Why torch refuses a step, in words: what does not fit, with the numbers of the tensors at hand.

Only what the layouts say for certain; where torch's own message says it all, nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from core.limits import limit
from core.messages import message
from core.tensors.layout import Bounds, TensorLayout, bounds
from core.tensors.operations.values import integers
from core.tensors.tracing.steps import TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view


def refusal_reason(step: TraceStep, inputs: Sequence[TraceStep]) -> tuple[ViewVerdict | None, str]:
    """Return the verdict on a rejected ``view``, and why torch rejects ``step`` as the end of a sentence, or empty."""
    name, given = step.operation, (*step.args, *step.named.values())
    retyped = any(isinstance(value, dict) and "dtype" in value for value in given)
    if step.form == "method" and name in ("view", "view_as") and not retyped:
        if name == "view_as" and len(inputs) < 2:
            return None, ""
        shape = integers(given) if name == "view" else inputs[1].layout.shape
        verdict = explain_view(inputs[0].layout, shape)
        return verdict, verdict.reason
    if name.endswith("_") or step.form == "write":
        return None, _write(step, inputs)
    if not inputs:
        return None, ""
    match name:
        case "as_strided":
            checked = strided_bounds(step, inputs[0].layout, inputs[0].storage_elements)
            if checked is None or checked.inside:
                return None, ""
            return None, message("tensors.bounds.storage", last=float(checked.last), cells=float(checked.storage))
        case "indexing":
            return None, _backwards(step)
        case "matmul" if len(inputs) == 2:
            left, right = (taken.layout.shape for taken in inputs)
            if not left or not right or left[-1] == right[-2:][0]:
                return None, ""
            return None, message("tensors.why.matmul", left=float(left[-1]), right=float(right[-2:][0]))
        case _:
            return None, message(_RULES[name]) if name in _RULES else ""


_RULES = {
    "view": "tensors.why.view_bytes",
    "permute": "tensors.why.permute",
    **dict.fromkeys(("expand", "broadcast_to"), "tensors.why.expand"),
}
"""What torch asks for; its own message says where it does not hold."""


_GRADIENTS = {
    "does not require grad": "tensors.why.no_gradient",
    "implicitly created only for scalar": "tensors.why.scalar",
    "leaf Variable that requires grad": "tensors.why.leaf",
}
"""Part of torch's message → why there is no backward."""


def gradient_reason(steps: Sequence[TraceStep]) -> str:
    """Why torch refuses the last step for the sake of gradients, as the end of a sentence; empty for other errors."""
    *before, refused = steps
    error = refused.error_message
    if "backward through the graph a second time" in error:
        done = [step for step in before if step.operation == "backward"]
        if not done:
            return message("tensors.why.freed_before")
        return message("tensors.why.freed", call=done[-1].expression, line=float(done[-1].line))
    if "modified by an inplace operation" in error:
        writes = [step for step in before if step.kind == "write"]
        for write in reversed(writes):
            for step in reversed(before[: write.number]):
                if any(saved.storage == write.storage for saved in step.keeps):
                    return message(
                        "tensors.why.changed",
                        write=write.expression,
                        line=float(write.line),
                        saver=step.expression,
                        saver_line=float(step.line),
                    )
    return next((message(why) for part, why in _GRADIENTS.items() if part in error), "")


def strided_bounds(step: TraceStep, layout: TensorLayout, cells: int) -> Bounds | None:
    """Whether as_strided of ``layout`` stays in a storage of so many cells; ``None`` for what torch refuses anyway."""
    named = dict(zip(("self", "size", "stride", "storage_offset"), step.args, strict=False)) | dict(step.named)
    size, stride = (integers((named.get(name),)) for name in ("size", "stride"))
    offset = (*integers((named.get("storage_offset"),)), layout.offset)[0]
    if len(size) != len(stride) or min((*size, *stride, offset), default=0) < 0:
        return None
    return bounds(TensorLayout(size, stride, offset), cells)


def _backwards(step: TraceStep) -> str:
    index: Any = step.args[1] if len(step.args) > 1 else None
    slices = [
        item["slice"]
        for item in (index if isinstance(index, list) else [index])
        if isinstance(item, dict) and "slice" in item
    ]
    return message("tensors.why.backwards") if any((stride or 1) < 0 for _, _, stride in slices) else ""


def _write(step: TraceStep, inputs: Sequence[TraceStep]) -> str:
    """One cell written for several elements, or read after it was written; brackets or sizes that do not fit."""
    target = step.target
    if target is None:
        return _backwards(step)
    if target.numel > limit("tensor_elements"):
        return ""  # neither cells nor what overlaps is worked out at this size
    if target.overlaps:
        return message("tensors.why.overlaps", strides=target.stride)
    given = step.args[2 if step.operation == "write" else 1 :][:1]
    match given:
        case [{"slot": int() as slot}] if slot < len(inputs):
            value = inputs[slot]
        case _:
            return ""
    wide = zip_longest(reversed(value.layout.shape), reversed(target.shape), fillvalue=1)
    if any(size not in (1, wanted) for size, wanted in wide):
        return message("tensors.why.fits", value=value.layout.shape, target=target.shape)
    same_cells = value.storage == inputs[0].storage and value.layout != target
    if same_cells and len(np.intersect1d(value.layout.cells(), target.cells())):
        return message("tensors.why.aliased")
    return ""
