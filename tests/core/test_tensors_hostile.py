"""Nothing hostile gets past the expression reader or costs anything."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from core.tensors.operations.table import ROWS
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from tests.core.peak import grown_mb
from tests.every import every

HOSTILE: dict[str, tuple[str, str]] = {
    # text → words the message must contain, and what is dangerous about it
    "x" * 100_000: ("12,000 characters", "length"),
    "(" * 250: ("brackets inside one another", "depth"),
    "[" * 120 + "]" * 120: ("brackets inside one another", "depth"),
    "-" * 299 + "x": ("syntax nodes", "depth of unary operators"),
    "x" + "+x" * 140: ("syntax nodes", "nodes"),
    ("x" + ".t()" * 41 + "\n") * 6: ("More than 240 operations", "steps"),
    "x\n" * 160 + "x": ("161 lines", "lines"),
    ";".join("x" * 161): ("161 lines", "statements on one line"),
    "y" * 33 + " = x": ("cannot be a name", "long name"),
    "# " + "x" * 25_000: ("12,000 characters", "a long comment"),
    "x" + ".t()" * 120: ("syntax nodes inside one another", "depth of a chain"),
    "\n" * 1_000: ("Empty", "empty lines"),
    "": ("Empty", "nothing"),
    "x.view(": ("not a complete expression", "syntax"),
    "x.T = x": ("names a tensor, y = x.t(), or writes", "assignment to an attribute"),
    "x.data = x": ("names a tensor, y = x.t(), or writes", "assignment to an attribute"),
    "y = torch.where(x)\ny.grad = None": ("gives several tensors", "the gradient of several tensors"),
    "x.T += 1": ("only a name or square brackets", "update of an attribute"),
    "torch = x": ("already the name", "module overwritten"),
    "rearrange = x": ("already the name", "operation overwritten"),
    "__builtins__ = x": ("cannot be a name", "dunder name"),
    "y__x = x.t()": ("cannot be a name", "dunder inside a name"),
    "del y": ("is not known", "statement"),
    "x[0]: int = 3": ("only a name takes an annotation", "annotation"),
    "for i in range(1, 2, 0): x": ("must not be zero", "steps of 0"),
    "for i in range(1000000000): x = x.t()": ("A range has at most", "a billion rounds"),
    "for i in range(2):\n    x\nelse:\n    x": ("no `else`", "else of a loop"),
    "torch.tensor(range(1000000000))": ("A range has at most", "a range of a billion numbers"),
    "x.permute(range(1, -1, -1))": ("is no argument of `permute`", "a range as sizes"),
    "while x: x": ("is not run here", "loop"),
    "with x: x": ("of `with`, only torch.no_grad", "context manager"),
    "with open('a') as f: x": ("of `with`, only torch.no_grad", "context manager"),
    "def f(x): return f(x)": ("12 deep", "recursion"),
    "def f(y): return y\nw = f(x, x)": ("too many positional arguments", "an argument too many"),
    "def f(y, z): return y\nw = f(x)": ("missing a required argument: 'z'", "an argument too few"),
    "return x\nx.t()": ("stands after `return`", "lines after the result"),
    "@open\ndef f(x): x": ("is not understood", "decorator"),
    "[" * 8 + "x" + "".join(f" for {c} in (1, 2, 3, 4, 5, 6, 7, 8)]" for c in "abcdefgh"): ("20,000", "8⁸ items"),
    "y = nn.Conv2d(3, 4, 5)": ("x @ w, with w =", "layer without a function here"),
    "n = round(x.size(0), -1000000000)": ("at most 20 digits", "a power of a million digits"),
    "n = int(math.inf)": ("infinity", "infinity as a whole number"),
    "n = math.sqrt(-1)": ("`math.sqrt(-1)`", "no real number"),
    "x.view(1e30)": ("no argument of `view`", "a fraction as a size"),
    "n = torch.finfo(x.dtype).max": ("floating point", "float facts of whole numbers"),
    "torch.zeros(1000000000, 1000000000)": ("elements", "10¹⁸ elements"),
    "torch.arange(1e17)": ("elements", "10¹⁷ elements"),
    "class A: x": ("holds functions and plain values", "class"),
    "global x": ("is not run here", "scope"),
    "class A:\n    def f(self): return self.f()\nA().f()": ("12 deep", "recursion of a method"),
    "class A:\n    pass\nA().__class__": ("has no", "dunder of an object"),
    "class A:\n    pass\nA.__bases__": ("stands for no tensor", "dunder of a class"),
    "class A(int):\n    pass\nA(2)": ("takes nothing", "a class of Python"),
    "class A(metaclass=x):\n    pass": ("a class builds on", "a metaclass"),
    "def f(y): return y\nf.__globals__": ("is not an operation", "dunder of a function"),
    "a = []\na.append(a)\nprint(a)": ("nested too deeply", "a list inside itself"),
    "a = [0]\nfor i in range(200):\n    a = a + a": ("more than 256 items", "a list that grows"),
    "d = {x: 1}\nd[[1]]": ("no key", "a list as a key"),
    "n = 1 << 999999999": ("at most 1,000,000,000", "a shift of a million digits"),
    "[a for a in range(200) for b in range(200)]": ("240 items", "rounds of rounds"),
    "f'{x:>999999999}'": ("no format", "a wide format"),
    "'a'.join(['b' * 200] * 200) + x": ("no tensor", "a long text"),
    "sum(range(10 ** 9))": ("A range has at most", "a range of a billion numbers"),
    "f = lambda: f()\nf()": ("12 deep", "a lambda that calls itself"),
    "np.memmap('/etc/passwd')": ("opens a file", "a file"),
    "sys.exit()": ("is not an operation", "leaving"),
    "torch.save(x, open('a', 'w'))": ("is not an operation", "a file"),
    "raise x": ("nothing is raised here", "statement"),
    "from os import path": ("only torch, einops", "import"),
    "from torch import load": ("only torch, einops", "import"),
    "from torch import *": ("only torch, einops", "import"),
    "from . import torch": ("only torch, einops", "import"),
    "import torch\nimport os": ("only torch, einops", "import after a good one"),
    "y = yield x": ("(this syntax)", "generator"),
    "await x": ("await", "await"),
    "async def f(): x": ("is not run here", "function"),
    "import os": ("only torch, einops", "import"),
    "# x": ("Empty", "nothing but a comment"),
    "x # \x00": ("no place", "a character that is none"),
    "x # \udcff": ("no place", "a character that is none"),
    "x.view('# )": ("not a complete expression", "a string that is not closed"),
    "x.v\u0456ew(6)": ("no place", "a Cyrillic letter"),
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
    "x.storage()": ("no tensor", "storage"),
    "x.share_memory_()": ("is not an operation", "shared memory"),
    "x.to(torch.device)": ("is not a number", "device"),
    "torch.ones(2, dtype=torch.complex64).float()": ("take .real or .imag first", "imaginary part dropped"),
    "torch.ones(2, dtype=torch.complex64).type_as(x)": ("take .real or .imag first", "imaginary part dropped"),
    "x[:] = torch.ones(3, dtype=torch.complex64)": ("take .real or .imag first", "imaginary part dropped"),
    "x.sum(0, out=x)": ("takes no `out=`", "output argument"),
    "x.view(*x)": ("no argument of `view`", "starred argument"),
    "x.view(*x.chunk(2))": ("no argument of `view`", "starred argument"),
    "n = 2 ** 999999999": ("at most 1,000,000,000", "a power of a million digits"),
    "n = (-8) ** 0.5": ("at most 1,000,000,000", "a complex number"),
    "n = x.size(0) ** 999999999": ("at most 1,000,000,000", "a power of a million digits"),
    "n = x.size(1)\n" + "n = n * n * n * n\n" * 11: ("at most 1,000,000,000", "growing products"),
    "s = x.shape\n" + "s = s + s\n" * 11: ("more than 256 items", "growing sizes"),
    "n = 0\nx.view(6 // n)": ("division", "division by zero"),
    "n = x.size(0) - 2\nx.view(6 % n)": ("modulo by zero", "division by zero"),
    "b, n, d = x.shape": ("expected 3, got 2", "too few sizes"),
    "b, = x.shape": ("too many values to unpack (expected 1)", "too many sizes"),
    "n = x.size(2)": ("Dimension out of range", "a dimension that is not there, never used"),
    "n = x.shape[2]": ("index out of range", "a dimension that is not there, never used"),
    "n = len(x.sum())": ("0-d tensor", "the length of a number"),
    "n = x.size(0) ** -1\nx.view(n)": ("no argument of `view`", "a fraction where a whole number must be"),
    "n = 3\nn.t()": ("stands for a number", "a number as a tensor"),
    "n = 3\nn[0] = 1": ("stands for a number", "a write into a number"),
    "n = x.shape.__class__": ("is not an operation", "dunder of sizes"),
    "x.size.__self__": ("needs round brackets", "dunder of a method"),
    "len = x": ("already the name", "function overwritten"),
    "n = len(open('a'))": ("is not an operation", "file"),
    "x[x.size(0) / 2]": ("an index is a whole number", "fraction as an index"),
    "rearrange(x, 'a b -> b a', **x)": ("opens a dictionary", "starred keywords"),
    "rearrange(x, 'a b -> b a', __class__=2)": ("takes no `__class__=`", "dunder keyword"),
    "{x}": ("is not understood", "set"),
    "(y := x)": ("is not understood", "assignment expression"),
    "x if x else x": ("ambiguous", "condition"),
    "x and x": ("ambiguous", "condition"),
    "x[0or 1]": ("runs into a word", "a number that runs into a word"),
    "x[0xfor 1]": ("runs into a word", "a number that runs into a word"),
    "0 < x < 3": ("ambiguous", "chained comparison"),
    "x in x": ("looks into a text", "membership"),
    "not x": ("ambiguous", "negation"),
    "2 ** 999999": ("at most 1,000,000,000", "constant folding of a power"),
    "'a' * 1000000000": ("more than 256 items", "string repetition"),
    "9" * 299: ("at most 1,000,000,000", "huge integer"),
    "x.view(9" + "9" * 200 + ")": ("at most 1,000,000,000", "huge integer"),
    "x * 1j": ("is not understood", "complex number"),
    "x[1.5]": ("an index is a whole number", "float index"),
    "x[True]": ("an index is a whole number", "bool index"),
    "x['a']": ("an index is a whole number", "text index"),
    "x[[1.5, x]]": ("an index is a whole number", "list of something else"),
    "x[1:x]": ("an index is a whole number", "slice to a tensor"),
    "x[x.chunk(2)]": ("gives several tensors", "index of several tensors"),
    "torch.zeros(" + "1, " * 100 + "1)": ("dimensions", "rank 101"),
    "x.unbind(1).t()": ("gives several tensors", "a method of several tensors"),
    "torch.arange(60000).unbind(0)": ("60,000 tensors", "60,000 tensors"),
    "torch.arange(60000).split(1)": ("60,000 tensors", "60,000 tensors"),
    "x.tensor_split(1000000000)": ("1,000,000,000 tensors", "10⁹ tensors"),
    "(x, x).numel()": ("is not an operation here", "sizes that are tensors"),
    "torch.stack([])": ("at least one tensor", "nothing to stack"),
    "F.conv2d(x, x)": ("is not an operation", "another function"),
    "x.resize_(1000, 1000)": ("refused here by design", "memory never written"),
    "x.set_(x.untyped_storage(), 1, (2, 2), (2, 1))": ("refused here by design", "another storage"),
    "x.numpy()": ("refused here by design", "numpy"),
    "torch.from_numpy(x)": ("refused here by design", "numpy"),
    "x.__setitem__(0, 1)": ("refused here by design", "hidden assignment"),
    "x[" + "None," * 40 + "]": ("new dimensions", "rank"),
    "x.view(" + "1," * 100 + "6)": ("dimensions", "rank 101"),
    "x.reshape(" + "1," * 100 + "6)": ("dimensions", "rank 101"),
    "x.unsqueeze(0)" + ".unsqueeze(0)" * 8: ("dimensions", "rank"),
    "x.expand(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.view(" + "1000000000," * 7 + "6)": ("elements", "overflow of the element count"),
    "x.sum().broadcast_to(-1, 0)": ("no size can be negative", "torch makes a negative size"),
    "x.as_strided((0, -1), (1, 1))": ("no size can be negative", "torch makes a negative size"),
    "x[:0].chunk(1000000000)[0]": ("1,000,000,000 tensors", "10⁹ empty tensors"),
    "x.as_strided((65000,), (1000000000,))": ("far outside the storage", "overflow of the address"),
    "x.unfold(0, 2, 1000000000).unfold(0, 1, 1000000000)": ("stride above", "overflow of a stride"),
    "torch.einsum('ab,cd,ef,gh,ij', x, x, x, x, x)": ("dimensions", "a large implicit output"),
    "torch.einsum(x, [0, 1])": ("no argument of `einsum`", "the sublist form"),
    "repeat(x, 'a b -> a b c d e', c=99999, d=99999, e=99999)": ("elements", "10¹⁵ elements"),
    "reduce(x, 'a b -> a', open)": ("`open` is not known", "a callable reduction"),
    "x.view(open)": ("`open` is not known", "a callable argument"),
    "x.add(open)": ("`open` is not known", "a callable argument"),
    "torch.tensor(x)": ("no argument of `tensor`", "a tensor as data"),
    "torch.tensor([[1], x])": ("no argument of `tensor`", "a tensor inside data"),
    "torch.polar(x.float(), x.float(), x)": ("takes angle", "an output among the arguments"),
    "torch.tensordot(x, x, 1, x)": ("takes other and dims", "an output among the arguments"),
    "F.one_hot(torch.tensor([1000000000]))": ("hangs on values", "one large number"),
    "F.one_hot(x, 1000000000)": ("hangs on values", "10⁹ classes"),
    "torch.bincount(torch.tensor([1000000000]))": ("hangs on values", "one large number"),
    "x.flatten().bincount(minlength=1000000000)": ("hangs on values", "10⁹ counts"),
    "x.repeat_interleave(torch.tensor([1000000000, 1]), 0)": ("hangs on values", "a large sum of repeats"),
    "x.tensor_split(torch.tensor(1000000000))": ("1,000,000,000 tensors", "10⁹ pieces"),
    "torch.ones(200, 200).nonzero()": ("depends on values", "an index per dimension of every element"),
    "x.diff(1000000000)": ("at most 64 times", "10⁹ rounds"),
    "F.relu(x, inplace=True)": ("x.relu_()", "written in place without saying so"),
    "x.softmax()": ("Which dimension", "a dimension that torch guesses"),
}  # fmt: skip


HOSTILE_CASES = [pytest.param(text, words, id=f"{i}-{why}") for i, (text, (words, why)) in enumerate(HOSTILE.items())]


@every(("text", "words"), HOSTILE_CASES)
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


MANY = 100_000
UNREADABLE = ("x" * MANY, "(" * MANY, "x.t()\n" * MANY, "é" * MANY, "x" + "[0]" * MANY, "-" * MANY + "x")
"""10⁵ characters of each kind."""


@pytest.mark.parametrize("text", UNREADABLE, ids=["name", "brackets", "lines", "letters", "indices", "signs"])
def test_a_hundred_thousand_characters_are_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError, match="12,000 characters"):
        trace(text, (2, 3))


def test_a_single_number_is_a_tensor_for_every_operation() -> None:
    """And so is one without elements: a trace or a message, whatever an operation does with them."""
    made = re.compile(r"torch\.(randn|rand|ones|zeros|arange)\([^()]*\)")
    for text in {text for row in ROWS if row.example for text in (row.example, made.sub("x", row.example))}:
        for shape in ((), (0,), (1, 0)):
            with suppress(ExpressionError):
                trace(text, shape, dtype="float32")
