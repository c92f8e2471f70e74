"""What a search may not choose freely, and the error of a space that is too large."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Pin: TypeAlias = "int | tuple[int, ...] | None"
"""The one value that a choice may take, or those it may; None leaves it free."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What plans have to keep to. Fields but the last two are the fields of `Layout` that they pin, and ``overlap``.

    shard_group: 0 is all ranks; left free, those of one node are tried beside them.  offload: forbidden unless it is
    allowed, because hosts differ more than accelerators do.
    most: pairs of a field and the largest value that it may take.
    tensor_in_node: tensor-parallel ranks stay in one node, as in practically every published run: beyond it they wait
    for a link that is ten times slower. A pinned ``tensor`` overrules it.
    """

    tensor: Pin = None
    pipeline: Pin = None
    interleave: Pin = None
    context: Pin = None
    expert: Pin = None
    data: Pin = None
    micro_batch: Pin = None
    zero: Pin = None
    shard_group: Pin = None
    sequence_parallel: Pin = None
    recompute: Pin = None
    offload: Pin = 0
    overlap: Pin = None
    most: tuple[tuple[str, int], ...] = ()
    tensor_in_node: bool = True

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a largest value of what is no choice."""
        choices = [one.name for one in fields(self)[:-2]]
        for name, _ in self.most:
            if name not in choices:
                raise ValueError(f"most names {name!r}; a plan chooses {', '.join(choices)}.")

    def allowed(self, field: str, values: Any) -> npt.NDArray[np.bool_]:
        """Which of the values a field may take."""
        pin, values = getattr(self, field), np.asarray(values)
        kept = np.ones(values.shape, dtype=bool) if pin is None else np.isin(values, pin)
        for name, most in self.most:
            if name == field:
                kept = kept & (values <= most)
        return kept

    def choices(self, field: str, values: Any) -> npt.NDArray[np.int64]:
        """Those of the values that a field may take."""
        values = np.asarray(values, dtype=np.int64)
        return values[self.allowed(field, values)]


FREE = Constraints()
"""The usual ones: tensor-parallel ranks in a node, and nothing offloaded."""


class SpaceError(ValueError):
    """A space of more plans than are searched.

    count: plans in it. most: those that are searched at once. field: the choice whose pinning would leave the fewest
    for certain. left: how many it leaves at most.
    """

    def __init__(self, count: int, most: int, field: str, left: int) -> None:
        self.count, self.most, self.field, self.left = count, most, field, left
        named = field.replace("_", " ")
        super().__init__(
            f"There are {count:,} plans, more than the {most:,} that are searched at once. "
            f"With {named} pinned there are {left:,} at most."
        )
