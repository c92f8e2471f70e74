"""einops patterns and einsum as operations on memory: layouts, copies, FLOPs and errors are those of the libraries."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import einops
import pytest
import torch
from einops import EinopsError
from torch.utils.flop_counter import FlopCounterMode

from core.tensors.layout import TensorLayout
from core.tensors.named_axes.calls import PRESETS, PatternCall, PatternPreset, explain_call, plans_of, read_call
from core.tensors.named_axes.einsums import EinsumPlan, explain_einsum
from core.tensors.named_axes.patterns import PatternPlan, explain_pattern
from core.tensors.operations.values import ExpressionError
from core.tensors.sealed.allocator import Used, account, profiler_config
from core.tensors.tracing.trace import trace
from tests.every import every


def watched(call: Callable[[], Any]) -> tuple[Any, Used]:
    """What a call gives, and what torch's allocator handed out for it."""
    torch.autograd._enable_profiler_legacy(profiler_config(torch))  # type: ignore[attr-defined]
    try:
        result = call()
    finally:
        events = [event for thread in torch.autograd._disable_profiler_legacy() for event in thread]  # type: ignore[attr-defined]
    return result, account(events)


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


FUNCTIONS = {"rearrange": einops.rearrange, "reduce": einops.reduce, "repeat": einops.repeat}


def replay(plan: PatternPlan, x: torch.Tensor) -> torch.Tensor:
    """Run the stages on torch itself, comparing layout and storage after each."""
    for stage in plan.stages[1:]:
        before = x
        numbers = stage.call[stage.call.rindex("(") + 1 :].rstrip(")").replace(",", " ").split()
        arguments = tuple(int(number) for number in numbers)
        match stage.operation:
            case "reshape":
                x = x.reshape(arguments)
            case "permute":
                x = x.permute(arguments)
            case "reduce" if "prod" in stage.call or "any" in stage.call or "all" in stage.call:
                for dim in sorted(arguments, reverse=True):
                    x = getattr(x, stage.call[1 : stage.call.index("(")])(dim)
            case "reduce":
                x = getattr(x, stage.call[1 : stage.call.index("(")])(arguments)
            case "expand":
                index = tuple(
                    None if part == "None" else slice(None) for part in stage.call[1:].split("]")[0].split(", ")
                )
                x = x[index].expand(arguments)
            case "start":
                raise AssertionError("the tensor itself is no operation")
        assert layout_of(x) == stage.layout, stage
        shared = x.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        assert shared == (stage.effect == "view") or x.numel() == 0, stage
        assert stage.bytes == (0 if shared else x.numel() * x.element_size())
    return x


def check_pattern(function: str, pattern: str, x: torch.Tensor, reduction: str = "", **sizes: int) -> PatternPlan:
    """One pattern against einops: result, layout, and what einops itself allocates."""
    pattern_plan = explain_pattern(
        function, pattern, layout_of(x), sizes, reduction=reduction, element_size=x.element_size()
    )
    extra: tuple[Any, ...] = (reduction,) if reduction else ()
    expected = FUNCTIONS[function](x, pattern, *extra, **sizes)
    assert pattern_plan.layout == layout_of(expected)
    assert tuple(group.size for group in pattern_plan.outputs) == tuple(expected.shape)
    assert replay(pattern_plan, x).equal(expected)
    _, used = watched(lambda: FUNCTIONS[function](x, pattern, *extra, **sizes))
    if reduction not in ("any", "prod"):  # for which torch makes more on its way
        assert used.total == pattern_plan.bytes_allocated
    return pattern_plan


PATTERNS: list[tuple[str, str, tuple[int, ...], str, dict[str, int]]] = [
    ("rearrange", "a 1 c -> a c", (2, 1, 3), "", {}),
    ("rearrange", "a b -> 1 a 1 b 1", (2, 3), "", {}),
    ("rearrange", "a b -> a () b", (2, 3), "", {}),
    ("rearrange", "... a -> a ...", (2, 3, 4), "", {}),
    ("rearrange", "a ... -> (a ...)", (2, 3, 4), "", {}),
    ("rearrange", " -> 1", (), "", {}),
    ("rearrange", "(a b) -> a b", (0,), "", {"a": 3}),
    ("reduce", "... h -> ...", (2, 3, 4), "sum", {}),
    ("reduce", "b c (h 2) (w 2) -> b c h w", (1, 2, 4, 6), "max", {}),
    ("reduce", "... -> 1 1", (2, 3), "any", {}),
    ("repeat", "a b -> a b 2 3", (2, 3), "", {}),
    ("repeat", "a -> a r", (3,), "", {"r": 0}),
]


@every(("function", "pattern", "shape", "reduction", "sizes"), PATTERNS)
def test_equals_einops(
    function: str, pattern: str, shape: tuple[int, ...], reduction: str, sizes: dict[str, int]
) -> None:
    numel = torch.Size(shape).numel()
    check_pattern(function, pattern, torch.arange(numel).view(shape), reduction, **sizes)
    transposed = torch.arange(numel).view(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    check_pattern(function, pattern, transposed, reduction, **sizes)


def test_equals_einops_on_random_patterns() -> None:
    rng = random.Random(4)
    copies = 0
    for _ in range(400):
        axes = {name: rng.choice((1, 2, 3)) for name in rng.sample("abcdef", rng.randint(1, 5))}
        names = list(axes)
        wanted = rng.sample(names, len(names))
        function, reduction = "rearrange", ""
        if rng.random() < 0.3 and len(names) > 1:
            function, reduction = "reduce", rng.choice(("sum", "max", "prod"))
            wanted = wanted[: rng.randint(1, len(names) - 1)]
        elif rng.random() < 0.3:
            function = "repeat"
            wanted.insert(rng.randint(0, len(wanted)), "r")
        shape = [1]
        groups = grouped(rng, names)
        shape = [torch.Size([axes[n] for n in group]).numel() for group in groups]
        pattern = f"{written(groups)} -> {written(grouped(rng, wanted))}"
        sizes = {name: axes[name] for group in groups for name in group[1:]}
        if function == "repeat":
            sizes["r"] = rng.choice((1, 2, 3))
        order = rng.sample(range(len(shape)), len(shape))
        base = torch.arange(torch.Size(shape).numel()).view([shape[d] for d in order])
        x = base.permute([order.index(d) for d in range(len(shape))])
        copies += check_pattern(function, pattern, x, reduction, **sizes).bytes_allocated > 0
    assert 50 < copies < 350


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


REFUSED_PATTERNS: list[tuple[str, str, dict[str, int]]] = [
    ("rearrange", "a b -> a", {}),
    ("rearrange", "a a -> a", {}),
    ("rearrange", "a (b -> b a", {}),
    ("rearrange", "a ((b)) -> b a", {}),
    ("rearrange", "a b ... ... -> a b", {}),
    ("rearrange", "(a ...) -> a ...", {}),
    ("rearrange", "(a c) b -> a b c", {}),
    ("rearrange", "(a c) b -> a b c", {"a": 2, "c": 2}),
    ("rearrange", "a _b -> _b a", {}),
    ("rearrange", "...pre b -> b ...pre", {}),
    ("rearrange", "a 0 -> 0 a", {}),
    ("repeat", "a b -> a b r", {}),
    ("repeat", "(a) 3 -> a 3", {}),
    ("reduce", "a b -> a b c", {}),
]


@every(("function", "pattern", "sizes"), REFUSED_PATTERNS)
def test_what_einops_refuses_is_refused_in_its_words(function: str, pattern: str, sizes: dict[str, int]) -> None:
    reduction = "sum" if function == "reduce" else ""
    extra: tuple[Any, ...] = (reduction,) if reduction else ()
    with pytest.raises(EinopsError) as theirs:
        FUNCTIONS[function](torch.zeros(2, 3), pattern, *extra, **sizes)
    with pytest.raises(ExpressionError) as ours:
        explain_pattern(function, pattern, TensorLayout.contiguous((2, 3)), sizes, reduction=reduction)
    assert str(theirs.value).splitlines()[-1].strip()[:200] in str(ours.value)


# ------------------------------------------------------------------------------------------------ einsum


def check_einsum(equation: str, *tensors: torch.Tensor, words: bool = False) -> EinsumPlan:
    """Layout of the result, FLOPs of the matmuls, operands in three dimensions and bytes inside, against torch."""
    explained = explain_einsum(equation, [layout_of(t) for t in tensors], words=words, element_size=4)
    with Recorder() as recorder, FlopCounterMode(display=False) as counter:
        result = einops.einsum(*tensors, equation) if words else torch.einsum(equation, *tensors)
    assert explained.shape == tuple(result.shape)
    assert sum(pair.flop for pair in explained.pairs if pair.kind == "bmm") == counter.get_total_flops()
    assert [pair.kind for pair in explained.pairs] == recorder.kinds
    plans = [plan for pair in explained.pairs for plan in (pair.left, pair.right) if plan is not None]
    for plan, operand in zip(plans, recorder.operands, strict=True):
        assert plan.layout.shape == operand.shape
        assert longer(plan.layout) == longer(operand)
    assert sum(plan.effect == "copy" for plan in plans) == recorder.copies
    again, used = watched(lambda: einops.einsum(*tensors, equation) if words else torch.einsum(equation, *tensors))
    shared = {tensor.untyped_storage()._cdata for tensor in tensors}
    kept = 0 if again.untyped_storage()._cdata in shared else again.untyped_storage().nbytes()
    if all(tensor.dtype == torch.float32 for tensor in tensors):
        assert used.total == kept + explained.bytes_inside
    if result.numel():
        assert longer(explained.layout) == longer(layout_of(result))
    return explained


def longer(layout: TensorLayout) -> list[tuple[int, int]]:
    """Size and stride of the dimensions longer than 1, the only ones whose stride is ever used."""
    return [(n, s) for n, s in zip(layout.shape, layout.stride, strict=True) if n != 1]


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the products einsum runs, their operands, and how often reshape clones."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []
        self.operands: list[TensorLayout] = []
        self.copies = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name == "bmm":
            self.kinds.append("bmm")
            self.operands += [layout_of(args[0]), layout_of(args[1])]
        elif name == "mul":
            self.kinds.append("multiply")
        elif name == "clone":
            self.copies += 1
        return func(*args, **(kwargs or {}))


def filled(*shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [  # what the random equations below never are
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("ba", [(2, 3)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("...a,...b", [(2, 2), (2, 3)]),
    ("...i,i->", [(2, 3), (3,)]),
    ("aab,b->a", [(3, 3, 2), (2,)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
    ("Ab,c...b,a->ba", [(1, 2), (2, 1, 2), (2,)]),
]


@every(("equation", "shapes"), EQUATIONS, ids=[f"{e} {s}" for e, s in EQUATIONS])
def test_equals_torch(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_einsum(equation, *(filled(*shape) for shape in shapes))


def shuffled(rng: random.Random, shape: list[int]) -> torch.Tensor:
    """A tensor of ``shape`` whose memory order is random."""
    order = rng.sample(range(len(shape)), len(shape))
    return filled(*(shape[d] for d in order)).permute([order.index(d) for d in range(len(shape))])


def test_three_matrices_are_multiplied_from_left_to_right() -> None:
    explained = check_einsum("ij,jk,kl->il", filled(2, 30), filled(30, 40), filled(40, 3))
    assert explained.flop == 2 * 2 * 30 * 40 + 2 * 2 * 40 * 3
    worse = check_einsum("ij,jk,kl->il", filled(40, 30), filled(30, 20), filled(20, 1))
    assert worse.headline[0].values["flop"] == worse.flop == 2 * 40 * 30 * 20 + 2 * 40 * 20


REFUSED_EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3)]),
    ("ij,jk->ik", [(2, 3), (4, 5)]),
    ("ij->i", [(2, 3, 4)]),
    ("i...jk->i", [(2, 3)]),
    ("ij->ik", [(2, 3)]),
    ("ij->ii", [(2, 3)]),
    ("ii->i", [(2, 3)]),
    ("i.j->i", [(2, 3)]),
    ("i1->i", [(2, 3)]),
    ("ij->i->j", [(2, 3)]),
    ("...i,...i->i", [(2, 3), (4, 3)]),
    ("i" * 200 + "->i", [(2, 3)]),
    ("->", []),
]


def test_equals_torch_on_random_equations() -> None:
    rng = random.Random(11)
    copied = several = 0
    for _ in range(250):
        letters = rng.sample(string.ascii_letters, rng.randint(2, 6))
        size = {letter: rng.choice((1, 2, 3, 4)) for letter in letters}
        operands = [
            rng.sample(letters, rng.randint(1, min(4, len(letters)))) for _ in range(rng.choice((1, 2, 2, 2, 3)))
        ]
        seen = sorted({letter for names in operands for letter in names})
        output = rng.sample(seen, rng.randint(0, len(seen)))
        tensors = [shuffled(rng, [size[letter] for letter in names]) for names in operands]
        explained = check_einsum(f"{','.join(''.join(names) for names in operands)}->{''.join(output)}", *tensors)
        copied += explained.bytes_copied > 0
        several += len(explained.pairs) > 1
    assert min(copied, several) > 20


@every(("equation", "shapes"), REFUSED_EQUATIONS)
def test_what_torch_refuses_is_refused_in_its_words(equation: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.einsum(equation, *(filled(*shape) for shape in shapes))
    with pytest.raises(ExpressionError) as ours:
        explain_einsum(equation, [TensorLayout.contiguous(shape) for shape in shapes])
    assert str(theirs.value).splitlines()[0][:200] in str(ours.value)


def test_attention_scores() -> None:
    """A matmul of a transposed view where heads come first; where positions do, both operands are copied."""
    (pair,) = check_einsum("bhqd,bhkd->bhqk", filled(2, 4, 3, 8), filled(2, 4, 5, 8)).pairs
    assert (pair.batch, pair.rows, pair.columns, pair.inner) == (("b", "h"), ("q",), ("k",), ("d",))
    assert (pair.sizes, pair.flop) == ((8, 3, 5, 8), 2 * 8 * 3 * 5 * 8)
    assert pair.left is not None
    assert pair.right is not None
    assert (pair.left.reads, pair.right.reads) == ("rows", "columns")
    copied = check_einsum("bqhd,bkhd->bhqk", filled(2, 3, 4, 8), filled(2, 5, 4, 8))
    assert copied.bytes_copied == (3 + 5) * 2 * 4 * 8 * 4
    words = check_einsum(
        "... seq1 hidden, ... seq2 hidden -> ... seq1 seq2", filled(2, 3, 4), filled(2, 3, 4), words=True
    )
    assert words.pairs[0].batch == ("…0",)


# ------------------------------------------------------------------------------------------------ calls as typed


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


@every(
    ("text", "shapes"),
    [
        *(("rearrange(x", [(2, 3)]), ("print(x, 'a')", [(2, 3)]), ("rearrange(x)", [(2, 3)]), ("(" * 200, [(2, 3)])),
        *(("rearrange(x, y, 'a b -> b a')", [(2, 3)]), ("rearrange(x, 'a b -> b a', h=2.5)", [(2, 3)])),
        *(("rearrange(x, 'a b -> b a', **{})", [(2, 3)]), ("repeat(x, 'a b -> a b r', r=10000000000)", [(2, 3)])),
        *(("x" * 100_000, [(2, 3)]), ("reduce(x, 'a b -> a')", [(2, 3)]), ("rearrange(x, 'a -> a')", [(10**9,)])),
        *(("torch.einsum('i,j->ij', x, y)", [(4096,), (4096,)]), ("rearrange(x, 'a -> a')", [(2,), (2,)])),
        *(("repeat(x, 'a b -> a b r', r=-1)", [(2, 3)]), (f"repeat(x, 'a b -> a b {'9' * 40}')", [(2, 3)])),
    ],
    ids=lambda row: repr(row)[:60],
)
def test_what_is_no_call_or_too_large_is_refused(text: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ExpressionError) as problem:
        explain_call(text, shapes)
    assert len(str(problem.value)) < 900
