"""Why ``.view`` works or fails: the rule torch applies, with its arithmetic in words.

A view may only regroup elements that one stride can walk. So the dimensions are merged into runs, and each new
dimension must stay inside one run. Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.limits import limit
from core.messages import Message, message
from core.tensors.layout import StrideRun, TensorLayout, contiguous_strides

_DRAWN_HOPS = 6
"""How many cells of the failing dimension are named; enough to see the hops change."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a view breaks: new dimension ``new_dim`` would have to cross from ``right`` into ``left``."""

    left: int
    right: int
    left_stride: int
    right_stride: int
    right_size: int
    new_dim: int

    @property
    def arithmetic(self) -> Message:
        """The comparison that fails, ``stride 1 ≠ 3 × 2``: to merge, the strides would have to be equal."""
        left, right, size = float(self.left_stride), float(self.right_stride), float(self.right_size)
        return message("tensors.rule.unequal", left=left, right=right, size=size)


@dataclass(frozen=True, slots=True)
class Hops:
    """Storage cells that a new dimension would visit in order, with uneven steps between them.

    elements: the same elements by their number in logical order.
    """

    new_dim: int
    cells: tuple[int, ...]
    elements: tuple[int, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in pairwise(self.cells))


@dataclass(frozen=True, slots=True)
class ViewVerdict:
    """Whether ``layout.view(shape)`` works without copying, and why.

    works: torch's verdict. shape: the new shape, with -1 resolved where it can be. stride: the new strides when it
    works. runs: what merges in the old layout. layout: the old one. fault: what is wrong with the shape itself.
    boundary and hops: where it breaks, ``None`` when the shape is wrong.
    """

    works: bool
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    runs: tuple[StrideRun, ...]
    layout: TensorLayout
    fault: Message | None = None
    boundary: Boundary | None = None
    hops: Hops | None = None

    @property
    def reason(self) -> Message:
        """Why it works or fails, as the end of a sentence."""
        if self.fault is not None:
            return self.fault
        if (edge := self.boundary) is not None:
            left, right = float(edge.left), float(edge.right)
            return message("tensors.rule.boundary", left=left, right=right, rule=edge.arithmetic)
        if not self.layout.numel:
            return message("tensors.rule.empty")
        return _success(self.layout, self.runs) if self.layout.rank else message("tensors.rule.single")

    @property
    def reshape_copies(self) -> int:
        """Elements that ``.reshape`` and ``.contiguous().view`` copy: none when the view works."""
        return 0 if self.works else self.layout.numel


class ShapeError(ValueError):
    """A new shape that no tensor of this many elements can take. reason: why, as the end of a sentence."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


def resolve_shape(numel: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return ``shape`` with its -1 computed for ``numel`` elements. Raises `ShapeError` if that is impossible."""
    if sum(size < 0 for size in shape) > 1 or min(shape, default=0) < -1:
        raise ShapeError(message("tensors.rule.negative"))
    known = math.prod(size for size in shape if size != -1)
    if -1 not in shape and known != numel:
        raise ShapeError(message("tensors.rule.count", shape=tuple(shape), asked=float(known), there=float(numel)))
    if -1 in shape and (not known or numel % known):
        raise ShapeError(message("tensors.rule.divides", there=float(numel), known=float(known)))
    return tuple(numel // known if size == -1 else size for size in shape)


def explain_view(layout: TensorLayout, new_shape: Sequence[int]) -> ViewVerdict:
    """Say whether ``layout`` can be viewed as ``new_shape`` (with at most one -1), with which strides, and why.

    Verdict and strides equal those of torch; see `ViewVerdict`. Takes time in the rank, not in the elements.
    """
    runs = layout.runs
    try:
        shape = resolve_shape(layout.numel, new_shape)
    except ShapeError as problem:
        return ViewVerdict(False, tuple(new_shape), None, runs, layout, problem.reason)
    if layout.numel == 0:
        # Nothing to walk: torch keeps the strides of an equal shape and gives row-major ones to any other.
        stride = layout.stride if shape == layout.shape else contiguous_strides(shape)
        return ViewVerdict(True, shape, stride, runs, layout)
    if layout.rank == 0:
        return ViewVerdict(True, shape, (1,) * len(shape), runs, layout)
    stride = [0] * len(shape)
    dim = len(shape) - 1
    for run in reversed(runs):
        filled = 1
        while dim >= 0 and (filled < run.numel or shape[dim] == 1):
            stride[dim] = filled * run.stride
            filled *= shape[dim]
            dim -= 1
        if filled != run.numel:
            return _refusal(layout, shape, runs, run, dim + 1)
    return ViewVerdict(True, shape, tuple(stride), runs, layout)


def _refusal(
    layout: TensorLayout, shape: tuple[int, ...], runs: tuple[StrideRun, ...], run: StrideRun, new_dim: int
) -> ViewVerdict:
    """Return the verdict when new dimension ``new_dim`` is too long for what is left of ``run``."""
    # A run is only ever too short when it has a dimension to its left, and that one's size is not 1.
    left = run.first - 1
    right = next(d for d in range(run.first, run.last + 1) if layout.shape[d] != 1)
    boundary = Boundary(left, right, layout.stride[left], layout.stride[right], layout.shape[right], new_dim)
    hops = _hops(layout, shape, new_dim)
    return ViewVerdict(False, shape, None, runs, layout, None, boundary, hops)


def _hops(layout: TensorLayout, shape: tuple[int, ...], new_dim: int, most: int = 1 << 16) -> Hops | None:
    """Return an example: a line of cells along one new dimension whose steps differ; ``None`` where no line shows it.

    Looks along ``new_dim`` first, then along the others from the right, for one whose cells and elements are drawn;
    there it takes the one nearest the start. Where none is drawn, the first one found.
    """
    fallback: Hops | None = None
    if layout.numel > most:  # nobody needs the example badly enough to list a million cells
        return None
    order = np.arange(layout.numel).reshape(shape)
    for dim in (new_dim, *(d for d in reversed(range(len(shape))) if d != new_dim)):
        lines = np.moveaxis(order, dim, -1).reshape(-1, shape[dim])
        cells = layout.cells()[lines]
        uneven = np.argwhere(np.diff(cells, n=2, axis=1))
        if not len(uneven):
            continue
        starts = np.maximum(0, uneven[:, 1] + 3 - _DRAWN_HOPS)[:, None] + np.arange(min(_DRAWN_HOPS, shape[dim]))
        far = np.minimum(starts, shape[dim] - 1)
        reach = np.maximum(cells[uneven[:, :1], far].max(axis=1), lines[uneven[:, :1], far].max(axis=1))
        best = int(reach.argmin())
        line, drawn = int(uneven[best, 0]), slice(int(starts[best, 0]), int(starts[best, 0]) + _DRAWN_HOPS)
        hops = Hops(dim, tuple(cells[line, drawn].tolist()), tuple(lines[line, drawn].tolist()))
        if reach[best] < limit("storage_cells_drawn"):
            return hops
        fallback = fallback or hops
    return fallback


def _success(layout: TensorLayout, runs: tuple[StrideRun, ...]) -> Message:
    if layout.is_contiguous:
        return message("tensors.rule.contiguous")
    dims = [[d for d in range(run.first, run.last + 1) if layout.shape[d] != 1] for run in runs]
    merged = [dim for group in dims if len(group) > 1 for dim in group]
    rules = [
        message(
            "tensors.rule.equal",
            left=float(layout.stride[a]),
            right=float(layout.stride[b]),
            size=float(layout.shape[b]),
        )
        for group in dims
        for a, b in pairwise(group)
    ]
    return message("tensors.rule.merge", dims=merged, rules=rules) if rules else message("tensors.rule.inside")
