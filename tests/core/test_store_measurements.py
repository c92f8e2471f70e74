"""Kept measurements: what was measured is what is read, whatever was written when, and there is always room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.benchmark.device import Cpu, Gpu, Machine
from core.benchmark.record import Record
from core.limits import LIMITS, Limit, limit
from core.store.errors import StoreError
from core.store.measured import LOST_S, StoredMeasurement, seen_from
from core.store.measurements import Measurements
from tests.core import measure_cases as measured
from tests.core import store_cases as cases
from tests.core.measured_cases import on_gpu


class Clock:
    """Microseconds that pass when they are told to."""

    now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> Iterator[Measurements]:
    with cases.fresh() as store:
        yield Measurements(store._engine, clock)


@pytest.fixture(scope="module")
def shared_kept() -> Iterator[Measurements]:
    with cases.fresh() as store:
        yield store.measurements


def cut(record: Record, results: int, **more: Any) -> Record:
    return record.model_copy(update={"outcomes": record.outcomes[:results], **more})


@settings(max_examples=50)
@given(record=measured.RECORDS, owner=cases.NAMES)
def test_what_was_measured_is_what_is_read(shared_kept: Measurements, record: Record, owner: str) -> None:
    """However it came: whole, result by result, or several times over."""
    for results in range(len(record.outcomes)):
        shared_kept.keep(cut(record, results, stage="running"))
    shared_kept.keep(record)
    shared_kept.keep(record, owner)
    read = shared_kept.get(record.id)
    assert (read.record, read.owner, read.problems) == (record, owner, ())
    shared_kept.remove(record.id)
    with pytest.raises(StoreError, match="no longer here"):
        shared_kept.get(record.id)


def test_a_history_is_of_one_device_or_kind_or_origin_newest_first(kept: Measurements) -> None:
    gpu = measured.FACTS.model_copy(update={"name": "NVIDIA H200"})
    on_gpu = measured.SPEC.model_copy(update={"device": "cuda"})
    records = [measured.record(i) for i in range(3)]
    records += [measured.record(i, facts=gpu, programme=on_gpu) for i in range(3, 6)]
    records += [measured.record(i, facts=gpu, programme=on_gpu, origin="a file") for i in range(6, 8)]
    records += [measured.record(8, points=0, facts=None)]
    for record in records:
        kept.keep(record)
    for asked, found in {
        (): records,
        (("device", "NVIDIA H200"),): records[3:8],
        (("kind", "cpu"),): [*records[:3], records[8]],
        (("device", "NVIDIA H200"), ("imported", False)): records[3:6],
        (("imported", True),): records[6:8],
        (("device", "none"),): [],
    }.items():
        history = kept.history(**dict(asked))  # type: ignore[arg-type]
        assert [one.record for one in history.measurements] == found[::-1]
        assert history.total == len(found)
    pages = [one.record for page in (1, 2, 3) for one in kept.history(page=page, per_page=4).measurements]
    assert pages == records[::-1]
    assert kept.history(page=99, per_page=4).measurements == kept.history(page=3, per_page=4).measurements
    assert kept.devices() == ("A processor", "NVIDIA H200")
    latest = {device: kept.latest(device) for device in ("", "A processor", "NVIDIA H200", "none")}
    assert {device: one and one.record for device, one in latest.items()} == {
        "": records[5],
        "A processor": records[2],
        "NVIDIA H200": records[5],
        "none": None,
    }
    assert kept.latest(kind="cpu") == kept.get(records[2].id)


def test_one_that_nobody_has_heard_of_is_lost_and_comes_back_when_somebody_does(
    kept: Measurements, clock: Clock
) -> None:
    running = measured.record(1, points=3, stage="running")
    kept.keep(running, "Ada")
    kept.keep(measured.record(2))
    clock.now += (LOST_S - 1) * 1_000_000
    assert kept.get(running.id).record == running
    assert kept.lost() == 0
    with pytest.raises(StoreError, match="cancel"):
        kept.remove(running.id)
    clock.now += 2_000_000
    read = kept.get(running.id).record
    assert read is not None
    assert (read.stage, read.outcomes) == ("lost", running.outcomes)
    assert "3 results" in read.message
    assert kept.lost() == 1
    assert kept.lost() == 0
    assert (kept.get(running.id).record, kept.get(running.id).owner) == (read, "Ada")
    finished = running.model_copy(update={"stage": "finished"})
    kept.keep(finished)
    assert kept.get(running.id).record == finished


def test_there_is_always_room_for_what_was_measured_here(kept: Measurements, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "measurements_kept", Limit(3, "measurements", "a test"))
    monkeypatch.setitem(LIMITS, "measurements_imported", Limit(1, "measurements", "a test"))
    here = [measured.record(1, stage="running"), measured.record(9), measured.record(3, points=0), measured.record(4)]
    file = measured.record(100, origin="a file")
    for record in (file, *here):
        kept.keep(record)
    assert ids(kept) == {record.id for record in (file, here[0], here[1], here[3])}, "one without a result goes first"
    kept.keep(measured.record(5))
    assert ids(kept) == {record.id for record in (file, here[0], here[3], measured.record(5))}, "then the oldest kept"
    with pytest.raises(StoreError, match="Remove one"):
        kept.keep(measured.record(101, origin="a file"))
    kept.keep(file)
    kept.remove(file.id)
    kept.keep(measured.record(101, origin="a file"))
    assert kept.history().total == 4


def ids(kept: Measurements) -> set[str]:
    return {one.id for one in kept.history(per_page=100).measurements}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12))
@settings(max_examples=25)
def test_writes_in_any_order_lose_no_result(writes: list[tuple[int, int]]) -> None:
    """A late write of less than is known takes nothing away."""
    whole = [measured.record(i, points=4) for i in range(4)]
    with cases.fresh() as store:
        kept, most = store.measurements, dict[str, int]()
        for which, results in writes:
            kept.keep(cut(whole[which], results))
            most[whole[which].id] = max(most.get(whole[which].id, 0), results)
        found = {one.id: one.record for one in kept.history().measurements}
        assert {one: len(record.outcomes) for one, record in found.items() if record} == most
        assert all(found[one.id] == cut(one, most[one.id]) for one in whole if one.id in found)


@pytest.mark.parametrize(
    ("server", "device", "origin"),
    [("b", "NVIDIA L4", "b"), ("b", "NVIDIA H200", None), ("a", "NVIDIA L4", None), ("", "NVIDIA L4", None)],
)
def test_what_another_server_has_measured_on_another_device_is_of_elsewhere(
    server: str, device: str, origin: str | None
) -> None:
    here = Machine((Gpu("NVIDIA H200", 1.5e11, 700.0),), Cpu("AMD EPYC", "", 2, None), "")
    record = on_gpu()
    assert record.facts
    record = record.model_copy(update={"facts": record.facts.model_copy(update={"name": device})})
    kept = StoredMeasurement(record.id, record, "", server, datetime.now(UTC))
    assert seen_from(kept, here, "a") == record.model_copy(update={"origin": origin})
    brought = replace(kept, record=record.model_copy(update={"origin": "x.json"}))
    assert seen_from(brought, here, "a") == brought.record
    assert seen_from(replace(kept, record=None), here, "a") is None


def test_names_are_cut_and_cleaned(kept: Measurements) -> None:
    odd = measured.FACTS.model_copy(update={"name": "\u202eGPU\x00"})
    record = measured.record(facts=odd)
    kept.keep(record, "\x00" + "o" * 500)
    assert kept.get(record.id).record == record
    assert kept.get(record.id).owner == "o" * limit("plan_owner")
    assert kept.devices() == ("GPU",)
    assert kept.history(device="GPU").total == 1
