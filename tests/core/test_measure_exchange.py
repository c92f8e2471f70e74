"""A measurement in a file: what was written is what is read, and nothing else is believed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.benchmark.exchange import read_record, written
from core.benchmark.record import Record
from core.limits import limit
from core.wording import cleaned
from tests.core import measure_cases as cases
from tests.every import every

GOOD = cases.record(points=3, outcomes=(cases.point(), cases.REFUSAL, cases.point("n = 256")))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return cleaned(value, len(value), lines=True)
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return {key: _shown(one) for key, one in value.items()} if isinstance(value, dict) else value


@settings(max_examples=50)
@given(cases.RECORDS)
def test_what_was_written_is_what_is_read(record: Record) -> None:
    """Characters apart that cannot be shown; and a name that has no others is no name."""
    text = written(record)
    try:
        read = read_record(text.encode())
    except ValueError:
        names = re.findall(r'"(?:name|label|model)": "((?:[^"\\]|\\.)*)"', text)
        assert not all(cleaned(json.loads(f'"{name}"'), 80) for name in names)
        return
    assert read.id != record.id
    assert read.origin == "a file"
    wanted = _shown(record.model_dump(mode="json")) | {"id": read.id, "origin": read.origin}
    assert read.model_dump(mode="json") == wanted
    assert read_record(written(read).encode(), "other.json").outcomes == read.outcomes


def test_what_comes_twice_is_one_measurement() -> None:
    first, second = (read_record(written(GOOD).encode(), name) for name in ("a.json", "b.json"))
    onwards = read_record(written(first).encode(), "c.json")
    other = read_record(changed(elapsed_s=GOOD.elapsed_s + 1).encode(), "a.json")
    assert first.id == second.id == onwards.id
    assert other.id not in (first.id, GOOD.id)


@pytest.mark.parametrize("stage", ["queued", "running"])
def test_one_that_was_not_over_never_will_be(stage: Any) -> None:
    read = read_record(written(GOOD.model_copy(update={"stage": stage})).encode(), "half.json")
    assert (read.stage, read.outcomes, read.origin) == ("lost", GOOD.outcomes, "half.json")
    assert "still ran" in read.message


def test_a_files_name_is_cut_and_cleaned() -> None:
    read = read_record(("\ufeff" + written(GOOD)).encode(), "\u202e" + "x" * 500 + "\x00")
    assert read.origin == "x" * limit("measure_name_chars")


def changed(**fields: Any) -> str:
    return json.dumps(json.loads(written(GOOD)) | fields)


POINT = json.loads(cases.point().model_dump_json())
ITEM = POINT["item"]
WRONG = {
    "": "no text",
    "{": "no JSON",
    "[]": "object in braces",
    "null": "object in braces",
    '{"format": "napkin-plan"}': "no measurement of Napkin",
    changed(version=2): "newer Napkin",
    changed(version=10**60): "newer Napkin",
    changed(version=10**70): "71 digits",
    changed(version="1"): "“version”",
    changed(zork=1): "“zork”",
    changed(id="../../etc"): "“id”",
    changed(stage="done"): "“stage”",
    changed(started=-1): "“started”",
    changed(started=True): "“started”",
    changed(elapsed_s=None): "“elapsed_s”",
    changed(started=1).replace('"started": 1', '"started": 1e999'): "too large",
    changed(started=1).replace('"started": 1', '"started": NaN'): "NaN",
    changed(started=1).replace('"started": 1', '"started": -Infinity'): "Infinity",
    changed(started=1).replace('"started": 1', '"started": 1, "started": 2'): "“started”: a key may stand there once",
    changed(origin="x" * 81): "“origin”",
    changed(message="x" * 4001): "“message”",
    changed(outcomes=[POINT] * (limit("measure_outcomes") + 1)): "“outcomes”",
    changed(outcomes=[POINT | {"median_s": 0.0}]): "“outcomes.0.median_s”",
    changed(outcomes=[POINT | {"best_s": 1.0}]): "“outcomes.0”",
    changed(outcomes=[POINT | {"runs": 0}]): "“outcomes.0.runs”",
    changed(outcomes=[POINT | {"flop": 1e31}]): "“outcomes.0.flop”",
    changed(outcomes=[POINT | {"flop": "1"}]): "“outcomes.0.flop”",
    changed(outcomes=[POINT | {"item": ITEM | {"name": "\u202e"}}]): "“outcomes.0.item.name”",
    changed(outcomes=[POINT | {"item": ITEM | {"shape": [2**63]}}]): "“outcomes.0.item.shape.0”",
    changed(programme={}): "“programme.device”",
    changed(facts=[]): "“facts”",
    '{"format": ' + "[" * 100_000 + "]" * 100_000 + "}": "deep",
    changed().replace('"message": ""', '"message": ' + "[" * 400 + "]" * 400): "deep",
    " " * (limit("upload_bytes") + 1): "bytes",
    "\ud800": "UTF-8",
}


@every("number", range(len(WRONG)))
def test_what_is_no_measurement_is_refused_with_its_place(number: int) -> None:
    text, about = list(WRONG.items())[number]
    with pytest.raises(ValueError, match=about) as raised:
        read_record(text.encode("utf-8", "surrogatepass"))
    assert type(raised.value) is ValueError
    assert len(str(raised.value)) < 700


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
SMALL = st.lists(LEAF, max_size=3) | st.dictionaries(st.text(max_size=5), LEAF, max_size=2)
ANYTHING = LEAF | SMALL | st.lists(SMALL, max_size=2)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=5), ANYTHING), min_size=1, max_size=3))
def test_whatever_stands_in_a_file_comes_back_as_a_measurement_or_a_refusal(edits: list[tuple[list[int], Any]]) -> None:
    told: Any = json.loads(written(GOOD))
    for path, value in edits:
        at = told
        for step in path[:-1]:
            inner = list(at.values()) if isinstance(at, dict) else at
            at = inner[step % len(inner)] if inner and isinstance(inner[step % len(inner)], dict | list) else at
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if keys:
            at[keys[(path or [0])[-1] % len(keys)]] = value
    refused_or_read(json.dumps(told).encode())


@given(st.binary(max_size=60) | st.integers(0, 2_000).map(lambda cut: written(GOOD).encode()[:cut]))
def test_whatever_bytes_there_are_likewise(data: bytes) -> None:
    refused_or_read(data)


def refused_or_read(data: bytes) -> None:
    try:
        read = read_record(data)
    except ValueError as problem:
        if type(problem) is not ValueError:
            raise
    else:
        assert Record.model_validate_json(written(read)) == read
