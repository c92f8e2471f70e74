"""Keeps what is measured while it is measured: a thread of its own writes, so that no database holds a job up."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.benchmark.record import Record
from core.limits import limit
from core.store.errors import StoreError
from core.store.measurements import Measurements

LOG = logging.getLogger(__name__)

BEAT_S = 5.0
"""A running measurement is written so often at least, or it counts as lost; and so long after a fault it is tried anew.
A twelfth of `core.store.measured.LOST_S`."""


class Measuring(Protocol):
    """A job at one moment, as its runner tells of it."""

    @property
    def record(self) -> Record:
        """What it has measured so far."""
        ...


@dataclass(frozen=True, slots=True)
class Unsaved:
    """What is measured and not yet in the database. results: how many. why: what the database has said, empty while
    nothing has gone wrong."""

    results: int
    why: str


@dataclass
class _Tracked:
    """What is known of a measurement. written: its results that are in the database. new: whether something is not.
    logged: whether the log has why it cannot be written."""

    record: Record
    owner: str
    written: int = 0
    new: bool = True
    logged: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will be told of it."""
        return self.record.stage not in ("queued", "running")


class MeasurementWriter:
    """Hears what runners tell (it is their listener) and writes it: every result as soon as it is there, a sign of life
    every ``beat_s``, and the end. What cannot be written stays in memory, and is written when the database is back.

    opened: the measurements to write into; asked in the thread that writes, each time. What waits in line, or was
    cancelled there, is not kept.
    """

    def __init__(self, opened: Callable[[], Measurements], beat_s: float = BEAT_S) -> None:
        self._opened = opened
        self._beat_s = beat_s
        self._changed = threading.Condition()
        self._tracked: OrderedDict[str, _Tracked] = OrderedDict()
        self._owners: dict[str, str] = {}
        self._why = ""
        self._writes = False

    def __call__(self, seen: Measuring) -> None:
        """Hear of a job; returns at once."""
        record = seen.record
        with self._changed:
            tracked = self._tracked.get(record.id)
            if tracked is None:
                if record.stage in ("queued", "cancelled"):
                    return
                self._tracked[record.id] = _Tracked(record, self._owners.pop(record.id, ""))
                self._forget()
            else:
                tracked.new = tracked.new or _news(tracked.record, record)
                tracked.record = record
            if not self._writes:
                self._writes = True
                threading.Thread(target=self._write, daemon=True).start()
            self._changed.notify_all()

    def owned(self, id: str, owner: str) -> None:
        """Say who has started a measurement, by name."""
        with self._changed:
            if id in self._tracked:
                self._tracked[id].owner, self._tracked[id].new = owner, True
                self._changed.notify_all()
            else:
                self._owners[id] = owner
                while len(self._owners) > 2 * limit("job_queue"):  # the oldest were cancelled in line
                    del self._owners[next(iter(self._owners))]

    @property
    def unsaved(self) -> Unsaved | None:
        """What is not in the database yet; None when all is."""
        with self._changed:
            if not self._due():
                return None
            return Unsaved(sum(len(item.record.outcomes) - item.written for item in self._tracked.values()), self._why)

    # ------------------------------------------------------------------------------------------ under the lock

    def _due(self) -> list[_Tracked]:
        return [item for item in self._tracked.values() if item.new]

    def _forget(self) -> None:
        """Let the oldest go that nobody could write, when there are too many."""
        while len(self._tracked) > limit("measurements_waiting"):
            _, gone = self._tracked.popitem(last=False)
            unsaved = len(gone.record.outcomes) - gone.written
            LOG.error("Of measurement %s, %d results are lost: %s", gone.record.id, unsaved, self._why)

    # ------------------------------------------------------------------------------------------ in a thread of its own

    def _write(self) -> None:
        """Write what is new, again and again."""
        settled = False
        while True:
            with self._changed:
                if self._why:
                    self._changed.wait_for(lambda: False, self._beat_s)
                elif not self._due():
                    self._changed.wait_for(self._due, self._beat_s if self._tracked else None)
                todo = [(item, item.record, item.owner) for item in self._tracked.values()]
            why = ""
            try:
                measurements = self._opened()
                if not settled:
                    measurements.lost()  # what an earlier server of this database has left behind
                    settled = True
                for tracked, record, owner in todo:
                    try:
                        measurements.keep(record, owner)
                    except StoreError:
                        raise
                    except Exception:  # of this one; the others are written all the same
                        if not tracked.logged:  # it is tried again for as long as it is here
                            tracked.logged = True
                            LOG.exception("Measurement %s could not be saved", record.id)
                        why = "Something in them cannot be saved. The server’s log says what."
                    else:
                        self._written(tracked, record, owner)
            except Exception as problem:
                if not isinstance(problem, StoreError):
                    LOG.exception("The database of measurements could not be opened")
                why = str(problem)
            with self._changed:
                self._why = why

    def _written(self, tracked: _Tracked, record: Record, owner: str) -> None:
        with self._changed:
            tracked.written = len(record.outcomes)
            tracked.new = tracked.owner != owner or _news(record, tracked.record)
            if tracked.over and not tracked.new:
                self._tracked.pop(record.id, None)


def _news(old: Record, new: Record) -> bool:
    """Whether there is more in ``new`` than a little more time."""
    return len(old.outcomes) != len(new.outcomes) or old.model_copy(
        update={"elapsed_s": 0.0, "outcomes": ()}
    ) != new.model_copy(update={"elapsed_s": 0.0, "outcomes": ()})
