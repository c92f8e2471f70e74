"""Every row of the table against torch on random shapes, and samples of torch's own operator tests."""

from __future__ import annotations

import csv
import io
import random
import re
from pathlib import Path

import pytest

from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.table import ROWS, TRAINED
from core.tensors.tracing.trace import trace
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


def test_random_numbers_count_and_say_so() -> None:
    for text in ("torch.randn(2, 2)", "torch.rand_like(x.float())[:, :2]", "torch.randperm(4)"):
        run = trace(text, (2, 2))
        assert run.last.values == (0, 1, 2, 3)
        assert any("random" in step.reason for step in run)
    assert trace("torch.randint(5, 8, (4,))", (1,)).last.values == (5, 6, 7, 5)
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
