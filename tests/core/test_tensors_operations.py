"""Every row of the table against torch on random calls, samples of torch's own operator tests, and the catalogue."""

from __future__ import annotations

import csv
import io
import random
import re
from pathlib import Path

import einops
import pytest
import torch

from core.tensors.operations.lookup import OPERATIONS, catalogue, topics
from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.table import ROWS, TRAINED
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.layers import LAYERS
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import headline
from tests.core.tensors_calls import agreement, difference, in_torch, random_call
from tests.every import every

SAMPLES = (Path(__file__).parents[1] / "data" / "tensor_operators.csv").read_text(encoding="utf-8")

CASES: list[tuple[Operation, Written]] = [
    (row, form) for row in ROWS for form in row.forms if form != "bare" and row not in TRAINED
]
"""Patterns of einops have tests of their own, and so has what gradients and random numbers need."""

RUNS, TRIES = 2, 40


@every("group", sorted({row.group for row, _ in CASES}))
def test_random_calls_do_as_torch_does(group: str) -> None:
    """Shape, strides, dtype, values and sharing; and no guard lets more be allocated than it counted."""
    rng = random.Random(20251122)
    for row, form in CASES:
        if row.group != group:
            continue
        ran = 0
        for _ in range(TRIES):
            ran += agreement(row, *random_call(rng, row, form)) == "ran"
            if ran == RUNS:
                break
        assert ran == RUNS, (form, row.name)


def test_samples_of_torchs_own_operator_tests() -> None:
    """One of each operator, written out as a program."""
    for row in csv.DictReader(io.StringIO(SAMPLES, newline="")):
        shape = tuple(map(int, filter(None, row["shape"].split("x"))))
        result, _ = in_torch(re.sub(r"^r0.* = ", "r = ", row["program"], flags=re.MULTILINE), shape, row["dtype"])
        run = trace(row["program"], shape, dtype=row["dtype"])
        if isinstance(result, Exception):
            assert run.refusal is not None, row
            continue
        named = [step for step in run if re.fullmatch(r"r\d*", step.name)]
        for step, part in zip(named, result if isinstance(result, tuple | list) else [result], strict=True):
            assert not difference(step, part), (row, difference(step, part))


def test_a_layout_changed_in_place_is_the_layout_of_every_name() -> None:
    run = trace("y = x\nz = x.t()\nx.unsqueeze_(0)\nx.transpose_(1, 2)\ny[0, 2] = 7\nz", (2, 3))
    assert [step.kind for step in run] == ["start", "same", "view", "same", "same", "write", "same"]
    assert run[0].layout.shape == (2, 3)
    assert (run[4].layout.shape, run[4].layout.stride, run[4].label) == ((1, 3, 2), (6, 1, 3), "x")
    assert run[5].written == (2, 5)
    assert run.last.values == (0, 3, 1, 4, 7, 7)


DRAWS = (
    *("torch.randn(4, 8)", "torch.rand(3, 3)", "torch.randn(2, 3, requires_grad=True)", "torch.randperm(6)"),
    *("torch.rand_like(x.float())[:, :1]", "torch.randn_like(x.float().t())", "torch.randint_like(x, 9)"),
    *("torch.randint(5, 8, (4,))", "torch.normal(0.0, 2.0, (2, 3))"),
)


@every("text", DRAWS)
@every(("seed", "start"), [(0, ""), (5, "torch.manual_seed(5)\n")])
def test_random_numbers_are_those_that_torch_draws(text: str, seed: int, start: str) -> None:
    run = trace(f"{start}a = {text}\nb = {text}", (2, 2))
    names = {"torch": torch, "x": torch.arange(4).view(2, 2)}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        exec(f"a = {text}\nb = {text}", names)  # noqa: S102 (text of our own making)
    made = {step.name: list(step.values) for step in run if step.name in ("a", "b")}
    assert made == {name: names[name].flatten().tolist() for name in ("a", "b")}


MIXED = (
    *("a + b", "a * b", "a / b", "a // b", "a ** b", "a > b", "a @ b", "torch.matmul(a, b)", "a.add_(b)", "a += b"),
    *("torch.where(a > 0, a, b)", "torch.cat([a, b])", "torch.stack([a, b])", "torch.maximum(a, b)", "F.linear(a, b)"),
    *("a[...] = b", "a.lerp(b, 0.5)", "F.mse_loss(a, b)", "(a + b).sum() / b.sum()", "a.sum() / b.numel()"),
)


def test_mixed_element_types_give_what_torch_gives() -> None:
    rng = random.Random(3)
    names = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "uint8", "bool", "complex64")
    for number in range(400):
        one, other, size = rng.choice(names), rng.choice(names), rng.choice(((), (2,), (2, 2)))
        call = MIXED[number % len(MIXED)]
        lines = [f"a = torch.ones({size}, dtype=torch.{one})", f"b = torch.ones({size}, dtype=torch.{other})", call]
        try:
            run = trace("\n".join(lines), (1,))
        except ExpressionError:
            if "complex64" not in (one, other):
                raise
            continue
        headline(run)
        storage_picture(run)
        if call in ("a + b", "a * b", "a / b") and run.last.kind != "refused":
            wanted = torch.result_type(*(torch.ones(1, dtype=getattr(torch, dtype)) for dtype in (one, other)))
            integer_division = call == "a / b" and not (wanted.is_floating_point or wanted.is_complex)
            assert run.last.dtype == str(torch.float32 if integer_division else wanted).removeprefix("torch.")


# ------------------------------------------------------------------------------------------------ the catalogue


def test_every_operation_of_the_catalogue_runs() -> None:
    """Each example works on the page's start shape, does to memory what its group says, and stands under one topic."""
    kinds = {
        "Always a view": "view",
        **dict.fromkeys(("A new tensor", "Small tensors"), "copy"),
        **dict.fromkeys(("Picked into a new tensor", "Computed into a new tensor"), "copy"),
        "Written in place": "write",
        "Laid out anew in place": "same",
    }
    for group, examples in catalogue().items():
        listed = [text for groups in topics().values() for text in groups.get(group, ())]
        assert sorted(listed) == sorted(examples)
        for text in examples:
            last = trace(text, (2, 3)).last
            assert last.kind != "refused", (text, last.error_message)
            assert last.kind == kinds.get(group, last.kind), text


def test_every_operation_exists_in_torch_or_einops() -> None:
    owners = {"method": torch.Tensor, "property": torch.Tensor, "torch": torch, "bare": einops}
    owners |= {"F": torch.nn.functional, "nn": torch.nn, "init": torch.nn.init}
    for (form, name), row in OPERATIONS.items():
        assert hasattr(owners[form], name), (form, name)
        assert row.name == name


def test_an_operation_like_no_other_is_answered_by_examples_that_run() -> None:
    with pytest.raises(ExpressionError) as problem:
        trace("x.qqq()", (2, 3))
    examples = re.findall(r"`([^`]+)`", str(problem.value))[1:]
    assert len(examples) == len(catalogue())
    assert all(trace(example, (2, 3)).last.kind != "refused" for example in examples)


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
    assert {"Hardswish", "LogSoftmax", "MultiheadAttention", "Flatten", "NLLLoss"} <= set(named)
