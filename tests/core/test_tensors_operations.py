"""Every row of the table against torch on random shapes, and samples of torch's own operator tests."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.table import ROWS, TRAINED
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import headline
from tests.core.tensors_calls import agreement, difference, in_torch, random_call, unknown_parameters
from tests.every import every

SAMPLES = (Path(__file__).parents[1] / "data" / "tensor_operators.csv").read_text(encoding="utf-8")

CASES: list[tuple[Operation, Written]] = [
    (row, form) for row in ROWS for form in row.forms if form != "bare" and row not in TRAINED
]
"""Patterns of einops have tests of their own, and so has what gradients and random numbers need."""

RUNS, TRIES = 2, 25


@every("group", sorted({row.group for row, _ in CASES}))
def test_random_calls_do_as_torch_does(group: str) -> None:
    """Shape, strides, dtype, values and sharing; and no guard lets more be allocated than it counted."""
    rng = random.Random(20251122)
    for row, form in CASES:
        if row.group != group:
            continue
        assert not unknown_parameters(row), row.name
        ran = 0
        for _ in range(TRIES):
            ran += agreement(row, *random_call(rng, row, form)) == "ran"
            if ran == RUNS:
                break
        assert ran == RUNS, (form, row.name)


@pytest.mark.parametrize(
    ("text", "kinds", "stored"),
    [
        ("v, i = x.topk(2)", ["copy", "same", "copy"], [48, 32, 0, 32]),
        ("x.topk(2).indices", ["copy"], [48, 32]),
        ("r = x.sort(1)\nr.indices", ["copy", "copy"], [48, 48, 48]),
        ("x.max(1).values", ["copy"], [48, 16]),
        ("x.max()", ["copy"], [48, 8]),
        ("q, k, v = x.unbind(1)", ["view", "same", "same", "same"], [48, 0, 0, 0, 0]),
        ("a, b = torch.meshgrid(x[0], x[1], indexing='ij')", ["view", "view", "view", "same", "same"], [48] + [0] * 5),
    ],
)
def test_several_results_each_with_its_own_storage(text: str, kinds: list[str], stored: list[int]) -> None:
    run = trace(text, (2, 3))
    assert [step.kind for step in run[1:]] == kinds
    assert [step.bytes_allocated for step in run] == stored


def test_a_layout_changed_in_place_is_the_layout_of_every_name() -> None:
    run = trace("y = x\nz = x.t()\nx.unsqueeze_(0)\nx.transpose_(1, 2)\ny[0, 2] = 7\nz", (2, 3))
    assert [step.kind for step in run] == ["start", "same", "view", "same", "same", "write", "same"]
    assert run[0].layout.shape == (2, 3)
    assert (run[4].layout.shape, run[4].layout.stride, run[4].label) == ((1, 3, 2), (6, 1, 3), "x")
    assert run[5].written == (2, 5)
    assert run.last.values == (0, 3, 1, 4, 7, 7)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("x.masked_fill_(x > 3, 0)", (4, 5)),
        ("x.scatter_(1, torch.tensor([[2], [0]]), 9)", (2, 3)),
        ("x.t().index_fill_(0, torch.tensor([1]), 9)", (1, 4)),
        ("x.tril_()", (1, 2, 5)),
        ("x.clamp_(1, 4)", (0, 1, 2, 3, 4, 5)),
    ],
)
def test_written_in_place_are_only_the_cells_that_the_operation_names(text: str, cells: tuple[int, ...]) -> None:
    assert trace(text, (2, 3)).last.written == cells


DRAWS: dict[str, Callable[[], object]] = {
    "torch.randn(4, 8)": lambda: torch.randn(4, 8),
    "torch.rand(3, 3)": lambda: torch.rand(3, 3),
    "torch.randn(2, 3, requires_grad=True)": lambda: torch.randn(2, 3),
    "torch.rand_like(x.float())[:, :1]": lambda: torch.rand(2, 2)[:, :1],
    "torch.randn_like(x.float().t())": lambda: torch.randn_like(torch.zeros(2, 2).t()),
    "torch.randint_like(x, 9)": lambda: torch.randint(9, (2, 2)),
    "torch.randint(5, 8, (4,))": lambda: torch.randint(5, 8, (4,)),
    "torch.randperm(6)": lambda: torch.randperm(6),
    "torch.normal(0.0, 2.0, (2, 3))": lambda: torch.normal(0.0, 2.0, (2, 3)),
}


@every("text", list(DRAWS))
def test_random_numbers_are_those_that_torch_draws(text: str) -> None:
    for seed, start in ((0, ""), (5, "torch.manual_seed(5)\n")):
        run = trace(f"{start}a = {text}\nb = {text}", (2, 2))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            wanted = [DRAWS[text](), DRAWS[text]()]
        made = [step for step in run if step.name]
        assert [list(step.values) for step in made if step.name in "ab"] == [
            tensor.flatten().tolist() for tensor in wanted if isinstance(tensor, torch.Tensor)
        ]
    assert trace("torch.empty(3)", (1,)).last.values == (0, 0, 0)


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
