"""The last measurement of each kind is read as it was kept, and whatever lies in the file ends in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.record import Record
from core.limits import limit
from core.store.last_measured import keep, last_measured
from tests.core.measure_cases import RECORDS
from tests.core.measured_cases import CPU, copy, on_gpu, record, square


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name, patch("core.store.last_measured.data_folder", lambda: Path(name) / "data"):
        yield Path(name) / "data"


@given(RECORDS)
def test_any_measurement_is_read_as_it_was_kept(record: Record) -> None:
    keep(record)
    kept, problem = last_measured()
    assert (kept[0], problem) == (record, "")
    assert len(kept) <= limit("measurements_kept")


def test_each_kind_of_each_device_stays_until_it_is_measured_again(folder: Path) -> None:
    (folder / "measured.json").unlink(missing_ok=True)
    whole = on_gpu()
    small = record("cpu", square("fp32", 512, 1e11), facts=CPU)
    memory, matmul = record("cuda", copy("1 GiB", 2**30, 3e12)), record("cuda", square("bf16", 8192, 6e14))
    assert last_measured() == ((), "")
    for one in (whole, small, memory, matmul):
        keep(one)
    assert last_measured()[0] == (matmul, memory, small, whole), "whose attention nobody has measured again"
    keep(whole)
    assert last_measured()[0] == (whole, small)


@given(st.binary(max_size=40) | st.just(b"[" * 100_000) | st.just(b"[null]"))
def test_a_damaged_file_is_no_result_and_the_next_measurement_takes_its_place(folder: Path, data: bytes) -> None:
    keep(on_gpu())
    (folder / "measured.json").write_bytes(data)
    kept, problem = last_measured()
    assert kept == ()
    assert ("cannot be read" in problem) == (data.strip() != b"[]")
    keep(on_gpu())
    assert last_measured() == ((on_gpu(),), "")


def test_a_file_with_a_kind_that_is_gone_keeps_the_others(folder: Path) -> None:
    keep(on_gpu())
    file = folder / "measured.json"
    (one,) = json.loads(file.read_bytes())
    gone = next(outcome for outcome in one["outcomes"] if outcome["item"]["kind"] == "memory")
    one["programme"]["kinds"].append("operations")
    one["outcomes"].append(gone | {"item": gone["item"] | {"kind": "operations"}})
    file.write_text(json.dumps([one]), encoding="utf-8")
    assert last_measured() == ((on_gpu(),), "")


def test_what_cannot_be_written_raises_and_leaves_what_was_there(folder: Path) -> None:
    keep(on_gpu())
    with patch.object(Path, "replace", side_effect=PermissionError), pytest.raises(PermissionError):
        keep(record("cuda", copy("1 GiB", 2**30, 3e12)))
    assert last_measured()[0] == (on_gpu(),)
