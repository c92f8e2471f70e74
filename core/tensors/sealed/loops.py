# pyright: basic
"""Iterations of a loop that do the same, of which the first ones and the last are reported, and the others counted.

A row is told from another by its number. Where an iteration is dropped, the rows after it move up by as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]

_ALIKE = (
    *("kind", "source", "line", "op", "shape", "stride", "offset", "dtype", "device"),
    *("total", "peak", "kept", "flops", "written", "touched"),
)
"""What rows of two iterations have in common that are alike; values and storages differ."""


@dataclass(eq=False, slots=True)
class Loop:
    """A loop that runs.

    key: its frame and line. first: row that its iteration began with. left: values that might be reported by then.
    events: of its iteration. waiting: of the one before, if those are held back because all are alike.
    """

    key: tuple[int, int]
    first: int
    left: int
    events: list[Event] = field(default_factory=list[Event])
    waiting: list[Event] = field(default_factory=list[Event])
    holds: bool = False
    done: list[Any] = field(default_factory=list[Any])
    used: int = 0


def signature(events: list[Event], first: int, length: int) -> list[Any]:
    """Return what is compared of two iterations of as many rows, the later one beginning with row ``first``."""

    def near(row: int) -> int | str:
        return row - first if row >= first - length else f"row {row}"

    found: list[Any] = []
    for event in events:
        if event["e"] == "row":
            found.append((*(event.get(name) for name in _ALIKE), [near(row) for row in event["inputs"]]))
        elif event["e"] == "again":
            found.append((event["rows"], event["total"], event["flops"]))
        elif event["e"] == "typed":
            found.append((event["annotation"], event["shapes"]))
    return found


def moved(event: Event, move: Callable[[int], int]) -> Event:
    """Return ``event`` with the rows that it names moved."""
    changed: Event = {name: [move(row) for row in event[name]] for name in ("inputs", "changed") if name in event}
    if "n" in event:
        changed["n"] = move(event["n"])
    if event["e"] == "names":
        changed["names"] = {name: move(row) for name, row in event["names"].items()}
    return event | changed
