"""Whatever is typed, the reader gives a trace or an `ExpressionError`, and every trace keeps its promises."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import read_shape, read_stride
from tests.core.tensors_random import DTYPES, SHAPES, random_program, survives

pytestmark = pytest.mark.long

CHARACTERS = "xxx..()()[]:,,0123 -+*@'>abt_=viewsrtn;#"
FRAGMENTS = [
    *("x", ".t()", ".T", ".mT", ".view(", ".reshape(", ".permute(", ".expand(", ".as_strided(", ".repeat(", "x)"),
    *("[0]", "[:, ::2]", "[None]", "[...]", "[-1:]", "2", "3", "6", "-1", "0", ",", ")", "(", " @ ", " + ", " * "),
    *("torch.einsum('ij,kj->ik', ", "torch.", "rearrange(x, 'a b -> b a')", "repeat(x, 'a b -> a b r', r=3)", "sum("),
    *(
        ".contiguous()",
        ".flatten()",
        ".unfold(0, 2, 1)",
        ".diagonal()",
        ".view(torch.int32)",
        ".float()",
        " = 7",
        "\n",
        "y = ",
        "y",
        "x[x > 2]",
        " += 1",
        "y, z = x",
        "n = x.size(0)\n",
        ".view(n, -1)",
        "*x.shape, ",
        " # ",
        "; ",
    ),
    *("q, k = ", "a, *b = ", "map(lambda t: t.t(), (x, x))", "[x, x]", "list(x)", "ys = ", "ys[0]", "torch.cat(", "b)"),
    *("def f(x, n=2):\n    ", "return ", "\nf(x)", "with torch.no_grad():\n    ", "import math\n", "self.w"),
    *("math.sqrt(", "float('-inf')", "torch.finfo(x.dtype).min", "x.dtype", "x.device", "int(", "device=", "axis=0"),
    *("[t.t() for t in (x, x)]", "from torch import einsum\n", "x = y = ", "100000", "torch.zeros(1000, 1000)"),
    *(".chunk(2)[0]", "1000000000", ".view(2, 3)", ".reshape(-1)"),
]


SOME_SHAPE = st.sampled_from(SHAPES)
FUZZ = settings(max_examples=150)


@FUZZ
@given(st.text(max_size=400), SOME_SHAPE)
@example("x[\x00]", (2, 3))
@example("\udcff", (2, 3))
@example("x\r\nx.t()", (2, 3))
def test_any_text(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@FUZZ
@given(st.text(alphabet=CHARACTERS, max_size=60).map(lambda tail: "x" + tail), SOME_SHAPE)
def test_text_of_likely_characters(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@FUZZ
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(lambda parts: "x" + "".join(parts)), SOME_SHAPE)
def test_strewn_fragments(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


def test_random_programs() -> None:
    """Grammar-made programs of several lines with every operation; a good part of them runs to its end."""
    rng = random.Random(20250402)
    ended = {"ran": 0, "refused by torch": 0, "not read": 0}
    for _ in range(2_500):
        run = survives(random_program(rng), rng.choice(SHAPES), rng.choice(DTYPES))
        how = "not read" if isinstance(run, str) else "ran" if run.refusal is None else "refused by torch"
        ended[how] += 1
    assert min(ended.values()) > 250, ended


@FUZZ
@given(st.text(max_size=80))
def test_any_shape_text(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        shape = read_shape(text)
        assert len(shape) <= limit("tensor_rank")
        assert all(size >= 0 for size in shape)
        assert read_stride(text) == shape
