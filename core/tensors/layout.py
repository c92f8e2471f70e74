"""Layout algebra: where the elements of a strided tensor lie in its storage, and which shapes it can be viewed as.

Everything counts in elements, as torch's strides and offsets do. Nothing here needs torch; tests compare every
answer with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.limits import limit

CHANNELS_LAST: dict[int, tuple[int, ...]] = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
"""Rank → the dimensions from fastest to slowest in torch's channels-last formats (NCHW and NCDHW)."""


@dataclass(frozen=True, slots=True)
class StrideRun:
    """Neighboring dimensions ``first`` to ``last`` that one stride covers: ``numel`` steps of ``stride``."""

    first: int
    last: int
    numel: int
    stride: int


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Shape, strides and storage offset of a tensor, in elements.

    Element (i₀, i₁, …) lies in storage cell offset + Σ iₖ·strideₖ. Raises ``ValueError`` if shape and stride differ in
    length or a size is negative. Source: https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.stride):
            raise ValueError(f"shape {self.shape} and stride {self.stride} must have the same length")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"shape {self.shape} has a negative size")

    @classmethod
    def contiguous(cls, shape: Sequence[int], offset: int = 0) -> TensorLayout:
        """Return the row-major layout torch gives a fresh tensor; a zero size counts as one, as in torch."""
        return cls(tuple(shape), contiguous_strides(shape), offset)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """torch's rule: strides are row-major wherever the size is not 1; a tensor without elements always is."""
        return self.numel == 0 or self._packed(range(self.rank - 1, -1, -1))

    @property
    def is_channels_last(self) -> bool:
        """torch's rule for ``memory_format=torch.channels_last`` (rank 4) and ``channels_last_3d`` (rank 5).

        The channels, dimension 1, have the smallest stride; dimensions of size 1 do not matter. False for other ranks.
        """
        order = CHANNELS_LAST.get(self.rank)
        return order is not None and self._packed(order)

    def _packed(self, order: Iterable[int]) -> bool:
        """Return whether the dimensions, walked from fastest to slowest in ``order``, leave no gap and start at stride
        1."""
        expected = 1
        for dim in order:
            if self.shape[dim] != 1:
                if self.stride[dim] != expected:
                    return False
                expected *= self.shape[dim]
        return True

    @property
    def span(self) -> tuple[int, int] | None:
        """Lowest and highest storage cell that any element occupies; ``None`` without elements."""
        if self.numel == 0:
            return None
        reach = [(size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True)]
        return self.offset + sum(min(r, 0) for r in reach), self.offset + sum(max(r, 0) for r in reach)

    def permuted(self, order: Sequence[int]) -> TensorLayout:
        """Return the layout with its dimensions in another order."""
        return TensorLayout(tuple(self.shape[d] for d in order), tuple(self.stride[d] for d in order), self.offset)

    def cell(self, *index: int) -> int:
        """Return the storage cell of the element at ``index``; negative indices count from the end.

        Raises ``IndexError`` for a wrong number of indices or one out of range.
        """
        if len(index) != self.rank:
            raise IndexError(f"{len(index)} indices for {self.rank} dimensions")
        cell = self.offset
        for dim, (i, size, stride) in enumerate(zip(index, self.shape, self.stride, strict=True)):
            if not -size <= i < size:
                raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
            cell += (i + size if i < 0 else i) * stride
        return cell

    def each_cell(self) -> npt.NDArray[np.int64]:
        """Return the storage cells of all elements; raises ``ValueError`` beyond ``tensor_elements`` of core.limits."""
        if self.numel > limit("tensor_elements"):
            raise ValueError(
                f"{self.numel:,} elements are too many to go through one by one; at most {limit('tensor_elements'):,}."
            )
        return self.cells()

    def cells(self, count: int | None = None) -> npt.NDArray[np.int64]:
        """Return the storage cells of the first ``count`` elements (all by default) in logical, row-major order; 8 B
        each."""
        total = self.numel if count is None else min(count, self.numel)
        left = np.arange(total, dtype=np.int64)
        cells = np.full(total, self.offset, dtype=np.int64)
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size > 1:
                left, index = np.divmod(left, size)
                cells += index * stride
        return cells

    @property
    def overlaps(self) -> bool:
        """Whether two elements share a cell. Raises ``ValueError`` beyond ``tensor_elements`` of core.limits."""
        return len(np.unique(self.each_cell())) < self.numel

    @property
    def runs(self) -> tuple[StrideRun, ...]:
        """The fewest runs of neighboring dimensions that one stride each can walk, first dimension first.

        Dimension d joins the dimensions to its right when its size is 1, or when its stride equals the stride of the
        run times the elements of the run: stepping once in d is then the same as walking through the run.
        """
        result: list[StrideRun] = []
        last = self.rank - 1
        while last >= 0:
            first, numel, base = last, self.shape[last], self.stride[last]
            while first > 0 and (self.shape[first - 1] == 1 or self.stride[first - 1] == numel * base):
                first -= 1
                numel *= self.shape[first]
            result.append(StrideRun(first, last, numel, base))
            last = first - 1
        return tuple(reversed(result))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of ``shape`` in elements; a zero size counts as one, as in torch."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Whether a layout stays inside a storage. last: the highest cell it touches, -1 without elements. storage: cells
    there are. inside: whether all cells it touches are among them."""

    last: int
    storage: int
    inside: bool


def bounds(layout: TensorLayout, storage: int) -> Bounds:
    """Return whether ``layout``, as as_strided would make it, stays inside a storage of ``storage`` cells."""
    first, last = layout.span or (0, -1)
    return Bounds(last, storage, first >= 0 and last < storage)
