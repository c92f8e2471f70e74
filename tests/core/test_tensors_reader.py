"""The expression reader: what it understands, and that nothing hostile gets past it or costs anything."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from core.tensors import ExpressionError, catalogue, read_expression, read_shape, trace
from core.tensors.reading.operations import OPERATIONS, REFUSED

HOSTILE: dict[str, tuple[str, str]] = {
    # text → words the message must contain, and what is dangerous about it
    "x" * 100_000: ("characters long", "length"),
    "(" * 250: ("brackets inside one another", "depth"),
    "[" * 120 + "]" * 120: ("brackets inside one another", "depth"),
    "-" * 299 + "x": ("syntax nodes", "depth of unary operators"),
    "x" + "+x" * 140: ("syntax nodes", "nodes"),
    "x" + ".t()" * 41: ("More than 40 operations", "steps"),
    "x" + ".t()" * 120: ("syntax nodes inside one another", "depth of a chain"),
    "x\n" * 12 + "x": ("13 lines", "lines"),
    "\n" * 1_000: ("Empty", "empty lines"),
    "": ("Empty", "nothing"),
    "x.view(": ("not a complete expression", "syntax"),
    "x = 3": ("give the number another name", "assignment of a number to a name"),
    "x.T = x": ("names a tensor, y = x.t(), or writes", "assignment to an attribute"),
    "x.data = x": ("names a tensor, y = x.t(), or writes", "assignment to an attribute"),
    "x.T += 1": ("only a name or square brackets", "update of an attribute"),
    "x <<= 1": ("are understood", "update with another operator"),
    "y += 1": ("`y` is not known", "update of an unknown name"),
    "torch = x": ("already the name", "module overwritten"),
    "rearrange = x": ("already the name", "operation overwritten"),
    "__builtins__ = x": ("cannot be a name", "dunder name"),
    "y__x = x.t()": ("cannot be a name", "dunder inside a name"),
    "_y = x.t()": ("cannot be a name", "private name"),
    "y" * 17 + " = x": ("cannot be a name", "long name"),
    "y = z = x": ("One name per assignment", "two targets"),
    "a, b = x": ("Only several tensors can be unpacked", "iteration over a tensor"),
    "a, *b = x.chunk(2)": ("Unpack into names", "starred target"),
    "a, (b, c) = x.chunk(2)": ("Unpack into names", "nested targets"),
    "y: x = x": ("no other statement", "annotation"),
    "del x": ("no other statement", "statement"),
    "x[0]: int = 3": ("no other statement", "annotation"),
    "for y in x: y": ("no other statement", "loop"),
    "while x: x": ("no other statement", "loop"),
    "with x: x": ("no other statement", "context manager"),
    "def f(x): x": ("no other statement", "function"),
    "class A: x": ("no other statement", "class"),
    "global x": ("no other statement", "scope"),
    "assert x": ("no other statement", "statement"),
    "raise x": ("no other statement", "statement"),
    "from os import path": ("only torch, einops", "import"),
    "from torch import load": ("only torch, einops", "import"),
    "from torch import *": ("only torch, einops", "import"),
    "from . import torch": ("only torch, einops", "import"),
    "import torch as x": ("only torch, einops", "import under another name"),
    "import torch.nn.functional": ("only torch, einops", "import under another name"),
    "import torch\nimport os": ("only torch, einops", "import after a good one"),
    "return x": ("no other statement", "return outside a function"),
    "y = yield x": ("(this syntax)", "generator"),
    "await x": ("await", "await"),
    "async def f(): x": ("no other statement", "function"),
    "import os": ("only torch, einops", "import"),
    ";".join("x" * 13): ("13 lines", "statements on one line"),
    "# " + "x" * 2_000: ("characters long", "a long comment"),
    "# x": ("Empty", "nothing but a comment"),
    "x # \x00": ("no place", "a character that is none"),
    "x # \udcff": ("no place", "a character that is none"),
    "x.view('# )": ("no place", "a string that is not closed"),
    "x.v\u0456ew(6)": ("no place", "a Cyrillic letter"),
    "x.__class__": ("is not an operation", "dunder"),
    "x.__class__.__mro__[1].__subclasses__()": ("is not an operation", "dunder"),
    "x.__getattribute__('t')()": ("cannot be called", "dunder"),
    "x._cdata": ("is not an operation", "private attribute"),
    "__import__('os').system('id')": ("is not an operation", "import"),
    "().__class__": ("is not an operation", "dunder of a literal"),
    "eval('1')": ("is not an operation", "eval"),
    "exec('1')": ("is not an operation", "exec"),
    "getattr(x, 't')": ("is not an operation", "getattr"),
    "open('/etc/passwd')": ("is not an operation", "file"),
    "torch.load('a')": ("is not an operation", "unpickling"),
    "torch.ops.aten.t(x)": ("is not an operation", "inner operators"),
    "torch.hub.load('a', 'b')": ("is not an operation", "download"),
    "torch.set_num_threads(1)": ("is not an operation", "global state"),
    "x.data_ptr()": ("is not run here", "address"),
    "x.storage()": ("is not run here", "storage"),
    "x.share_memory_()": ("is not an operation", "shared memory"),
    "x.to('cuda')": ("memory of the CPU", "device"),
    "x.to(torch.device)": ("is not known", "device"),
    "x.to(torch.float8_e4m3fn)": ("is not known", "dtype outside the list"),
    "torch.ones(2, dtype=torch.complex64).float()": ("take .real or .imag first", "imaginary part dropped"),
    "x[:] = torch.ones(3, dtype=torch.complex64)": ("take .real or .imag first", "imaginary part dropped"),
    "x.sum(0, out=x)": ("takes no `out=`", "output argument"),
    "x.view(*x)": ("not a number", "starred argument"),
    "x.view(*x.chunk(2))": ("not a number", "starred argument"),
    "n = 2 ** 999999999": ("at most 1,000,000,000", "a power of a million digits"),
    "n = (-8) ** 0.5": ("at most 1,000,000,000", "a complex number"),
    "n = 1e300 * 1e300": ("at most 1,000,000,000", "infinity"),
    "n = x.size(0) ** 999999999": ("at most 1,000,000,000", "a power of a million digits"),
    "n = x.size(1)\n" + "n = n * n * n * n\n" * 11: ("at most 1,000,000,000", "growing products"),
    "s = x.shape\n" + "s = s + s\n" * 11: ("more sizes than", "growing sizes"),
    "n = 0\nx.view(6 // n)": ("division", "division by zero"),
    "n = x.size(0) - 2\nx.view(6 % n)": ("modulo by zero", "division by zero"),
    "b, n, d = x.shape": ("expected 3, got 2", "too few sizes"),
    "b, = x.shape": ("expected 1, got 2", "too many sizes"),
    "n = x.size(2)": ("Dimension out of range", "a dimension that is not there, never used"),
    "n = x.shape[2]": ("index out of range", "a dimension that is not there, never used"),
    "n = len(x.sum())": ("0-d tensor", "the length of a number"),
    "n = x.size(0) ** -1\nx.view(n)": ("no whole number", "a fraction where a whole number must be"),
    "n = 3\nn.t()": ("stands for a number", "a number as a tensor"),
    "n = 3\nn[0] = 1": ("stands for a number", "a write into a number"),
    "n = 3\nn += x": ("is a number here", "a number that becomes a tensor"),
    "n = x.shape.__class__": ("is not an operation", "dunder of sizes"),
    "x.size.__self__": ("is not an operation", "dunder of a method"),
    "x.view(x.shape.count(2))": ("not a number", "a method of sizes"),
    "len = x": ("already the name", "function overwritten"),
    "n = len(open('a'))": ("is not an operation", "file"),
    "x[x.size(0) / 2]": ("an index is a whole number", "fraction as an index"),
    "torch.zeros(x.size(0) * 500000)": ("elements", "10⁶ elements"),
    "x.expand(x.numel() * 100000000, 2, 3)": ("elements", "10⁹ elements"),
    "x.sum(**{'dim': 0})": ("no place", "starred keywords"),
    "rearrange(x, 'a b -> b a', **x)": ("takes no `**=`", "starred keywords"),
    "rearrange(x, 'a b -> b a', __class__=2)": ("takes no `__class__=`", "dunder keyword"),
    "lambda: x": ("lambda", "lambda"),
    "(lambda: x)()": ("cannot be called", "lambda"),
    "[x for x in x]": ("comprehension", "comprehension"),
    "[x, x]": ("a list", "list"),
    "{x}": ("no place", "set"),
    "f'{x}'": ("no place", "f-string"),
    "(y := x)": ("is not understood", "assignment expression"),
    "x if x else x": ("if … else", "condition"),
    "x and x": ("and / or", "condition"),
    "x[0or 1]": ("runs into a word", "a number that runs into a word"),
    "x[0xfor 1]": ("runs into a word", "a number that runs into a word"),
    "0 < x < 3": ("(this syntax)", "chained comparison"),
    "x in x": ("(this syntax)", "membership"),
    "not x": ("(this syntax)", "negation"),
    "x ^ x": ("no place", "exclusive or"),
    "x << 99": ("of the operators", "shift"),
    "2 ** 999999": ("has no x in it", "constant folding of a power"),
    "2 * 3": ("has no x in it", "constant folding"),
    "'a' * 1000000000": ("is not understood", "string repetition"),
    "9" * 299: ("a value without x", "huge integer"),
    "x.view(9" + "9" * 200 + ")": ("at most 1,000,000,000", "huge integer"),
    "x * 1e999": ("at most 1,000,000,000", "infinity"),
    "x * 1j": ("is not understood", "complex number"),
    "x[1.5]": ("an index is a whole number", "float index"),
    "x[True]": ("an index is a whole number", "bool index"),
    "x['a']": ("an index is a whole number", "text index"),
    "x[[1.5, x]]": ("an index is a whole number", "list of something else"),
    "x[1:x]": ("an index is a whole number", "slice to a tensor"),
    "x[x.chunk(2)]": ("gives several tensors", "index of several tensors"),
    "y = x.view(6)[:, None, None].expand(6, 100, 100)\nx[y]": ("180,000 elements", "indices times elements"),
    "y = x.repeat(100, 100)\ny[y]": ("18,000,000 elements", "indices times elements"),
    "x[:, [0] * 9]": ("a list", "list repetition"),
    "torch.arange(5000)[:, None] > torch.arange(5000)": ("25,000,000 elements", "a mask of 5,000 × 5,000"),
    "torch.zeros(1000000000)": ("elements", "10⁹ elements"),
    "torch.empty((30000, 30000))": ("elements", "10⁹ elements"),
    "torch.arange(1000000000)": ("elements", "10⁹ elements"),
    "torch.arange(-1, end=1000000000)": ("elements", "10⁹ elements"),
    "torch.arange(0, 1, 0.000000001)": ("elements", "10⁹ steps"),
    "torch.arange(0, 1, step=0.000000001)": ("elements", "10⁹ steps"),
    "torch.zeros(" + "1, " * 100 + "1)": ("dimensions", "rank 101"),
    "torch.diag(torch.arange(5000))": ("25,000,000 elements", "a square of a vector"),
    "torch.diag(torch.arange(2), 1000000)": ("elements", "a far diagonal"),
    "x.tile(1000000000)": ("elements", "10⁹ elements"),
    "x.unbind(1).t()": ("gives several tensors", "a method of several tensors"),
    "torch.arange(60000).unbind(0)": ("60,000 tensors", "60,000 tensors"),
    "torch.arange(60000).split(1)": ("60,000 tensors", "60,000 tensors"),
    "x.tensor_split(1000000000)": ("1,000,000,000 tensors", "10⁹ tensors"),
    "torch.cat([torch.arange(60000), torch.arange(60000)])": ("120,000 elements", "two large halves"),
    "torch.stack([])": ("at least one tensor", "nothing to stack"),
    "F.unfold(torch.ones(1, 1, 200, 200), 100)": ("elements", "patches as columns"),
    "F.unfold(torch.ones(1, 1, 2, 2), 2, padding=1000000000)": ("elements", "padding"),
    "F.conv2d(x, x)": ("is not an operation", "another function"),
    "torch.nn.functional.unfold(x, 2)": ("is not an operation", "a longer path"),
    "einsum(x, x, '" + " ".join(f"a{i}" for i in range(40)) + " -> ')": ("axes per operand", "many axes"),
    "einsum(torch.arange(3000), torch.arange(3000), 'a, b -> a b')": ("9,000,000", "a large outer product"),
    "x.resize_(1000, 1000)": ("refused here by design", "memory never written"),
    "x.set_(x.untyped_storage(), 1, (2, 2), (2, 1))": ("refused here by design", "another storage"),
    "x.numpy()": ("refused here by design", "numpy"),
    "torch.from_numpy(x)": ("refused here by design", "numpy"),
    "x.__setitem__(0, 1)": ("refused here by design", "hidden assignment"),
    "x[" + "None," * 40 + "]": ("new dimensions", "rank"),
    "x.view(" + "1," * 100 + "6)": ("dimensions", "rank 101"),
    "x.reshape(" + "1," * 100 + "6)": ("dimensions", "rank 101"),
    "x.unsqueeze(0)" + ".unsqueeze(0)" * 8: ("dimensions", "rank"),
    "x.expand(1000000000, 2, 3)": ("elements", "10⁹ elements"),
    "x.expand(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.broadcast_to(1000000000, 2, 3)": ("elements", "10⁹ elements"),
    "x.view(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.repeat(1000000000, 1)": ("elements", "10⁹ elements"),
    "x.repeat(40000, 40000)": ("elements", "10⁹ elements"),
    "x[:0].repeat(1, 1000000000)": ("elements", "no element, but a size of 10⁹"),
    "x.sum().broadcast_to(-1, 0)": ("no size can be negative", "torch makes a negative size"),
    "x.as_strided((0, -1), (1, 1))": ("no size can be negative", "torch makes a negative size"),
    "x[:0].repeat_interleave(1000000000)": ("elements", "no element, but many repeats"),
    "x.repeat_interleave(1000000000)": ("elements", "10⁹ elements"),
    "x.repeat_interleave(repeats=1000000000)": ("elements", "10⁹ elements, by keyword"),
    "x[:0].chunk(1000000000)[0]": ("1,000,000,000 tensors", "10⁹ empty tensors"),
    "x.as_strided((1000000000,), (0,))": ("elements", "10⁹ elements"),
    "x.as_strided((65000,), (1000000000,))": ("far outside the storage", "overflow of the address"),
    "x.unfold(0, 2, 1000000000).unfold(0, 1, 1000000000)": ("stride above", "overflow of a stride"),
    "x.expand(10000, 2, 3).mT @ x": ("90,000 elements", "a large batch"),
    "torch.einsum('" + ",".join("abcdefghijklmnopqrstuvwx"[i : i + 2] for i in range(0, 24, 2)) + "->', "
    + ", ".join(["x"] * 12) + ")": ("multiply-adds", "a large iteration space"),
    "torch.einsum('ab,cd,ef,gh,ij', x, x, x, x, x)": ("dimensions", "a large implicit output"),
    "torch.einsum('\N{BULLET}', x)": ("no place", "a strange equation"),
    "torch.einsum(x, [0, 1])": ("no argument of `einsum`", "the sublist form"),
    "repeat(x, 'a b -> a b r', r=1000000000)": ("elements", "10⁹ elements"),
    "repeat(x, 'a b -> a b 999999999')": ("elements", "10⁹ elements"),
    "repeat(x, 'a b -> a b c d e', c=99999, d=99999, e=99999)": ("elements", "10¹⁵ elements"),
    "rearrange(x, '" + " ".join(f"a{i}" for i in range(40)) + " -> x')": ("axes per side", "many axes"),
    "rearrange(x, 'a b -> " + "1 " * 100 + "')": ("axes per side", "many axes"),
    "reduce(x, 'a b -> a', open)": ("not a number", "a callable reduction"),
    "x.view(open)": ("not a number", "a callable argument"),
    "x.add(open)": ("`open` is not known", "a callable argument"),
    "torch.tensor(x)": ("not a number", "a tensor as data"),
    "torch.tensor([[1], x])": ("not a number", "a tensor inside data"),
    "x.add_(1, 2)": ("take one number or tensor", "an old form that only warns"),
    "rearrange([x, x], 'l a b -> l a b')": ("a list", "a list of tensors"),
    "torch.full((1000, 1000), 7)": ("1,000,000 elements", "10⁶ elements"),
    "x.new_full((1000, 1000), 7)": ("1,000,000 elements", "10⁶ elements"),
    "torch.randn(1000, 1000)": ("1,000,000 elements", "10⁶ elements"),
    "torch.randint(5, (1000, 1000))": ("1,000,000 elements", "10⁶ elements"),
    "torch.randperm(1000000000)": ("1,000,000,000 elements", "10⁹ elements"),
    "torch.eye(1000000)": ("1,000,000,000,000 elements", "10¹² elements"),
    "torch.linspace(0, 1, 1000000000)": ("1,000,000,000 elements", "10⁹ elements"),
    "torch.tril_indices(100000, 100000)": ("elements", "10¹⁰ elements"),
    "torch.empty_strided((1, 3), (1, 1000000000))": ("2,000,000,001 elements", "a storage with gaps"),
    "torch.arange(60000).diag_embed()": ("3,600,000,000 elements", "a square of a vector"),
    "torch.arange(2).diag_embed(1000000)": ("elements", "a far diagonal"),
    "torch.outer(torch.arange(5000), torch.arange(5000))": ("25,000,000 elements", "a large outer product"),
    "torch.kron(torch.ones(300, 1), torch.ones(1, 300))": ("90,000 elements", "a large product"),
    "torch.meshgrid(torch.arange(5000), torch.arange(5000))": ("25,000,000 elements", "a large grid"),
    "torch.cartesian_prod(torch.arange(5000), torch.arange(5000))": ("50,000,000 elements", "all pairs"),
    "torch.block_diag(torch.ones(300, 1), torch.ones(1, 300))": ("90,601 elements", "blocks far apart"),
    "torch.hstack([torch.arange(60000), torch.arange(60000)])": ("120,000 elements", "two large halves"),
    "torch.tensordot(torch.ones(5000), torch.ones(5000), 0)": ("25,000,000 elements", "a large outer product"),
    "torch.ones(300).addr(torch.ones(300), torch.ones(300))": ("90,000 elements", "a large outer product"),
    "F.pad(x, (1000000000, 0))": ("elements", "10⁹ elements"),
    "F.one_hot(torch.tensor([1000000000]))": ("1,000,000,001 elements", "one large number"),
    "F.one_hot(x, 1000000000)": ("elements", "10⁹ classes"),
    "torch.bincount(torch.tensor([1000000000]))": ("1,000,000,001 elements", "one large number"),
    "x.flatten().bincount(minlength=1000000000)": ("1,000,000,000 elements", "10⁹ counts"),
    "x.repeat_interleave(torch.tensor([1000000000, 1]), 0)": ("elements", "a large sum of repeats"),
    "x.tensor_split(torch.tensor(1000000000))": ("1,000,000,000 tensors", "10⁹ pieces"),
    "F.embedding(torch.zeros(60000).long(), torch.ones(2, 100))": ("6,000,000 elements", "a row for every index"),
    "F.linear(torch.ones(300, 1), torch.ones(300, 1))": ("90,000 elements", "a large product"),
    "y = torch.ones(256, 256)\nF.linear(y, y)": ("multiply-adds", "a large product"),
    "y = torch.ones(300, 1)\nF.scaled_dot_product_attention(y, y, y)": ("90,000 elements", "large scores"),
    "torch.ones(200, 200).nonzero()": ("80,000 elements", "an index per dimension of every element"),
    "x.diff(1000000000)": ("at most 64 times", "10⁹ rounds"),
    "F.relu(x, inplace=True)": ("x.relu_()", "written in place without saying so"),
    "torch.where(x > 2)": ("nonzero()", "several tensors of unknown number"),
    "x.softmax()": ("Which dimension", "a dimension that torch guesses"),
}  # fmt: skip


HOSTILE_CASES = [pytest.param(text, words, id=f"{i}-{why}") for i, (text, (words, why)) in enumerate(HOSTILE.items())]


@pytest.mark.parametrize(("text", "words"), HOSTILE_CASES)
def test_hostile_expressions_are_refused_at_once(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert words in str(problem.value)
    assert len(str(problem.value)) < 900  # a message never echoes a long input


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x.as_strided((30,), (1,))", "out of bounds for storage of size 48"),
        ("x.as_strided((3, 3), (1000000000, 1000000000))", "out of bounds for storage of size 48"),
        ("x.as_strided((2,), (1,), 1000000000)", "out of bounds for storage of size 48"),
        ("x.as_strided((2,), (-1,), 5)", "Negative strides are not supported"),
        ("x.view(1000000000)", "is invalid for input of size 6"),
        ("x[1000000000]", "is out of bounds"),
        ("x.unfold(0, 1000000000, 1)", "maximum size for tensor"),
        ("x.split(-1)[0]", "non-negative"),
    ],
)
def test_torch_itself_refuses_what_it_can(text: str, error: str) -> None:
    last = trace(text, (2, 3)).last
    assert last.kind == "refused"
    assert error in last.error_message


def test_bad_input_leaves_memory_flat() -> None:
    """In a fresh process, so that no earlier test hides a peak: all of it together stays under 4 MB."""
    script = """
        import resource
        from core.tensors import ExpressionError
        from core.tensors import trace
        from tests.core.test_tensors_reader import HOSTILE, UNREADABLE

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def run(text, shape=(2, 3)):
            try:
                trace(text, shape)
            except ExpressionError:
                pass

        for text in ("x @ x.t()", "repeat(x, 'a b -> a b r', r=2)", "einsum(x, x, 'a b, a b ->')", "x.chunk(2)[0]"):
            run(text)
        before = peak()
        for text in (*HOSTILE, *UNREADABLE):
            run(text)
        for shape in ((10**9,), (10**9,) * 3, (1,) * 100, (-1,)):
            run("x", shape)
        print(peak() - before)
    """
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
        timeout=120,
    )
    assert int(run.stdout) < 4 * 1024  # KiB


MANY = 100_000
UNREADABLE = ("x" * MANY, "(" * MANY, "x.t()\n" * MANY, "é" * MANY, "x" + "[0]" * MANY, "-" * MANY + "x")
"""10⁵ characters of each kind."""


@pytest.mark.parametrize("text", UNREADABLE, ids=["name", "brackets", "lines", "letters", "indices", "signs"])
def test_a_hundred_thousand_characters_are_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError, match="characters long"):
        trace(text, (2, 3))


def test_nothing_runs_before_everything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the last line means that not even the first one ran."""

    def never() -> None:
        raise AssertionError("torch was asked for")

    monkeypatch.setattr(sys.modules["core.tensors.running.trace"], "load_torch", never)
    with pytest.raises(ExpressionError, match="is not an operation"):
        trace("x.add_(1)\nx.__class__", (2, 3))


@pytest.mark.parametrize(
    "text", ["x.veiw(6)", "x.transpos(0, 1)", "x.contigous()", "torch.einsm('ij->ji', x)", "rearange(x, 'a b -> b a')"]
)
def test_a_misspelt_operation_suggests_the_nearest(text: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        read_expression(text)
    right = {
        "veiw": "view",
        "transpos": "transpose",
        "contigous": "contiguous",
        "einsm": "einsum",
        "rearange": "rearrange",
    }
    wanted = next(name for wrong, name in right.items() if wrong in text)
    assert f"Did you mean `{wanted}`?" in str(problem.value)
    assert len(str(problem.value)) < 160


def test_an_operation_like_no_other_is_answered_by_examples_that_run() -> None:
    with pytest.raises(ExpressionError) as problem:
        read_expression("x.qqq()")
    examples = re.findall(r"`([^`]+)`", str(problem.value))[1:]
    assert len(examples) == len(catalogue())
    for example in examples:
        assert trace(example, (2, 3)).last.kind != "refused"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x.view", "`.view` needs brackets, for example x.view(3, 2)"),
        ("x.T()", "`.T(…)` is not written that way here. Try x.T"),
        ("x.rearrange('a b -> b a')", "Try rearrange(x, 'a b -> b a')"),
        ("torch.contiguous(x)", "Try x.contiguous()"),
        ("x.chunk(2).t()", "pick one, for example x.chunk(2)[0]"),
        ("x.chunk(2)[0:1]", "Pick one of the tensors with a whole number"),
        ("w.t()", "`w` is not known; x is"),
        ("y = x.t()\nw.t()", "`w` is not known; x, y are"),
        ("parts = x.chunk(2)\nparts.t()", "pick one, for example parts[0]"),
        ("torch.float32", "is not a tensor"),
        ("torch.sum()", "needs a tensor first"),
        ("x.view('a')", "which takes whole numbers or a dtype"),
        ("x.sum('a')", "which takes whole numbers, True or False, None or a dtype"),
        ("x.t('a')", "which takes nothing"),
        ("x.to('cuda:0')", "in the memory of the CPU"),
        ("x.to(torch.float16, 'cuda')", "For example: x.to(torch.float32)"),
        ("torch.zeros(3, device='cuda')", "`device=`: every tensor here lies in the memory of the CPU"),
        ("x.to(torch.device('cuda'))", "in the memory of the CPU"),
        ("x.type(torch.float16)", "write x.to(torch.float16)"),
        ("for i in range(2):\n    x = x + 1", "no loop, branch or function"),
        ("y = x.t()\nwith torch.no_grad():\n    y[0] = 1", "`with torch.no_grad():`"),
        ("for i in range(2): x[0] = 1", "`for i in range(2): x[0] = 1`"),
        ("def f(x):\n    return x.t()", "`def f(x):`"),
        ("x @ 2", "@ multiplies two tensors"),
        ("torch.einsum('ij->ji')", "einsum needs at least one tensor"),
        ("torch.einsum(x)", "einsum takes an equation of letters first"),
        ("rearrange(x)", "takes the tensor, then a pattern"),
    ],
)
def test_messages_help(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert words in str(problem.value)


def test_the_text_of_each_step() -> None:
    plan = read_expression(" (x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :] @ torch.sum(x.t(), 1) ")
    assert [step.source for step in plan.steps] == [
        "+ 1",
        ".t ( )",
        ".chunk(2, dim=1)[0]",
        "[ 0, :]",
        ".t()",
        "torch.sum(x.t(), 1)",
        "@ torch.sum(x.t(), 1)",
    ]
    assert plan.steps[3].expression == "(x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :]"
    assert [step.inputs for step in plan.steps] == [(0,), (1,), (2,), (3,), (0,), (5,), (4, 6)]
    assert [step.line for step in plan.steps] == [1] * 7


def test_lines_names_and_white_space() -> None:
    plan = read_expression("  y = x.t()  \n\n   a, b = y.chunk(2,\n   dim=0)\n b[x > 1] += 1 ")
    assert plan.text == "y = x.t()\n\na, b = y.chunk(2,\ndim=0)\nb[x > 1] += 1"
    assert [(step.line, step.name, step.source) for step in plan.steps] == [
        (1, "y", ".t()"),
        (3, "", ".chunk(2, dim=0)"),
        (3, "a", "a"),
        (3, "b", "b"),
        (5, "", "> 1"),
        (5, "", "[x > 1] += 1"),
    ]
    assert plan.names == {"x": 0, "y": 1, "a": 3, "b": 4}
    assert plan.steps[-1].inputs == (4, 5)


def test_broken_lines_are_shown_as_one() -> None:
    plan = read_expression("(x\n   .permute(1,0)  # swapped\n  .view(\n  2,\n  3 )[\n 0\n])")
    assert [step.source for step in plan.steps] == [".permute(1,0)", ".view(2, 3 )", "[0]"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *((f"x.{name}", "are shown") for name in ("shape", "stride()", "size()", "numel()", "dim()", "ndim")),
        *((f"x.{name}", "are shown") for name in ("is_contiguous()", "storage_offset()", "dtype", "stride")),
        *((text, "are drawn") for text in ("print(x)", "x.tolist()", "x[0, 0].item()")),
        *((text, "letter of their storage") for text in ("x.data_ptr()", "id(x)", "x._base")),
        *((text, "memory of the CPU") for text in ("x.cuda()", "x.cpu()", "x.device")),
        *((text, "counts 0, 1, 2") for text in ("torch.normal(0, 1, (2, 3))", "y = x.bernoulli_()")),
    ],
)
def test_questions_are_answered_where_the_page_answers_them(text: str, answer: str) -> None:
    with pytest.raises(ExpressionError, match=r"leave it away|is not run here") as problem:
        read_expression(text)
    assert answer in str(problem.value)
    assert "Did you mean" not in str(problem.value)


def test_brackets_of_every_kind() -> None:
    lists = ("[[1, 0]]", "[[0, 1], [1, 1]]", "[ [ [0], [1] ] ]", "[(0, 1)]")
    for brackets in (*lists, "[x > 2]", "[..., torch.tensor([0])]"):
        assert read_expression(f"(x){brackets}").steps[-1].source == brackets


def test_reasons_for_what_is_left_out() -> None:
    for name, reason in REFUSED.items():
        with pytest.raises(ExpressionError) as problem:
            read_expression(f"x.{name}(1)")
        assert str(problem.value) == f"`{name}` is refused here by design: {reason}."
        assert hasattr(torch.Tensor, name) or hasattr(torch, name)


def test_every_operation_of_the_catalogue_runs() -> None:
    """Each example shown on the page works on the page's start shape, and does to memory what its group says."""
    for group, examples in catalogue().items():
        for text in examples:
            last = trace(text, (2, 3)).last
            assert last.kind != "refused", (text, last.error_message)
            kinds: dict[str, str] = {
                "Always a view": "view",
                **dict.fromkeys(("A new tensor", "Small tensors"), "copy"),
                **dict.fromkeys(("Picked into a new tensor", "Computed into a new tensor"), "copy"),
                "Written in place": "write",
                "Laid out anew in place": "same",
            }
            assert last.kind == kinds.get(group, last.kind), text


def test_every_operation_exists_in_torch_or_einops() -> None:
    import einops

    owners = {"method": torch.Tensor, "property": torch.Tensor, "torch": torch, "bare": einops}
    owners["F"] = torch.nn.functional
    for (form, name), row in OPERATIONS.items():
        assert hasattr(owners[form], name), (form, name)
        assert row.name == name


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        *((text, (2, 3)) for text in ("2, 3", "(2, 3)", "[2,3]", "2 × 3", "2x3", "2 3", " 2 ,3, ")),
        *(("5", (5,)), ("5,", (5,)), ("()", ()), ("0, 3", (0, 3)), ("64,64", (64, 64))),
    ],
)
def test_shapes_as_people_type_them(text: str, shape: tuple[int, ...]) -> None:
    assert read_shape(text) == shape


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Empty"),
        ("-1", "not a shape"),
        ("2.5", "not a shape"),
        ("2;3", "not a shape"),
        ("(2", "not a shape"),
        ("٣", "not a shape"),
        ("9" * 65, "too long"),
        ("1000000000", "1,000,000,000 elements"),
        ("0, 1000000000", "1,000,000,000 elements"),
        ("257, 256", "65,792 elements"),
        ("1, " * 9, "9 dimensions"),
    ],
)
def test_bad_shapes_say_why(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        read_shape(text)
    assert words in str(problem.value)
