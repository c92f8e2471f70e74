"""The sentences about a trace."""

from __future__ import annotations

import pytest

from core.tensors.tracing.trace import trace
from core.views.tensors.inside import inside
from core.views.tensors.text import explanations, headline, layout_texts
from tests.core.sentence_facts import says
from tests.every import every


def test_ravel_copies_where_reshape_would_not() -> None:
    run = trace("x[:, ::2].ravel()", (4, 6))
    assert run.last.kind == "copy"
    says(headline(run)[1], "`.reshape(-1)`", "a view")
    assert trace("x[:, ::2].reshape(-1)", (4, 6)).last.kind == "view"


@every("call", ["expand({})", "broadcast_to({})", "expand_as(torch.ones({}))"])
@every("sizes", [(2, 1, 3), (4, 2, 1, 3), (2, 5, 3), (1, 2, 1, 3), (2, 0, 3)])
def test_a_stride_of_zero_is_named_where_there_is_one(call: str, sizes: tuple[int, ...]) -> None:
    step = trace(f"x.{call.format(', '.join(map(str, sizes)))}", (2, 1, 3)).last
    zero = any(n > 1 and s == 0 for n, s in zip(step.layout.shape, step.layout.stride, strict=True))
    assert ("stride 0" in step.reason) == zero


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("x.t()", ("(6, 4)", "(1, 6)")),
        ("x.view(5)", ("", "")),
        ("x[0] = 1", ("6 cells", "")),
        ("x.chunk(2)", ("2 × (2, 6)", "(6, 1)")),
        ("x.split([1, 3])", ("2 tensors", "(6, 1)")),
        ("x.chunk(2)[1]", ("(2, 6)", "(6, 1)")),
    ],
)
def test_a_line_of_the_timeline_has_one_layout_or_says_of_how_many(source: str, texts: tuple[str, str]) -> None:
    assert layout_texts(trace(source, (4, 6)).last) == texts


def test_explanations_carry_the_numbers_of_the_trace() -> None:
    cell, merge, size = explanations(trace("x.t().view(2, 3)", (2, 3)))
    assert (cell.value, merge.value, size.value) == (5, 6, 48)
    (cell, _) = explanations(trace("x[1, 2]", (4, 4)))
    assert cell.value == 6
    assert [round(term.value) for term in cell.terms] == [0, 1, 4, 2, 1]


@every(
    ("expression", "shape", "parts"),
    [
        ("x[0] = 5", (2, 3), ("only tensor here",)),
        ("x[0] = 5\nx[0]", (2, 3), ("was the only tensor then",)),
        ("y = x.clone()\nx[0] = 5", (2, 3), ("No other tensor reads",)),
        ("x[x > 2] = 0", (2, 3), ("No other tensor reads",)),
        ("y = x[0]\nx[1] = 5", (2, 3), ("No other tensor reads", "`y` shares the storage but none")),
        ("y = x\ny[0, 0] = 5", (2, 3), ("`y` and `x`", "one and the same tensor")),
        ("x.contiguous()[0] = 5", (2, 3), ("`x.contiguous()` and `x`", "one and the same tensor")),
        ("y = x.t()\ny[0] = 5", (2, 3), ("`y` and `x`", "one storage", "different shapes and strides")),
        ("x\ny = torch.zeros(3)\ny[0] = 1", (2, 3), ("`torch.zeros(3)` made it", "storage of its own")),
        ("y = torch.zeros(3)\ny[0] = 1", (2, 3), ("`y` is the only tensor here",)),
        ("y = x + 1\ny[0] = 1", (2, 3), ("`x + 1` made it", "storage of its own")),
        (
            "y = x.as_strided((4, 3), (1, 1))\ny.add_(1)\nx",
            (6,),
            ("`y` and `x`", "one storage", "12 updates", "6 cells", "cell 2", "3 times", "from 2 to 5"),
        ),
    ],
)
def test_who_sees_a_write(expression: str, shape: tuple[int, ...], parts: tuple[str, ...]) -> None:
    says(headline(trace(expression, shape))[1], *parts)


def test_a_new_tensor_is_no_copy_and_a_cast_is_one() -> None:
    assert " of a new tensor, so" in headline(trace("x\ny = torch.zeros(3)\ny[0] = 1", (2, 3)))[0]
    assert " of a copy, so" in headline(trace("y = x.float()\ny[0] = 1", (2, 3)))[0]
    says(headline(trace("x.float()", (2, 3)))[0], "`.float()` copies", "24 B")


def test_a_refused_product_under_autocast_is_explained() -> None:
    run = trace("with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = x @ x", (), dtype="float32")
    assert run.last.kind == "refused"
    says(headline(run)[0], "refuses", "@ x")
    assert inside(run, run.last)


def test_a_write_of_no_cells_is_seen_by_nobody() -> None:
    for source in ("y = x\ny[y > 9] = 0", "y = x.clone()\ny[:0] = 1", "x[:0] += 1"):
        assert "shows" not in " ".join(headline(trace(source, (2, 3))))
