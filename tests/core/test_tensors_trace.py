"""Traces: what each step did to memory, the sentences about it, and the picture made from it."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from core.limits import limit
from core.tensors import ELEMENT_DTYPES, ExpressionError, Trace, trace
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
    assert made.last.sharing == (0,)
    assert made.last.shares_storage_with == ("x",)
    assert allocated(made) == [48, 0]
    assert headline(made)[0].endswith("is a view: **0 bytes** copied.")


def test_t4_a_write_shows_through_the_transpose() -> None:
    made = trace("x.transpose(1, 0)[0][0] = 100", (2, 3))
    assert kinds(made) == ["start", "view", "view", "write"]
    assert made.last.written == (0,)
    assert made.last.storage_values == (100, 1, 2, 3, 4, 5)
    assert made.steps[0].values == (0, 1, 2, 3, 4, 5)  # as it was when the step ran
    assert {made[n].expression for n in made.last.changed} >= {"x", "x.transpose(1, 0)"}
    assert "writes storage cell **0**, so **x shows it too**" in headline(made)[0]


def test_t4_a_write_into_a_copy_does_not() -> None:
    made = trace("x.t().contiguous()[0, 1] = 100", (2, 3))
    assert kinds(made) == ["start", "view", "copy", "write"]
    assert made.last.storage == 1
    assert made.last.values == (0, 100, 1, 4, 2, 5)
    assert headline(made)[0].endswith("of a copy, so **x keeps its values**.")
    assert [made[n].expression for n in made.last.changed] == ["x.t().contiguous()"]


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


# ------------------------------------------------------------------------------------------------ several lines


def test_a_trace_is_a_sequence_of_its_steps() -> None:
    made = trace("x.t().view(2, 3)", (2, 3))
    assert len(made) == 3
    assert made[-1] is made.last is list(made)[2]
    assert made[1:] == made.steps[1:]
    assert [step.number for step in made] == [0, 1, 2]


def test_names_and_lines() -> None:
    made = trace("y = x.t()\n\nz = y.contiguous()\nz.view(6)", (2, 3))
    assert [(step.line, step.name, step.source) for step in made] == [
        (0, "x", "x"),
        (1, "y", ".t()"),
        (3, "z", ".contiguous()"),
        (4, "", ".view(6)"),
    ]
    assert [step.storage for step in made] == [0, 0, 1, 1]
    assert [step.shares_storage_with for step in made] == [(), ("x",), (), ("z",)]
    assert [step.bytes_total for step in made] == [0, 0, 48, 48]
    assert made.last.values == (0, 3, 1, 4, 2, 5)


def test_a_second_name_is_no_second_tensor() -> None:
    made = trace("y = x\ny[0] = 7\nx", (2, 3))
    assert [step.kind for step in made] == ["start", "same", "write", "same"]
    assert made.last.values == (7, 7, 7, 3, 4, 5)


def test_a_name_may_be_bound_again() -> None:
    made = trace("x = x.t()\nx = x + 1\nx[0]", (2, 3))
    assert made.last.values == (1, 4)
    assert [step.label for step in made] == ["x", "x", "x", "x[0]"]


def test_splitting_shows_every_piece() -> None:
    made = trace("x.chunk(3)", (7,))
    assert [piece.layout.offset for piece in made.last.pieces] == [0, 3, 6]
    assert [piece.values for piece in made.last.pieces] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert made.last.picked is None
    made = trace("x.chunk(3)[-1]", (7,))
    assert (made.last.picked, made.last.values, len(made.last.pieces)) == (-1, (6,), 3)


def test_unpacking_names_the_pieces() -> None:
    made = trace("q, k, v = x.chunk(3, -1)\nk.view(2, 3, 2, 4).transpose(1, 2)", (2, 3, 24))
    assert [(step.name, step.kind) for step in made[1:5]] == [("", "view"), ("q", "same"), ("k", "same"), ("v", "same")]
    assert made.last.layout.offset == 8
    assert made.last.layout.shape == (2, 2, 3, 4)
    assert made.last.storage == 0
    later = trace("parts = x.unbind(1)\nparts[2] + parts[0]", (4, 6))
    assert later.last.values == (2, 14, 26, 38)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("a, b = x.chunk(3)", "ValueError", "too many values to unpack (expected 2)"),
        ("a, b, c, d = x.chunk(3)", "ValueError", "not enough values to unpack (expected 4, got 3)"),
        ("x.chunk(3)[3]", "IndexError", "tuple index out of range"),
        ("a = x.chunk(3)\na[3]", "IndexError", "tuple index out of range"),
    ],
)
def test_pieces_that_are_not_there(expression: str, error: str, message: str) -> None:
    last = trace(expression, (7,)).last
    assert (last.kind, last.error_type, last.error_message) == ("refused", error, message)


# --------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize(
    ("expression", "written", "x"),
    [
        ("x[0, 0] = 100", (0,), (100, 1, 2, 3, 4, 5)),
        ("x[0][0] = 100", (0,), (100, 1, 2, 3, 4, 5)),
        ("x[:, 1] += 10", (1, 4), (0, 11, 2, 3, 14, 5)),
        ("x[x > 2] = 0", (3, 4, 5), (0, 1, 2, 0, 0, 0)),
        ("x[[1, 0], [2, 2]] *= 10", (2, 5), (0, 1, 20, 3, 4, 50)),
        ("x[torch.tensor([1])] = x[0] + 0", (3, 4, 5), (0, 1, 2, 0, 1, 2)),
        ("x[..., None] = 7", (0, 1, 2, 3, 4, 5), (7,) * 6),
        ("x += 1", (0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6)),
        ("y = x.t()\ny //= 2", (0, 1, 2, 3, 4, 5), (0, 0, 1, 1, 2, 2)),
        ("x[0].fill_(9)", (0, 1, 2), (9, 9, 9, 3, 4, 5)),
        ("x.diagonal().zero_()", (0, 4), (0, 1, 2, 3, 0, 5)),
        ("x.add_(x)", (0, 1, 2, 3, 4, 5), (0, 2, 4, 6, 8, 10)),
        ("x.view(6)[::2].mul_(torch.tensor([1, 2, 3]))", (0, 2, 4), (0, 1, 4, 3, 12, 5)),
        ("x.copy_(x.flip(0))", (0, 1, 2, 3, 4, 5), (3, 4, 5, 0, 1, 2)),
        ("x[:0] = 5", (), (0, 1, 2, 3, 4, 5)),
    ],
)
def test_writes_mark_their_cells_and_reach_x(expression: str, written: tuple[int, ...], x: tuple[int, ...]) -> None:
    made = trace(expression + "\nx", (2, 3))
    write = next(step for step in made if step.kind == "write")
    assert write.written == written
    assert write.bytes_allocated == 0
    assert made.last.values == x
    if written:
        assert write.changed[0] == 0
        assert write.after[0] == x


def test_every_tensor_that_sees_a_write_is_named() -> None:
    """A column, a row that it crosses, one that it does not, a copy, and the same bytes as another type."""
    text = "a = x[:, 0]\nb = x[1]\nc = x[:, 1:]\nd = x.clone()\ne = x.view(torch.int32)\nx[1, 0] = -1"
    made = trace(text, (2, 3))
    changed = [(made[n].name, values) for n, values in zip(made.last.changed, made.last.after, strict=True)]
    assert changed == [
        ("x", (0, 1, 2, -1, 4, 5)),
        ("a", (0, -1)),
        ("b", (-1, 4, 5)),
        ("e", (0, 0, 1, 0, 2, 0, -1, -1, 4, 0, 5, 0)),
    ]
    assert made[4].values == (0, 1, 2, 3, 4, 5)


def test_writes_through_wider_elements() -> None:
    """Three bytes of storage hold one number of two bytes; the third byte belongs to the narrow view alone."""
    made = trace("y = x[:2].view(torch.int16)\ny += 1\nx", (3,), dtype="uint8")
    assert made.last.values == (1, 1, 2)
    assert [made[n].label for n in made[3].changed] == ["x", "x[:2]", "y"]


def test_a_write_into_a_piece_reaches_the_split() -> None:
    made = trace("a, b = x.chunk(2)\nb[0] = 9", (6,))
    assert [made[n].label for n in made.last.changed] == ["x", "x.chunk(2)", "b"]
    assert trace("a = x[:3]\nb = x[3:]\nb += 1", (6,)).last.changed == (0, 2)


def test_the_overlap_hazard() -> None:
    """torch runs it, element after element; the cells in the middle are incremented more than once or not as hoped."""
    made = trace("x.as_strided((4, 3), (1, 1)).add_(1)", (6,))
    assert made.last.kind == "write"
    assert made.last.storage_values != (1, 2, 3, 4, 5, 6)
    refused = trace("x.expand(3, 4).add_(1)", (3, 1)).last
    assert refused.error_type == "RuntimeError"
    assert "more than one element of the written-to tensor" in refused.error_message
    assert refused.reason == "several elements of the tensor are one cell (strides (1, 0)): whose value should it keep?"
    partly = trace("x[:-1].add_(x[1:])", (4,)).last
    assert partly.reason == "the values are read from cells that the same step is writing"


# ------------------------------------------------------------------------------------- why a view, why a copy


@pytest.mark.parametrize(
    ("expression", "shape", "reason"),
    [
        ("x.t()", (2, 3), "the same cells, read with other strides"),
        ("x.t().reshape(6)", (2, 3), "dimensions 0 and 1 cannot merge: stride 1 ≠ 3 × 2"),
        ("x[:, ::2].reshape(-1)", (4, 6), "dimensions 0 and 1 merge: stride 6 = 2 × 3"),
        ("x[:, ::2].ravel()", (4, 6), "ravel copies whatever is not contiguous, even where a view would work"),
        ("x.contiguous()", (2, 3), "it is already contiguous, so it is the same tensor"),
        ("x.t().contiguous()", (2, 3), "strides (1, 3) become (2, 1): the elements are written in another order"),
        ("x.to(torch.int64)", (2, 3), "it is already int64 laid out as asked, so it is the same tensor"),
        ("x.float()", (2, 3), "float32 is written differently from int64, so every element is converted"),
        ("x.to(torch.int64, copy=True)", (2, 3), "a copy was asked for"),
        (
            "x.to(memory_format=torch.channels_last)",
            (1, 2, 2, 2),
            "strides (8, 4, 2, 1) become (8, 1, 4, 2): the elements are written in another order",
        ),
        ("x.view(torch.int32)", (2, 3), "the same bytes, read as int32"),
        ("x[[0]]", (2, 3), "picked elements need not lie at even steps"),
        ("x[torch.tensor(1)]", (2, 3), "a part of the same cells: only offset, sizes and strides change"),
        ("x.flip(0)", (2, 3), "a view would need a negative stride, and torch has none"),
        ("x.real", (2, 3), "there is nothing to do, so it is the same tensor"),
        (
            "rearrange(x, 'a b -> (b a)')",
            (2, 3),
            "the pattern merges axes that do not lie in order, so the elements are rearranged",
        ),
        (
            "repeat(x, 'a b -> (r a) b', r=2)",
            (2, 3),
            "repeating alone would be a stride of 0, which cannot merge with another axis, so elements are copied",
        ),
        (
            "torch.einsum('ii->i', x)",
            (3, 3),
            "a name that stands twice reads the diagonal: one step is one in both dimensions, so strides add up",
        ),
        ("x[:, ::2].contiguous()", (4, 6), "strides (6, 2) become (3, 1): the gaps between the elements close"),
        ("x.expand(3, 4).contiguous()", (3, 1), "strides (1, 0) become (4, 1): each element gets a cell of its own"),
        (
            "rearrange(x, 'a b -> b a')",
            (2, 3),
            "the pattern only permutes, splits or repeats axes, which strides can say",
        ),
        ("torch.einsum('ij,kj->ik', x, x)", (2, 3), "computed values need cells of their own"),
        ("x.view_as(torch.empty(6))", (2, 3), "the tensor is contiguous, so any shape with as many elements fits"),
        ("x[0] = 1", (2, 3), "written in place: no new storage"),
    ],
)
def test_reasons(expression: str, shape: tuple[int, ...], reason: str) -> None:
    assert trace(expression, shape).last.reason == reason


def test_fresh_memory_is_never_shown() -> None:
    """torch.empty would show what another visitor's tensors left behind."""
    for _ in range(20):
        assert set(trace("torch.empty(50, 50)", (2,)).last.values) == {0.0}


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
        (
            "x.as_strided((4, 4), (1, 3))",
            (6,),
            "the last element would be cell 12, but the storage has cells 0 to 5: 0 + 3·1 + 3·3 = 12",
        ),
        (
            "x[2:].as_strided((5,), (1,))",
            (6,),
            "the last element would be cell 6, but the storage has cells 0 to 5: 2 + 4·1 = 6",
        ),
        (
            "x.as_strided(size=(2,), stride=(1,))",
            (0,),
            "the last element would be cell 1, but the storage has no cells: 0 + 1·1 = 1",
        ),
        ("x.view(4, 2)", (6,), "4 × 2 = 8 elements are asked for, but there are 6"),
        ("x.view(-1, 4)", (6,), "6 elements do not divide evenly by the other sizes (4)"),
        ("x.select(2, 0)", (2, 3), ""),
        ("x.as_strided((2,), (1, 1))", (6,), ""),
        (
            "x.t().view(torch.int32)",
            (2, 3),
            "elements of 8 B become elements of 4 B along the last dimension, so its elements must be neighbours in "
            "memory: stride 1, not 3",
        ),
        (
            "x[0, 0].view(torch.int32)",
            (2, 3),
            "without dimensions there is none whose elements could be split or joined",
        ),
        (
            "x.to(torch.int32).view(torch.int64)",
            (2, 3),
            "2 elements of 4 B make one of 8 B, and 3 do not divide by 2",
        ),
        (
            "x.to(torch.int32)[:, 1:3].view(torch.int64)",
            (2, 4),
            "an offset or stride of 1 is no multiple of the 2 elements that make one",
        ),
        ("x.permute(0, 2, 1)", (2, 3), "permute names every dimension once: there are 2, and 3 are given"),
        ("x.permute(0, 2)", (2, 3), "there is no dimension 2; they are 0 to 1"),
        ("x.permute((1, -1))", (2, 3), "permute names every dimension once, and dimension 1 stands twice"),
        (
            "x.expand(5, 5)",
            (2, 3),
            "dimension 1 has size 3, not 1: expanding repeats a single element by stride 0, and cannot make 5 of 3",
        ),
        ("x.expand(3)", (2, 3), "1 sizes for 2 dimensions: expand adds dimensions, it never drops one"),
        ("x[5]", (2, 3), "the indices of dimension 0 are 0 to 1, or −2 to −1 from the end"),
        ("x[..., -4]", (2, 3), "the indices of dimension 1 are 0 to 2, or −3 to −1 from the end"),
        ("x[0, None, 0, 0]", (2, 3), "3 indices for 2 dimensions"),
        ("x[:, ::-1]", (2, 3), "a step backwards needs a negative stride, and torch has none; flip copies instead"),
        ("x[5] = 1", (2, 3), "the indices of dimension 0 are 0 to 1, or −2 to −1 from the end"),
        (
            "x @ x",
            (2, 3),
            "a row of the left has 3 elements and a column of the right 2, and they must be as many",
        ),
        ("x + torch.zeros(4)", (2, 3), "in the last dimension the sizes 3 and 4 differ, and neither is 1"),
        ("x[1:] += x[:-1]", (4, 3), "the values are read from cells that the same step is writing"),
        ("x[:] = x.t()", (3, 3), "the values are read from cells that the same step is writing"),
        ("x[0] = torch.zeros(2)", (2, 3), "values of shape (2,) do not fit into shape (3,)"),
        (
            "y = x.expand(3, 4)\ny[0] = 5",
            (3, 1),
            "several elements of the tensor are one cell (strides (0,)): whose value should it keep?",
        ),
    ],
)
def test_reasons_for_refusals(expression: str, shape: tuple[int, ...], reason: str) -> None:
    made = trace(expression, shape)
    assert made.last.kind == "refused"
    assert made.last.error_message
    assert made.last.reason == reason
    sentence, detail = headline(made)
    assert "fails" in sentence or "refuses" in sentence
    assert reason.rstrip("?") in sentence
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
        ("y = x.t()\nz = y.view(6)\nz + 1", (2, 3)),
        ("x.t()[:, :, None].expand(3, 2, 7) . view(2, 3, 7)", (2, 3)),
    ],
)
def test_fixes_work_and_cost_what_they_say(expression: str, shape: tuple[int, ...]) -> None:
    refused = trace(expression, shape).refusal
    assert refused is not None
    assert refused.verdict is not None
    assert [fix.instead.split("(")[0] for fix in refused.fixes[-2:]] == [".reshape", ".contiguous"]
    assert [fix.bytes for fix in refused.fixes] == sorted(fix.bytes for fix in refused.fixes)
    assert refused.fixes[-1].bytes == refused.verdict.copied_bytes(refused.element_size)
    wanted = trace(refused.fixes[-1].source, shape).last.values
    for fix in refused.fixes:
        made = trace(fix.source, shape)
        assert made.refusal is None or made.refusal.number > refused.number + 1
        assert made.last.values == wanted or made.refusal is not None
        copies = [step for step in made[refused.number :] if step.kind == "copy"]
        assert copies[0].bytes_allocated == fix.bytes


def test_an_expanded_dimension_need_not_be_copied() -> None:
    refused = trace("x.t().expand(5, 3, 2).view(5, 6) + 1", (2, 3)).refusal
    assert refused is not None
    first = refused.fixes[0]
    assert first.instead == "[:1].reshape(1, 6).expand(5, 6)"
    assert first.source == "x.t().expand(5, 3, 2)[:1].reshape(1, 6).expand(5, 6) + 1"
    assert [fix.bytes for fix in refused.fixes] == [48, 240, 240]


# --------------------------------------------------------------------------------------------- caps and safety


def test_the_largest_tensor_is_drawn_in_part() -> None:
    made = trace("x.t().contiguous()", (256, 256))
    drawn = limit("storage_cells_drawn")
    assert len(made.last.values) == len(made.last.storage_values) == drawn
    assert made.last.values == tuple(np.arange(65_536).reshape(256, 256).T.ravel()[:drawn].tolist())


@pytest.mark.parametrize("dtype", ELEMENT_DTYPES)
def test_start_types(dtype: str) -> None:
    made = trace("x", (2, 3), dtype=dtype)
    assert made.last.dtype == dtype
    assert made.last.values == (0, 1, 2, 3, 4, 5)


def test_other_start_types_are_refused() -> None:
    with pytest.raises(ValueError, match="not one of"):
        trace("x", (2, 3), dtype="complex64")


def test_the_start_is_capped_too() -> None:
    for shape, stride, words in (
        ((257, 256), None, "65,792 elements"),
        ((1,) * 9, None, "9 dimensions"),
        ((-1,), None, "negative size"),
        ((2, 3), (1,), "1 strides for 2 dimensions"),
        ((2, 3), (-3, 1), "negative; torch has only"),
        ((2, 3), (10**9, 1), "1,000,000,003 elements"),
        ((2, 1), (1, 10**10), "Strides are at most"),
    ):
        with pytest.raises(ExpressionError, match=words):
            trace("x", shape, stride)


def test_a_start_with_strides() -> None:
    """x lies over arange of a storage that just holds it."""
    made = trace("x.contiguous()", (2, 3), (1, 2), "float32")
    assert (made[0].layout.stride, made[0].storage_elements, made[0].is_contiguous) == ((1, 2), 6, False)
    assert made.last.values == (0, 2, 4, 1, 3, 5)
    overlapping = trace("x", (4, 3), (1, 1))
    assert (overlapping.last.storage_elements, overlapping.last.values[:6]) == (6, (0, 1, 2, 1, 2, 3))
    assert trace("x", (0, 3), (7, 7)).last.storage_elements == 0


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


# ------------------------------------------------------------------------------------------------------- words


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
        ("y = x\nx + 1", (2, 3), "`+ 1` computes **48 B** into new storage; the other step is only a name."),
        ("x.detach() + 1", (2, 3), "`+ 1` computes **48 B** into new storage; the other step is a view."),
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


@pytest.mark.parametrize(
    ("expression", "shape", "said"),
    [
        ("x[0] = 5", (2, 3), "x is the only tensor here."),
        ("x[0] = 5\nx[0]", (2, 3), "x was the only tensor then."),
        ("y = x.clone()\nx[0] = 5", (2, 3), "No other tensor reads these cells."),
        ("x[x > 2] = 0", (2, 3), "No other tensor reads these cells."),
        (
            "y = x[0]\nx[1] = 5",
            (2, 3),
            "No other tensor reads these cells: `y` shares the storage but none of them.",
        ),
        ("y = x\ny[0, 0] = 5", (2, 3), "`y` and `x` are one and the same tensor."),
        ("x.contiguous()[0] = 5", (2, 3), "`x.contiguous()` and `x` are one and the same tensor."),
        (
            "y = x.t()\ny[0] = 5",
            (2, 3),
            "`y` and `x` are one storage, read through different shapes and strides.",
        ),
        ("y = torch.zeros(3)\ny[0] = 1", (2, 3), "`torch.zeros(3)` made it, with a storage of its own."),
        ("y = x + 1\ny[0] = 1", (2, 3), "`x + 1` made it, with a storage of its own."),
        (
            "y = x.as_strided((4, 3), (1, 1))\ny.add_(1)\nx",
            (6,),
            "`y` and `x` are one storage, read through different shapes and strides. **12 updates fall on 6 cells**: "
            "cell 2 is written 3 times, from 2 to 5. The panel on overlap replays such writes.",
        ),
    ],
)
def test_who_sees_a_write(expression: str, shape: tuple[int, ...], said: str) -> None:
    assert headline(trace(expression, shape))[1] == said


def test_a_new_tensor_is_no_copy_and_a_cast_is_one() -> None:
    assert " of a new tensor, so" in headline(trace("y = torch.zeros(3)\ny[0] = 1", (2, 3)))[0]
    assert " of a copy, so" in headline(trace("y = x.float()\ny[0] = 1", (2, 3)))[0]
    assert headline(trace("x.float()", (2, 3)))[0] == "`.float()` copies **24 B** into new storage."


def test_the_start_tells_cells_from_elements() -> None:
    said, detail = headline(trace("x", (2, 3), (10, 1)))
    assert "a row of **13 cells** and a rule for reading **6 elements** from it" in said
    assert detail == "Element (i₀, i₁) lies in cell 0 + i₀·10 + i₁·1."
    assert "a row of **3 cells** and a rule for reading **6 elements**" in headline(trace("x", (2, 3), (0, 1)))[0]


def test_einops_gives_its_cause() -> None:
    detail = headline(trace("rearrange(x, 'a b -> a b c')", (2, 3)))[1]
    assert detail == "EinopsError: Identifiers only on one side of expression (should be on both): {'c'}"


def test_ravel_copies_where_reshape_would_not() -> None:
    made = trace("x[:, ::2].ravel()", (4, 6))
    assert made.last.kind == "copy"
    assert headline(made)[1].startswith("`.reshape(-1)` would have been a view here")
    assert trace("x[:, ::2].reshape(-1)", (4, 6)).last.kind == "view"


def test_table_has_a_row_per_step() -> None:
    made = trace("x.t().view(2, 3)", (2, 3))
    rows = table(made)
    assert [len(row) for row in rows] == [len(TABLE_HEADINGS)] * 3
    step = made[1]
    assert rows[1] == ("`.t()`", "(3, 2)", "(1, 3)", "0", "no", "int64", "A", "view", "0 B", step.reason)
    assert rows[2][7] == KIND_WORDS["refused"]


def test_explanations_carry_the_numbers_of_the_trace() -> None:
    cell, merge, size = explanations(trace("x.t().view(2, 3)", (2, 3)))
    assert (cell.value, merge.value, size.value) == (5, 6, 48)
    (cell, _) = explanations(trace("x[1, 2]", (4, 4)))
    assert cell.value == 6
    assert [round(term.value) for term in cell.terms] == [0, 1, 4, 2, 1]
