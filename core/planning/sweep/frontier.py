"""Where on a sweep something begins to hold: the edges between cells where it does and cells where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.planning.sweep.sweep import Bools

Edge: TypeAlias = "tuple[int, int, int, int]"
"""x and y of its two ends, in cells from the top left."""


@dataclass(frozen=True, slots=True)
class FrontierEnd:
    """Where a frontier leaves the sweep. side: of the sweep. at: cells along that side. before: whether what holds does
    so before that place (to the left of it, or over it)."""

    side: Literal["top", "right", "bottom", "left"]
    at: int
    before: bool


def edges(inside: Bools) -> list[Edge]:
    """Every edge between a cell where it holds and one where it does not; rows run from the top."""
    upright = np.argwhere(inside[:, 1:] != inside[:, :-1])
    level = np.argwhere(inside[1:, :] != inside[:-1, :])
    rows = [(int(j) + 1, int(i), int(j) + 1, int(i) + 1) for i, j in upright]
    return rows + [(int(j), int(i) + 1, int(j) + 1, int(i) + 1) for i, j in level]


def frontier_end(inside: Bools) -> FrontierEnd | None:
    """Where the frontier meets the sweep's rim, to be named there: on top if it does, else right, below, left."""
    rims = (("top", inside[0, :]), ("right", inside[:, -1]), ("bottom", inside[-1, :]), ("left", inside[:, 0]))
    for side, rim in rims:
        turns = np.flatnonzero(rim[1:] != rim[:-1])
        if turns.size:
            at = int(turns[-1] if side in ("top", "bottom") else turns[0])
            return FrontierEnd(side, at + 1, bool(rim[at]))  # type: ignore[arg-type]
    return None
