"""Calls of einops and einsum as typed, and the presets run on torch."""

from __future__ import annotations

import einops
import pytest
import torch

from core.tensors.named_axes.calls import PRESETS, PatternCall, PatternPreset, explain_call, plans_of, read_call
from core.tensors.named_axes.einsums import EinsumPlan
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from tests.every import every


def test_calls_are_read() -> None:
    assert read_call("rearrange(x.t(), 'a b -> b a')") == PatternCall("rearrange", "a b -> b a")
    assert read_call(" einops.repeat(x, 'a -> a r', r=3) ").sizes == {"r": 3}
    assert read_call("reduce(x, 'a b -> a', reduction='max')").reduction == "max"
    assert read_call("reduce(x, 'a b -> a', 'max')").reduction == "max"
    assert not read_call("torch.einsum('ij,jk->ik', x, y)").words
    assert read_call("einsum(x, y, 'a b, b c -> a c')") == PatternCall("einsum", "a b, b c -> a c", words=True)


@every("preset", PRESETS, ids=[preset.label for preset in PRESETS])
def test_presets_do_what_torch_does(preset: PatternPreset) -> None:
    tensors = [torch.arange(float(torch.Size(shape).numel())).view(shape) for shape in preset.shapes]
    call = read_call(preset.call)
    plan = explain_call(preset.call, preset.shapes)
    if isinstance(plan, EinsumPlan):
        result = einops.einsum(*tensors, call.pattern) if call.words else torch.einsum(call.pattern, *tensors)
    else:
        extra = (call.reduction,) if call.reduction else ()
        result = getattr(einops, call.function)(*tensors, call.pattern, *extra, **call.sizes)
        shared = result.untyped_storage().data_ptr() == tensors[0].untyped_storage().data_ptr()
        assert shared == (plan.bytes_allocated == 0)
    assert plan.layout.shape == tuple(result.shape)
    assert plan.layout.stride == result.stride()
    assert all(plan.headline)
    assert plan.explanations or plan.layout.numel == tensors[0].numel()


def test_presets_cover_views_and_copies() -> None:
    plans = {preset.label: explain_call(preset.call, preset.shapes) for preset in PRESETS}
    copied = {
        label: plan.bytes_copied if isinstance(plan, EinsumPlan) else plan.bytes_allocated
        for label, plan in plans.items()
    }
    assert copied["Split heads"] == copied["Split QKV"] == copied["Attention scores"] == copied["Linear layer"] == 0
    assert copied["Merge heads"] == 2 * 3 * 32 * 4
    assert copied["Patchify"] == 3 * 64 * 4
    assert copied["Repeat KV heads"] == 4 * 2 * 3 * 8 * 4
    assert copied["Scores before the split"] == (3 + 5) * 2 * 4 * 8 * 4


def test_plans_of_a_trace_end_in_its_layouts() -> None:
    source = (
        "y = rearrange(x, 'b s (h d) -> b h s d', h=2)\n"
        "z = torch.einsum('bhqd,bhkd->bhqk', y, y)\n"
        "rearrange(y, 'b h s d -> b s (h d)')\n"
        "reduce(z, 'b h q k -> b q', reduction='max').repeat(2, 1)\n"
        "einsum(y, y, 'b h q d, b h k d -> b q k')\n"
        "repeat(x, 'b s d -> b s r d', r=3)"
    )
    run = trace(source, (2, 3, 8), dtype="float32")
    explained = plans_of(run)
    assert [step.operation for step, _ in explained] == [
        "rearrange",
        "einsum",
        "rearrange",
        "reduce",
        "einsum",
        "repeat",
    ]
    for step, plan in explained:
        assert plan.layout.shape == step.layout.shape
        assert plan.layout.stride == step.layout.stride
        if not isinstance(plan, EinsumPlan):
            assert plan.bytes_allocated == step.bytes_allocated
    ((step, plan),) = plans_of(trace("reduce(x, 'a b -> a', 'sum')", (2, 3), dtype="int8"))
    assert not isinstance(plan, EinsumPlan)
    assert plan.bytes_allocated == step.bytes_allocated == plan.explanations[-1].value == 2 * 8
    assert plans_of(trace("rearrange(x, 'a b -> a')", (2, 3))) == ()


def test_plans_know_the_numbers_that_tensors_give() -> None:
    ((_, plan),) = plans_of(trace("h = x.size(1) // 2\nrearrange(x, 'a (h d) -> h a d', h=h)", (2, 6)))
    assert plan.layout.shape == (3, 2, 2)


@every(
    ("text", "message"),
    [
        ("rearrange(x", "not a complete call"),
        ("x.t()", "is no call of"),
        ("x.rearrange('a b -> b a')", "is no call of"),
        ("print(x, 'a')", "is no call of"),
        ("rearrange(x)", "a pattern in quotes"),
        ("rearrange(x, y, 'a b -> b a')", "of one tensor"),
        ("rearrange(x, 'a b -> b a', h=2.5)", "whole numbers"),
        ("rearrange(x, 'a b -> b a', h=True)", "whole number"),
        ("rearrange(x, 'a b -> b a', **{})", "whole number"),
        ("repeat(x, 'a b -> a b r', r=10000000000)", "elements"),
        ("(" * 200, "not a complete call"),
        ("x" * 100_000, "12,000 characters"),
        ("reduce(x, 'a b -> a')", "reduce needs one of"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        explain_call(text, [(2, 3)])


def test_shapes_are_capped() -> None:
    with pytest.raises(ExpressionError, match="operand would have"):
        explain_call("rearrange(x, 'a -> a')", [(10**9,)])
    with pytest.raises(ExpressionError, match="result would have"):
        explain_call("torch.einsum('i,j->ij', x, y)", [(4096,), (4096,)])
    with pytest.raises(ExpressionError, match="2 shapes are given"):
        explain_call("rearrange(x, 'a -> a')", [(2,), (2,)])
