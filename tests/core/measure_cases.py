"""Measurements to keep, and a runner of processes that only say what real ones would."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter

from core.benchmark.points import DeviceFacts, Item, Outcome, Point, Refusal
from core.benchmark.points import State as Moment
from core.benchmark.programme import DTYPES, KINDS, METHOD, LayerShape, Programme
from core.benchmark.record import Record, Stage
from core.jobs.process import Job, ProcessRunner, State
from core.limits import limit
from tests.patience import PATIENCE_S, until

OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
SPEC = Programme(device="cpu", kinds=("matmul",), dtypes=("fp32",), sizes=(128, 256), seconds=0.1)


def point(label: str = "n = 128", median_s: float = 1e-3, **more: Any) -> Point:
    """A matmul that took so long."""
    given: dict[str, Any] = {
        "item": Item(kind="matmul", name="fp32", label=label, shape=(128, 128, 128), seconds=0.1),
        "shape": (128, 128, 128),
        "flop": 2.0 * 128**3,
        "bytes": 3.0 * 4 * 128**2,
        "median_s": median_s,
        "best_s": 0.9 * median_s,
        "p10_s": 0.95 * median_s,
        "p90_s": 1.2 * median_s,
        "runs": 100,
        "duration_s": 0.1,
    }
    return Point(**(given | more))


REFUSAL = Refusal(item=point().item, why="refused", text="RuntimeError: not here")
FACTS = DeviceFacts(name="A processor", detail="", threads=2, memory_bytes=1e9, power_limit_w=None)


def record(number: int = 0, points: int = 2, **more: Any) -> Record:
    """A measurement of its own id with so many points."""
    given: dict[str, Any] = {
        "id": f"{number:012x}",
        "programme": SPEC,
        "stage": "finished",
        "started": 1_700_000_000.0 + number,
        "elapsed_s": 1.5,
        "method": METHOD,
        "torch": "2.13.0",
        "facts": FACTS,
        "outcomes": tuple(point(f"n = {i}") for i in range(points)),
    }
    return Record(**(given | more))


# ------------------------------------------------------------------------------------------ any record

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
AMOUNT = st.floats(0, 1e30)
_MAYBE = st.none() | AMOUNT
_SECONDS = st.floats(1e-9, 1e6)
_COUNT = st.integers(0, 2**63 - 1)
_SHAPE = st.lists(_COUNT, max_size=8).map(tuple)
ITEMS = st.builds(
    Item,
    kind=st.sampled_from(KINDS),
    name=_NAME,
    label=_NAME,
    shape=_SHAPE,
    seconds=_SECONDS,
    regime=st.sampled_from(["burst", "sustained"]),
)
_MOMENTS = st.builds(Moment, clock_mhz=_MAYBE, temperature_c=_MAYBE, power_w=_MAYBE)


@st.composite
def points(draw: st.DrawFn) -> Point:
    best, p10, median, p90 = sorted(draw(_SECONDS) for _ in range(4))
    return Point(
        item=draw(ITEMS),
        shape=draw(_SHAPE),
        flop=draw(AMOUNT),
        bytes=draw(AMOUNT),
        median_s=median,
        best_s=best,
        p10_s=p10,
        p90_s=p90,
        runs=draw(st.integers(1, 2**63 - 1)),
        duration_s=draw(AMOUNT),
        relative_error=draw(_MAYBE),
        peak_memory_bytes=draw(_MAYBE),
        before=draw(_MOMENTS),
        after=draw(_MOMENTS),
        note=draw(TEXT),
    )


OUTCOMES = points() | st.builds(Refusal, item=ITEMS, why=st.sampled_from(["refused", "skipped"]), text=TEXT)
DEVICES = st.builds(
    DeviceFacts, name=TEXT, detail=TEXT, threads=st.integers(0, 1_000_000), memory_bytes=_MAYBE, power_limit_w=_MAYBE
)
_WHOLE = st.integers(1, 10_000)
_LAYERS = st.builds(
    LayerShape,
    model=_NAME,
    gated=st.booleans(),
    experts=_COUNT,
    **dict.fromkeys(("hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq_len", "micro_batch"), _WHOLE),
)
_PROGRAMMES = st.builds(
    Programme,
    device=st.sampled_from(["cpu", "cuda"]),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, unique=True).map(tuple),
    dtypes=st.lists(st.sampled_from(DTYPES), unique=True).map(tuple),
    sizes=st.lists(st.integers(16, limit("matmul_size")), max_size=limit("measure_sizes"), unique=True).map(tuple),
    seconds=st.floats(0.02, limit("measure_dtype_seconds")),
    sustained_s=st.floats(0, limit("measure_dtype_seconds")),
    layer=st.none() | _LAYERS,
)
ENDED: tuple[Stage, ...] = ("finished", "cancelled", "failed")
RECORDS = st.builds(
    Record,
    id=st.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}"),
    programme=_PROGRAMMES,
    stage=st.sampled_from(ENDED),
    started=AMOUNT,
    elapsed_s=AMOUNT,
    method=TEXT,
    torch=TEXT,
    facts=st.none() | DEVICES,
    outcomes=st.lists(OUTCOMES, max_size=3).map(tuple),
    message=TEXT,
)
"""Any measurement that there can be, however odd its texts and numbers."""


# ------------------------------------------------------------------------------------------ a runner


@dataclass(frozen=True)
class Seen:
    """A job at one moment."""

    record: Record
    state: State
    place: int


@dataclass
class _Job(Job[Programme, Seen]):
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def found(self) -> bool:
        return bool(self.outcomes)

    def take(self, line: bytes) -> None:
        if line == b"done":
            self.done = True
        elif line.startswith(b"{"):
            self.outcomes.append(OUTCOME.validate_json(line))

    def snapshot(self) -> Seen:
        said = record(points=0, programme=self.spec, stage=self.state, started=self.started, elapsed_s=self.seconds)
        told = {"id": self.id, "outcomes": tuple(self.outcomes), "message": self.message}
        return Seen(said.model_copy(update=told), self.state, self.place)


def program(*lines: str, end: str = "") -> list[str]:
    """A process that says each outcome and then does what ``end`` says."""
    return [sys.executable, "-S", "-c", "\n".join(["import os, sys, time", *lines, end])]


def says(outcome: Outcome) -> str:
    """The line of a program that says an outcome."""
    return f"print({outcome.model_dump_json()!r}, flush=True)"


DONE = "print('done', flush=True)"
SLEEPS = "sys.stdin.read(); os._exit(3)"
"""The end of a program that works until its parent is gone."""


class Runner(ProcessRunner[Programme, Seen]):
    """Runs the processes that are given to it, one for each job."""

    def __init__(
        self,
        command: Callable[[Programme], Sequence[str]],
        listener: Callable[[Seen], None] | None = None,
        pause_s: float | None = None,
    ) -> None:
        super().__init__(command, _Job, 300.0, "measurement", listener, pause_s)

    def cancel(self, job_id: str, wait_s: float = PATIENCE_S) -> bool:
        """The same, until the process is gone."""
        return super().cancel(job_id, wait_s)


def ended(runner: Runner, seen: Seen) -> Seen:
    """The job once it has ended."""

    def now() -> Seen | None:
        found = runner.poll(seen.record.id)
        assert found is not None
        return found if found.state not in ("queued", "running") else None

    return until(now)
