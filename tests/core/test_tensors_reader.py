"""The expression reader: what it understands, and what it says of the rest."""

from __future__ import annotations

import re

import pytest
import torch

from core.tensors.operations.lookup import OPERATIONS, REFUSED, catalogue, topics
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.layers import LAYERS
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.trace import trace
from tests.every import every


@every(
    ("text", "wanted"),
    [
        ("x.veiw(6)", "view"),
        ("x.contigous()", "contiguous"),
        ("torch.einsm('ij->ji', x)", "einsum"),
        ("rearange(x, 'a b -> b a')", "rearrange"),
    ],
)
def test_a_misspelt_operation_suggests_the_nearest(text: str, wanted: str) -> None:
    with pytest.raises(ExpressionError, match=f"Did you mean `{wanted}`?") as problem:
        trace(text, (2, 3))
    assert len(str(problem.value)) < 160


def test_an_operation_like_no_other_is_answered_by_examples_that_run() -> None:
    with pytest.raises(ExpressionError) as problem:
        trace("x.qqq()", (2, 3))
    examples = re.findall(r"`([^`]+)`", str(problem.value))[1:]
    assert len(examples) == len(catalogue())
    for example in examples:
        assert trace(example, (2, 3)).last.kind != "refused"


@every(
    ("text", "words"),
    [
        ("x.view", "`.view` is a method, which needs round brackets, for example x.view(3, 2)"),
        ("x.stride[0]", "`.stride` is a method, which needs round brackets"),
        ("x.rearrange('a b -> b a')", "Try rearrange(x, 'a b -> b a')"),
        ("x.chunk(2).t()", "pick one, for example x.chunk(2)[0]"),
        ("x.view('a')", "which takes whole numbers or a dtype"),
        ("parts = [x, x]\nparts.t()", "pick one, parts[0], or join them, torch.cat(parts)"),
        ("d = x.dtype\nd.t()", "stands for no tensor"),
    ],
)
def test_messages_help(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as problem:
        trace(text, (2, 3))
    assert words in str(problem.value)


def test_the_text_of_each_step() -> None:
    steps = trace(" (x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :] @ torch.sum(x.t(), 1) ", (4, 2)).planned
    assert [step.source for step in steps] == [
        "+ 1",
        ".t ( )",
        ".chunk(2, dim=1)[0]",
        "[ 0, :]",
        ".t()",
        "torch.sum(x.t(), 1)",
        "@ torch.sum(x.t(), 1)",
    ]
    assert steps[3].expression == "(x + 1) . t ( ).chunk(2, dim=1)[0][ 0, :]"
    assert [step.inputs for step in steps] == [(0,), (1,), (2,), (3,), (0,), (5,), (4, 6)]
    assert [step.line for step in steps] == [1] * 7


def test_lines_names_and_white_space() -> None:
    run = trace("  y = x.t()  \n\n   a, b = y.chunk(2,\n   dim=0)\n b[x > 1] += 1 ", (2, 3))
    assert run.text == "y = x.t()\n\na, b = y.chunk(2,\ndim=0)\nb[x > 1] += 1"
    assert [(step.line, step.name, step.source) for step in run.planned] == [
        (1, "y", ".t()"),
        (3, "", ".chunk(2, dim=0)"),
        (3, "a", "a"),
        (3, "b", "b"),
        (5, "", "> 1"),
        (5, "", "[x > 1] += 1"),
    ]
    assert run.last.names == {"x": 0, "y": 1, "a": 3, "b": 4}
    assert run.planned[-1].inputs == (4, 5)


def test_broken_lines_are_shown_as_one() -> None:
    run = trace("(x\n   .permute(1,0)  # swapped\n  .view(\n  2,\n  3 )[\n 0\n])", (1, 6))
    assert [step.source for step in run.planned] == [".permute(1,0)", ".view(2, 3 )", "[0]"]


def test_brackets_of_every_kind() -> None:
    lists = ("[[1, 0]]", "[[0, 1], [1, 1]]", "[ [ [0], [1] ] ]", "[(0, 1)]")
    for brackets in (*lists, "[x > 2]", "[..., torch.tensor([0])]"):
        assert trace(f"(x){brackets}", (2, 2)).planned[-1].source == brackets


def test_reasons_for_what_is_left_out() -> None:
    for name, reason in REFUSED.items():
        with pytest.raises(ExpressionError) as problem:
            trace(f"x.{name}(1)", (2, 3))
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


def test_every_operation_stands_under_one_topic() -> None:
    for group, examples in catalogue().items():
        listed = [text for groups in topics().values() for text in groups.get(group, ())]
        assert sorted(listed) == sorted(examples)


def test_every_operation_exists_in_torch_or_einops() -> None:
    import einops

    owners = {"method": torch.Tensor, "property": torch.Tensor, "torch": torch, "bare": einops}
    owners |= {"F": torch.nn.functional, "nn": torch.nn, "init": torch.nn.init}
    for (form, name), row in OPERATIONS.items():
        assert hasattr(owners[form], name), (form, name)
        assert row.name == name


@every(
    ("text", "shape"),
    [
        *((text, (2, 3)) for text in ("2, 3", "(2, 3)", "[2,3]", "2 × 3", "2x3", "2 3", " 2 ,3, ")),
        *(("5", (5,)), ("5,", (5,)), ("()", ()), ("0, 3", (0, 3)), ("64,64", (64, 64))),
    ],
)
def test_shapes_as_people_type_them(text: str, shape: tuple[int, ...]) -> None:
    assert read_shape(text) == shape


@every(
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


def test_a_layer_names_the_function_that_computes_the_same() -> None:
    """Whatever is named runs, and the layers of everyday models are among those that have one."""
    named: dict[str, str] = {}
    names = {name for name in dir(torch.nn) if name[0].isupper()} - set(re.findall(r"class (\w+)", LAYERS))
    for name in sorted(names - {"Module", "Parameter", "ModuleList", "ParameterList"}):
        with pytest.raises(ExpressionError, match=f"`nn.{name}` makes a layer") as problem:
            trace(f"y = nn.{name}(3)(x)", (2, 3))
        instead = str(problem.value).partition("Write ")[2].removesuffix(".")
        if not instead.startswith("its arithmetic"):
            named[name] = instead
            for each in instead.split(", or "):
                assert trace(each, (2, 3)).refusal is None, each
    assert len(named) > 30
    assert {"Hardswish", "LogSoftmax", "MultiheadAttention", "Flatten", "NLLLoss"} <= set(named)
