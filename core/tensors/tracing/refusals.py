"""Why torch refuses a step, in words: what does not fit, with the numbers of the tensors at hand.

Only what the layouts say for certain; where torch's own message says it all, nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from core.limits import limit
from core.tensors.layout import Layout, bounds
from core.tensors.operations.values import DType, Index, Shape, Slot, Value, integers, named
from core.tensors.parsing.plan import PlanStep
from core.tensors.tracing.steps import Step
from core.tensors.view_rule import ViewVerdict, explain_view

_BYTES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}
_WIDE = 8
"""Bytes of int64, float64 and complex64."""


def refusal_reason(
    step: PlanStep, inputs: Sequence[Step], target: Layout | None = None
) -> tuple[ViewVerdict | None, str]:
    """The verdict on a refused ``view``, and why torch refused ``step``, as the end of a sentence, empty for unknown.

    target: what a refused write would have written to, where that is known.
    """
    values: tuple[Value, ...] = (*step.args, *(value for _, value in step.keywords))
    dtype = next((value.name for value in values if isinstance(value, DType)), "")
    if step.form == "method" and step.operation.name in ("view", "view_as") and not dtype:
        if step.operation.name == "view_as" and len(inputs) < 2:
            return None, ""
        shape = integers(values) if step.operation.name == "view" else inputs[1].layout.shape
        verdict = explain_view(inputs[0].layout, shape)
        return verdict, verdict.reason
    if step.operation.writes or step.form == "write":
        return None, _write(step, inputs, target)
    if not inputs:
        return None, ""
    layout = inputs[0].layout
    match step.operation.name:
        case "view":
            return None, _view_dtype(inputs[0], dtype)
        case "as_strided":
            return None, _as_strided(step, inputs[0])
        case "permute":
            return None, _permute(layout, integers(values))
        case "expand" | "broadcast_to":
            return None, _expand(layout, integers(values))
        case "indexing":
            return None, _index(layout, step.index or ())
        case "matmul" if len(inputs) == 2:
            return None, _matmul(layout.shape, inputs[1].layout.shape)
        case "elementwise" if len(inputs) == 2:
            return None, _broadcast(layout.shape, inputs[1].layout.shape)
        case _:
            return None, ""


def _as_strided(step: PlanStep, tried: Step) -> str:
    given = named(("size", "stride", "storage_offset"), step.args, dict(step.keywords))
    size, stride = integers((given.get("size"),)), integers((given.get("stride"),))
    offset = (*integers((given.get("storage_offset"),)), tried.layout.offset)[0]
    if len(size) != len(stride) or min((*size, *stride, offset), default=0) < 0:
        return ""
    checked = bounds(Layout(size, stride, offset), tried.storage_elements)
    return "" if checked.inside else f"{checked.reason}: {checked.arithmetic}"


def _view_dtype(tried: Step, dtype: str) -> str:
    """Another element type of another size: bytes must lie together, and make whole elements."""
    layout, old, new = tried.layout, tried.element_size, _BYTES.get(dtype, _WIDE)
    if old == new or dtype == "bool":
        return ""
    if not layout.rank:
        return "without dimensions there is none whose elements could be split or joined"
    if layout.stride[-1] != 1:
        return (
            f"elements of {old} B become elements of {new} B along the last dimension, so its elements must be "
            f"neighbours in memory: stride 1, not {layout.stride[-1]}"
        )
    if new < old:
        return ""
    ratio = new // old
    if layout.shape[-1] % ratio:
        return f"{ratio} elements of {old} B make one of {new} B, and {layout.shape[-1]} do not divide by {ratio}"
    uneven = [stride for stride in (layout.offset, *layout.stride[:-1]) if stride % ratio]
    return f"an offset or stride of {uneven[0]} is no multiple of the {ratio} elements that make one" if uneven else ""


def _permute(layout: Layout, dims: Sequence[int]) -> str:
    if len(dims) != layout.rank:
        return f"permute names every dimension once: there are {layout.rank}, and {len(dims)} are given"
    wrong = [dim for dim in dims if not -layout.rank <= dim < layout.rank]
    if wrong:
        return f"there is no dimension {wrong[0]}; they are 0 to {layout.rank - 1}"
    places = [dim % layout.rank for dim in dims]
    twice = [dim for dim in places if places.count(dim) > 1]
    return f"permute names every dimension once, and dimension {twice[0]} stands twice" if twice else ""


def _expand(layout: Layout, sizes: Sequence[int]) -> str:
    if len(sizes) < layout.rank:
        return f"{len(sizes)} sizes for {layout.rank} dimensions: expand adds dimensions, it never drops one"
    new = len(sizes) - layout.rank
    for dim in reversed(range(layout.rank)):
        size, wanted = layout.shape[dim], sizes[new + dim]
        if size not in (1, wanted) and wanted != -1:
            return (
                f"dimension {dim} has size {size}, not 1: expanding repeats a single element by stride 0, and cannot "
                f"make {wanted} of {size}"
            )
    return ""


def _index(layout: Layout, index: Index) -> str:
    """An index that is not there, or one too many; masks, which stand for several dimensions, are left to torch."""
    if sum(item is ... for item in index) > 1 or any(isinstance(item, Slot | tuple) for item in index):
        return ""
    taken = sum(item is not None and item is not ... for item in index)
    if taken > layout.rank:
        return f"{taken} indices for {layout.rank} dimension{'' if layout.rank == 1 else 's'}"
    dim = 0
    for item in index:
        if item is None:
            continue
        if item is ...:
            dim += layout.rank - taken
            continue
        size = layout.shape[dim]
        if isinstance(item, slice):
            if isinstance(item.step, int) and item.step < 0:
                return "a step backwards needs a negative stride, and torch has none; flip copies instead"
        elif isinstance(item, int) and not -size <= item < size:
            there = f"0 to {size - 1}, or −{size} to −1 from the end" if size else "none, its size is 0"
            return f"the indices of dimension {dim} are {there}"
        dim += 1
    return ""


def _matmul(left: Shape, right: Shape) -> str:
    if min(len(left), len(right)) == 0:
        return "@ needs at least one dimension on either side"
    rows = right[-2:][0]
    if left[-1] != rows:
        return f"a row of the left has {left[-1]} elements and a column of the right {rows}, and they must be as many"
    return _broadcast(left[:-2], right[:-2])


def _broadcast(left: Shape, right: Shape) -> str:
    for back, (a, b) in enumerate(zip_longest(reversed(left), reversed(right), fillvalue=1), 1):
        if a != b and 1 not in (a, b):
            which = "last dimension" if back == 1 else f"dimension {back} from the end"
            return f"in the {which} the sizes {a} and {b} differ, and neither is 1"
    return ""


def _write(step: PlanStep, inputs: Sequence[Step], target: Layout | None) -> str:
    """One cell written for several elements, or read after it was written; brackets or sizes that do not fit."""
    if target is None:
        return _index(inputs[0].layout, step.index) if step.index is not None else ""
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
