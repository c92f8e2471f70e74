# pyright: basic
"""Iterations of a loop that do the same, of which the first ones and the last are reported, and the others counted.

A row is told from another by its number. Where an iteration is dropped, the rows after it move up by as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
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


_OF_STEPS = frozenset(("row", "name", "names", "freed", "typed", "again"))
"""Events that are held back while iterations of a loop are alike."""

_ENDING = frozenset(("refused", "caught", "error", "model", "end"))
"""Events after which nothing is held back."""


class Loops:
    """Holds back the events of a run while the iterations of its loops are alike."""

    loops: list[Loop]
    emit_now: Any
    rows: Any
    written: Any
    named: Any
    known: Any
    said: Any
    waiting: Any
    stores: Any
    left: int
    _scopes: Any

    def _put(self, event: Event, depth: int | None = None) -> None:
        """Report an event, or hold it back in a loop. depth: of the loops around it, all if None."""
        if event["e"] in _OF_STEPS:
            for loop in reversed(self.loops[:depth]):
                loop.events.append(event)
                if loop.holds:
                    return
        elif event["e"] in _ENDING:
            while self.loops:
                self._release(self.loops[-1])
                self.loops.pop()
        self.emit_now(event)

    def _release(self, loop: Loop) -> None:
        """Report what was held back."""
        depth = self.loops.index(loop)
        for event in [*loop.waiting, *(loop.events if loop.holds else ())]:
            self._put(event, depth)
        loop.waiting, loop.holds = [], False

    def _turn(self, key: tuple[int, int], frame: FrameType | None, ends: bool) -> None:
        """An iteration of the loop ``key`` begins, or the loop ends."""
        while any(loop.key == key for loop in self.loops[:-1]) and self.loops[-1].key != key:  # left by an error
            self._release(self.loops[-1])
            self.loops.pop()
        if self.loops and self.loops[-1].key == key:
            loop = self.loops[-1]
            length = len(self.rows) - loop.first
            alive = sum(self.stores.bytes[number] for number in self.stores.living)
            done = [alive, *signature(loop.events, loop.first, length)]
            used = loop.left - self.left
            if done != loop.done:
                self._release(loop)
            elif not loop.holds:
                loop.holds = True
            else:
                if loop.waiting:
                    self._drop(loop, length, frame)
                    self.left += loop.used
                loop.waiting, loop.used = loop.events, used
            loop.done = done
            if ends:
                loop.events = []
                self._release(loop)
                self.loops.pop()
        elif not ends:
            self.loops.append(Loop(key, 0, 0))
        if not ends:
            loop = self.loops[-1]
            loop.first, loop.left, loop.events = len(self.rows), self.left, []

    def _drop(self, loop: Loop, length: int, frame: FrameType | None) -> None:
        """Count the iteration that waits, and move the rows of the one after it, which is like it, to its place."""
        start = loop.first - length

        def move(row: int) -> int:
            return row - length if row >= start else row

        rows = [event for event in loop.waiting if event["e"] in ("row", "again")]
        total, flops = (sum(event[name] for event in rows) for name in ("total", "flops"))
        freed = [number for event in loop.waiting for number in event.get("storages", ())]
        again = {"e": "again", "n": start - length, "rows": length, "storages": freed, "total": total, "flops": flops}
        if length:
            self._put(again, self.loops.index(loop))
        for kept in (self.rows, self.written, self.named):
            del kept[start : loop.first]
        loop.events = [moved(event, move) for event in loop.events]
        self.known.move(move)
        self.said = {name: move(row) for name, row in self.said.items()}
        for scope in self._scopes(frame):
            scope.update({name: (ref, move(row)) for name, (ref, row) in scope.items()})
        for group in self.waiting:
            group.main = None if group.main is None else move(group.main)
