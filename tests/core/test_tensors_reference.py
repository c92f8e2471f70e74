"""Every row of the reference table, through the reader the page uses: equal to torch's result, or refused by design."""

from __future__ import annotations

import ast
import csv
import io
import re
from pathlib import Path

import pytest

from core.tensors import ExpressionError, trace

TABLE = (Path(__file__).parents[1] / "data" / "tensor_views.csv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(io.StringIO(TABLE, newline="")))

OUTSIDE: dict[str, str] = {
    "advanced indexing": r"x\[\[|x\[torch\.tensor|x\[x >|index_select",
    "a second tensor": r"torch\.(zeros|empty|stack|from_numpy)|view_as",
    "operations of other rooms": r"F\.unfold|torch\.diag|tensor_split|hsplit",
    "in-place methods": r"\.(fill_|add_|copy_|resize_|set_)\(|__setitem__",
}
"""What the present list of operations leaves out. A row that matches must be refused; any other must be equal."""

REFUSAL = re.compile(r"is not an operation here|is not known|lists and masks are not|is not understood here")


def outside(expression: str) -> str | None:
    """Why ``expression`` is outside the present list of operations; ``None`` when it is inside."""
    return next((why for why, pattern in OUTSIDE.items() if re.search(pattern, expression)), None)


def normal(message: str) -> str:
    """White space as single spaces, and einops' sets of axes, whose order varies with the hash seed, sorted."""
    spaced = " ".join(message.split())
    return re.sub(r"\{('[^{}]*')\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", spaced)


def number(text: str) -> int | float:
    return float(text) if "." in text or "e" in text else int(text)


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 224
    assert sum(outside(row["expr"]) is not None for row in ROWS) == 25


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']}-{row['expr']}" for row in ROWS])
def test_row(row: dict[str, str]) -> None:
    shape = ast.literal_eval(row["start_shape"])
    if outside(row["expr"]):
        with pytest.raises(ExpressionError, match=REFUSAL):
            trace(row["expr"], shape, row["dtype"])
        return
    made = trace(row["expr"], shape, row["dtype"])
    assert made.steps[0].layout.stride == ast.literal_eval(row["start_stride"])
    last = made.last
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
    assert (last.storage == 0) == (row["shares_storage"] == "1")
    assert last.storage_elements == int(row["storage_numel"])
    assert last.values[:24] == tuple(number(value) for value in row["values_first24"].split())
    assert last.layout.fits(last.storage_elements)
    cells = last.layout.cells().tolist()
    assert (len(set(cells)) < len(cells)) == (row["exact_overlap"] == "1")
