"""Every row of the reference table, through the reader the page uses: as torch has it, or refused by design."""

from __future__ import annotations

import ast
import csv
import io
import re
from pathlib import Path

import pytest

from core.tensors.layout import bounds
from core.tensors.operations.lookup import REFUSED
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from tests.every import every

TABLE = (Path(__file__).parents[1] / "data" / "tensor_views.csv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(io.StringIO(TABLE, newline="")))


def left_out(expression: str) -> str | None:
    """The operation in ``expression`` that is left out by design; ``None`` when there is none."""
    return next((name for name in REFUSED if re.search(rf"(?<!\w){name}\(", expression)), None)


def normal(message: str) -> str:
    """White space as single spaces, and einops' sets of axes, whose order varies with the hash seed, sorted."""
    spaced = " ".join(message.split())
    return re.sub(r"\{('[^{}]*')\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", spaced)


def number(text: str) -> int | float:
    return float(text) if "." in text or "e" in text else int(text)


def test_the_table_asks_each_thing_once_and_about_all_that_is_refused() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert all(any(f"{name}(" in row["expr"] for row in ROWS) for name in REFUSED)


@every("row", ROWS, ids=[f"{row['id']}-{row['expr']}" for row in ROWS])
def test_row(row: dict[str, str]) -> None:
    shape, stride = ast.literal_eval(row["start_shape"]), ast.literal_eval(row["start_stride"])
    name = left_out(row["expr"])
    if name is not None:
        with pytest.raises(ExpressionError) as problem:
            trace(row["expr"], shape, stride, row["dtype"])
        assert any(
            f"`{other}` is refused here by design: {why}" in str(problem.value) for other, why in REFUSED.items()
        )
        return
    run = trace(row["expr"], shape, stride, row["dtype"])
    assert not run.starts_with_x or run.steps[0].layout.stride == ast.literal_eval(row["start_stride"])
    last = run.last
    if row["error_type"]:
        assert last.kind == "refused"
        assert (last.error_type, normal(last.error_message)) == (row["error_type"], normal(row["error_message"]))
        return
    assert last.kind != "refused", last.error_message
    assert last.layout.shape == ast.literal_eval(row["result_shape"])
    assert last.layout.stride == ast.literal_eval(row["stride"])
    assert last.layout.offset == int(row["storage_offset"])
    assert last.layout.numel == int(row["numel"])
    assert last.is_contiguous == last.layout.is_contiguous == (row["is_contiguous"] == "1")
    assert (last.storage == 0 and run.starts_with_x) == (row["shares_storage"] == "1")
    assert last.storage_elements == int(row["storage_numel"])
    assert last.values[:24] == tuple(number(value) for value in row["values_first24"].split())
    assert bounds(last.layout, last.storage_elements).inside
    assert last.layout.overlaps == (row["exact_overlap"] == "1")
