"""Traces: what each step did to memory, the sentences about it, and the picture made from it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from core.limits import limit
from core.tensors import START_DTYPES, ExpressionError, Trace, trace
from core.tensors.figures import storage_picture
from core.tensors.story import KIND_WORDS, TABLE_HEADINGS, explanations, headline, table


def kinds(made: Trace) -> list[str]:
    return [step.kind for step in made.steps]


def allocated(made: Trace) -> list[int]:
    return [step.bytes_allocated for step in made.steps]


# ------------------------------------------------------------------------------------- the lecture's T1 to T8


def test_t1_strides_and_an_element() -> None:
    made = trace("x[1, 2]", (4, 4))
    assert made.steps[0].layout.stride == (4, 1)
    assert made.last.layout.offset == 6
    assert made.last.values == (6,)
    assert headline(made)[0] == "`x[1, 2]` is storage cell **6** = 0 + 1·4 + 2·1."


@pytest.mark.parametrize("expression", ["x[0]", "x[:, 1]", "x.view(3, 2)", "x.transpose(1, 0)"])
def test_t3_views_share_storage(expression: str) -> None:
    made = trace(expression, (2, 3))
    assert kinds(made) == ["start", "view"]
    assert made.last.shares_storage_with == (0,)
    assert allocated(made) == [48, 0]
    assert headline(made)[0].endswith("is a view: **0 bytes** copied.")


def test_t4_a_write_shows_through_the_transpose() -> None:
    made = trace("x.transpose(1, 0)[0][0] = 100", (2, 3))
    assert kinds(made) == ["start", "view", "view", "write"]
    assert made.last.written == (0,)
    assert made.last.storage_values == (100, 1, 2, 3, 4, 5)
    assert made.steps[0].values == (0, 1, 2, 3, 4, 5)  # as it was when the step ran
    assert {step.expression for step in made.seen_by((0,), 0)} >= {"x", "x.transpose(1, 0)"}
    assert "writes storage cell **0**, so **x shows it too**" in headline(made)[0]


def test_t4_a_write_into_a_copy_does_not() -> None:
    made = trace("x.t().contiguous()[0, 1] = 100", (2, 3))
    assert kinds(made) == ["start", "view", "copy", "write"]
    assert made.last.storage == 1
    assert made.last.values == (0, 100, 1, 4, 2, 5)
    assert headline(made)[0].endswith("of a copy, so **x keeps its values**.")
    tensors = storage_picture(made)["steps"][-1]["tensors"]
    assert [(t["name"], t["note"]) for t in tensors] == [("x.t().contiguous()", ""), ("x", "unchanged")]
    assert tensors[1]["values"] == list("012345")


def test_t5_view_on_the_transpose_fails() -> None:
    made = trace("x.transpose(1, 0).view(2, 3)", (2, 3))
    assert not made.steps[1].is_contiguous
    refused = made.refusal
    assert refused is not None
    assert refused.error_type == "RuntimeError"
    assert refused.error_message.startswith("view size is not compatible with input tensor's size and stride")
    assert headline(made)[0] == (
        "`.view(2, 3)` **fails**: after `.transpose(1, 0)` the strides are (1, 3), so dimensions 0 and 1 cannot merge: "
        "**stride 1 ≠ 3 × 2**."
    )
    assert "cells 0, 3, 1: steps of +3, −2" in headline(made)[1]
    assert "**48 B**" in headline(made)[1]


def test_t6_contiguous_first_works() -> None:
    made = trace("x.transpose(1, 0).contiguous().view(2, 3)", (2, 3))
    assert kinds(made) == ["start", "view", "copy", "view"]
    assert [step.storage for step in made.steps] == [0, 0, 1, 1]
    assert made.last.values == (0, 3, 1, 4, 2, 5)
    assert headline(made)[0] == "`.contiguous()` copies **48 B** into new storage; the other 2 steps allocate nothing."


@pytest.mark.parametrize(("dtype", "size"), [("int64", 8), ("float32", 4), ("bfloat16", 2)])
def test_t7_copies_cost_bytes(dtype: str, size: int) -> None:
    made = trace("x.view(6, 4).t().reshape(3, 8)", (2, 3, 4), dtype=dtype)
    assert kinds(made) == ["start", "view", "view", "copy"]
    assert allocated(made) == [24 * size, 0, 0, 24 * size]
    assert made.bytes_copied == 24 * size
    assert headline(made)[1] == "It could not be a view: dimensions 0 and 1 cannot merge: stride 1 ≠ 4 × 6."


def test_t8_view_without_contiguity() -> None:
    made = trace("x[:, ::2].view(-1)", (4, 6))
    assert kinds(made) == ["start", "view", "view"]
    assert not made.last.is_contiguous
    assert made.last.layout.stride == (2,)
    assert headline(made)[0] == (
        "`.view(-1)` works although `x[:, ::2]` is **not contiguous**: dimensions 0 and 1 merge: stride 6 = 2 × 3."
    )


# ---------------------------------------------------------------------------------------------- view or copy


@pytest.mark.parametrize(
    ("expression", "kind", "storage"),
    [
        ("x.contiguous()", "same", 0),
        ("x.to(torch.int64)", "same", 0),
        ("x.detach()", "view", 0),  # _is_view() says False
        ("x.t().ravel()", "copy", 1),  # _is_view() says True
        ("x.reshape(3, 2)", "view", 0),
        ("x.t().reshape(6)", "copy", 1),
        ("x.flip(0)", "copy", 1),
        ("x.view(torch.int32)", "view", 0),
        ("x.float()", "copy", 1),
        ("x + 0", "copy", 1),
        ("2 * x", "copy", 1),
        ("-x", "copy", 1),
        ("x.t().contiguous().t()", "view", 1),
        ("torch.einsum('ij->ji', x)", "view", 0),
        ("rearrange(x, 'a b -> b a')", "view", 0),
        ("einops.rearrange(x, 'a b -> (b a)')", "copy", 1),
        ("torch.transpose(x, 0, 1)", "view", 0),
        ("x[:0].t()", "view", 0),  # storages are told apart even where data pointers cannot
        ("x[:0].clone()", "copy", 1),
    ],
)
def test_view_or_copy_is_decided_by_storage(expression: str, kind: str, storage: int) -> None:
    last = trace(expression, (2, 3)).last
    assert (last.kind, last.storage) == (kind, storage)
    assert (last.bytes_allocated > 0) == (kind == "copy" and last.layout.numel > 0)


def test_steps_of_a_branching_expression() -> None:
    made = trace("x.t() @ (x + 1)", (2, 3))
    assert [step.source for step in made.steps] == ["x", ".t()", "+ 1", "@ (x + 1)"]
    assert [step.inputs for step in made.steps] == [(), (0,), (0,), (1, 2)]
    assert [step.storage for step in made.steps] == [0, 0, 1, 2]
    x = torch.arange(6).view(2, 3)
    assert made.last.values == tuple((x.t() @ (x + 1)).flatten().tolist())


def test_numbers_on_either_side() -> None:
    assert trace("10 - x", (3,)).last.values == (10, 9, 8)
    assert trace("x - 10", (3,)).last.values == (-10, -9, -8)
    assert trace("1 / x.float()[1:]", (3,)).last.values == (1.0, 0.5)


def test_a_write_through_a_slice_marks_every_cell() -> None:
    made = trace("x[:, 1] = -7", (2, 3))
    assert made.last.written == (1, 4)
    assert made.last.storage_values == (0, -7, 2, 3, -7, 5)


def test_torch_refuses_a_write_it_cannot_make() -> None:
    made = trace("x[5] = 1", (2, 3))
    assert (made.last.kind, made.last.error_type) == ("refused", "IndexError")


@pytest.mark.parametrize(
    ("expression", "shape", "reason"),
    [
        ("x.as_strided((4, 4), (1, 3))", (6,), "the last element would be cell 12, but the storage has cells 0 to 5"),
        ("x[2:].as_strided((5,), (1,))", (6,), "the last element would be cell 6, but the storage has cells 0 to 5"),
        (
            "x.as_strided(size=(2,), stride=(1,))",
            (0,),
            "the last element would be cell 1, but the storage has no cells",
        ),
        ("x.view(4, 2)", (6,), "4 × 2 = 8 elements are asked for, but there are 6"),
        ("x.view(-1, 4)", (6,), "6 elements do not divide evenly by the other sizes (4)"),
        ("x.select(2, 0)", (2, 3), ""),
        ("x.as_strided((2,), (1, 1))", (6,), ""),
        ("x.view(torch.int64).t().view(torch.int32)", (2, 3), ""),
    ],
)
def test_reasons_for_refusals(expression: str, shape: tuple[int, ...], reason: str) -> None:
    made = trace(expression, shape)
    assert made.last.kind == "refused"
    assert made.last.error_message
    assert made.last.reason == reason
    sentence, detail = headline(made)
    assert "fails" in sentence or "refuses" in sentence
    assert reason in sentence
    if made.last.verdict is None:
        assert detail.startswith(made.last.error_type)


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("x.t().view(2, 3)", (2, 3)),
        ("x.view(2, 3, 2, 4).transpose(1, 2).contiguous().transpose(1, 2).view(2, 3, 8)", (2, 3, 8)),
        ("x[:, :4] . view((16,)) + 1", (4, 6)),
        ("x.t().view(6) @ x.t().view(-1)", (2, 3)),
        ("x.expand(3, 4).view(size=(12,))", (3, 1)),
    ],
)
def test_fixes_work_and_cost_what_the_verdict_says(expression: str, shape: tuple[int, ...]) -> None:
    refused = trace(expression, shape).refusal
    assert refused is not None
    assert refused.verdict is not None
    assert [instead.split("(")[0] for instead, _ in refused.fixes] == [".reshape", ".contiguous"]
    for _, fixed in refused.fixes:
        made = trace(fixed, shape)
        step = made.steps[refused.number]
        assert step.kind == "copy"
        assert step.bytes_allocated == refused.verdict.copied_bytes(refused.element_size)
        assert step.values == refused.values


# --------------------------------------------------------------------------------------------- caps and safety


def test_the_largest_tensor_is_drawn_in_part() -> None:
    made = trace("x.t().contiguous()", (64, 64))
    drawn = limit("storage_cells_drawn")
    assert len(made.last.values) == len(made.last.storage_values) == drawn
    assert made.last.values == tuple(np.arange(4096).reshape(64, 64).T.ravel()[:drawn].tolist())
    cells = sum(
        len(step["strip"]["values"]) + sum(len(t["values"]) for t in step["tensors"])
        for step in storage_picture(made)["steps"]
    )
    assert cells <= limit("picture_cells")


def test_a_long_chain_still_fits_the_picture() -> None:
    made = trace("x" + ".t()" * limit("expression_steps"), (64, 64))
    assert len(made.steps) == limit("expression_steps") + 1
    assert len(json.dumps(storage_picture(made))) < 100_000


@pytest.mark.parametrize("dtype", START_DTYPES)
def test_start_types(dtype: str) -> None:
    made = trace("x", (2, 3), dtype=dtype)
    assert made.last.dtype == dtype
    assert made.last.values == (0, 1, 2, 3, 4, 5)


def test_other_start_types_are_refused() -> None:
    with pytest.raises(ValueError, match="not one of"):
        trace("x", (2, 3), dtype="complex64")


def test_the_start_shape_is_capped_too() -> None:
    with pytest.raises(ExpressionError, match="elements"):
        trace("x", (65, 64))
    with pytest.raises(ExpressionError, match="dimensions"):
        trace("x", (1,) * 9)


def test_traces_of_many_threads_do_not_mix() -> None:
    wrong: list[str] = []

    def work(rows: int) -> None:
        for _ in range(30):
            made = trace("x.t().contiguous()[0, 0] = 9", (rows, 3))
            if made.last.values != (9, *torch.arange(rows * 3).view(rows, 3).t().flatten()[1:].tolist()):
                wrong.append(str(made.last.values))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_importing_and_reading_do_not_load_torch() -> None:
    script = (
        "import sys, core.tensors, core.tensors.figures, core.tensors.story\n"
        "core.tensors.read_expression('x.t().view(2, 3)')\n"
        "assert not {'torch', 'einops', 'streamlit', 'pandas', 'plotly'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# ------------------------------------------------------------------------------------------- words and picture


@pytest.mark.parametrize(
    ("expression", "shape", "sentence"),
    [
        ("x", (4, 4), "x is a row of **16 cells** and a rule for reading them: shape (4, 4), strides **(4, 1)**."),
        ("x", (), "x is a row of **1 cell** and a rule for reading them: shape (), strides **()**."),
        ("x.contiguous()", (2, 3), "Nothing happens: the result is **x itself**."),
        ("x.view(3, 2).t()", (2, 3), "Every step is a view: **0 bytes** copied."),
        ("(x + 1) * 2", (2, 3), "Every step allocates new storage: **96 B** in all."),
        ("(x + 1).t() * 2", (2, 3), "**2 of 3 steps** allocate new storage: **96 B** in all."),
        ("x.t() @ x", (2, 3), "`@ x` computes **72 B** into new storage; the other step is a view."),
        ("x.clone()", (2, 3), "`.clone()` copies **48 B** into new storage."),
        ("x.select(2, 0)", (2, 3), "torch **refuses** `.select(2, 0)` on a tensor of shape (2, 3)."),
        (
            "rearrange(x, 'a b -> a')",
            (2, 3),
            "einops **refuses** `rearrange(x, 'a b -> a')` on a tensor of shape (2, 3).",
        ),
        ("x.view(7)", (2, 3), "`.view(7)` **fails**: 7 elements are asked for, but there are 6."),
        ("x[0] = 5", (2, 3), "`x[0] = 5` writes **3 cells**."),
    ],
)
def test_headlines(expression: str, shape: tuple[int, ...], sentence: str) -> None:
    assert headline(trace(expression, shape))[0] == sentence


def test_ravel_copies_where_reshape_would_not() -> None:
    made = trace("x[:, ::2].ravel()", (4, 6))
    assert made.last.kind == "copy"
    assert headline(made)[1].startswith("`.reshape(-1)` would have been a view here")
    assert trace("x[:, ::2].reshape(-1)", (4, 6)).last.kind == "view"


def test_table_has_a_row_per_step() -> None:
    made = trace("x.t().view(2, 3)", (2, 3))
    rows = table(made)
    assert [len(row) for row in rows] == [len(TABLE_HEADINGS)] * 3
    assert rows[1] == ("`.t()`", "(3, 2)", "(1, 3)", "0", "no", "int64", "A", "view", "0 B")
    assert rows[2][7] == KIND_WORDS["refused"]


def test_explanations_carry_the_numbers_of_the_trace() -> None:
    cell, merge, size = explanations(trace("x.t().view(2, 3)", (2, 3)))
    assert (cell.value, merge.value, size.value) == (5, 6, 48)
    (cell, _) = explanations(trace("x[1, 2]", (4, 4)))
    assert cell.value == 6
    assert [round(term.value) for term in cell.terms] == [0, 1, 4, 2, 1]


def test_picture_of_the_refused_view() -> None:
    steps = storage_picture(trace("x.t().view(2, 3)", (2, 3)))["steps"]
    assert [step["kind"] for step in steps] == ["start", "view", "refused"]
    assert steps[1]["tensors"][0]["values"] == ["0", "3", "1", "4", "2", "5"]
    assert steps[2]["wanted"] == {
        "shape": (2, 3),
        "dim": 1,
        "cells": (0, 3, 1),
        "steps": (3, -2),
        "elements": (0, 1, 2),
    }
    assert steps[2]["merge"]["joints"] == [{"merged": False, "text": "1 ≠ 3 × 2"}]
    assert steps[2]["merge"]["breaks"] == 0
    json.dumps(steps)


def test_picture_names_storages() -> None:
    steps = storage_picture(trace("x.t().contiguous()", (2, 3), dtype="bfloat16"))["steps"]
    assert [step["strip"]["name"] for step in steps] == ["A", "A", "B"]
    assert steps[2]["strip"]["size"] == "12 B"
    assert dict(steps[2]["facts"])["new storage"] == "12 B"
