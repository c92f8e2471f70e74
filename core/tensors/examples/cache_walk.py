"""Cache lines that a walk through a tensor fetches: row by row and column by column, counted and timed.

The model, stated: storage begins at the start of a line (torch's allocator aligns to 64 bytes), an access fetches its
line unless the cache holds it, and the cache is either one line or the 512 lines of a 32 KiB level-1 cache, the line
unused for longest leaving first. Real caches add sets, prefetching and further levels; that is what timing is for.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Source, Symbol, formula
from core.tensors.layout import TensorLayout
from core.units import significant

Order: TypeAlias = Literal["row", "column"]
Booleans: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]

LINE_BYTES = 64
"""Bytes of a cache line on x86-64 and on most ARM processors."""

CACHE_BYTES = 32 * 1024
"""A small level-1 data cache; current cores have 32 to 128 KiB."""

_DREPPER = Source(
    "Drepper 2007, What Every Programmer Should Know About Memory",
    "section 3.3",
    "https://people.freebsd.org/~lstewart/articles/cpumemory.pdf",
)
_HENNESSY = Source("Hennessy and Patterson, Computer Architecture: A Quantitative Approach", "appendix B")


@formula(
    r"\frac{\v{elements} \cdot \v{stride} \cdot \v{element_bytes}}{\v{line_bytes}}",
    result=Symbol("L", "cache lines fetched", "count"),
    symbols={
        "elements": Symbol("n", "elements walked", "count"),
        "stride": Symbol("s", "elements from one to the next in storage", "count"),
        "element_bytes": Symbol("b", "bytes per element", "bytes"),
        "line_bytes": Symbol("B", "bytes of a cache line", "bytes"),
    },
    sources=(_DREPPER, _HENNESSY),
)
def lines_of_walk(elements: float, stride: float, element_bytes: float, line_bytes: float) -> float:
    """Cache lines that a walk with a short stride fetches.

    It passes over all bytes between its first and its last element once, so it fetches them all; round up to whole
    lines. Holds while one step is no longer than a line.
    """
    return elements * stride * element_bytes / line_bytes


@formula(
    r"\v{rows} \cdot \v{columns}",
    result=Symbol("L", "cache lines fetched", "count"),
    symbols={"rows": Symbol("R", "rows", "count"), "columns": Symbol("C", "columns", "count")},
    sources=(_DREPPER, _HENNESSY),
)
def lines_of_far_walk(rows: float, columns: float) -> float:
    """Cache lines that a column walk fetches when every step leaves the line: one for each element.

    Holds when a row is at least a line long and a column has more rows than the cache has lines: by the time the walk
    comes back for the next column, the line is gone.
    """
    return rows * columns


@formula(
    r"\frac{\v{used}}{\v{lines} \cdot \v{line_bytes}}",
    result=Symbol("u", "share of the fetched bytes that is used", "ratio"),
    symbols={
        "used": Symbol("U", "bytes used before their line leaves the cache", "bytes"),
        "lines": Symbol("L", "cache lines fetched", "count"),
        "line_bytes": Symbol("B", "bytes of a cache line", "bytes"),
    },
    sources=(_DREPPER,),
)
def line_use(used: float, lines: float, line_bytes: float) -> float:
    """Share of the fetched bytes that the walk uses before their line leaves the cache."""
    return used / (lines * line_bytes)


@dataclass(frozen=True, slots=True)
class Fetches:
    """What one cache does during a walk.

    cache_lines: lines it holds. missed: per access, whether its line had to be fetched. fetched: lines in all, a line
    counted each time. used_bytes: bytes used of them, each counted once per fetch.
    """

    cache_lines: int
    missed: Booleans
    fetched: int
    used_bytes: int

    @property
    def fetched_bytes(self) -> int:
        return self.fetched * LINE_BYTES

    @property
    def use(self) -> float:
        """Bytes used of bytes fetched; NaN when nothing is fetched."""
        return float(line_use(self.used_bytes, self.fetched, LINE_BYTES)) if self.fetched else math.nan


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk over all elements, in order of access.

    cells: storage cell per access; lines: its cache line, line 0 holding the start of the storage. touched: different
    lines. single: with a cache of one line; cache: with a level-1 cache.
    """

    cells: Integers
    lines: Integers
    touched: int
    single: Fetches
    cache: Fetches

    @property
    def accesses(self) -> int:
        return len(self.cells)


def walk(layout: TensorLayout, element_size: int, order: Order, *, cache_bytes: int = CACHE_BYTES) -> Walk:
    """Walk every element of ``layout`` and count cache lines; see the module for the model.

    order: ``row`` (last dimension fastest) or ``column`` (first dimension fastest).
    Raises ``ValueError`` for more elements than ``tensor_elements`` of core.limits, and for negative cells.
    """
    span = layout.span
    if span is not None and span[0] < 0:
        raise ValueError(f"cell {span[0]} lies before the storage")
    cells = (layout if order == "row" else layout.permuted(range(layout.rank)[::-1])).each_cell()
    lines = cells * element_size // LINE_BYTES
    return Walk(
        cells=cells,
        lines=lines,
        touched=len(np.unique(lines)),
        single=_fetches(cells, lines, 1, element_size),
        cache=_fetches(cells, lines, cache_bytes // LINE_BYTES, element_size),
    )


def walks(layout: TensorLayout, element_size: int) -> tuple[Walk, Walk]:
    """The row walk and the column walk of ``layout``."""
    return walk(layout, element_size, "row"), walk(layout, element_size, "column")


def _fetches(cells: Integers, lines: Integers, cache_lines: int, element_size: int) -> Fetches:
    """Run the lines of a walk through a cache whose least recently used line leaves first."""
    missed = np.zeros(len(lines), dtype=np.bool_)
    content: OrderedDict[int, None] = OrderedDict()
    for access in np.flatnonzero(np.diff(lines, prepend=-1)).tolist():  # staying on a line never fetches
        line = int(lines[access])
        missed[access] = line not in content
        content[line] = None
        content.move_to_end(line)
        if len(content) > cache_lines:
            content.popitem(last=False)
    # Number the fetches; each access belongs to the latest fetch of its line.
    fetch = np.cumsum(missed) * missed
    by_line = np.argsort(lines, kind="stable")
    latest = np.empty(len(lines), dtype=np.int64)
    latest[by_line] = np.maximum.accumulate(fetch[by_line] + lines[by_line] * (len(lines) + 1)) % (len(lines) + 1)
    per_line = LINE_BYTES // element_size
    used = len(np.unique(latest * per_line + cells % per_line)) * element_size
    return Fetches(cache_lines, missed, int(missed.sum()), used)


# ------------------------------------------------------------------------------------------------- in words


def headline(row: Walk, column: Walk) -> tuple[str, str]:
    """The answer as one sentence and a quieter line of detail, in small markup."""
    if not row.accesses:
        return "There are no elements to walk.", ""
    a, b = row.single, column.single
    used = f"{_percent(a.use)} and {_percent(b.use)} of the fetched bytes are used"
    number = row.cache.cache_lines
    text = f"A cache of {number} lines ({number * LINE_BYTES // 1024} KiB) fetches "
    if row.touched <= number:
        text += f"{row.touched:,} either way: it holds all of this tensor, so the order does not matter."
    elif row.cache.fetched == column.cache.fetched == row.touched:
        text += f"{row.touched:,} either way: a line stays until all of it is used, so the order does not matter."
    else:
        text += f"{row.cache.fetched:,} and {column.cache.fetched:,}: lines leave before all of them is used."
    if a.fetched == b.fetched:
        lines = "cache line" if a.fetched == 1 else "cache lines"
        return f"Both walks fetch **{a.fetched:,} {lines}** of {LINE_BYTES} B; {used}.", text
    return (
        f"Row by row fetches **{a.fetched:,} cache lines** of {LINE_BYTES} B, column by column **{b.fetched:,}**; "
        f"{used}.",
        f"With a cache of a single line. {text}",
    )


def _percent(share: float) -> str:
    return f"{significant(share * 100, 3)} %"


def explanations(row: Walk, column: Walk) -> tuple[Explanation, ...]:
    """The share of the fetched bytes that each walk uses, with a cache of one line."""
    return tuple(
        line_use.explain(used=w.single.used_bytes, lines=w.single.fetched, line_bytes=LINE_BYTES)
        for w in (row, column)
        if w.single.fetched
    )


# --------------------------------------------------------------------------------------------------- timing


_TIMING = threading.Lock()


class WalkBusyError(RuntimeError):
    """Somebody else is timing on this machine; two at once would disturb each other."""


@dataclass(frozen=True, slots=True)
class WalkTiming:
    """Both walks over one float32 matrix on this machine's CPU: medians in seconds over ``repeats``."""

    rows: int
    columns: int
    element_size: int
    row_seconds: float
    column_seconds: float
    repeats: int

    @property
    def ratio(self) -> float:
        """How many times longer the column walk takes."""
        return self.column_seconds / self.row_seconds

    @property
    def headline(self) -> tuple[str, str]:
        """The answer as one sentence and a quieter line of detail, in small markup."""
        mebibytes = self.rows * self.columns * self.element_size / 2**20
        return (
            f"Here, column by column takes **{self.ratio:.1f} times** as long: "
            f"{self.column_seconds * 1e3:.0f} ms against {self.row_seconds * 1e3:.1f} ms.",
            f"Summing every element of a {self.rows:,} × {self.columns:,} float32 matrix "
            f"({mebibytes:.0f} MiB) in {self.columns:,} sums of {self.rows:,} elements either way; "
            f"median of {self.repeats} on one core. The walk in order also lets the processor add several elements "
            "at once.",
        )

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The lines both walks fetch by the closed forms, for a matrix this large."""
        return (
            lines_of_walk.explain(
                elements=self.rows * self.columns, stride=1, element_bytes=self.element_size, line_bytes=LINE_BYTES
            ),
            lines_of_far_walk.explain(rows=self.rows, columns=self.columns),
        )


def time_walks(rows: int = 16_384, columns: int = 1_040, *, seconds: float = 1.0) -> WalkTiming:
    """Time both walks over a fresh float32 matrix: every element summed, in order and column by column.

    Both make ``columns`` calls that sum ``rows`` elements each, so that calls cost both the same; only the order of
    memory differs. 1,040 columns are 65 cache lines: a power of two would make all of a column compete for the same
    few places of the cache. Takes about ``seconds``, once it has run each walk once; needs 4 bytes per element.
    Raises `WalkBusyError` while another thread is timing.
    """
    if not _TIMING.acquire(blocking=False):
        raise WalkBusyError("Somebody else is timing right now; try again in a second.")
    try:
        flat = np.ones(rows * columns, dtype=np.float32)
        matrix = flat.reshape(rows, columns)

        def by_row() -> None:
            for start in range(0, rows * columns, rows):
                flat[start : start + rows].sum()

        def by_column() -> None:
            for column in range(columns):
                matrix[:, column].sum()

        taken: tuple[list[float], list[float]] = ([], [])
        until = time.perf_counter() + seconds
        while not taken[1] or (time.perf_counter() + taken[0][-1] + taken[1][-1] < until and len(taken[1]) < 9):
            for times, run in zip(taken, (by_row, by_column), strict=True):
                times.append(_seconds(run))
    finally:
        _TIMING.release()
    return WalkTiming(
        rows=rows,
        columns=columns,
        element_size=4,
        row_seconds=statistics.median(taken[0]),
        column_seconds=statistics.median(taken[1]),
        repeats=len(taken[1]),
    )


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
