"""Tensors too large to be made: shapes, strides, bytes and sharing are those of real ones, and nothing is allocated."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from core.tensors.layout import TensorLayout
from core.tensors.operations.lookup import catalogue
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.meta_device import CountedRun
from core.tensors.tracing.steps import Trace, TraceStep
from core.tensors.tracing.trace import Program, trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import PARTLY, explanations
from tests.core.peak import grown_mb
from tests.core.tensors_random import SHAPES, random_layouts, random_program

LARGE: dict[str, tuple[int, ...]] = {
    "y = x.repeat(100, 100)\ny[y]": (200, 300, 300),
    "torch.arange(5000)[:, None] > torch.arange(5000)": (5000, 5000),
    "torch.zeros(1000000000)": (10**9,),
    "torch.arange(-1, end=1000000000)": (10**9 + 1,),
    "torch.cat([torch.arange(60000), torch.arange(60000)])": (120_000,),
    "F.unfold(torch.ones(1, 1, 200, 200), 100)": (1, 10_000, 10_201),
    "einsum(torch.arange(3000), torch.arange(3000), 'a, b -> a b')": (3000, 3000),
    "x.repeat(40000, 40000)": (80_000, 120_000),
    "x.repeat_interleave(repeats=1000000000)": (6 * 10**9,),
    "x.expand(10000, 2, 3).mT @ x": (10_000, 3, 3),
    "repeat(x, 'a b -> a b r', r=1000000000)": (2, 3, 10**9),
    "torch.randperm(1000000000)": (1000000000,),
    "torch.eye(1000000)": (1000000, 1000000),
    "torch.linspace(0, 1, 1000000000)": (1000000000,),
    "torch.empty_strided((1, 3), (1, 1000000000))": (1, 3),
    "torch.arange(60000).diag_embed()": (60000, 60000),
    "torch.outer(torch.arange(5000), torch.arange(5000))": (5000, 5000),
    "torch.meshgrid(torch.arange(5000), torch.arange(5000))": (5000, 5000),
    "F.pad(x, (1000000000, 0))": (2, 1000000003),
    "F.embedding(torch.zeros(60000).long(), torch.ones(2, 100))": (60000, 100),
    "y = torch.ones(300, 1)\nF.scaled_dot_product_attention(y, y, y)": (300, 1),
    "B, T, C = 8, 1024, 768\ny = torch.zeros(B, T, C)\ny.transpose(0, 1).reshape(T, -1)": (1024, 6144),
}
"""Programs on a small x whose tensors are not, and the shape they end with."""


@pytest.mark.process
@pytest.mark.long
def test_large_tensors_are_counted_in_little_memory() -> None:
    """All of them together stay under 8 MiB."""
    before = """
        from core.tensors.tracing.trace import trace
        from tests.core.test_tensors_counted import LARGE
        for text, shape in LARGE.items():  # the code itself, once
            made = trace(text, (2, 3))
            assert made.counted and made.last.layout.shape == shape, text
    """
    script = """
        for text in LARGE:
            trace(text, (2, 3))
        trace("x.t().contiguous()", (2 ** 20, 2 ** 20))
    """
    assert grown_mb(before, script) < 8


def counted(text: str, shape: tuple[int, ...], dtype: str = "int64") -> Trace:
    """A run on the meta device of what would well run on real numbers."""
    run = Program(text, TensorLayout.contiguous(shape), dtype, {}).run(CountedRun)
    if run.unread is not None:
        raise ExpressionError(run.unread.why)
    return run


_LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
"""Whose single number lies, on the CPU, in the storage of all that it is the mean of."""


def _facts(step: TraceStep, rough: bool = False) -> tuple[object, ...]:
    """What holds of a step; rough: without bytes, and without which cells an operation in place picks to write."""
    known = (step.kind, step.layout, step.dtype, step.storage)
    return known if rough else (*known, step.bytes_allocated, step.changed, step.touched, step.updates)


def agrees(text: str, shape: tuple[int, ...], dtype: str = "int64") -> bool:
    """Hold a counted run against the real one; False where either refuses, or values would be needed."""
    try:
        real = trace(text, shape, dtype=dtype)
        traced = counted(text, shape, dtype).steps
    except ExpressionError:
        return False
    message = real.last.error_message
    of_values = real.last.error_type == "IndexError" or "ZeroDivision" in message or "out of bounds" in message
    of_values = of_values or "not implemented for" in message  # no kernel of the CPU's takes the element type
    of_values = of_values or "input value can be a scalar only" in message  # searchsorted's kernel alone looks
    if real.counted or (of_values and (len(traced), traced[-1].kind) != (len(real), real.last.kind)):
        return False  # an index tensor reaches too far, or a whole number is divided by zero
    assert len(traced) == len(real), text
    for first, other in zip(traced, real, strict=True):
        rough = any(step.operation.startswith((*_LOSSES, *PARTLY)) for step in real)
        assert _facts(first, rough) == _facts(other, rough), text
        assert set(first.changed) >= set(other.changed), text
        assert first.bytes_inside <= other.bytes_inside, text  # what a kernel itself takes is not seen
        assert (first.values, first.storage_values, first.written) == ((), (), ()), text
    return True


def test_every_operation_of_the_catalogue_is_counted_as_it_runs() -> None:
    examples = [text for group in catalogue().values() for text in group]
    agreed = [text for text in examples if agrees(text, (2, 3))]
    assert len(agreed) > 0.9 * len(examples), set(examples) - set(agreed)


def test_random_programs_are_counted_as_they_run() -> None:
    rng = random.Random(20261122)
    assert sum(agrees(random_program(rng), rng.choice(SHAPES)) for _ in range(120)) > 40


def test_layouts_meet_where_their_cells_do() -> None:
    layouts = [layout for layout, _ in random_layouts(600, 7)]
    met = 0
    for first, other in pairwise(layouts):
        truth = bool(set(first.cells().tolist()) & set(other.cells().tolist()))
        assert first.meets(other) == other.meets(first) == truth, (first, other)
        met += truth
    assert 50 < met < 590
    with pytest.raises(ValueError, match="too many ways"):
        TensorLayout((10**6,) * 3, (7_001, 11_003, 13_001)).meets(
            TensorLayout((10**6,) * 3, (17_011, 19_001, 23_003), 5)
        )


def test_a_write_without_cells_reaches_what_its_cells_meet() -> None:
    for text, changed in (("y = x[500:]\nx[:500] += 1", {0}), ("y = x[500:]\nx[:501] += 1", {0, 1})):
        assert set(trace(text, (1000, 1000)).last.changed) == changed


def test_nothing_is_drawn_of_what_was_not_made() -> None:
    traced = trace("q, k, v = x.split(768, dim=2)\ny = q.transpose(1, 2)\ny.reshape(8, -1)", (8, 1024, 2304))
    assert traced.counted
    assert traced.bytes_copied == 8 * 1024 * 768 * 8
    assert explanations(traced)
    picture = storage_picture(traced)
    assert {tensor["drawn"] for tensor in picture["tensors"]} == {0}
    assert not any(reading["values"] for storage in picture["storages"] for reading in storage["readings"])
    refused = trace("x.transpose(0, 1).view(-1)", (1000, 1000)).last
    assert (refused.kind, refused.error_type) == ("refused", "RuntimeError")
    assert refused.fixes[0].bytes == 8_000_000
