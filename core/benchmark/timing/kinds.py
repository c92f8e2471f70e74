"""Everything that is timed, by kind: what there is to time for a programme, and who makes an item ready."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from core.benchmark.device import DeviceKind
from core.benchmark.points import Item, Kind
from core.benchmark.programme import KINDS, Programme
from core.benchmark.timing import attention, layer, matmul, memory
from core.benchmark.timing.bench import LONGEST_S, Bench, PreparedItem, warm_up_s

STARTUP_S: Mapping[DeviceKind, float] = {"cpu": 3.0, "cuda": 6.0}
"""About what starting the process, importing torch and creating a device's context take."""

SETUP_S: Mapping[DeviceKind, float] = {"cpu": 0.1, "cuda": 0.15}
"""About what inputs, their check and trying smaller sizes take per item."""

COMPILE_S: Mapping[DeviceKind, float] = {"cpu": 30.0, "cuda": 15.0}
"""About what torch.compile takes for one layer, forward and backward."""

_SETUP_FLOP_PER_S, _SETUP_RUNS = 1e14, 12
"""A slow GPU's rate, and runs of a matmul for its check and its five timings, which a large one needs however few
seconds it is given."""


class Timing(Protocol):
    """Functions of a module for one kind of items. Neither imports torch, because `prepare` gets it from the bench."""

    def items(self, programme: Programme) -> tuple[Item, ...]: ...
    def prepare(self, bench: Bench, programme: Programme, item: Item) -> PreparedItem: ...


TIMINGS: Mapping[str, Timing] = {"matmul": matmul, "memory": memory, "attention": attention, "layer": layer}


def items(programme: Programme) -> tuple[Item, ...]:
    """Return what the programme times, in order: kind by kind, and last what is timed for long."""
    kinds: list[Kind] = [kind for kind in KINDS if kind in programme.kinds]
    result = [item for kind in kinds for item in TIMINGS[kind].items(programme)]
    return (*result, *(matmul.sustained(programme) if "matmul" in kinds else ()))


def item_s(programme: Programme, item: Item) -> float:
    """Return about how long one item takes, everything included."""
    more = COMPILE_S[programme.device] if item.label == layer.COMPILED else 0.0
    if item.kind == "matmul" and programme.device == "cuda":
        more = _SETUP_RUNS * 2 * math.prod(item.shape) / _SETUP_FLOP_PER_S
    return SETUP_S[programme.device] + more + warm_up_s(item.seconds) + item.seconds


def expected_s(programme: Programme) -> float:
    """Return about how long the whole programme takes, at most: what is rejected or skipped takes less."""
    return min(STARTUP_S[programme.device] + left_s(programme, 0), LONGEST_S)


def left_s(programme: Programme, done: int, fraction: float = 0.0) -> float:
    """Return about how long it still takes once the first ``done`` items have an outcome and the next one is part
    done."""
    left = [item_s(programme, item) for item in items(programme)[done:]]
    return sum(left) - fraction * left[0] if left else 0.0
