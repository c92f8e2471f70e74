"""What an einops pattern does to memory: axes by name, and the reshape, permute and reshape it becomes.

einops turns every pattern into at most five operations: reshape to one dimension per axis, permute, reduce, insert
new axes, reshape to the wanted groups. Each is a view or a copy, and the layout algebra says which, and why.
Tests compare every plan with the recipe that einops makes and with torch's storages.
Source: https://einops.rocks/api/rearrange/
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.formula import Explanation
from core.messages import Message, message
from core.tensors.cost import merging_stride, tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.tracing.steps import TraceStep
from core.tensors.view_rule import Boundary, explain_view

StageOperation: TypeAlias = Literal["start", "reshape", "permute", "reduce", "expand"]
Effect: TypeAlias = Literal["start", "view", "copy", "new"]

_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class NamedAxis:
    """One elementary axis: its name as typed (``…0`` for the first that an ellipsis stands for) and its size.

    key: unlike the name unique also among axes given as numbers.
    """

    name: str
    size: int
    key: str


@dataclass(frozen=True, slots=True)
class AxisGroup:
    """One dimension of a tensor and the axes it is composed of; none for a 1 in the pattern."""

    axes: tuple[NamedAxis, ...]

    @property
    def size(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def text(self) -> str:
        """The dimension as patterns write it: ``h``, ``(h d)``, ``1``."""
        names = " ".join(axis.name for axis in self.axes)
        return names if len(self.axes) == 1 else f"({names})" if names else "1"


@dataclass(frozen=True, slots=True)
class PatternStage:
    """One operation a pattern becomes; layouts in elements.

    call: as one would write it on a tensor, ``.permute(0, 2, 1)``. dims: what each dimension of the result is.
    effect: ``view`` (0 bytes), ``copy`` (the same elements in new storage) or ``new`` (computed values).
    bytes: new storage this stage allocates. reasons: why, in sentences. boundary: where a view would have broken.
    """

    operation: StageOperation
    call: str
    layout: TensorLayout
    dims: tuple[str, ...]
    effect: Effect
    bytes: int
    reasons: tuple[Message, ...] = ()
    boundary: Boundary | None = None


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """A pattern applied to one layout: its axes, and the operations it becomes, the tensor itself first."""

    function: str
    pattern: str
    inputs: tuple[AxisGroup, ...]
    outputs: tuple[AxisGroup, ...]
    stages: tuple[PatternStage, ...]

    @property
    def axes(self) -> tuple[NamedAxis, ...]:
        """Every elementary axis once: those of the tensor, then new ones."""
        seen = {axis.key: axis for group in (*self.inputs, *self.outputs) for axis in group.axes}
        return tuple(seen.values())

    @property
    def layout(self) -> TensorLayout:
        """Layout of the result."""
        return self.stages[-1].layout

    @property
    def bytes_allocated(self) -> int:
        """New storage all stages together allocate."""
        return sum(stage.bytes for stage in self.stages)

    @property
    def headline(self) -> list[Message]:
        """The answer, and the reason of the last stage that allocates, or of the last one."""
        done = self.stages[1:]
        if not done:
            return [message("axes.pattern.nothing", pattern=self.pattern)]
        chain = " → ".join(stage.operation for stage in done)
        allocating = [stage for stage in done if stage.bytes]
        if not allocating:
            return [message("axes.pattern.views", function=self.function, chain=chain), *done[-1].reasons]
        steps, size = [stage.operation for stage in allocating], float(self.bytes_allocated)
        sentence = message("axes.pattern.allocates", function=self.function, chain=chain, bytes=size, steps=steps)
        return [sentence, *allocating[-1].reasons]

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The formulas behind the bytes and behind the boundary that forces a copy."""
        result: list[Explanation] = []
        for stage in self.stages:
            if stage.boundary is not None:
                edge = stage.boundary
                result.append(merging_stride.explain(stride=edge.right_stride, size=edge.right_size))
            if stage.bytes:
                each = stage.bytes // stage.layout.numel
                result.append(tensor_bytes.explain(elements=stage.layout.numel, element_bytes=each))
        return tuple(result)


def explain_pattern(
    pattern: str, tried: TraceStep, step: TraceStep, sizes: Mapping[str, int], reduction: str = ""
) -> PatternPlan:
    """The operations that ``function(x, pattern, …)`` of einops, a step of a trace, became.

    tried: the step of ``x``. sizes: axis sizes given as keywords. reduction: for ``reduce``.
    """
    sides = _sides(pattern, tried.layout.rank)
    axes = _resolve(sides, tried.layout.shape, sizes)
    inputs, outputs = (tuple(AxisGroup(tuple(axes[key] for key in group)) for group in side) for side in sides)
    result = _Stages(tried.layout, tuple(group.text for group in inputs), tried.element_size)
    result.reduced_size = step.element_size
    result.run(inputs, outputs, reduction)
    return PatternPlan(step.operation, pattern, inputs, outputs, tuple(result.stages))


# ------------------------------------------------------------------------------------------------ reading


def _sides(pattern: str, rank: int) -> list[list[list[str]]]:
    """The axes of each dimension on both sides, by their keys; a number is ``2#0 3``, an ellipsis is opened."""
    from einops.parsing import ParsedExpression

    parts = [ParsedExpression(text).composition for text in pattern.split("->")]
    open_axes = [f"{_ELLIPSIS}{number}" for number in range(rank - len(parts[0]) + 1)]
    sides: list[list[list[str]]] = []
    for mark, groups in enumerate(parts):
        side: list[list[str]] = []
        for at, group in enumerate(groups):
            keys: list[str] = []
            for place, axis in enumerate(group):
                number = getattr(axis, "value", None)
                keys += (
                    open_axes if axis == _ELLIPSIS else [axis if number is None else f"{number}#{mark} {at} {place}"]
                )
            side += [[key] for key in keys] if group == _ELLIPSIS else [keys]
        sides.append(side)
    return sides


def _resolve(
    sides: Sequence[Sequence[Sequence[str]]], shape: Sequence[int], sizes: Mapping[str, int]
) -> dict[str, NamedAxis]:
    """Every axis with its size, worked out from the tensor and the sizes given."""
    keys = [key for side in sides for group in side for key in group]
    known = {key: int(key.partition("#")[0]) for key in keys if "#" in key} | dict(sizes)
    for group, length in zip(sides[0], shape, strict=True):
        given = math.prod(known.get(key, 1) for key in group)
        known |= {key: length // given for key in group if key not in known}
    return {key: NamedAxis(key.partition("#")[0], known[key], key) for key in dict.fromkeys(keys)}


# ------------------------------------------------------------------------------------------------- stages


class _Stages:
    """Collects the stages of one pattern; the last one holds the layout so far."""

    def __init__(self, layout: TensorLayout, dims: tuple[str, ...], element_size: int) -> None:
        self.element_size = element_size
        self.reduced_size = element_size
        self.stages = [PatternStage("start", "x", layout, dims, "start", 0)]

    @property
    def layout(self) -> TensorLayout:
        return self.stages[-1].layout

    def run(self, inputs: tuple[AxisGroup, ...], outputs: tuple[AxisGroup, ...], reduction: str) -> None:
        """The stages einops runs; those that would change nothing are left out, as einops does."""
        old = [axis for group in inputs for axis in group.axes]
        new = [axis for group in outputs for axis in group.axes]
        axes = [axis for axis in new if axis in old]
        reduced = [axis for axis in old if axis not in new]
        if any(len(group.axes) != 1 for group in inputs):
            self.reshape(tuple(axis.size for axis in old), _names(old))
        order = tuple(old.index(axis) for axis in (*axes, *reduced))
        if order != tuple(range(len(old))):
            self.permute(order)
        if reduced:
            self.reduce(reduction, reduced, _names(axes))
        if len(axes) < len(new):
            self.expand(new, axes)
        if any(len(group.axes) != 1 for group in outputs):
            self.reshape(tuple(group.size for group in outputs), tuple(group.text for group in outputs))

    def reshape(self, shape: tuple[int, ...], dims: tuple[str, ...]) -> None:
        verdict = explain_view(self.layout, shape)
        call = f".reshape{_call(shape)}"
        before, edge = self.stages[-1].dims, verdict.boundary
        if edge is None:  # the numbers of elements agree, so only the strides could refuse
            layout = TensorLayout(shape, verdict.stride or (), self.layout.offset)
            reasons = _regrouped(self.layout, before, layout, dims)
            self.stages.append(PatternStage("reshape", call, layout, dims, "view", 0, reasons))
            return
        left, right = before[edge.left], before[edge.right]
        reason = message("axes.stage.copied", left=left, right=right, rule=edge.arithmetic)
        layout = TensorLayout.contiguous(shape)
        size = layout.numel * self.element_size
        self.stages.append(PatternStage("reshape", call, layout, dims, "copy", size, (reason,), edge))

    def permute(self, order: tuple[int, ...]) -> None:
        layout, dims = self.layout.permuted(order), tuple(self.stages[-1].dims[d] for d in order)
        reasons = (message("axes.stage.permute"),)
        self.stages.append(PatternStage("permute", f".permute{_call(order)}", layout, dims, "view", 0, reasons))

    def reduce(self, reduction: str, reduced: Sequence[NamedAxis], dims: tuple[str, ...]) -> None:
        rank = self.layout.rank
        over = tuple(range(rank - len(reduced), rank))
        layout = TensorLayout.contiguous(self.layout.shape[: rank - len(reduced)])
        self.element_size = self.reduced_size
        size = layout.numel * self.element_size
        name = {"max": "amax", "min": "amin"}.get(reduction, reduction)
        call = f".{name}({over[0] if len(over) == 1 else over})"
        reason = message("axes.stage.reduce", reduction=reduction, axes=_names(reduced))
        self.stages.append(PatternStage("reduce", call, layout, dims, "new", size, (reason,)))

    def expand(self, new: Sequence[NamedAxis], axises: Sequence[NamedAxis]) -> None:
        shape, stride = list(self.layout.shape), list(self.layout.stride)
        for position, axis in enumerate(new):
            if axis not in axises:
                # what unsqueeze gives; a size above 1 then reads the same element again, with stride 0
                beside = shape[position] * stride[position] if position < len(shape) else 1
                shape.insert(position, axis.size)
                stride.insert(position, beside if axis.size == 1 else 0)
        layout = TensorLayout(tuple(shape), tuple(stride), self.layout.offset)
        index = ", ".join(":" if axis in axises else "None" for axis in new)
        call, reasons = f"[{index}].expand{_call(shape)}", (message("axes.stage.expand"),)
        self.stages.append(PatternStage("expand", call, layout, _names(new), "view", 0, reasons))


def _names(axes: Sequence[NamedAxis]) -> tuple[str, ...]:
    return tuple(axis.name for axis in axes)


def _call(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})" if numbers else "(())"


def _regrouped(
    old: TensorLayout, before: Sequence[str], new: TensorLayout, after: Sequence[str]
) -> tuple[Message, ...]:
    """Return why a reshape is a view, by the names of the dimensions that split or merge."""
    found: list[Message] = []
    for dim, group in enumerate(before):
        parts = [d for d, name in enumerate(after) if name in group.strip("()").split() and new.shape[d] != 1]
        if " " in group and len(parts) > 1:
            names, strides = [after[d] for d in parts], [new.stride[d] for d in parts]
            found.append(message("axes.stage.splits", group=group, parts=names, strides=strides))
        elif " " not in group and old.shape[dim] != 1:
            right = next((d for d in range(dim + 1, old.rank) if old.shape[d] != 1), None)
            if right is not None and any(group in name.split() for name in _neighbours(after, before[right])):
                a, b, size = float(old.stride[dim]), float(old.stride[right]), float(old.shape[right])
                rule = message("tensors.rule.equal", left=a, right=b, size=size)
                found.append(message("axes.stage.merges", left=group, right=before[right], rule=rule))
    return tuple(found) or (message("axes.stage.ones"),)


def _neighbours(dims: Sequence[str], name: str) -> list[str]:
    """The composed dimensions that hold the axis ``name``, without their brackets."""
    inner = [dim.strip("()") for dim in dims if dim.startswith("(")]
    return [dim for dim in inner if name in dim.split()]
