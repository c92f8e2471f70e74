"""einops patterns and einsum as operations on memory: layouts, copies and FLOPs are those of the libraries."""

from __future__ import annotations

import random
import string
from typing import Any

import einops
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.tensors.examples.presets import PRESETS
from core.tensors.layout import TensorLayout
from core.tensors.named_axes.calls import Plan, plans_of
from core.tensors.named_axes.einsums import EinsumPlan
from core.tensors.named_axes.patterns import PatternPlan
from core.tensors.tracing.steps import TraceStep
from core.tensors.tracing.trace import trace
from tests.every import every

Dims = tuple[int, ...]


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def shuffled(rng: random.Random, shape: list[int]) -> str:
    """A tensor of ``shape`` whose memory order is random, as code."""
    order = rng.sample(range(len(shape)), len(shape))
    sizes = ", ".join(str(shape[d]) for d in order)
    return f"torch.ones({sizes}).permute({', '.join(str(order.index(d)) for d in range(len(shape)))})"


def planned(text: str, shape: Dims = (1,), stride: Dims | None = None) -> tuple[TraceStep, Plan]:
    """The last line of a program, and its plan."""
    run = trace(text, shape, stride)
    step, plan = plans_of(run)[-1]
    assert step.number == len(run) - 1
    assert all(plan.headline)
    return step, plan


def replay(plan: PatternPlan, x: torch.Tensor) -> torch.Tensor:
    """Run the stages on torch itself, comparing layout and storage after each."""
    for stage in plan.stages[1:]:
        before = x
        numbers = stage.call[stage.call.rindex("(") + 1 :].rstrip(")").replace(",", " ").split()
        arguments: Any = tuple(int(number) for number in numbers)
        if stage.operation == "expand":
            parts = stage.call[1:].split("]")[0].split(", ")
            x = x[tuple(None if part == "None" else slice(None) for part in parts)].expand(arguments)
        elif any(name in stage.call for name in ("prod", "any", "all")):
            for dim in sorted(arguments, reverse=True):
                x = getattr(x, stage.call[1 : stage.call.index("(")])(dim)
        else:
            x = getattr(x, stage.call[1 : stage.call.index("(")])(arguments)
        assert layout_of(x) == stage.layout, stage
        shared = x.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        assert shared == (stage.effect == "view") or x.numel() == 0, stage
        assert stage.bytes == (0 if shared else x.numel() * x.element_size())
    return x


def check_pattern(call: str, shape: Dims, stride: Dims | None = None) -> PatternPlan:
    """One pattern: what its stages give in torch is what einops gave."""
    step, plan = planned(call, shape, stride)
    assert isinstance(plan, PatternPlan)
    start = plan.stages[0].layout
    cells = 1 + (start.span or (0, 0))[1]
    made = replay(plan, torch.arange(cells).as_strided(start.shape, start.stride))
    assert (tuple(made.flatten().tolist()), layout_of(made)) == (step.values, step.layout)
    assert plan.bytes_allocated == step.bytes_allocated
    return plan


@every(
    ("call", "shape"),
    [
        ("rearrange(x, 'a b -> a () b')", (2, 3)),
        ("rearrange(x, '... a -> a ...')", (2, 3, 4)),
        ("rearrange(x, 'a ... -> (a ...)')", (2, 3, 4)),
        ("rearrange(x, ' -> 1')", ()),
        ("rearrange(x, '(a b) -> a b', a=3)", (0,)),
        ("reduce(x, '... h -> ...', reduction='sum')", (2, 3, 4)),
        ("reduce(x, 'b c (h 2) (w 2) -> b c h w', 'max')", (1, 2, 4, 6)),
        ("reduce(x, '... -> 1 1', 'any')", (2, 3)),
        ("repeat(x, 'a b -> a b 2 3')", (2, 3)),
        ("repeat(x, 'a -> a r', r=0)", (3,)),
    ],
)
def test_patterns_become_what_einops_runs(call: str, shape: Dims) -> None:
    check_pattern(call, shape)
    check_pattern(call, shape, torch.empty(shape[::-1]).permute(tuple(range(len(shape)))[::-1]).stride())


def test_random_patterns_become_what_einops_runs() -> None:
    rng = random.Random(4)
    copies = 0
    for _ in range(150):
        axes = {name: rng.choice((1, 2, 3)) for name in rng.sample("abcdef", rng.randint(1, 5))}
        names, more, wanted = list(axes), "", rng.sample(list(axes), len(axes))
        function = rng.choice(("rearrange", "rearrange", "reduce", "repeat"))
        if function == "reduce":
            wanted = wanted[: rng.randint(1, len(names))]
            more = f", '{rng.choice(('sum', 'max', 'prod'))}'"
        elif function == "repeat":
            wanted.insert(rng.randint(0, len(wanted)), "r")
            more = f", r={rng.choice((1, 2, 3))}"
        groups = grouped(rng, names)
        shape = [torch.Size([axes[name] for name in group]).numel() for group in groups]
        more += "".join(f", {name}={axes[name]}" for group in groups for name in group[1:])
        order = rng.sample(range(len(shape)), len(shape))
        base = torch.empty([shape[d] for d in order]).permute([order.index(d) for d in range(len(shape))])
        call = f"{function}(x, '{written(groups)} -> {written(grouped(rng, wanted))}'{more})"
        if plans_of(trace(call, tuple(shape))):  # something to do
            copies += check_pattern(call, tuple(shape), base.stride()).bytes_allocated > 0
    assert 20 < copies < 130


def grouped(rng: random.Random, names: list[str]) -> list[list[str]]:
    groups: list[list[str]] = []
    for name in names:
        if groups and rng.random() < 0.4:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def written(groups: list[list[str]]) -> str:
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in groups)


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the products einsum runs, their operands, and how often reshape clones."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []
        self.operands: list[TensorLayout] = []
        self.copies = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in ("bmm", "mul"):
            self.kinds.append(name)
        if name == "bmm":
            self.operands += [layout_of(args[0]), layout_of(args[1])]
        self.copies += name == "clone"
        return func(*args, **(kwargs or {}))


def longer(layout: TensorLayout) -> list[Dims]:
    """Size and stride of the dimensions longer than 1, the only ones whose stride is ever used."""
    return [(n, s) for n, s in zip(layout.shape, layout.stride, strict=True) if n != 1]


def check_einsum(equation: str, *operands: str, words: bool = False) -> EinsumPlan:
    """Products, their operands in three dimensions, copies and FLOPs, against torch."""
    names = [f"t{number}" for number in range(len(operands))]
    lines = [f"{name} = {text}" for name, text in zip(names, operands, strict=True)]
    given, quoted = ", ".join(names), repr(equation)
    call = f"einops.einsum({given}, {quoted})" if words else f"torch.einsum({quoted}, {given})"
    step, plan = planned("\n".join([*lines, call]))
    assert isinstance(plan, EinsumPlan)
    tensors = [eval(text) for text in operands]  # noqa: S307 (a text of our own)
    with Recorder() as recorder, FlopCounterMode(display=False) as counter:
        result = einops.einsum(*tensors, equation) if words else torch.einsum(equation, *tensors)
    assert tuple(plan.sizes[name] for name in plan.output) == tuple(result.shape) == step.layout.shape
    assert ["bmm" if pair.inner else "mul" for pair in plan.pairs] == recorder.kinds
    assert sum(pair.flop for pair in plan.pairs if pair.inner) == counter.get_total_flops() == step.flops
    if "mul" not in recorder.kinds[:-1]:  # how torch lays an elementwise product out is not followed
        sides = [side for pair in plan.pairs for side in pair.sides]
        for side, operand in zip(sides, recorder.operands, strict=True):
            assert side.layout.shape == operand.shape
            assert longer(side.layout) == longer(operand)
        assert sum(side.copied for side in sides) == recorder.copies
    return plan


@every(
    ("equation", "shapes"),
    [  # what the random equations below never are
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ba", [(2, 3)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
        ("...i,i->", [(2, 3), (3,)]),
        ("aab,b->a", [(3, 3, 2), (2,)]),
        ("ij,jk->ik", [(0, 3), (3, 4)]),
        ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
        ("Ab,c...b,a->ba", [(1, 2), (2, 1, 2), (2,)]),
    ],
)
def test_products_are_those_that_torch_runs(equation: str, shapes: list[Dims]) -> None:
    check_einsum(equation, *(f"torch.ones({shape})" for shape in shapes))


def test_random_products_are_those_that_torch_runs() -> None:
    rng = random.Random(11)
    copied = several = 0
    for _ in range(150):
        letters = rng.sample(string.ascii_letters, rng.randint(2, 6))
        size = {letter: rng.choice((1, 2, 3, 4)) for letter in letters}
        count = rng.choice((1, 2, 2, 2, 3))
        operands = [rng.sample(letters, rng.randint(1, min(4, len(letters)))) for _ in range(count)]
        seen = sorted({letter for names in operands for letter in names})
        output = "".join(rng.sample(seen, rng.randint(0, len(seen))))
        tensors = [shuffled(rng, [size[letter] for letter in names]) for names in operands]
        plan = check_einsum(f"{','.join(''.join(names) for names in operands)}->{output}", *tensors)
        copied += any(side.copied for pair in plan.pairs for side in pair.sides)
        several += len(plan.pairs) > 1
    assert min(copied, several) > 10


def test_attention_scores() -> None:
    """A matmul of a transposed view where heads come first; where positions do, both operands are copied."""
    plan = check_einsum("bhqd,bhkd->bhqk", "torch.ones(2, 4, 3, 8)", "torch.ones(2, 4, 5, 8)")
    (pair,) = plan.pairs
    assert (pair.batch, pair.rows, pair.columns, pair.inner) == (("b", "h"), ("q",), ("k",), ("d",))
    assert (pair.sizes, plan.flop, plan.bytes_inside) == ((8, 3, 5, 8), 2 * 8 * 3 * 5 * 8, 0)
    assert [side.reason.id for side in pair.sides] == ["axes.operand.rows", "axes.operand.columns"]
    copied = check_einsum("bqhd,bkhd->bhqk", "torch.ones(2, 3, 4, 8)", "torch.ones(2, 5, 4, 8)")
    assert copied.bytes_inside == (3 + 5) * 2 * 4 * 8 * 4
    shape = "torch.ones(2, 3, 4)"
    words = check_einsum("... seq1 hidden, ... seq2 hidden -> ... seq1 seq2", shape, shape, words=True)
    assert words.pairs[0].batch == ("…0",)
    three = [f"torch.ones({shape})" for shape in ("40, 30", "30, 20", "20, 1")]
    assert check_einsum("ij,jk,kl->il", *three).flop == 2 * 40 * 30 * 20 + 2 * 40 * 20


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if preset.group == "named"], ids=lambda one: one.label)
def test_presets_have_plans(preset: Any) -> None:
    run = trace(preset.source, preset.shape, dtype=preset.dtype)
    ((step, plan),) = plans_of(run)
    assert plan.explanations or not step.bytes_allocated
    if isinstance(plan, PatternPlan):
        assert (plan.stages[-1].layout, plan.bytes_allocated) == (step.layout, step.bytes_allocated)


def test_calls_that_are_refused_or_written_otherwise_have_no_plan() -> None:
    for text in ("rearrange(x, 'a b -> a')", "rearrange(x, 'a b -> a b')", "x.sum()"):
        assert plans_of(trace(text, (2, 3))) == ()
    ((step, plan),) = plans_of(trace("reduce(x, 'a b -> a', 'sum')", (2, 3), dtype="int8"))
    assert isinstance(plan, PatternPlan)
    assert plan.bytes_allocated == step.bytes_allocated == plan.explanations[-1].value == 2 * 8
