"""Nothing hostile gets past the expression reader or costs anything; whatever is typed gives a trace or a message.

``python -m tests.perf traces`` runs random programs for minutes.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.tensors.operations.table import ROWS
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import read_shape, read_stride
from core.tensors.tracing.trace import trace
from tests.core.peak import grown_mb
from tests.core.tensors_random import DTYPES, SHAPES, random_program, survives
from tests.every import every
from tests.patience import PATIENCE_S

HOSTILE: dict[str, tuple[str, str]] = {
    # text → words the message must contain, and what is dangerous about it
    "x" * 100_000: ("12,000 characters", "length"),
    "(" * 250: ("brackets inside one another", "depth"),
    "[" * 120 + "]" * 120: ("brackets inside one another", "depth"),
    "-" * 299 + "x": ("syntax nodes", "depth of unary operators"),
    "x" + "+x" * 140: ("syntax nodes", "nodes"),
    ("x" + ".t()" * 41 + "\n") * 6: ("More than 240 operations", "steps"),
    "x\n" * 160 + "x": ("161 lines", "lines"),
    "# " + "x" * 25_000: ("12,000 characters", "a long comment"),
    "x" + ".t()" * 120: ("syntax nodes inside one another", "depth of a chain"),
    "x.T = x": ("names a tensor, y = x.t(), or writes", "assignment to an attribute"),
    "__builtins__ = x": ("cannot be a name", "dunder name"),
    "for i in range(1000000000): x = x.t()": ("A range has at most", "a billion rounds"),
    "torch.tensor(range(1000000000))": ("A range has at most", "a range of a billion numbers"),
    "with open('a') as f: x": ("of `with`, only torch.no_grad", "context manager"),
    "@open\ndef f(x): x": ("is not understood", "decorator"),
    "[" * 8 + "x" + "".join(f" for {c} in (1, 2, 3, 4, 5, 6, 7, 8)]" for c in "abcdefgh"): ("20,000", "8⁸ items"),
    "n = round(x.size(0), -1000000000)": ("at most 20 digits", "a power of a million digits"),
    "torch.zeros(1000000000, 1000000000)": ("elements", "10¹⁸ elements"),
    "class A: x": ("holds functions and plain values", "class"),
    "class A:\n    def f(self): return self.f()\nA().f()": ("12 deep", "recursion of a method"),
    "class A:\n    pass\nA().__class__": ("has no", "dunder of an object"),
    "class A:\n    pass\nA.__bases__": ("stands for no tensor", "dunder of a class"),
    "def f(y): return y\nf.__globals__": ("is not an operation", "dunder of a function"),
    "a = []\na.append(a)\nprint(a)": ("nested too deeply", "a list inside itself"),
    "a = [0]\nfor i in range(200):\n    a = a + a": ("more than 256 items", "a list that grows"),
    "n = 1 << 999999999": ("at most 1,000,000,000", "a shift of a million digits"),
    "[a for a in range(200) for b in range(200)]": ("240 items", "rounds of rounds"),
    "f'{x:>999999999}'": ("no format", "a wide format"),
    "'a'.join(['b' * 200] * 200) + x": ("no tensor", "a long text"),
    "f = lambda: f()\nf()": ("12 deep", "a lambda that calls itself"),
    "np.memmap('/etc/passwd')": ("opens a file", "a file"),
    "sys.exit()": ("is not an operation", "leaving"),
    "torch.save(x, open('a', 'w'))": ("is not an operation", "a file"),
    "from os import path": ("only torch, einops", "import"),
    "from torch import load": ("only torch, einops", "import"),
    "y = yield x": ("(this syntax)", "generator"),
    "await x": ("await", "await"),
    "async def f(): x": ("is not run here", "function"),
    "import os": ("only torch, einops", "import"),
    "x # \udcff": ("no place", "a character that is none"),
    "x.__class__": ("is not an operation", "dunder"),
    "x.__class__.__mro__[1].__subclasses__()": ("is not an operation", "dunder"),
    "x.__getattribute__('t')()": ("is not an operation", "dunder"),
    "x._cdata": ("is not an operation", "private attribute"),
    "__import__('os').system('id')": ("is not an operation", "import"),
    "().__class__": ("is not an operation", "dunder of a literal"),
    "eval('1')": ("is not an operation", "eval"),
    "exec('1')": ("is not an operation", "exec"),
    "getattr(x, 't')": ("is not an operation", "getattr"),
    "open('/etc/passwd')": ("is not an operation", "file"),
    "torch.load('a')": ("opens a file", "unpickling"),
    "torch.ops.aten.t(x)": ("is not an operation", "inner operators"),
    "torch.hub.load('a', 'b')": ("is not an operation", "download"),
    "torch.set_num_threads(1)": ("is not an operation", "global state"),
    "x.share_memory_()": ("is not an operation", "shared memory"),
    "x.sum(0, out=x)": ("takes no `out=`", "output argument"),
    "n = x.size(0) ** 999999999": ("at most 1,000,000,000", "a power of a million digits"),
    "s = x.shape\n" + "s = s + s\n" * 11: ("more than 256 items", "growing sizes"),
    "rearrange(x, 'a b -> b a', __class__=2)": ("takes no `__class__=`", "dunder keyword"),
    "'a' * 1000000000": ("more than 256 items", "string repetition"),
    "9" * 299: ("at most 1,000,000,000", "huge integer"),
    "torch.zeros(" + "1, " * 100 + "1)": ("dimensions", "rank 101"),
    "torch.arange(60000).unbind(0)": ("60,000 tensors", "60,000 tensors"),
    "x.tensor_split(1000000000)": ("1,000,000,000 tensors", "10⁹ tensors"),
    "x.numpy()": ("refused here by design", "numpy"),
    "x[" + "None," * 40 + "]": ("new dimensions", "rank"),
    "x.view(" + "1," * 100 + "6)": ("dimensions", "rank 101"),
    "x.expand(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.view(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.sum().broadcast_to(-1, 0)": ("no size can be negative", "torch makes a negative size"),
    "x.as_strided((0, -1), (1, 1))": ("no size can be negative", "torch makes a negative size"),
    "x.as_strided((65000,), (1000000000,))": ("far outside the storage", "overflow of the address"),
    "x.unfold(0, 2, 1000000000).unfold(0, 1, 1000000000)": ("stride above", "overflow of a stride"),
    "repeat(x, 'a b -> a b c d e', c=99999, d=99999, e=99999)": ("elements", "10¹⁵ elements"),
    "reduce(x, 'a b -> a', open)": ("`open` is not known", "a callable reduction"),
    "x.add(open)": ("`open` is not known", "a callable argument"),
    "F.one_hot(torch.tensor([1000000000]))": ("hangs on values", "one large number"),
    "F.one_hot(x, 1000000000)": ("hangs on values", "10⁹ classes"),
    "torch.bincount(torch.tensor([1000000000]))": ("hangs on values", "one large number"),
    "x.flatten().bincount(minlength=1000000000)": ("hangs on values", "10⁹ counts"),
    "x.repeat_interleave(torch.tensor([1000000000, 1]), 0)": ("hangs on values", "a large sum of repeats"),
    "x.tensor_split(torch.tensor(1000000000))": ("1,000,000,000 tensors", "10⁹ pieces"),
    "torch.ones(200, 200).nonzero()": ("depends on values", "an index per dimension of every element"),
    "x.diff(1000000000)": ("at most 64 times", "10⁹ rounds"),
}  # fmt: skip

MANY = 100_000
UNREADABLE = ("x" * MANY, "(" * MANY, "x.t()\n" * MANY, "é" * MANY, "x" + "[0]" * MANY, "-" * MANY + "x")
"""10⁵ characters of each kind."""


HOSTILE_CASES = [pytest.param(text, words, id=f"{i}-{why}") for i, (text, (words, why)) in enumerate(HOSTILE.items())]


@every(("text", "words"), HOSTILE_CASES)
def test_hostile_expressions_are_refused_at_once(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert words in str(problem.value)
    assert len(str(problem.value)) < 900  # a message never echoes a long input


@every("text", UNREADABLE, ids=lambda text: text[:3])
def test_a_hundred_thousand_characters_are_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError, match="12,000 characters"):
        trace(text, (2, 3))


@pytest.mark.process
@pytest.mark.long
def test_bad_input_leaves_memory_flat() -> None:
    """All of it together stays under 4 MiB."""
    before = """
        from core.tensors.operations.values import ExpressionError
        from core.tensors.tracing.trace import trace
        from tests.core.test_tensors_hostile import HOSTILE, UNREADABLE

        def run(text, shape=(2, 3)):
            try:
                trace(text, shape)
            except ExpressionError:
                pass

        def run_all():
            for text in (*HOSTILE, *UNREADABLE):
                run(text)
            for shape in ((10**9,), (10**9,) * 3, (1,) * 100, (-1,)):
                run("x", shape)

        run_all()  # which loads the code itself
    """
    assert grown_mb(before, "run_all()") < 4


def test_a_single_number_is_a_tensor_for_every_operation() -> None:
    """And so is one without elements: a trace or a message, whatever an operation does with them."""
    made = re.compile(r"torch\.(randn|rand|ones|zeros|arange)\([^()]*\)")
    for text in {text for row in ROWS if row.example for text in (row.example, made.sub("x", row.example))}:
        for shape in ((), (0,), (1, 0)):
            with suppress(ExpressionError):
                trace(text, shape, dtype="float32")


# ---------------------------------------------------------------------------------------- limits


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


def test_all_steps_together_make_at_most_so_many_elements() -> None:
    """Beyond that they are counted. A tensor that a write changes counts again for all who see it, a view nothing."""
    assert trace("y = x" + ".t()" * 20 + ".fill_(1)" * 20, (256, 256)).counted
    assert not trace("y = x" + ".t()" * 39, (256, 256)).counted
    assert not trace("y = x" + ".t()" * 19 + ".fill_(1)" * 20, (32, 32)).counted
    most = limit("expression_work") // limit("tensor_elements")
    assert not trace("x" + " + 1" * most, (256, 256)).counted
    assert trace("x" + " + 1" * (most + 1), (256, 256)).counted


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


@every(
    ("text", "shape"),
    [
        *((text, (2, 3)) for text in ("2, 3", "(2, 3)", "[2,3]", "2 × 3", "2x3", "2 3", " 2 ,3, ")),
        *(("5", (5,)), ("5,", (5,)), ("()", ()), ("0, 3", (0, 3)), ("64,64", (64, 64))),
    ],
)
def test_shapes_as_people_type_them(text: str, shape: tuple[int, ...]) -> None:
    assert read_shape(text) == shape


# ---------------------------------------------------------------------------------------- random text

CHARACTERS = "xxx..()()[]:,,0123 -+*@'>abt_=viewsrtn;#"
FUZZ = settings(max_examples=150)


@pytest.mark.long
@FUZZ
@given(
    st.text(max_size=400) | st.text(alphabet=CHARACTERS, max_size=60).map(lambda tail: "x" + tail),
    st.sampled_from(SHAPES),
)
@example("x[\x00]", (2, 3))
@example("\udcff", (2, 3))
@example("x\r\nx.t()", (2, 3))
def test_any_text(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@pytest.mark.long
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
    with suppress(ExpressionError):
        shape = read_shape(text)
        assert len(shape) <= limit("tensor_rank")
        assert all(size >= 0 for size in shape)
        assert read_stride(text) == shape
