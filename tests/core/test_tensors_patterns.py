"""einops patterns as operations: equal to the recipe einops makes, and to the storages torch ends up with."""

from __future__ import annotations

import random
from typing import Any

import einops
import pytest
import torch
from einops import EinopsError
from einops.einops import _prepare_transformation_recipe, _reconstruct_from_shape

from core.tensors.layout import TensorLayout
from core.tensors.named_axes.patterns import PatternPlan, explain_pattern
from core.tensors.operations.values import ExpressionError
from tests.every import every

FUNCTIONS = {"rearrange": einops.rearrange, "reduce": einops.reduce, "repeat": einops.repeat}


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


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


def check(function: str, pattern: str, x: torch.Tensor, reduction: str = "", **sizes: int) -> PatternPlan:
    """One pattern against einops: result, layout, storage and the recipe."""
    pattern_plan = explain_pattern(
        function, pattern, layout_of(x), sizes, reduction=reduction, element_size=x.element_size()
    )
    extra: tuple[Any, ...] = (reduction,) if reduction else ()
    expected = FUNCTIONS[function](x, pattern, *extra, **sizes)
    assert pattern_plan.layout == layout_of(expected)
    assert tuple(group.size for group in pattern_plan.outputs) == tuple(expected.shape)
    assert replay(pattern_plan, x).equal(expected)
    assert_same_recipe(pattern_plan, x, sizes)
    return pattern_plan


def assert_same_recipe(plan: PatternPlan, x: torch.Tensor, sizes: dict[str, int]) -> None:
    recipe = _prepare_transformation_recipe(plan.pattern, plan.reduction or plan.function, tuple(sizes), x.dim())
    first, order, reduced, added, final, _ = _reconstruct_from_shape(recipe, x.shape, tuple(sizes.items()))
    wanted = [
        name
        for name, there in (
            ("reshape", first is not None),
            ("permute", order is not None),
            ("reduce", reduced),
            ("expand", added),
            ("reshape", final is not None),
        )
        if there
    ]
    assert [stage.operation for stage in plan.stages[1:]] == wanted
    if first is not None:
        assert plan.stages[1].layout.shape == tuple(first)


def test_heads_are_split_without_a_copy() -> None:
    x = torch.arange(2 * 3 * 8).view(2, 3, 8)
    pattern_plan = check("rearrange", "b s (h d) -> b h s d", x, h=2)
    assert [stage.operation for stage in pattern_plan.stages] == ["start", "reshape", "permute"]
    assert pattern_plan.stages[1].call == ".reshape(2, 3, 2, 4)"
    assert pattern_plan.stages[1].reason == "A view: (h d) splits into h and d with strides 4 and 1."
    assert pattern_plan.layout.stride == (24, 4, 8, 1)
    assert pattern_plan.bytes_allocated == 0
    assert pattern_plan.headline[0] == "`rearrange` becomes **reshape → permute**: all views, **0 bytes** copied."


def test_heads_are_merged_with_a_copy() -> None:
    x = torch.arange(2 * 2 * 3 * 4).view(2, 2, 3, 4)
    pattern_plan = check("rearrange", "b h s d -> b s (h d)", x)
    last = pattern_plan.stages[-1]
    assert (last.effect, last.bytes, last.call) == ("copy", 48 * 8, ".reshape(2, 3, 8)")
    assert last.reason.startswith("h and d cannot merge: stride 12 ≠ 1 × 4")
    assert "the reshape copies **384 B**" in pattern_plan.headline[0]
    assert [explained.value for explained in pattern_plan.explanations] == [4, 384]


def test_axes_have_names() -> None:
    pattern_plan = check("reduce", "... (a 2) 1 -> ... a", torch.arange(24.0).view(2, 3, 4, 1), "max")
    assert [axis.name for axis in pattern_plan.axes] == ["…0", "…1", "a", "2"]
    assert [group.text for group in pattern_plan.inputs] == ["…0", "…1", "(a 2)", "1"]
    check("repeat", "a b -> a 3 (b r)", torch.arange(6).view(2, 3), r=2)


CASES: list[tuple[str, str, tuple[int, ...], str, dict[str, int]]] = [
    ("rearrange", "a b -> a b", (2, 3), "", {}),
    ("rearrange", "a 1 c -> a c", (2, 1, 3), "", {}),
    ("rearrange", "a b -> 1 a 1 b 1", (2, 3), "", {}),
    ("rearrange", "a b -> (a 1) b", (2, 3), "", {}),
    ("rearrange", "a b -> a () b", (2, 3), "", {}),
    ("rearrange", "(h h2) (w w2) c -> (h w) (c h2 w2)", (4, 4, 3), "", {"h2": 2, "w2": 2}),
    ("rearrange", "b s (three h d) -> three b h s d", (2, 3, 24), "", {"three": 3, "h": 2}),
    ("rearrange", "... a -> a ...", (2, 3, 4), "", {}),
    ("rearrange", "a ... -> (a ...)", (2, 3, 4), "", {}),
    ("rearrange", " -> 1", (), "", {}),
    ("rearrange", "(a b) -> a b", (0,), "", {"a": 3}),
    ("reduce", "... h -> ...", (2, 3, 4), "sum", {}),
    ("reduce", "b c (h 2) (w 2) -> b c h w", (1, 2, 4, 6), "max", {}),
    ("reduce", "a b -> a b", (2, 3), "sum", {}),
    ("reduce", "... -> 1 1", (2, 3), "any", {}),
    ("repeat", "a b -> a r b", (2, 3), "", {"r": 1}),
    ("repeat", "a b -> (r a) b", (2, 3), "", {"r": 4}),
    ("repeat", "a b -> a b 2 3", (2, 3), "", {}),
    ("repeat", "b kv s d -> b (kv g) s d", (2, 2, 3, 4), "", {"g": 3}),
    ("repeat", "a -> a r", (3,), "", {"r": 0}),
]


@every(("function", "pattern", "shape", "reduction", "sizes"), CASES)
def test_equals_einops(
    function: str, pattern: str, shape: tuple[int, ...], reduction: str, sizes: dict[str, int]
) -> None:
    numel = torch.Size(shape).numel()
    check(function, pattern, torch.arange(numel).view(shape), reduction, **sizes)
    transposed = torch.arange(numel).view(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    check(function, pattern, transposed, reduction, **sizes)


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
        copies += check(function, pattern, x, reduction, **sizes).bytes_allocated > 0
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


REFUSED: list[tuple[str, str, dict[str, int]]] = [
    ("rearrange", "a b -> a", {}),
    ("rearrange", "a b -> a b c", {}),
    ("rearrange", "a a -> a", {}),
    ("rearrange", "a (b -> b a", {}),
    ("rearrange", "a ((b)) -> b a", {}),
    ("rearrange", "a . -> a .", {}),
    ("rearrange", "a b ... ... -> a b", {}),
    ("rearrange", "(a ...) -> a ...", {}),
    ("rearrange", "a b c ... -> a b c ...", {}),
    ("rearrange", "(a c) b -> a b c", {}),
    ("rearrange", "(a c) b -> a b c", {"a": 2, "c": 2}),
    ("rearrange", "a b -> b a", {"q": 2}),
    ("rearrange", "a _b -> _b a", {}),
    ("rearrange", "...pre b -> b ...pre", {}),
    ("rearrange", "a 0 -> 0 a", {}),
    ("repeat", "a b -> a", {}),
    ("repeat", "a b -> a b r", {}),
    ("repeat", "(a) 3 -> a 3", {}),
    ("reduce", "a b -> a b c", {}),
]


@every(("function", "pattern", "sizes"), REFUSED)
def test_what_einops_refuses_is_refused_in_its_words(function: str, pattern: str, sizes: dict[str, int]) -> None:
    reduction = "sum" if function == "reduce" else ""
    extra: tuple[Any, ...] = (reduction,) if reduction else ()
    with pytest.raises(EinopsError) as theirs:
        FUNCTIONS[function](torch.zeros(2, 3), pattern, *extra, **sizes)
    with pytest.raises(ExpressionError) as ours:
        explain_pattern(function, pattern, TensorLayout.contiguous((2, 3)), sizes, reduction=reduction)
    assert str(theirs.value).splitlines()[-1].strip()[:200] in str(ours.value)


def test_caps() -> None:
    layout = TensorLayout.contiguous((2, 3))
    with pytest.raises(ExpressionError, match="not 'median'"):
        explain_pattern("reduce", "a b -> a", layout, reduction="median")
    with pytest.raises(ExpressionError, match="characters"):
        explain_pattern("rearrange", f"a b -> {'x' * 100_000}", layout)
    with pytest.raises(ExpressionError, match="6,000,000 elements"):
        explain_pattern("repeat", "a b -> a b r", layout, {"r": 10**6})
    with pytest.raises(ExpressionError, match="refuses"):
        explain_pattern("repeat", f"a b -> a b {'9' * 40}", layout)
    with pytest.raises(ExpressionError, match="not negative"):  # which einops takes for 1
        explain_pattern("repeat", "a b -> a b r", layout, {"r": -1})
    for text in ("a b", "a b -> b a -> a b"):
        with pytest.raises(ExpressionError, match="one arrow"):
            explain_pattern("rearrange", text, layout)
    with pytest.raises(ExpressionError, match="no einops function"):
        explain_pattern("swap", "a b -> b a", layout)
