"""A space worked through in blocks of a size for the cache: memory of every plan, time of those that fit."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from core.search.pareto import Fastest, Floats, Front
from core.search.request import SearchRequest
from core.search.result import Columns, LayoutResult
from core.search.space import Group, Ints
from core.step_time.parts import StepTime
from core.training.layout import Layout

_BLOCK = 65_536
"""Plans worked out at once: enough for numpy's own time not to count, few enough for their arrays to stay in cache."""

_COMPUTING = ("matmul", "attention", "elementwise")
"""Parts of a step that no plan is bound by."""

_DEGREES = ("tensor", "pipeline", "context", "expert", "data")
"""Fields in which the second best plan differs from the best."""


class BlockSearch:
    """What is kept of the blocks: the front, the fastest, how many fit, and the plan that misses by least.

    most_free: the best plan is the one with most memory to spare, not the fastest.
    """

    def __init__(self, request: SearchRequest, top: int, *, most_free: bool) -> None:
        self.request, self.most_free = request, most_free
        self.front, self.fastest, self.fitting = Front(), Fastest(top), 0
        self._missing = math.inf
        self._closest: tuple[Layout, Ints] | None = None
        self._blocks: list[Group] = []
        self._firsts: list[int] = []
        self._next = 0
        self._rows: list[Floats] = []

    def walk(self, group: Group) -> None:
        """Work a group through."""
        each = max(1, _BLOCK // math.prod(group.choices))
        for start in range(0, len(group.node), each):
            self._block(group.of_rows(slice(start, start + each)))

    def _block(self, block: Group) -> None:
        layout, overlap = block.layout()
        memory = self.request.bytes_of(layout)
        fits = memory <= self.request.budget
        inside = int(np.count_nonzero(fits))
        if not inside:
            self._miss(block, memory)
            return
        self.fitting += inside * len(block.overlap)
        rows = fits.any(axis=(0, 1, 2, 3))
        if not rows.all():
            block, memory, fits = block.of_rows(rows), memory[..., rows], fits[..., rows]
            layout, overlap = block.layout()
        if not self._blocks:
            self.request.known(*block.taken(np.flatnonzero(fits)[:1]))
        seconds = self._seconds(block, layout, overlap, fits)
        least = seconds.min(axis=(0, 1, 2, 3, 4))
        if np.isnan(least).any():
            self.request.known(*block.taken(np.flatnonzero(np.isnan(seconds))[:1]))
        self._blocks.append(block)
        self._firsts.append(self._next)
        self.front.add(seconds, memory, self._next)
        self.fastest.add(seconds, memory, self._next)
        self._next += seconds.size
        self._rows.append(np.where(fits, memory, np.inf).min(axis=(0, 1, 2, 3)) if self.most_free else least)

    def _seconds(self, block: Group, layout: Layout, overlap: Ints, fits: npt.NDArray[np.bool_]) -> Floats:
        """Seconds of a block's plans, infinite where one does not fit."""
        seconds = np.full((*block.choices, len(block.node)), np.inf)
        np.copyto(seconds, self.request.step(layout, overlap).total, where=fits)
        return seconds

    def _miss(self, block: Group, memory: Floats) -> None:
        at = int(np.argmin(memory))
        if memory.flat[at] < self._missing:
            self._missing = float(memory.flat[at])
            # Overlap takes no memory; of its values the last is the faster.
            last = memory.size * (len(block.overlap) - 1)
            self._closest = block.taken(np.array([last + at]))

    @property
    def nearest(self) -> LayoutResult | None:
        """Where nothing fits, the plan that misses by least; None where there is no plan, or one that fits."""
        return self.request.found(*self._closest)[0] if self._closest and not self.fitting else None

    @property
    def pareto(self) -> tuple[LayoutResult, ...]:
        """The front, fastest first."""
        return self.request.found(*self._layouts(self.front.ids))

    @property
    def plans(self) -> Columns:
        """The fastest plans."""
        layout, overlap = self._layouts(self.fastest.ids)
        step = self.request.step(layout, overlap)
        names = [field.name for field in fields(StepTime)]
        shape = (len(overlap),)
        parts = np.stack([np.broadcast_to(0.0 if n in _COMPUTING else getattr(step, n), shape) for n in names])
        return Columns(layout, overlap, self.fastest.seconds, self.fastest.memory, np.argmax(parts, axis=0))

    def second(self, best: Layout) -> LayoutResult | None:
        """The best plan whose degrees are not those of ``best``; None where all have them."""
        if not self._blocks:
            return None
        columns = {n: np.concatenate([block.rows[n] for block in self._blocks]) for n in _DEGREES}
        other = np.logical_or.reduce([columns[n] != getattr(best, n) for n in _DEGREES])
        worth = np.where(other, np.concatenate(self._rows), np.inf)
        row = int(np.argmin(worth))
        if not np.isfinite(worth[row]):
            return None
        sizes = np.cumsum([len(block.node) for block in self._blocks])
        at = int(np.searchsorted(sizes, row, side="right"))
        return self._best_of(self._blocks[at].of_rows([row - int(sizes[at]) + len(self._blocks[at].node)]))

    def _best_of(self, block: Group) -> LayoutResult:
        """The best of a few plans, some of which fit."""
        layout, overlap = block.layout()
        memory = self.request.bytes_of(layout)
        seconds = self._seconds(block, layout, overlap, memory <= self.request.budget)
        fitting_bytes = np.where(np.isfinite(seconds), memory, np.inf)
        keys = (seconds.reshape(-1), fitting_bytes.reshape(-1))
        order = np.lexsort(keys if self.most_free else keys[::-1])
        return self.request.found(*block.taken(order[:1]))[0]

    def _layouts(self, ids: Ints) -> tuple[Layout, Ints]:
        """Plans by their numbers, as arrays of one length."""
        columns = {field.name: np.empty(len(ids), dtype=np.int64) for field in fields(Layout)}
        overlaps = np.empty(len(ids), dtype=np.int64)
        for first, block in zip(self._firsts, self._blocks, strict=True):
            here = np.flatnonzero((ids >= first) & (ids < first + block.count))
            layout, overlaps[here] = block.taken(ids[here] - first)
            for name, values in columns.items():
                values[here] = getattr(layout, name)
        return Layout(**columns), overlaps
