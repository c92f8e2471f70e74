"""Traces: what each step did to memory, the sentences about it, and the picture made from it."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from core.limits import limit
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import ELEMENT_DTYPES, trace
from tests.every import every
from tests.patience import PATIENCE_S

# ------------------------------------------------------------------------------------------------ several lines


def test_names_and_lines() -> None:
    traced = trace("y = x.t()\n\nz = y.contiguous()\nz.view(6)", (2, 3))
    assert [(step.line, step.name, step.source) for step in traced] == [
        (0, "x", "x"),
        (1, "y", ".t()"),
        (3, "z", ".contiguous()"),
        (4, "", ".view(6)"),
    ]
    assert [step.storage for step in traced] == [0, 0, 1, 1]
    assert [step.bytes_total for step in traced] == [0, 0, 48, 48]
    assert traced.last.values == (0, 3, 1, 4, 2, 5)


def test_a_second_name_is_no_second_tensor() -> None:
    traced = trace("y = x\ny[0] = 7\nx", (2, 3))
    assert [step.kind for step in traced] == ["start", "same", "write", "same"]
    assert traced.last.values == (7, 7, 7, 3, 4, 5)


def test_a_name_may_be_bound_again() -> None:
    traced = trace("x = x.t()\nx = x + 1\nx[0]", (2, 3))
    assert traced.last.values == (1, 4)
    assert [step.label for step in traced] == ["x", "x", "x", "x[0]"]


def test_splitting_shows_every_piece() -> None:
    traced = trace("x.chunk(3)", (7,))
    assert [piece.layout.offset for piece in traced.last.pieces] == [0, 3, 6]
    assert [piece.values for piece in traced.last.pieces] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert traced.last.picked is None
    traced = trace("x.chunk(3)[-1]", (7,))
    assert (traced.last.picked, traced.last.values, len(traced.last.pieces)) == (-1, (6,), 3)


def test_unpacking_names_the_pieces() -> None:
    traced = trace("q, k, v = x.chunk(3, -1)\nk.view(2, 3, 2, 4).transpose(1, 2)", (2, 3, 24))
    assert [(step.name, step.kind) for step in traced[1:5]] == [
        ("", "view"),
        ("q", "same"),
        ("k", "same"),
        ("v", "same"),
    ]
    assert traced.last.layout.offset == 8
    assert traced.last.layout.shape == (2, 2, 3, 4)
    assert traced.last.storage == 0
    later = trace("parts = x.unbind(1)\nparts[2] + parts[0]", (4, 6))
    assert later.last.values == (2, 14, 26, 38)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("x.chunk(3)[3]", "IndexError", "tuple index out of range"),
        ("a = x.chunk(3)\na[3]", "IndexError", "tuple index out of range"),
    ],
)
def test_pieces_that_are_not_there(expression: str, error: str, message: str) -> None:
    last = trace(expression, (7,)).last
    assert (last.kind, last.error_type, last.error_message) == ("refused", error, message)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a, b = x.chunk(3)", "too many values to unpack (expected 2)"),
        ("a, b, c, d = x.chunk(3)", "not enough values to unpack (expected 4, got 3)"),
        ("a, b = x[:3]", "too many values to unpack (expected 2)"),
    ],
)
def test_more_or_fewer_names_than_pieces(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(expression, (7,))
    assert message in str(problem.value)
    assert "caught" in trace(f"try:\n    {expression}\nexcept ValueError:\n    x", (7,)).facts[-1].text


# --------------------------------------------------------------------------------------------- caps and safety


def test_the_largest_tensor_is_drawn_in_part() -> None:
    traced = trace("x.t().contiguous()", (256, 256))
    drawn = limit("storage_cells_drawn")
    assert len(traced.last.values) == len(traced.last.storage_values) == drawn
    assert traced.last.values == tuple(np.arange(65_536).reshape(256, 256).T.ravel()[:drawn].tolist())


@every("dtype", ELEMENT_DTYPES)
def test_start_types(dtype: str) -> None:
    traced = trace("x", (2, 3), dtype=dtype)
    assert traced.last.dtype == dtype
    assert traced.last.values == (0, 1, 2, 3, 4, 5)


def test_other_start_types_are_refused() -> None:
    with pytest.raises(ValueError, match="not one of"):
        trace("x", (2, 3), dtype="complex64")


def test_the_start_is_capped_too() -> None:
    for shape, stride, words in (
        ((2**20, 2**21), None, "2,199,023,255,552 elements"),
        ((1,) * 9, None, "9 dimensions"),
        ((-1,), None, "negative size"),
        ((2, 3), (1,), "1 strides for 2 dimensions"),
        ((2, 3), (-3, 1), "negative; torch has only"),
        ((2_000, 3), (10**9, 1), "1,999,000,000,003 elements"),
        ((2, 1), (1, 10**10), "Strides are at most"),
    ):
        with pytest.raises(ExpressionError, match=words):
            trace("x", shape, stride)


def test_a_start_with_strides() -> None:
    """x lies over arange of a storage that just holds it."""
    traced = trace("x.contiguous()", (2, 3), (1, 2), "float32")
    assert (traced[0].layout.stride, traced[0].storage_elements, traced[0].is_contiguous) == ((1, 2), 6, False)
    assert traced.last.values == (0, 2, 4, 1, 3, 5)
    overlapping = trace("x", (4, 3), (1, 1))
    assert (overlapping.last.storage_elements, overlapping.last.values[:6]) == (6, (0, 1, 2, 1, 2, 3))
    assert trace("x", (0, 3), (7, 7)).last.storage_elements == 0


def test_traces_of_many_threads_do_not_mix() -> None:
    wrong: list[str] = []

    def work(rows: int) -> None:
        for _ in range(30):
            traced = trace("x.t().contiguous()[0, 0] = 9", (rows, 3))
            if traced.last.values != (9, *torch.arange(rows * 3).view(rows, 3).t().flatten()[1:].tolist()):
                wrong.append(str(traced.last.values))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.process
def test_importing_and_reading_do_not_load_torch() -> None:
    script = (
        "import sys, core.tensors.parsing.reader, core.tensors.parsing.syntax, core.views.tensors.charts\n"
        "import core.views.tensors.text\n"
        "core.tensors.parsing.syntax.parsed('x.t().view(2, 3)')\n"
        "assert not {'torch', 'einops', 'streamlit', 'pandas', 'plotly'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)


def test_all_steps_together_make_at_most_so_many_elements() -> None:
    """Beyond that they are counted. A tensor that a write changes counts again for all who see it, a view nothing."""
    assert trace("y = x" + ".t()" * 20 + ".fill_(1)" * 20, (256, 256)).counted
    assert not trace("y = x" + ".t()" * 39, (256, 256)).counted
    assert not trace("y = x" + ".t()" * 19 + ".fill_(1)" * 20, (32, 32)).counted
    most = limit("expression_work") // limit("tensor_elements")
    assert not trace("x" + " + 1" * most, (256, 256)).counted
    assert trace("x" + " + 1" * (most + 1), (256, 256)).counted


@pytest.mark.parametrize("text", ["x*" + "9" * 309, f"x * -{'7' * 900}"])
def test_numbers_at_the_ends_of_floats_are_refused_in_words(text: str) -> None:
    with pytest.raises(ExpressionError):
        trace(text, (2, 3))
