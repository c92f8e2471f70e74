"""Models built one at a time for every session of a server: asked for, watched, and remembered.

Building takes seconds, so no page waits for it: a page submits, shows the state, and polls.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.limits import limit
from core.models.building.build import build_model
from core.models.building.events import Built, Refused

State: TypeAlias = Literal["waiting", "building", "done", "full"]


@dataclass(frozen=True, slots=True)
class Build:
    """One build at one moment.

    key: names it for `BuildRunner.poll`. state: ``full`` where too many wait, and nothing was submitted.
    seconds: how long it has been building, or took. answer: None until it is done.
    """

    key: str
    state: State
    seconds: float
    answer: Built | Refused | None

    @property
    def under_way(self) -> bool:
        """Whether polling again will show more."""
        return self.state in ("waiting", "building")


@dataclass(slots=True)
class _Job:
    """The mutable side of a build; only touched under the runner's lock."""

    config: str
    seq_len: int
    state: State = "waiting"
    clock: float = 0.0
    seconds: float = 0.0
    answer: Built | Refused | None = None


def build_key(config: str, seq_len: int) -> str:
    """What names a build: the text, to the letter, and the length."""
    return hashlib.sha256(f"{seq_len}\n{config}".encode(errors="surrogatepass")).hexdigest()[:24]


class BuildRunner:
    """Builds at most one model at a time. All methods may be called from any thread; none waits for a build.

    build: what is run for a config and a length, `build_model` by default.
    """

    def __init__(self, build: Callable[[str, int], Built | Refused] = build_model) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._working = False

    def submit(self, config: str, seq_len: int) -> Build:
        """Ask for a build, or find it where it was asked for before; see `Build` for when too many wait."""
        key = build_key(config, seq_len)
        with self._lock:
            if key in self._jobs:
                if self._jobs[key].state == "done":  # what waits keeps its turn
                    self._jobs.move_to_end(key)
                return self._shown(key)
            if sum(job.state == "waiting" for job in self._jobs.values()) >= limit("build_queue"):
                return Build(key, "full", 0.0, None)
            self._jobs[key] = _Job(config, seq_len)
            self._forget()
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()
            return self._shown(key)

    def poll(self, key: str) -> Build | None:
        """The build of this key now; None when it is unknown or long forgotten."""
        with self._lock:
            return self._shown(key) if key in self._jobs else None

    def _shown(self, key: str) -> Build:
        job = self._jobs[key]
        seconds = time.monotonic() - job.clock if job.state == "building" else job.seconds
        return Build(key, job.state, seconds, job.answer)

    def _forget(self) -> None:
        """Drop the answers longest unasked for."""
        done = [key for key, job in self._jobs.items() if job.state == "done"]
        for key in done[: max(len(self._jobs) - limit("build_answers"), 0)]:
            del self._jobs[key]

    def _work(self) -> None:
        """Build what waits, first come first served, until nothing does."""
        while True:
            with self._lock:
                job = next((job for job in self._jobs.values() if job.state == "waiting"), None)
                if job is None:
                    self._working = False
                    return
                job.state, job.clock = "building", time.monotonic()
            try:
                answer = self._build(job.config, job.seq_len)
            except Exception as problem:
                answer = Refused(f"The build failed: {type(problem).__name__}.")
            with self._lock:
                job.state, job.answer, job.seconds = "done", answer, time.monotonic() - job.clock
                job.config = ""
