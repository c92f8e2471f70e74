"""Experiments in child processes, one at a time for all users, with results that are kept until the server ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from core.experiments.events import decode
from core.experiments.found import Found
from core.jobs.process import Job, ProcessRunner, State
from core.limits import limit


def worker_command(name: str) -> Sequence[str]:
    """Return the command line of the process that runs the experiment ``name``."""
    return [sys.executable, "-m", "core.experiments.worker", name]


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """An experiment at one moment. found: None until it has ended. message: why it ended early, or empty."""

    id: str
    name: str
    state: State
    seconds: float
    found: Found | None
    message: str

    @property
    def open(self) -> bool:
        """Return whether it runs or waits."""
        return self.state in ("queued", "running")


@dataclass
class _ExperimentJob(Job[str, ExperimentRun]):
    result: Found | None = None

    @property
    def found(self) -> bool:
        return self.result is not None

    def take(self, line: bytes) -> None:
        found = decode(line)
        if found is not None:
            self.result, self.done = found, True

    def snapshot(self) -> ExperimentRun:
        return ExperimentRun(self.id, self.spec, self.state, self.seconds, self.result, self.message)


class ExperimentRunner(ProcessRunner[str, ExperimentRun]):
    """Runs experiments by name and keeps the last result of each. Asking for one that runs or waits returns it."""

    def __init__(self) -> None:
        self._known: dict[str, ExperimentRun] = {}
        self._known_lock = threading.Lock()
        super().__init__(
            worker_command, _ExperimentJob, float(limit("experiment_seconds")), "experiment", listener=self._keep
        )

    def _keep(self, run: ExperimentRun) -> None:
        with self._known_lock:
            before = self._known.get(run.name)
            if run.found is not None or before is None or before.found is None:
                self._known[run.name] = run

    def run(self, name: str) -> ExperimentRun:
        """Start the experiment ``name``, or return the one that is running or waiting."""
        last = self.last(name)
        if last is not None and last.open:
            return last
        run, _ = self.start(name, who=f"experiment {name}")  # one of each at a time, whoever asks
        with self._known_lock:
            self._known.setdefault(name, run)
        return run

    def last(self, name: str) -> ExperimentRun | None:
        """Return the last run of the experiment ``name``, or None before the first."""
        own = self.own(f"experiment {name}")
        if own is not None and (own.open or own.found is not None):
            return own
        with self._known_lock:
            return self._known.get(name) or own
