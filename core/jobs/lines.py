"""Reading a process's output without trusting it: lines with a cap, what they say, and the tail of its complaints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Event = TypeVar("Event")


def decoded(known: TypeAdapter[Event], line: bytes) -> Event | None:
    """Return the one of the ``known`` events that a line of JSON is, every field checked; None when it is anything
    else."""
    from pydantic import ValidationError

    try:
        return known.validate_json(line)
    except ValidationError:
        return None


@dataclass
class LineReader:
    """Splits chunks of bytes into lines of at most ``cap`` bytes; a longer line is dropped whole and counted."""

    cap: int
    oversize: int = field(default=0, init=False)
    _pending: bytearray = field(default_factory=bytearray, init=False)
    _skipping: bool = field(default=False, init=False)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that ``chunk`` completes, without their ends. Memory held never exceeds the cap and one
        chunk."""
        lines: list[bytes] = []
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            self._add(part)
            if not self._skipping:
                lines.append(bytes(self._pending))
            self._pending.clear()
            self._skipping = False
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._pending) + len(part) > self.cap:
            self._skipping = True
            self.oversize += 1
            self._pending.clear()
            return
        self._pending += part


@dataclass
class Tail:
    """The last ``cap`` bytes of a stream."""

    cap: int
    _last: bytearray = field(default_factory=bytearray, init=False)

    def feed(self, chunk: bytes) -> None:
        """Add ``chunk``, forgetting what is older than the cap."""
        self._last += chunk
        del self._last[: -self.cap]

    def text(self) -> str:
        """Return the last bytes, as text."""
        return self._last.decode("utf-8", errors="replace").strip()
