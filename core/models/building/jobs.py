"""Models built one at a time for every session of a server, and of all servers of the machine: asked for, watched, and
remembered; see `core.jobs.process`, and `core.models.building.worker` for what builds them.

Building takes seconds, so no page waits for it: a page submits, shows the state, and polls.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from core.jobs.child import Command
from core.jobs.process import Job, ProcessRunner
from core.limits import limit
from core.models.building.events import Built, ModelRefused, decode
from core.models.configs.json_text import ConfigError, read_object
from core.models.configs.keys import GENERIC

State: TypeAlias = Literal["waiting", "building", "done", "full"]

_STATES: Mapping[str, State] = {"queued": "waiting", "running": "building"}
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""Settings of the server that the process gets: what a library needs to load, and nothing that is secret."""

WORKER: Sequence[str] = (sys.executable, "-m", "core.models.building.worker")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be built. key: names it. config: a config.json as text. seq_len: tokens whose FLOPs are counted."""

    key: str
    config: str
    seq_len: int


@dataclass(frozen=True, slots=True)
class Build:
    """One build at one moment.

    key: names it for `BuildRunner.poll`. state: ``full`` where too many wait, and nothing was submitted.
    seconds: how long it has been building, or took. ahead: of one that waits, how many of this server are before it.
    answer: None until it is done.
    """

    key: str
    state: State
    seconds: float
    ahead: int
    answer: Built | ModelRefused | None

    @property
    def under_way(self) -> bool:
        """Whether polling again will show more."""
        return self.state in ("waiting", "building")


@dataclass
class _BuildJob(Job[Request, Build]):
    """What the building process has answered. visitors: those who wait for it."""

    visitors: set[str] = field(default_factory=set[str])
    answer: Built | ModelRefused | None = None

    @property
    def found(self) -> bool:
        return self.answer is not None

    @property
    def again(self) -> bool:
        """Whether its end says nothing of the model, and who asks again is to get another."""
        return not self.open and self.process is None and self.answer is None

    def take(self, line: bytes) -> None:
        self.answer = decode(line)
        self.done = self.answer is not None

    def snapshot(self) -> Build:
        answer = None if self.open else self.answer if self.done else ModelRefused(self.message)
        return Build(self.id, _STATES.get(self.state, "done"), self.seconds, self.place, answer)


def build_key(config: str, seq_len: int) -> str:
    """What names a build: the text, to the letter, and the length."""
    return hashlib.sha256(f"{seq_len}\n{config}".encode(errors="surrogatepass")).hexdigest()[:24]


class BuildRunner(ProcessRunner[Request, Build]):
    """Builds at most one model at a time. A visitor stands in line once: who asks for another model gives the place up
    and joins at the end. Who has no name (a library's user) stands there once for each.

    lock: of all runners that take turns. command: the process to ask. timeout_s: the most one build may take, the cap
    of `core.limits` by default.
    """

    def __init__(self, lock: Path, command: Sequence[str] = WORKER, timeout_s: float | None = None) -> None:
        def start(request: Request) -> Command:
            variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            return Command(
                command,
                _message(request),
                {**variables, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            )

        most = float(limit("build_wait")) if timeout_s is None else timeout_s
        super().__init__(start, _BuildJob, most, "build", lock=lock, kept=limit("build_answers"))

    def submit(self, config: str, seq_len: int, who: str = "") -> Build:
        """Ask for a build, or find it where it was asked for before; see `Build` for when too many wait."""
        key = build_key(config, seq_len)
        with self._lock:
            self._give_up(who, key)
            job = self._jobs.get(key)
            if not isinstance(job, _BuildJob) or job.again:
                self._jobs.pop(key, None)
                return self._submit(Request(key, config, seq_len), who)
            job.visitors.add(who)
            if not job.open:  # what waits keeps its turn
                self._jobs.move_to_end(key)
            return job.snapshot()

    def build(self, config: str, seq_len: int) -> Built | ModelRefused:
        """The same, waited for."""
        key = self.submit(config, seq_len).key
        with self._lock:
            job = self._jobs[key]
        job.ended.wait()
        return job.snapshot().answer or ModelRefused("It was not built.")

    def _submit(self, request: Request, who: str) -> Build:
        job = _BuildJob(request, id=request.key, visitors={who})
        try:
            _check(request)
        except ConfigError as problem:
            job.answer, job.done = ModelRefused(str(problem)), True
            job.close("finished", "")
        if job.open and sum(other.open for other in self._jobs.values()) > limit("build_queue"):
            return Build(job.id, "full", 0.0, 0, None)
        self._add(job)
        return job.snapshot()

    def _give_up(self, who: str, key: str) -> None:
        """Leave the line with what a visitor waits for alone, other than ``key``."""
        for job in list(self._jobs.values()):
            if isinstance(job, _BuildJob) and job.id != key and job.state == "queued" and who and who in job.visitors:
                job.visitors.remove(who)
                if not job.visitors:
                    job.close("cancelled", "")
                    del self._jobs[job.id]


def _check(request: Request) -> None:
    """Raise `ConfigError` for what is no config, or has sizes such as no model could have."""
    if not 1 <= request.seq_len <= limit("model_dimension"):
        text = f"A sequence has 1 to {limit('model_dimension'):,} tokens, not {request.seq_len:,}."
        raise ConfigError("", request.seq_len, text)
    for key, number in _numbers(read_object(request.config)):
        most = limit("model_layers" if key in GENERIC["layers"] else "model_dimension")
        if abs(number) > most and not key.endswith(("_id", "_ids", "_index", "theta", "_base", "length")):
            raise ConfigError(key, number, f"no model has more than {most:,}.", f'"{key}": 32')


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _numbers(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _numbers(inner, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, value


def _message(request: Request) -> bytes:
    """What the process reads."""
    values = {"config": read_object(request.config), "seq_len": request.seq_len}
    return json.dumps({**values, "memory": limit("build_memory"), "seconds": limit("build_seconds")}).encode()
