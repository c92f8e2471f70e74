"""Measuring jobs: one per process, watched and cancelled by everybody; see `core.jobs.process`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from core.benchmark.points import DeviceFacts, Outcome, clip
from core.benchmark.programme import Programme
from core.benchmark.record import Record
from core.benchmark.running.events import DeviceFound, Done, Progress, Started, Tried, decode
from core.benchmark.timing import kinds
from core.jobs.process import Job, ProcessRunner
from core.limits import limit

Command: TypeAlias = Callable[[Programme], Sequence[str]]


def worker_command(programme: Programme) -> Sequence[str]:
    """Return the command line of the measuring process."""
    options = ["--programme", programme.model_dump_json(), "--end-with-parent"]
    return [sys.executable, "-m", "core.benchmark.running.worker", *options]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a job at one moment.

    record: what it has found so far. place: its place in the queue, 1 for the next; 0 if it is not in the queue or
    waits for another server of this machine.
    """

    record: Record
    place: int
    progress: Progress | None
    stderr: str

    @property
    def id(self) -> str:
        """Of the job and of its record."""
        return self.record.id

    @property
    def running(self) -> bool:
        """Whether its process still works."""
        return self.record.stage == "running"

    @property
    def left_s(self) -> float:
        """About how many seconds are left once it runs, 0 when it has ended."""
        record = self.record
        if record.stage not in ("queued", "running"):
            return 0.0
        if not record.method:
            return max(kinds.expected_s(record.programme) - record.elapsed_s, 0.0)
        under_way = self.progress.fraction if self.progress else 0.0
        left = kinds.left_s(record.programme, len(record.outcomes), under_way)
        return max(min(left, kinds.LONGEST_S - record.elapsed_s), 0.0)

    @property
    def fraction(self) -> float:
        """How far it is, 0 to 1."""
        return min(max(1 - self.left_s / kinds.expected_s(self.record.programme), 0.0), 1.0)


@dataclass
class _MeasurementJob(Job[Programme, Snapshot]):
    """What the measuring process has said so far."""

    method: str = ""
    torch: str = ""
    facts: DeviceFacts | None = None
    in_use: str = ""
    progress: Progress | None = None
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def found(self) -> bool:
        return bool(self.outcomes)

    def take(self, line: bytes) -> None:
        match decode(line):
            case Started() as event:
                self.method, self.torch = event.method, event.torch
            case DeviceFound() as event:
                self.facts, self.in_use = event.facts, event.in_use
            case Progress() as event:
                self.progress = event
            case Tried() as event if len(self.outcomes) < limit("measure_outcomes"):
                self.outcomes.append(event.outcome)
                self.progress = None
            case Done():
                self.done = True
            case _:
                pass

    def snapshot(self) -> Snapshot:
        record = Record(
            id=self.id,
            programme=self.spec,
            stage=self.state,
            started=self.started,
            elapsed_s=self.seconds,
            method=self.method,
            torch=self.torch,
            facts=self.facts,
            outcomes=tuple(self.outcomes),
            message=clip(self.message),
            in_use=self.in_use,
        )
        progress = self.progress if self.state == "running" else None
        return Snapshot(record, self.place, progress, self.stderr)


class Runner(ProcessRunner[Programme, Snapshot]):
    """Measures one thing at a time. listener, lock: see `ProcessRunner`."""

    def __init__(
        self,
        command: Command = worker_command,
        listener: Callable[[Snapshot], None] | None = None,
        lock: Path | None = None,
    ) -> None:
        super().__init__(command, _MeasurementJob, limit("measure_seconds"), "measurement", listener, lock)
