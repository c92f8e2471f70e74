"""Why torch refuses a step, in words: what does not fit, with the numbers of the tensors at hand.

Only what the layouts say for certain; where torch's own message says it all, nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from core.limits import limit
from core.messages import message
from core.tensors.layout import Bounds, TensorLayout, bounds
from core.tensors.operations.values import DType, Index, Shape, Slot, integers
from core.tensors.tracing.call import Call
from core.tensors.tracing.steps import TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view


def refusal_reason(
    step: Call, inputs: Sequence[TraceStep], target: TensorLayout | None = None
) -> tuple[ViewVerdict | None, str]:
    """Return the verdict on a rejected ``view``, and why torch rejects ``step`` as the end of a sentence, or empty.

    target: what a refused write would have written to, where that is known.
    """
    dtype = next((value for value in step.values if isinstance(value, DType)), None)
    if step.form == "method" and step.operation.name in ("view", "view_as") and dtype is None:
        if step.operation.name == "view_as" and len(inputs) < 2:
            return None, ""
        shape = integers(step.values) if step.operation.name == "view" else inputs[1].layout.shape
        verdict = explain_view(inputs[0].layout, shape)
        return verdict, verdict.reason
    if step.operation.name.endswith("_") or step.form == "write":
        return None, _write(step, inputs, target)
    if not inputs:
        return None, ""
    layout = inputs[0].layout
    match step.operation.name:
        case "as_strided":
            checked = strided_bounds(step, layout, inputs[0].storage_elements)
            if checked is None or checked.inside:
                return None, ""
            return None, message("tensors.bounds.storage", last=float(checked.last), cells=float(checked.storage))
        case "indexing":
            return None, _backwards(step.index or ())
        case "matmul" if len(inputs) == 2:
            return None, _matmul(layout.shape, inputs[1].layout.shape)
        case name:
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


def strided_bounds(step: Call, layout: TensorLayout, cells: int) -> Bounds | None:
    """Whether as_strided of ``layout`` stays in a storage of so many cells; ``None`` for what torch refuses anyway."""
    named = dict(step.keywords)
    size, stride, *rest = (*step.args, named.get("size"), named.get("stride"), named.get("storage_offset"))
    given = integers((rest[0] if len(step.args) > 2 else named.get("storage_offset"),))
    size, stride = integers((size,)), integers((stride,))
    offset = (*given, layout.offset)[0]
    if len(size) != len(stride) or min((*size, *stride, offset), default=0) < 0:
        return None
    return bounds(TensorLayout(size, stride, offset), cells)


def _backwards(index: Index) -> str:
    if any(isinstance(item, slice) and isinstance(item.step, int) and item.step < 0 for item in index):
        return message("tensors.why.backwards")
    return ""


def _matmul(left: Shape, right: Shape) -> str:
    if not left or not right or left[-1] == right[-2:][0]:
        return ""
    return message("tensors.why.matmul", left=float(left[-1]), right=float(right[-2:][0]))


def _write(step: Call, inputs: Sequence[TraceStep], target: TensorLayout | None) -> str:
    """One cell written for several elements, or read after it was written; brackets or sizes that do not fit."""
    if target is None:
        return _backwards(step.index or ())
    if target.numel > limit("tensor_elements"):
        return ""  # neither cells nor what overlaps is worked out at this size
    if target.overlaps:
        return message("tensors.why.overlaps", strides=target.stride)
    given = step.args[0] if step.args else None
    if not isinstance(given, Slot):
        return ""
    value = inputs[given.number]
    wide = zip_longest(reversed(value.layout.shape), reversed(target.shape), fillvalue=1)
    if any(size not in (1, wanted) for size, wanted in wide):
        return message("tensors.why.fits", value=value.layout.shape, target=target.shape)
    same_cells = value.storage == inputs[0].storage and value.layout != target
    if same_cells and len(np.intersect1d(value.layout.cells(), target.cells())):
        return message("tensors.why.aliased")
    return ""
