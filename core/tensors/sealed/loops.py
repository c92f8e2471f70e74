# pyright: basic
"""Iterations of a loop that do the same, of which the first ones and the last are reported, and the others counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]

_ALIKE = (
    *("kind", "source", "line", "operation", "layout", "dtype", "device"),
    *("bytes_asked", "bytes_peak", "bytes_kept", "flops", "written", "touched"),
)
"""What rows of two iterations have in common that are alike; values and storages differ."""

MOST_ROWS = 1_000
"""Calls that are reported."""


@dataclass(eq=False, slots=True)
class Loop:
    """A loop that runs.

    key: its frame and line. first: row that its iteration began with. left: values that might be reported by then.
    events: of its iteration. waiting: of the one before, if those are held back because all are like the one that began
    with row ``like``. done: what is compared. used: values that the iteration that waits reported.
    """

    key: tuple[int, int]
    first: int = 0
    left: int = 0
    like: int = 0
    events: list[Event] = field(default_factory=list[Event])
    waiting: list[Event] = field(default_factory=list[Event])
    holds: bool = False
    done: list[Any] = field(default_factory=list[Any])
    used: int = 0


def signature(events: list[Event], first: int, length: int) -> list[Any]:
    """Return what is compared of two iterations of as many rows, the later one beginning with row ``first``."""

    def near(row: int) -> int | str:
        return row - first if row >= first - length else f"row {row}"

    return [
        (*(event.get(name) for name in _ALIKE), [near(row) for row in event["inputs"]])
        if event["e"] == "row"
        else (event["rows"], event["total"], event["flops"])
        for event in events
        if event["e"] in ("row", "again")
    ]


_OF_STEPS = frozenset(("row", "name", "names", "freed", "again"))
"""Events that are held back while iterations of a loop are alike."""

_ENDING = frozenset(("refused", "caught", "error", "model", "end"))
"""Events after which nothing is held back."""


class Loops:
    """Holds back the events of a run while the iterations of its loops are alike. reported: rows so far."""

    loops: list[Loop]
    emit_now: Any
    rows: Any
    stores: Any
    left: int
    reported: int

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
        self.reported += event["e"] == "row"
        if self.reported <= MOST_ROWS or event["e"] not in (*_OF_STEPS, "refused"):
            self.emit_now(event)

    def _release(self, loop: Loop) -> None:
        """Report what was held back."""
        depth = self.loops.index(loop)
        for event in [*loop.waiting, *(loop.events if loop.holds else ())]:
            self._put(event, depth)
        loop.waiting, loop.holds = [], False

    def _turn(self, key: tuple[int, int], ends: bool) -> None:
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
                loop.holds, loop.like = True, loop.first
            else:
                if loop.waiting:
                    self._drop(loop, length)
                loop.waiting, loop.used = loop.events, used
            loop.done = done
            if ends:
                loop.events = []
                self._release(loop)
                self.loops.pop()
        elif not ends:
            self.loops.append(Loop(key))
        if not ends:
            loop = self.loops[-1]
            loop.first, loop.left, loop.events = len(self.rows), self.left, []

    def _drop(self, loop: Loop, length: int) -> None:
        """Count the iteration that waits: its rows stand for those that it is like."""
        self.left += loop.used
        rows = [event for event in loop.waiting if event["e"] in ("row", "again")]
        total = sum(event["total" if event["e"] == "again" else "bytes_asked"] for event in rows)
        freed = [number for event in loop.waiting for number in event.get("storages", ())]
        again = {"e": "again", "n": loop.like, "from": loop.first - length, "rows": length, "storages": freed}
        if length:
            flops = sum(event["flops"] for event in rows)
            self._put(again | {"total": total, "flops": flops}, self.loops.index(loop))
