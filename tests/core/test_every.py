"""A table in one test names every row that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every import every


@every(("a", "b"), [(1, 2), (2, 1), (3, 4), (4, 3)])
def _rising(a: int, b: int, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    if a == 4:
        pytest.fail("four")
    assert a < b, "it falls"


def test_every_wrong_row_is_named_and_the_others_are_not(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup, match="2 of 4 rows") as faults:
        _rising(tmp_path=tmp_path)  # type: ignore[call-arg]
    said = [(str(fault).split("\n")[0], fault.__notes__) for fault in faults.value.exceptions]
    assert said == [("it falls", ["row: (2, 1)"]), ("four", ["row: (4, 3)"])]


@every("number", [1, 2])
@every("letter", "ab")
def test_tables_cross_and_a_skipped_row_is_no_fault(number: int, letter: str) -> None:
    if letter == "b":
        pytest.skip("not this one")
    assert (number, letter) in {(1, "a"), (2, "a")}
