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
Names: TypeAlias = tuple[str, ...]
Effect: TypeAlias = Literal["start", "view", "copy", "new"]

_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class NamedAxis:
    """One elementary axis: its name as entered (``…0`` for the first that an ellipsis replaces) and its size.

    key: unlike the name, also unique among axes given as numbers.
    """

    name: str
    size: int
    key: str


Axes: TypeAlias = Sequence[NamedAxis]
Groups: TypeAlias = Sequence[Axes]
"""The axes of each dimension of a tensor; none for a 1 in the pattern."""


@dataclass(frozen=True, slots=True)
class PatternStage:
    """One operation a pattern becomes; layouts in elements.

    call: as one would write it on a tensor, ``.permute(0, 2, 1)``. dims: what each dimension of the result is.
    effect: ``view`` (0 bytes), ``copy`` (the same elements in new storage) or ``new`` (computed values).
    bytes: new storage this stage allocates. reason: why, in a sentence. boundary: where a view would have broken.
    """

    operation: StageOperation
    call: str
    layout: TensorLayout
    dims: Names
    effect: Effect
    bytes: int
    reason: str = ""
    boundary: Boundary | None = None


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """A pattern applied to one layout: the sizes of its axes, and the operations it becomes, the tensor first."""

    function: str
    sizes: Mapping[str, int]
    stages: tuple[PatternStage, ...]

    @property
    def bytes_allocated(self) -> int:
        """New storage all stages together allocate."""
        return sum(stage.bytes for stage in self.stages)

    @property
    def headline(self) -> list[str]:
        """The answer, and the reason of the last stage that allocates, or of the last one."""
        done = self.stages[1:]
        chain = " → ".join(stage.operation for stage in done)
        allocating = [stage for stage in done if stage.bytes]
        if not allocating:
            return [message("axes.pattern.views", function=self.function, chain=chain), done[-1].reason]
        steps, size = [stage.operation for stage in allocating], float(self.bytes_allocated)
        sentence = message("axes.pattern.allocates", function=self.function, chain=chain, bytes=size, steps=steps)
        return [sentence, allocating[-1].reason]

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
    """Return the operations that ``function(x, pattern, …)`` of einops, a step of a trace, became.

    tried: the step of ``x``. sizes: axis sizes given as keywords. reduction: for ``reduce``.
    """
    sides = _sides(pattern, tried.layout.rank)
    axes = _resolve(sides, tried.layout.shape, sizes)
    inputs, outputs = ([[axes[key] for key in group] for group in side] for side in sides)
    result = _Stages(tried.layout, tuple(map(_text, inputs)), tried.element_size)
    result.run(inputs, outputs, reduction, step.element_size)
    named = {axis.name: axis.size for axis in axes.values()}
    return PatternPlan(step.operation, named, tuple(result.stages))


# ------------------------------------------------------------------------------------------------ reading


def _sides(pattern: str, rank: int) -> list[list[list[str]]]:
    """Return the axes of each dimension on both sides, by their keys; a number is ``2#0 3``, an ellipsis is opened."""
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
    """Return every axis with its size, computed from the tensor and the sizes given."""
    keys = [key for side in sides for group in side for key in group]
    known = {key: int(key.partition("#")[0]) for key in keys if "#" in key} | dict(sizes)
    for group, length in zip(sides[0], shape, strict=True):
        given = math.prod(known.get(key, 1) for key in group)
        known |= {key: length // given for key in group if key not in known}
    return {key: NamedAxis(key.partition("#")[0], known[key], key) for key in dict.fromkeys(keys)}


# ------------------------------------------------------------------------------------------------- stages


class _Stages:
    """Collects the stages of one pattern; the last one holds the layout so far."""

    def __init__(self, layout: TensorLayout, dims: Names, element_size: int) -> None:
        self.element_size = element_size
        self.stages = [PatternStage("start", "x", layout, dims, "start", 0)]

    @property
    def layout(self) -> TensorLayout:
        return self.stages[-1].layout

    def add(
        self,
        operation: StageOperation,
        call: str,
        layout: TensorLayout,
        dims: Names,
        reason: Message,
        effect: Effect = "view",
        boundary: Boundary | None = None,
    ) -> None:
        size = 0 if effect == "view" else layout.numel * self.element_size
        self.stages.append(PatternStage(operation, call, layout, dims, effect, size, reason, boundary))

    def run(self, inputs: Groups, outputs: Groups, reduction: str, result_size: int) -> None:
        """Return the stages that einops runs, without those that would change nothing, as in einops."""
        old = [axis for group in inputs for axis in group]
        new = [axis for group in outputs for axis in group]
        axes = [axis for axis in new if axis in old]
        reduced = [axis for axis in old if axis not in new]
        if any(len(group) != 1 for group in inputs):
            self.reshape(tuple(axis.size for axis in old), _names(old))
        order = tuple(old.index(axis) for axis in (*axes, *reduced))
        if order != tuple(range(len(old))):
            dims = tuple(self.stages[-1].dims[d] for d in order)
            layout = self.layout.permuted(order)
            self.add("permute", f".permute{_call(order)}", layout, dims, message("axes.stage.permute"))
        if reduced:
            self.element_size = result_size
            over = tuple(range(len(axes), len(old)))
            call = f".{_AS_METHOD.get(reduction, reduction)}({over[0] if len(over) == 1 else over})"
            layout = TensorLayout.contiguous(self.layout.shape[: len(axes)])
            reason = message("axes.stage.reduce", reduction=reduction, axes=_names(reduced))
            self.add("reduce", call, layout, _names(axes), reason, "new")
        if len(axes) < len(new):
            self.expand(new, axes)
        if any(len(group) != 1 for group in outputs):
            self.reshape(tuple(map(_size, outputs)), tuple(map(_text, outputs)))

    def reshape(self, shape: tuple[int, ...], dims: Names) -> None:
        verdict, call = explain_view(self.layout, shape), f".reshape{_call(shape)}"
        before, edge = self.stages[-1].dims, verdict.boundary
        if edge is None:  # the numbers of elements agree, so only the strides could refuse
            layout = TensorLayout(shape, verdict.stride or (), self.layout.offset)
            self.add("reshape", call, layout, dims, message("tensors.because", reason=verdict.reason))
        else:
            left, right = before[edge.left], before[edge.right]
            reason = message("axes.stage.copied", left=left, right=right, rule=edge.arithmetic)
            self.add("reshape", call, TensorLayout.contiguous(shape), dims, reason, "copy", edge)

    def expand(self, new: Axes, known: Sequence[NamedAxis]) -> None:
        shape, stride = list(self.layout.shape), list(self.layout.stride)
        for position, axis in enumerate(new):
            if axis not in known:
                # what unsqueeze gives; a size above 1 then reads the same element again, with stride 0
                beside = shape[position] * stride[position] if position < len(shape) else 1
                shape.insert(position, axis.size)
                stride.insert(position, beside if axis.size == 1 else 0)
        layout = TensorLayout(tuple(shape), tuple(stride), self.layout.offset)
        index = ", ".join(":" if axis in known else "None" for axis in new)
        self.add("expand", f"[{index}].expand{_call(shape)}", layout, _names(new), message("axes.stage.expand"))


_AS_METHOD = {"max": "amax", "min": "amin"}


def _names(axes: Axes) -> Names:
    return tuple(axis.name for axis in axes)


def _size(group: Axes) -> int:
    return math.prod(axis.size for axis in group)


def _text(group: Axes) -> str:
    """Return a dimension as patterns write it: ``h``, ``(h d)``, ``1``."""
    names = " ".join(_names(group))
    return names if len(group) == 1 else f"({names})" if names else "1"


def _call(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})" if numbers else "(())"
