"""Bytes are what torch allocates: every operation and random programs against ``torch.profiler`` on the CPU."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Sequence
from functools import partial

import pytest
import torch

from core.tensors.operations.lookup import catalogue
from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.table import ROWS, TRAINED
from core.tensors.tracing.allocations import AllocationMeter
from core.tensors.tracing.operand_copies import operand_copies
from core.tensors.tracing.run import layout_of
from core.tensors.tracing.trace import trace
from core.views.tensors.inside import most_inside
from tests.core.tensors_calls import random_call
from tests.core.tensors_profiler import OTHER, Profiled, Program, compared, profiled
from tests.core.tensors_random import DTYPES, SHAPES, random_program

EXAMPLES = catalogue()
CASES: list[tuple[Operation, Written]] = [
    (row, form) for row in ROWS for form in row.forms if form != "bare" and row not in TRAINED
]


def test_every_operation_allocates_what_the_profiler_says() -> None:
    """In all and at most at once; no example is left out."""
    examples = [text for group in EXAMPLES.values() for text in group]
    elsewhere = [text for text in examples if ".cuda()" in text or "pin_memory" in text]
    assert len(elsewhere) == 3  # a CPU alone has neither
    redrawn = [text for text in examples if "trunc_normal_" in text]  # as often as numbers fall outside
    assert len(redrawn) == 1
    programs = [(text, (2, 3), "int64") for text in examples if text not in elsewhere + redrawn]
    ours = [trace(*program[:2], dtype=program[2]) for program in programs]
    for program, run, theirs in zip(programs, ours, profiled(programs), strict=True):
        assert theirs == Profiled(run.last.bytes_total, max(run.at_once)), program


def _agree(programs: Sequence[Program]) -> int:
    results = compared(programs)
    assert set(results) <= {"equal", "left out"}, [r for r in results if r not in ("equal", "left out")]
    return results.count("equal")


def test_random_calls_allocate_what_the_profiler_says() -> None:
    rng = random.Random(20261125)
    calls = [random_call(rng, row, form) for row, form in rng.sample(CASES, 250)]
    assert _agree(calls) > 0.5 * len(calls)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_calls_of_every_operation_allocate_what_the_profiler_says(part: int) -> None:
    rng = random.Random(20261126 + part)
    for row, form in CASES[part::4]:
        if any(word in row.example for word in OTHER):
            continue  # its example is held against the profiler above
        tries = (_agree([random_call(rng, row, form) for _ in range(4)]) for _ in range(10))
        assert any(tries), (form, row.name)


_ASKED = ("assert", "print", "f'", "get_memory_usage", "same_storage", ".all()", "if ")
"""What asks a program something: the tensors that the answer takes are no part of it here, and so are not counted."""
_BACK = ("Parameter", "requires_grad")
"""What has torch keep tensors for backward, single numbers among them: counted by step, not in the most at once."""


def _programs(rng: random.Random, count: int) -> list[Program]:
    programs = [(random_program(rng), rng.choice(SHAPES), rng.choice(DTYPES)) for _ in range(count)]
    return [program for program in programs if not any(word in program[0] for word in _ASKED + _BACK)]


def test_random_programs_allocate_what_the_profiler_says() -> None:
    assert _agree(_programs(random.Random(20261125), 450)) > 40


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_programs_allocate_what_the_profiler_says(part: int) -> None:
    rng, equal = random.Random(20261127 + part), 0
    while equal < 1_000:
        equal += _agree(_programs(rng, 500))


def test_what_no_name_stands_for_is_given_back() -> None:
    run = trace("y = x + 1\ny = y.exp() * 2\ny = y.sum()", (64,), dtype="float32")
    assert [sum(now.values()) for now in run.held] == [256, 512, 768, 512, 260]
    assert trace("a, b = x + 1, x + 2\na, b = b + a, a * 2", (64,)).held[-1].keys() == {0, 3, 4}


@pytest.mark.parametrize("caller", ["m", "f"])
def test_a_module_holds_what_it_was_given_until_it_returns_and_a_function_does_not(caller: str) -> None:
    made = {"f": "def f(t):\n    t = F.relu(t)\n    return F.relu(t)", "m": "m = nn.Sequential(nn.ReLU(), nn.ReLU())"}
    program = (f"{made[caller]}\ny = {caller}(x.float())", (6,), "int64")
    assert compared([program]) == ["equal"]
    assert max(trace(*program[:2]).at_once) == 48 + (3 if caller == "m" else 2) * 24


@pytest.mark.parametrize("after", ["x * 3", "y = 0\nx * 3", "y.sum().backward()\nx * 3"])
def test_what_is_kept_for_backward_is_there_as_long_as_backward_could_start(after: str) -> None:
    program = (f"m = nn.Linear(4, 2)\ny = m(x.float())\n{after}", (64, 4), "int16")
    run = trace(*program[:2], dtype=program[2])
    assert compared([program]) == ["equal"] if "backward" not in after else run.steps[-1].kind == "copy"
    graph = 64 * 4 * 4 if after == "x * 3" else 0
    y = 0 if "y = 0" in after else 64 * 2 * 4
    grads = 40 if "backward" in after else 0
    assert sum(run.held[-1].values()) == 2 * 512 + 40 + y + graph + grads


def test_threads_do_not_see_each_others_memory() -> None:
    alone = [trace(text, (2, 3)).last.bytes_total for text in EXAMPLES["Computed into a new tensor"][:40]]
    together: list[list[int]] = []

    def run() -> None:
        together.append([trace(text, (2, 3)).last.bytes_total for text in EXAMPLES["Computed into a new tensor"][:40]])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [alone] * 4


def test_cycles_that_python_frees_meanwhile_are_no_part_of_an_operation() -> None:
    """What a refused program leaves is in cycles, and freed whenever Python next looks for them."""
    meter, often = AllocationMeter(torch), gc.get_threshold()

    def call() -> object:
        gc.set_threshold(1)
        made = [[] for _ in range(10)]  # enough for Python to look
        return torch.nn.functional.cross_entropy(torch.zeros(2, 3), torch.tensor([2, 0])), made

    gc.set_threshold(1_000_000)
    cycle = list[object]()
    cycle += [cycle, meter.watch(partial(torch.zeros, 1_000))]
    del cycle
    try:
        meter.watch(call)
    finally:
        gc.set_threshold(*often)
    assert (meter.last.peak, meter.last.kept) == (72, 4)  # the logits, classes, log-softmax, a weight and the loss
    assert gc.isenabled()


def _laid_out(rng: random.Random, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of this shape whose dimensions lie in any order, with gaps now and then."""
    order = rng.sample(range(len(shape)), len(shape)) if rng.random() < 0.6 else list(range(len(shape)))
    sizes = [shape[dim] for dim in order]
    whole = torch.zeros([size * rng.choice([1, 1, 1, 2]) for size in sizes])
    return whole[tuple(slice(0, size) for size in sizes)].permute([order.index(dim) for dim in range(len(shape))])


def test_which_operands_a_product_copies_follows_from_their_layouts() -> None:
    """Of products too small for BLAS, which may copy single matrices besides."""
    rng, copied = random.Random(28), 0
    for _ in range(1000):
        batch = [rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 3))]
        rows, inner, columns = (rng.randint(2, 4) for _ in range(3))
        shapes = [
            [*(rng.choice([1, size]) for size in batch[rng.randint(0, len(batch)) :]), rows, inner],
            [*batch[rng.randint(0, len(batch)) :], inner, columns],
        ]
        tensors = [_laid_out(rng, shape) for shape in shapes]
        meter = AllocationMeter(torch)
        product = meter.watch(partial(torch.matmul, *tensors))
        if max(shape[:-2] == [] for shape in shapes) and product.dim() > 2:
            continue  # mm, which copies a matrix that BLAS reads in neither order
        copies = operand_copies(*(layout_of(tensor) for tensor in tensors))
        freed = [block.bytes for block in meter.allocated().freed]
        assert sorted(4 * copy.elements for copy in copies) == sorted(freed), shapes
        copied += bool(copies)
    assert copied > 60


def test_tensors_too_large_to_be_made_say_that_more_may_be_needed() -> None:
    run = trace("q = x.view(8, 1024, 12, 64).transpose(1, 2)\nq @ q.mT", (8, 1024, 768), dtype="float32")
    assert run.counted
    assert run.bytes_inside == 2 * run[0].bytes_allocated  # q and its transpose, each as one batch of matrices
    assert "24 MiB" in most_inside(run)
