"""Measuring jobs: one per process, watched and cancelled by everybody; see `core.measure.process`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.limits import limit
from core.measure.events import DeviceFacts, Done, Outcome, Progress, Refusal, Result, Started, decode
from core.measure.process import Job, ProcessRunner, State
from core.measure.spec import Spec

Command: TypeAlias = Callable[[Spec], Sequence[str]]


def worker_command(spec: Spec) -> Sequence[str]:
    """The command line of the measuring process."""
    options = ["--device", spec.device, "--n", str(spec.n), "--seconds", repr(spec.seconds), "--end-with-parent"]
    return [sys.executable, "-m", "core.measure.worker", *options]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job at one moment.

    started: seconds since the epoch. outcomes: what has come in so far, in the order measured.
    message: why it failed or was cancelled, empty otherwise. ignored_lines: output that was no event.
    """

    id: str
    spec: Spec
    state: State
    started: float
    elapsed_s: float
    method: str
    torch: str
    facts: DeviceFacts | None
    progress: Progress | None
    outcomes: tuple[Outcome, ...]
    message: str
    stderr: str
    ignored_lines: int

    @property
    def running(self) -> bool:
        """Whether its process still works."""
        return self.state == "running"

    @property
    def results(self) -> tuple[Result, ...]:
        """The dtypes measured so far."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Result))

    @property
    def left_s(self) -> float:
        """About how many seconds are left, 0 when it has ended."""
        if not self.running:
            return 0.0
        if not self.method:
            return max(self.spec.expected_s - self.elapsed_s, 0.0)
        under_way = self.progress.fraction if self.progress else 0.0
        return max(len(self.spec.dtypes) - len(self.outcomes) - under_way, 0.0) * self.spec.dtype_s

    @property
    def fraction(self) -> float:
        """How far it is, 0 to 1."""
        return min(max(1 - self.left_s / self.spec.expected_s, 0.0), 1.0)


@dataclass
class _Job(Job[Spec, Snapshot]):
    """What the measuring process has said so far."""

    method: str = ""
    torch: str = ""
    facts: DeviceFacts | None = None
    progress: Progress | None = None
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def found(self) -> bool:
        return bool(self.outcomes)

    def take(self, line: bytes) -> None:
        event = decode(line)
        match event:
            case Started():
                self.method, self.torch = event.method, event.torch
            case DeviceFacts():
                self.facts = event
            case Progress():
                self.progress = event
            case Result() | Refusal():
                self.outcomes.append(event)
                self.progress = None
            case Done():
                self.done = True
            case None:
                self.ignored_lines += bool(line.strip())

    def snapshot(self) -> Snapshot:
        running = self.state == "running"
        return Snapshot(
            id=self.id,
            spec=self.spec,
            state=self.state,
            started=self.started,
            elapsed_s=self.seconds,
            method=self.method,
            torch=self.torch,
            facts=self.facts,
            progress=self.progress if running else None,
            outcomes=tuple(self.outcomes),
            message=self.message,
            stderr=self.stderr,
            ignored_lines=self.ignored_lines,
        )


class Runner(ProcessRunner[Spec, Snapshot]):
    """Measures one thing at a time. timeout_s: the most a job may take, the cap of `core.limits` by default."""

    def __init__(self, command: Command = worker_command, timeout_s: float | None = None) -> None:
        most = float(limit("measure_seconds")) if timeout_s is None else timeout_s
        super().__init__(command, _Job, most, "measurement")
