"""Models built one at a time for every session of a server, and of all servers of the machine: asked for, watched, and
remembered.

Building takes seconds, so no page waits for it: a page submits, shows the state, and polls.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from core.limits import limit
from core.models.building.build import build_model
from core.models.building.events import Built, Refused
from core.models.building.queue import Line, Place

State: TypeAlias = Literal["waiting", "building", "done", "full"]

Builder: TypeAlias = Callable[[str, int, int], Built | Refused]
"""What builds: from a config, a length, and the lock to be held until all that was started has ended."""

TURN_S = 0.25
"""How often one in line looks whether its turn has come."""


@dataclass(frozen=True, slots=True)
class Build:
    """One build at one moment.

    key: names it for `BuildRunner.poll`. state: ``full`` where too many wait, and nothing was submitted.
    seconds: how long it has been building, or took. ahead: of one that waits, how many are before it on this machine.
    answer: None until it is done.
    """

    key: str
    state: State
    seconds: float
    ahead: int
    answer: Built | Refused | None

    @property
    def under_way(self) -> bool:
        """Whether polling again will show more."""
        return self.state in ("waiting", "building")


@dataclass(slots=True)
class _Job:
    """The mutable side of a build; only touched under the runner's lock.

    place: None once it is done, or given up. who: the visitors who wait for it. again: whether the answer says nothing
    of the model, and who asks again is to get another.
    """

    config: str
    seq_len: int
    place: Place | None = None
    who: set[str] = field(default_factory=set[str])
    state: State = "waiting"
    clock: float = 0.0
    seconds: float = 0.0
    answer: Built | Refused | None = None
    again: bool = False


def build_key(config: str, seq_len: int) -> str:
    """What names a build: the text, to the letter, and the length."""
    return hashlib.sha256(f"{seq_len}\n{config}".encode(errors="surrogatepass")).hexdigest()[:24]


class BuildRunner:
    """Builds at most one model at a time. All methods may be called from any thread; none waits for a build.

    A visitor stands in line once: who asks for another model gives the place up and joins at the end. Who has no name
    (a library's user) stands there once for each.

    line: of all runners that take turns. build: `build_model` by default.
    """

    def __init__(self, line: Line, build: Builder = build_model) -> None:
        self._line = line
        self._build = build
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._working = False

    def submit(self, config: str, seq_len: int, who: str = "") -> Build:
        """Ask for a build, or find it where it was asked for before; see `Build` for when too many wait."""
        key = build_key(config, seq_len)
        with self._lock:
            self._give_up(who, key)
            if key in self._jobs and not self._jobs[key].again:
                self._jobs[key].who.add(who)
                if self._jobs[key].state == "done":  # what waits keeps its turn
                    self._jobs.move_to_end(key)
                return self._shown(key)
            self._jobs.pop(key, None)
            job = _Job(config, seq_len, who={who})
            try:
                job.place = self._line.join(limit("build_queue") + 1)
                if job.place is None:
                    return Build(key, "full", 0.0, 0, None)
            except OSError as problem:
                job.state, job.answer, job.again = "done", self._no_line(problem), True
            self._jobs[key] = job
            self._forget()
            if job.place and not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()
            return self._shown(key)

    def poll(self, key: str) -> Build | None:
        """The build of this key now; None when it is unknown or long forgotten."""
        with self._lock:
            return self._shown(key) if key in self._jobs else None

    def _give_up(self, who: str, key: str) -> None:
        """Leave the line with what a visitor waits for alone, other than ``key``."""
        for other, job in list(self._jobs.items()):
            if other != key and job.state == "waiting" and job.place and who and who in job.who:
                job.who.remove(who)
                if not job.who:
                    job.place.leave()
                    job.place = None
                    del self._jobs[other]

    def _shown(self, key: str) -> Build:
        job = self._jobs[key]
        seconds = time.monotonic() - job.clock if job.state == "building" else job.seconds
        try:
            ahead = self._line.ahead(job.place) if job.place and job.state == "waiting" else 0
        except OSError:  # which the thread that waits for its turn says
            ahead = 0
        return Build(key, job.state, seconds, ahead, job.answer)

    def _forget(self) -> None:
        """Drop the answers longest unasked for."""
        done = [key for key, job in self._jobs.items() if job.state == "done"]
        for key in done[: max(len(self._jobs) - limit("build_answers"), 0)]:
            del self._jobs[key]

    def _work(self) -> None:
        """Build what waits here, first come first served, each when its turn has come, until nothing does."""
        while True:
            with self._lock:
                job = next((job for job in self._jobs.values() if job.state == "waiting"), None)
                if job is None:
                    self._working = False
                    return
            why = self._turn(job)
            with self._lock:
                if (place := job.place) is None:
                    continue
                job.state, job.clock = "building", time.monotonic()
            try:
                answer = why or self._build(job.config, job.seq_len, place.lock)
            except Exception as problem:
                answer = Refused(f"The build failed: {type(problem).__name__}.")
            place.leave()
            with self._lock:
                job.state, job.answer, job.seconds = "done", answer, time.monotonic() - job.clock
                job.config, job.place, job.again = "", None, why is not None

    def _turn(self, job: _Job) -> Refused | None:
        """Wait until it is this one's turn, or it is given up; why that never comes, if it does not."""
        most = limit("build_wait") * (limit("build_queue") + 1)
        until = time.monotonic() + most
        try:
            while (place := job.place) and self._line.ahead(place):
                if time.monotonic() > until:
                    return Refused(f"It stood in line for {most / 60:.0f} min, and those before it did not end.")
                time.sleep(TURN_S)
        except OSError as problem:
            return self._no_line(problem)
        return None

    def _no_line(self, problem: OSError) -> Refused:
        return Refused(
            f"The line of models to be built cannot be kept in {self._line.folder} ({problem.strerror}). Ask whoever "
            "runs this server to set NAPKIN_DATA to a folder that can be written."
        )
