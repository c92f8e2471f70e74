"""What a search may not choose freely, and the error of a space that is too large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.training.layout import Layout, LayoutError, Recompute


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high``, both included; ``high`` None where nothing bounds it."""

    low: int = 1
    high: int | None = None

    @property
    def free(self) -> bool:
        """Whether it allows every degree."""
        return self.low <= 1 and self.high is None

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:,}"
        return f"up to {self.high:,}" if self.low <= 1 else f"{self.low:,} to {self.high:,}"

    def includes(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of the values lie in it."""
        return (values >= self.low) & (values <= (np.inf if self.high is None else self.high))


Pin: TypeAlias = "int | tuple[int, ...] | Range | None"
"""The value, the values or the range that a choice may take; None leaves it free."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What plans have to keep to. Fields but the last are the fields of `Layout` that they pin.

    expert_tensor: as usual, unless it is allowed otherwise.
    shard_group: 0 is all ranks; left free, those of one node are tried beside them.  offload: forbidden unless it is
    allowed, because hosts differ more than accelerators do. micro_batches: of a step, which then has as many sequences
    as these come to; None fills the batch. Only a layout of one's own has it, and values of every other field.
    tensor_in_node: tensor-parallel ranks stay in one node, as in practically every published run: beyond it they wait
    for a link that is ten times slower. Values of ``tensor``, or a range from 2 on, overrule it.
    """

    tensor: Pin = None
    pipeline: Pin = None
    interleave: Pin = None
    context: Pin = None
    expert: Pin = None
    expert_tensor: Pin = 0
    data: Pin = None
    micro_batch: Pin = None
    zero: Pin = None
    shard_group: Pin = None
    sequence_parallel: Pin = None
    recompute: Pin = None
    offload: Pin = 0
    micro_batches: int | None = None
    tensor_in_node: bool = True

    @property
    def one_layout(self) -> bool:
        """Whether they leave one layout alone, which is timed whether it fits or not."""
        return all(isinstance(pin, int) for pin in (self.tensor, self.zero, self.shard_group, self.sequence_parallel))

    def allowed(self, field: str, values: Any) -> npt.NDArray[np.bool_]:
        """Which of the values a field may take."""
        pin, values = getattr(self, field), np.asarray(values)
        if pin is None or isinstance(pin, Range):
            return (pin or Range(-1)).includes(values)
        return np.isin(values, pin)

    def listed(self, field: str) -> tuple[int, ...] | None:
        """The values that a field is pinned to; None where it is free or has a range."""
        pin = getattr(self, field)
        return None if pin is None or isinstance(pin, Range) else tuple(np.atleast_1d(pin).tolist())

    @property
    def keeps_tensor_in_node(self) -> bool:
        """Whether tensor-parallel ranks have to stay in one node."""
        pin = self.tensor
        return self.tensor_in_node and (pin is None or (isinstance(pin, Range) and pin.low <= 1))

    def choices(self, field: str, values: Any) -> npt.NDArray[np.int64]:
        """Those of the values that a field may take."""
        values = np.asarray(values, dtype=np.int64)
        return values[self.allowed(field, values)]


def only(layout: Layout) -> Constraints:
    """What leaves ``layout`` alone, but for its data-parallel ranks, and its micro-batches where they are 0."""
    degrees = ("tensor", "pipeline", "interleave", "context", "expert", "expert_tensor", "micro_batch")
    kept = (*degrees, "zero", "shard_group", "sequence_parallel", "recompute", "offload")
    pins: dict[str, Any] = {name: int(getattr(layout, name)) for name in kept}
    return Constraints(**pins, micro_batches=int(layout.micro_batches) or None)


FREE = Constraints()
"""The usual ones: tensor-parallel ranks in a node, and nothing offloaded."""

FSDP: Mapping[str, Pin] = {
    **dict.fromkeys(("tensor", "pipeline", "interleave", "context", "expert"), 1),
    "zero": (0, 2, 3),
    "recompute": (Recompute.NONE, Recompute.FULL),
    "offload": (0, 2),
}
"""Values of a layout's fields that PyTorch's FSDP runs by itself. It offloads the optimizer with the parameters only,
which no search tries."""


def with_fsdp(pins: Constraints) -> Constraints:
    """The same constraints, and those of `FSDP` where a field is free."""
    free = {name: pin for name, pin in FSDP.items() if is_free(getattr(pins, name))}
    return replace(pins, **free)  # pyright: ignore[reportArgumentType]


def is_free(pin: Pin) -> bool:
    """Whether a pin allows every value."""
    return pin is None or (isinstance(pin, Range) and pin.free)


class SpaceError(LayoutError):
    """A space of more plans than are searched.

    count: plans in it, or the least that are known to be. most: those that are searched at once. field: the choice
    whose pinning would leave the fewest for certain. left: how many it leaves at most.
    """

    def __init__(self, count: int, most: int, field: str, left: int) -> None:
        named = field.replace("_", " ")
        super().__init__(field, count, f"{most:,} are searched at most")
        self.count, self.most, self.left = count, most, left
        self.args = (
            f"There are {count:,} plans, more than the {most:,} that are searched at once. "
            f"With {named} pinned there are {left:,} at most.",
        )
