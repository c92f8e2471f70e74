"""Why torch refuses a step, in words: what does not fit, with the numbers of the tensors at hand.

Only what the layouts say for certain; where torch's own message says it all, nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from core.limits import limit
from core.tensors.layout import Bounds, TensorLayout, bounds
from core.tensors.operations.values import DType, Index, Shape, Slot, integers
from core.tensors.tracing.call import Call
from core.tensors.tracing.steps import TraceStep
from core.tensors.view_rule import ViewVerdict, explain_view


def refusal_reason(
    step: Call, inputs: Sequence[TraceStep], target: TensorLayout | None = None
) -> tuple[ViewVerdict | None, str]:
    """The verdict on a refused ``view``, and why torch refused ``step``, as the end of a sentence, empty for unknown.

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
            return None, "" if checked is None or checked.inside else f"{checked.reason}: {checked.arithmetic}"
        case "indexing":
            return None, _backwards(step.index or ())
        case "matmul" if len(inputs) == 2:
            return None, _matmul(layout.shape, inputs[1].layout.shape)
        case name:
            return None, _RULES.get(name, "")


_RULES = {
    "view": "elements of another size are made of neighbours in memory along the last dimension, as many as it takes",
    "permute": "permute names every dimension once",
    **dict.fromkeys(
        ("expand", "broadcast_to"),
        "expanding repeats a single element by stride 0, so only a size of 1 grows, and no dimension is dropped",
    ),
}
"""What torch asks for; its own message says where it does not hold."""


_GRADIENTS = {
    "does not require grad": "nothing that it came from requires a gradient, or it was computed under `no_grad`",
    "implicitly created only for scalar": "gradients begin at a single number, such as its `.sum()`",
    "leaf Variable that requires grad": "a leaf that requires a gradient is written only under `torch.no_grad()`",
}
"""Part of torch's message → why there is no backward."""


def gradient_reason(steps: Sequence[TraceStep]) -> str:
    """Why torch refuses the last step for the sake of gradients, as the end of a sentence; empty for other errors."""
    *before, refused = steps
    message = refused.error_message
    if "backward through the graph a second time" in message:
        done = [step for step in before if step.operation == "backward"]
        whose = f"`{done[-1].expression}` on line {done[-1].line}" if done else "an earlier call"
        return f"{whose} freed what the operations had saved; pass retain_graph=True there, or compute the loss again"
    if "modified by an inplace operation" in message:
        writes = [step for step in before if step.kind == "write"]
        for write in reversed(writes):
            for step in reversed(before[: write.number]):
                if any(saved.storage == write.storage for saved in step.keeps):
                    saver = f"`{step.expression}` on line {step.line}"
                    return f"`{write.expression}` on line {write.line} changed a tensor that {saver} saved for backward"
    return next((why for part, why in _GRADIENTS.items() if part in message), "")


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
        return "a step backwards needs a negative stride, and torch has none; flip copies instead"
    return ""


def _matmul(left: Shape, right: Shape) -> str:
    if not left or not right or left[-1] == right[-2:][0]:
        return ""
    return f"a row of the left has {left[-1]} elements and a column of the right {right[-2:][0]}, and must have as many"


def _write(step: Call, inputs: Sequence[TraceStep], target: TensorLayout | None) -> str:
    """One cell written for several elements, or read after it was written; brackets or sizes that do not fit."""
    if target is None:
        return _backwards(step.index or ())
    if target.numel > limit("tensor_elements"):
        return ""  # neither cells nor what overlaps is worked out at this size
    if target.overlaps:
        return f"several elements of the tensor are one cell (strides {target.stride}): whose value should it keep?"
    given = step.args[0] if step.args else None
    if not isinstance(given, Slot):
        return ""
    value = inputs[given.number]
    wide = zip_longest(reversed(value.layout.shape), reversed(target.shape), fillvalue=1)
    if any(size not in (1, wanted) for size, wanted in wide):
        return f"values of shape {value.layout.shape} do not fit into shape {target.shape}"
    same_cells = value.storage == inputs[0].storage and value.layout != target
    if same_cells and len(np.intersect1d(value.layout.cells(), target.cells())):
        return "the values are read from cells that the same step is writing"
    return ""
