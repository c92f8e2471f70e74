"""The expression reader: what it understands, and that nothing hostile gets past it or costs anything."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.limits import limit
from core.tensors import ExpressionError, Trace, catalogue, read_expression, read_shape, trace
from core.tensors.operations import OPERATIONS

HOSTILE: dict[str, tuple[str, str]] = {
    # text → words the message must contain, and what is dangerous about it
    "x" * 100_000: ("characters long", "length"),
    "(" * 250: ("brackets inside one another", "depth"),
    "[" * 120 + "]" * 120: ("brackets inside one another", "depth"),
    "-" * 299 + "x": ("syntax nodes", "depth of unary operators"),
    "x" + "+x" * 140: ("syntax nodes", "nodes"),
    "x" + ".t()" * 40: ("More than 24 operations", "steps"),
    "": ("Empty", "nothing"),
    "x.view(": ("not a complete expression", "syntax"),
    "x = 3": ("through brackets", "assignment to a name"),
    "x[0] = x": ("Only a number", "assignment of a tensor"),
    "x[0] += 1": ("Write the assignment out", "augmented assignment"),
    "import os": ("no other statement", "statement"),
    "x; x": ("no place", "two statements"),
    "x\nx": ("no place", "two lines"),
    "x # comment": ("no place", "comment"),
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
    "x.data_ptr()": ("is not an operation", "address"),
    "x.storage()": ("is not an operation", "storage"),
    "x.share_memory_()": ("is not an operation", "shared memory"),
    "x.to('cuda')": ("not an argument", "device"),
    "x.to(torch.device)": ("is not known", "device"),
    "x.to(torch.complex64)": ("is not known", "dtype outside the list"),
    "x.sum(0, out=x)": ("takes no `out=`", "output argument"),
    "x.view(*[6])": ("not a number", "starred argument"),
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
    "x < 3": ("no place", "comparison"),
    "x > 3": ("a comparison", "comparison"),
    "x ** 99": ("of the operators", "power"),
    "x // 2": ("of the operators", "floor division"),
    "2 * 3": ("has no x in it", "constant folding"),
    "'a' * 1000000000": ("is not understood", "string repetition"),
    "9" * 299: ("a value without x", "huge integer"),
    "x.view(9" + "9" * 200 + ")": ("at most 1,000,000,000", "huge integer"),
    "x * 1e999": ("at most 1,000,000,000", "infinity"),
    "x * 1j": ("is not understood", "complex number"),
    "x[1.5]": ("an index is a whole number", "float index"),
    "x[True]": ("an index is a whole number", "bool index"),
    "x[[0, 1]]": ("lists and masks", "list index"),
    "x[x > 1]": ("lists and masks", "mask"),
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
    "x[:0].t().chunk(1000000000, 1)[0]": ("tensors", "10⁹ empty tensors"),
    "x.chunk(1000000000)[0]": ("tensors", "10⁹ tensors"),
    "x.as_strided((1000000000,), (0,))": ("elements", "10⁹ elements"),
    "x.as_strided((4000,), (1000000000,))": ("far outside the storage", "overflow of the address"),
    "x.unfold(0, 2, 1000000000).unfold(0, 1, 1000000000)": ("stride above", "overflow of a stride"),
    "x.expand(2, 2, 3) @ x.t().expand(1000, 3, 2)": ("elements", "a large batch"),
    "torch.einsum('" + ",".join("abcdefghijklmnopqrstuvwx"[i : i + 2] for i in range(0, 24, 2)) + "->', "
    + ", ".join(["x"] * 12) + ")": ("multiply-adds", "a large iteration space"),
    "torch.einsum('ab,cd,ef,gh,ij', x, x, x, x, x)": ("dimensions", "a large implicit output"),
    "torch.einsum('\N{BULLET}', x)": ("no place", "a strange equation"),
    "torch.einsum(x, [0, 1])": ("not a number", "the sublist form"),
    "repeat(x, 'a b -> a b r', r=1000000000)": ("elements", "10⁹ elements"),
    "repeat(x, 'a b -> a b 999999999')": ("elements", "10⁹ elements"),
    "repeat(x, 'a b -> a b c d e', c=99999, d=99999, e=99999)": ("elements", "10¹⁵ elements"),
    "rearrange(x, '" + " ".join(f"a{i}" for i in range(40)) + " -> x')": ("axes per side", "many axes"),
    "rearrange(x, 'a b -> " + "1 " * 100 + "')": ("axes per side", "many axes"),
    "reduce(x, 'a b -> a', open)": ("not a number", "a callable reduction"),
    "rearrange([x, x], 'l a b -> l a b')": ("a list", "a list of tensors"),
}  # fmt: skip


HOSTILE_CASES = [pytest.param(text, words, id=f"{i}-{why}") for i, (text, (words, why)) in enumerate(HOSTILE.items())]


@pytest.mark.parametrize(("text", "words"), HOSTILE_CASES)
def test_hostile_expressions_are_refused_at_once(text: str, words: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert time.perf_counter() - start < 1
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


def test_hostile_expressions_leave_memory_flat() -> None:
    """In a fresh process, so that no earlier test hides a peak: all of them together stay under 8 MB."""
    script = """
        import resource
        from core.tensors import ExpressionError, trace
        from tests.core.test_tensors_reader import HOSTILE

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        for text in ("x.t() @ x.t().t()", "repeat(x, 'a b -> a b r', r=2)", "torch.einsum('ij->', x)", "x.chunk(2)[0]"):
            trace(text, (64, 64) if "@" in text else (2, 3))
        before = peak()
        for text in HOSTILE:
            try:
                trace(text, (2, 3))
            except ExpressionError:
                pass
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
    assert int(run.stdout) < 8 * 1024  # KiB


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
    assert all(row.name in str(problem.value) for row in OPERATIONS.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x.view", "`.view` needs brackets, for example x.view(3, 2)"),
        ("x.T()", "`.T(…)` is not written that way here. Try x.T"),
        ("x.rearrange('a b -> b a')", "Try rearrange(x, 'a b -> b a')"),
        ("torch.contiguous(x)", "Try x.contiguous()"),
        ("x.chunk(2)", "pick one, for example x.chunk(2)[0]"),
        ("x.chunk(2)[0:1]", "Pick one of the tensors with a whole number"),
        ("y.t()", "`y` is not known; only x is"),
        ("torch.float32", "is not a tensor"),
        ("torch.sum()", "needs a tensor first"),
        ("x.view('a')", "is not an argument view takes"),
        ("x @ 2", "@ multiplies two tensors"),
        ("x.matmul()", "matmul takes two tensors"),
        ("torch.einsum('ij->ji')", "einsum needs at least one tensor"),
        ("torch.einsum(x)", "not a number, a tuple of numbers"),
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


def test_every_operation_of_the_catalogue_runs() -> None:
    """Each example shown on the page works on the page's start shape, and does to memory what its group says."""
    for group, examples in catalogue().items():
        for text in examples:
            last = trace(text, (2, 3)).last
            assert last.kind != "refused", (text, last.error_message)
            if group == "Always a view":
                assert last.storage == 0, text
            if group == "A new tensor":
                assert last.storage != 0, text


def test_every_operation_exists_in_torch_or_einops() -> None:
    import einops

    owners = {"method": torch.Tensor, "property": torch.Tensor, "torch": torch, "bare": einops}
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
        ("65, 64", "4,160 elements"),
        ("1, " * 9, "9 dimensions"),
    ],
)
def test_bad_shapes_say_why(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        read_shape(text)
    assert words in str(problem.value)


# ---------------------------------------------------------------------------------------------------- fuzzing


CHARACTERS = "xxx..()()[]:,,0123 -+*@'>abt_=viewsrt"
FRAGMENTS = [
    *("x", ".t()", ".T", ".mT", ".view(", ".reshape(", ".permute(", ".expand(", ".as_strided(", ".repeat(", "x)"),
    *("[0]", "[:, ::2]", "[None]", "[...]", "[-1:]", "2", "3", "6", "-1", "0", ",", ")", "(", " @ ", " + ", " * "),
    *("torch.einsum('ij,kj->ik', ", "torch.", "rearrange(x, 'a b -> b a')", "repeat(x, 'a b -> a b r', r=3)", "sum("),
    *(".contiguous()", ".flatten()", ".unfold(0, 2, 1)", ".diagonal()", ".view(torch.int32)", ".float()", " = 7"),
    *(".chunk(2)[0]", "1000000000", ".view(2, 3)", ".reshape(-1)"),
]


def outcome(text: str, shape: tuple[int, ...]) -> Trace | str:
    """The trace, or the reader's message; any other exception fails the test that called."""
    try:
        return trace(text, shape)
    except ExpressionError as problem:
        return str(problem)


def survives(text: str, shape: tuple[int, ...]) -> None:
    made = outcome(text, shape)
    if isinstance(made, str):
        assert made
        return
    for step in made.steps:
        assert step.layout.numel <= limit("tensor_elements")
        assert step.layout.fits(step.storage_elements)
        assert step.bytes_allocated <= 8 * limit("tensor_elements")
        assert not step.error_type.endswith("Warning")
        if step.kind != "refused":
            assert step.layout.is_contiguous == step.is_contiguous
            if step.verdict is not None and step.operation != "ravel":
                assert step.verdict.works == (step.kind != "copy" or step.layout.numel == 0)


SHAPES = st.sampled_from([(), (6,), (2, 3), (0, 3), (1, 6), (2, 3, 4), (4, 4), (64, 64), (2, 1, 3)])
FUZZ = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@FUZZ
@given(st.text(max_size=400), SHAPES)
@example("x[\x00]", (2, 3))
@example("\udcff", (2, 3))
def test_any_text(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@FUZZ
@given(st.text(alphabet=CHARACTERS, max_size=60).map(lambda tail: "x" + tail), SHAPES)
def test_text_of_likely_characters(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@FUZZ
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(lambda parts: "x" + "".join(parts)), SHAPES)
def test_strewn_fragments(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Chains of well-formed operations with random small arguments."""
    text = "x"
    for _ in range(draw(st.integers(1, 7))):
        name = draw(
            st.sampled_from(sorted({n for (form, n), row in OPERATIONS.items() if form == "method" and n != "matmul"}))
        )
        row = OPERATIONS["method", name]
        sizes = draw(st.lists(st.integers(-1, 6), max_size=4))
        given_as = draw(st.sampled_from(["ints", "tuple", "none"]))
        inner = {"ints": ", ".join(map(str, sizes)), "tuple": f"({''.join(f'{s}, ' for s in sizes)})", "none": ""}[
            given_as
        ]
        pick = f"[{draw(st.integers(0, 2))}]" if row.several else ""
        text += draw(st.sampled_from([f".{name}({inner}){pick}", "[0]", "[:, 1:]", "[::2]", ".T", " * 2"]))
    return text


@FUZZ
@given(chains(), SHAPES)
def test_random_chains(text: str, shape: tuple[int, ...]) -> None:
    survives(text, shape)


@FUZZ
@given(st.text(max_size=80))
def test_any_shape_text(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        shape = read_shape(text)
        assert len(shape) <= limit("tensor_rank")
        assert all(size >= 0 for size in shape)
