"""A job's results reach the database while it runs, and outlive whatever happens to job, database or server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.benchmark.programme import Programme
from core.jobs.process import Job
from core.limits import LIMITS, Limit
from core.store.errors import StoreError
from core.store.measured import LOST_S, StoredMeasurement
from core.store.measurement_writer import MeasurementWriter
from core.store.measurements import Measurements
from core.store.store import Store
from tests.core import measure_cases as measured
from tests.core import store_cases as cases
from tests.core.measure_cases import DONE, SLEEPS, SPEC, Runner, Seen, program, says
from tests.core.test_measure_running import gone
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
POINTS = [measured.point(f"n = {i}") for i in range(6)]


@pytest.fixture
def kept() -> Iterator[Measurements]:
    with cases.fresh() as store:
        yield store.measurements


def read(kept: Measurements, seen: Seen) -> StoredMeasurement:
    return kept.get(seen.record.id)


def saved(keeper: MeasurementWriter) -> None:
    until(lambda: keeper.unsaved is None)


def test_every_result_is_there_before_the_next_one(kept: Measurements) -> None:
    keeper = MeasurementWriter(lambda: kept)
    step = [line for one in POINTS for line in ("sys.stdin.readline()", says(one))]
    runner = Runner(lambda _: program(*step, "sys.stdin.readline()", DONE), keeper)
    job, _ = runner.start(SPEC)
    pipe = _job(runner, job).process.stdin  # type: ignore[union-attr]
    assert pipe
    for results in range(len(POINTS) + 1):
        until(lambda n=results: (now := runner.poll(job.record.id)) and len(now.record.outcomes) == n)
        until(lambda n=results: kept.history().total and len(_record(kept, job).outcomes) == n)
        assert _record(kept, job).stage == "running"
        keeper.owned(job.record.id, "Ada")
        pipe.write(b"\n")
        pipe.flush()
    done = measured.ended(runner, job)
    until(lambda: _record(kept, job).stage == "finished")
    saved(keeper)
    assert read(kept, job).record == done.record
    assert read(kept, job).owner == "Ada"


def _job(runner: Runner, seen: Seen) -> Job[Programme, Seen]:
    return runner._jobs[seen.record.id]


def _record(kept: Measurements, seen: Seen) -> measured.Record:
    record = read(kept, seen).record
    assert record is not None
    return record


def test_what_waits_or_was_cancelled_in_line_is_not_kept(kept: Measurements) -> None:
    keeper = MeasurementWriter(lambda: kept)
    runner = Runner(lambda _: program(says(POINTS[0]), end=SLEEPS), keeper)
    first, second = runner.start(SPEC, "Ada")[0], runner.start(SPEC, "Bo")[0]
    keeper.owned(first.record.id, "Ada")
    assert runner.cancel(second.record.id)
    assert runner.cancel(first.record.id)
    until(lambda: kept.history().total and _record(kept, first).stage == "cancelled")
    saved(keeper)
    assert [one.id for one in kept.history().measurements] == [first.record.id]
    assert read(kept, first).owner == "Ada"


def test_names_of_those_who_never_began_make_room_for_later_ones(kept: Measurements) -> None:
    keeper = MeasurementWriter(lambda: kept)
    for number in range(2, 100):
        keeper.owned(measured.record(number).id, "Bo")
    keeper.owned(measured.record(1).id, "Ada")
    keeper(Seen(measured.record(1), "finished", 0))
    saved(keeper)
    assert kept.get(measured.record(1).id).owner == "Ada"
    assert len(keeper._owners) < 98


def test_a_running_measurement_gives_signs_of_life_and_others_before_it_are_settled(kept: Measurements) -> None:
    now = [1_700_000_000_000_000]
    kept = Measurements(kept._engine, lambda: now[0])
    kept.keep(measured.record(7, stage="running"))
    now[0] += 2 * LOST_S * 1_000_000
    keeper = MeasurementWriter(lambda: kept, beat_s=0.01)
    runner = Runner(lambda _: program(says(POINTS[0]), end=SLEEPS), keeper)
    job, _ = runner.start(SPEC)
    until(lambda: kept.history().total == 2)
    now[0] += 2 * LOST_S * 1_000_000
    until(lambda: _record(kept, job).stage == "running")
    assert kept.lost() == 0
    earlier = kept.get(measured.record(7).id).record
    assert earlier is not None
    assert earlier.stage == "lost"
    runner.cancel(job.record.id)
    until(lambda: _record(kept, job).stage == "cancelled")
    saved(keeper)


# ------------------------------------------------------------------------------------------ the database is away


def test_a_database_that_is_away_holds_up_no_job_and_gets_all_of_it_later(kept: Measurements) -> None:
    away, asked = threading.Event(), threading.Event()

    def opened() -> Measurements:
        asked.set()
        if not away.is_set():
            raise StoreError("It cannot be reached.")
        return kept

    keeper = MeasurementWriter(opened, beat_s=0.01)
    runner = Runner(lambda _: program(*map(says, POINTS), DONE), keeper)
    jobs = [measured.ended(runner, runner.start(SPEC)[0]) for _ in range(2)]
    assert [one.state for one in jobs] == ["finished"] * 2
    unsaved = until(lambda: (now := keeper.unsaved) and now.why and now)
    assert unsaved.why == "It cannot be reached."
    until(lambda: (now := keeper.unsaved) and now.results == 2 * len(POINTS))
    away.set()
    saved(keeper)
    assert [read(kept, one).record for one in jobs] == [one.record for one in jobs]


def _behind(answers: threading.Event, kept: Measurements) -> Callable[[], Measurements]:
    """A database that nobody hears from before ``answers``."""

    def opened() -> Measurements:
        assert answers.wait(PATIENCE_S)
        return kept

    return opened


def test_a_database_that_answers_nothing_holds_up_nobody(kept: Measurements) -> None:
    answers = threading.Event()
    keeper = MeasurementWriter(_behind(answers, kept))
    runner = Runner(lambda _: program(*map(says, POINTS), DONE), keeper)
    job = measured.ended(runner, runner.start(SPEC)[0])
    until(lambda: (now := keeper.unsaved) and now.results == len(POINTS) and now.why == "")
    answers.set()
    saved(keeper)
    assert read(kept, job).record == job.record


def test_only_so_much_waits_for_a_database_and_what_is_let_go_is_logged(
    kept: Measurements, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(LIMITS, "measurements_waiting", Limit(2, "measurements", "a test"))
    asked, answers = threading.Event(), threading.Event()

    def opened() -> Measurements:
        asked.set()
        assert answers.wait(PATIENCE_S)
        return kept

    writer = MeasurementWriter(opened)
    for number in range(4):
        writer(Seen(measured.record(number, stage="running"), "running", 0))
        assert asked.wait(PATIENCE_S)  # the first is on its way to the database from here on
        writer(Seen(measured.record(number), "finished", 0))
    answers.set()
    saved(writer)
    until(lambda: kept.history().total == 3)
    assert {stored.id for stored in kept.history().measurements} == {measured.record(n).id for n in (0, 2, 3)}
    assert sum("2 results are lost" in line.getMessage() for line in caplog.records) == 2


def test_a_fault_of_one_measurement_spares_the_others(kept: Measurements, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Measurements):
        tried = 0

        def keep(self, record: measured.Record, owner: str = "") -> None:
            if record.id == measured.record(1).id:
                self.tried += 1
                raise OverflowError("a fault")
            super().keep(record, owner)

    faulty = Faulty(kept._engine, kept._clock)
    keeper = MeasurementWriter(lambda: faulty, beat_s=0.01)
    for number in range(3):
        keeper(Seen(measured.record(number), "running", 0))
    until(lambda: kept.history().total == 2)
    unsaved = until(lambda: (now := keeper.unsaved) and now.why and now)
    assert unsaved.results == 2
    assert "log" in unsaved.why
    tried = faulty.tried
    until(lambda: faulty.tried > tried + 2)
    assert sum("could not be saved" in one.getMessage() for one in caplog.records) == 1, "said once"
    faulty.keep = kept.keep  # type: ignore[method-assign]
    saved(keeper)


# ------------------------------------------------------------------------------------------ kill -9


def test_a_worker_killed_at_any_moment_leaves_its_results_and_a_server_that_goes_on(kept: Measurements) -> None:
    keeper, moments = MeasurementWriter(lambda: kept), random.Random(16)
    lines = [line for one in POINTS for line in (says(one), "time.sleep(0.002)")]
    runner = Runner(lambda _: program(*lines, end=SLEEPS), keeper)
    for _ in range(10):
        _kill_one(runner, kept, moments.randrange(len(POINTS) + 1))
    runner._command = lambda _: program(says(POINTS[0]), DONE)
    assert measured.ended(runner, runner.start(SPEC)[0]).state == "finished"
    until(lambda: kept.history().total == 11)
    saved(keeper)


def _kill_one(runner: Runner, kept: Measurements, least: int) -> None:
    """Start a job and kill its process after so many results or more."""
    job, fresh = runner.start(SPEC)
    assert fresh
    until(lambda: len(runner.poll(job.record.id).record.outcomes) >= least)  # type: ignore[union-attr]
    os.kill(_job(runner, job).process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    killed = measured.ended(runner, job)
    assert killed.state == "failed"
    assert "SIGKILL" in killed.record.message
    assert least <= len(killed.record.outcomes) <= len(POINTS)
    until(lambda: job.record.id in {one.id for one in kept.history().measurements})
    until(lambda: _record(kept, job).stage == "failed")
    assert read(kept, job).record == killed.record


SERVERS = """
import os, random, signal, sys, time
from core.store.measurement_writer import MeasurementWriter
from core.store.store import Store
from tests.core import measure_cases as measured
from tests.patience import until

moments = random.Random(16)
for _ in range(10):
    pipe, told = os.pipe()
    server = os.fork()
    if not server:
        store = Store.open(sys.argv[1])
        points = [measured.point(f"n = {i}") for i in range(4)]
        command = measured.program(*map(measured.says, points), end=measured.SLEEPS)
        runner = measured.Runner(lambda _: command, MeasurementWriter(lambda: store.measurements))
        job, _ = runner.start(measured.SPEC)
        until(lambda: store.measurements.latest() and store.measurements.latest().id == job.record.id)
        os.write(told, f"{job.record.id} {runner._jobs[job.record.id].process.pid}".encode())
        time.sleep(600)
    print(os.read(pipe, 99).decode(), flush=True)
    time.sleep(moments.random() / 50)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
"""


@pytest.mark.long
def test_ten_servers_killed_in_mid_job_leave_no_process_no_file_and_no_result_behind(tmp_path: Path) -> None:
    """What is left is what they had measured, and the next server says that it was lost."""
    folders = {name: tmp_path / name for name in ("data", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    command = [sys.executable, "-c", SERVERS, cases.address(folders["data"])]
    told = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folders["tmp"])},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert told.returncode == 0, told.stderr
    jobs = dict(line.split() for line in told.stdout.splitlines())
    assert len(jobs) == 10
    assert all(gone(int(pid)) for pid in jobs.values())
    assert list(folders["tmp"].iterdir()) == []
    assert {file.name.removesuffix("-wal").removesuffix("-shm") for file in folders["data"].iterdir()} == {"napkin.db"}
    store = Store.open(cases.address(folders["data"]))
    late = Measurements(store._engine, lambda: store._clock() + 2 * LOST_S * 1_000_000)
    assert late.lost() == 10
    found = {one.id: one.record for one in late.history().measurements}
    assert found.keys() == jobs.keys()
    for record in found.values():
        assert record is not None
        assert record.stage == "lost"
        assert [one.item.label for one in record.outcomes] == [f"n = {i}" for i in range(len(record.outcomes))]
        assert record.outcomes
        assert f"{len(record.outcomes)} result" in record.message
    store.close()
