"""Random layouts, shapes and programs for the tests of tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from core.tensors.layout import TensorLayout, bounds
from core.tensors.view_rule import explain_view

STORAGE = torch.arange(1 << 16)


def random_layouts(count: int, seed: int) -> Iterator[tuple[TensorLayout, list[int]]]:
    """Layouts as slicing, permuting, expanding and as_strided make them, each with a new shape to try."""
    rng = random.Random(seed)
    count_made = 0
    while count_made < count:
        rank = rng.randint(0, 5)
        sizes = [0, 1, 1, 2, 2, 3, 4, 6] if rng.random() < 0.1 else [1, 2, 2, 3, 4, 6]
        shape = [rng.choice(sizes) for _ in range(rank)]
        if rng.random() < 0.2:
            stride = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
        else:
            order = list(range(rank))
            if rng.random() < 0.5:
                rng.shuffle(order)
            stride, step = [0] * rank, rng.choice([0, 1, 1, 1, 2])
            for dim in reversed(order):
                stride[dim] = step
                step *= max(shape[dim], 1) * rng.choice([1, 1, 1, 1, 2])
        layout = TensorLayout(tuple(shape), tuple(stride), rng.choice([0, 5]))
        if not bounds(layout, len(STORAGE)).inside:
            continue
        count_made += 1
        yield layout, random_shape(rng, layout.numel)


def random_shape(rng: random.Random, numel: int) -> list[int]:
    """A factorisation of ``numel`` with ones strewn in; sometimes with -1, sometimes wrong."""
    if numel == 0:
        shape = [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.randint(1, 3))]
    else:
        shape, left = [], numel
        while left > 1:
            shape += [1] * (rng.random() < 0.2)
            shape.append(rng.choice([f for f in range(2, left + 1) if left % f == 0]))
            left //= shape[-1]
        shape += [1] * (rng.random() < 0.3)
    if shape and rng.random() < 0.3:
        shape[rng.randrange(len(shape))] = -1
    if rng.random() < 0.05:
        shape.append(rng.choice([2, -1, -2]))
    return shape


def in_torch(layout: TensorLayout) -> torch.Tensor:
    """A tensor of this layout over `STORAGE`."""
    return torch.as_strided(STORAGE, layout.shape, layout.stride, layout.offset)


def compare_views(count: int, seed: int) -> int:
    """Hold `explain_view` against torch on ``count`` layouts: verdict, shape and strides; how many views worked."""
    worked = 0
    for layout, shape in random_layouts(count, seed):
        tensor = in_torch(layout)
        verdict = explain_view(layout, shape)
        try:
            view = tensor.view(shape)
        except RuntimeError:
            assert not verdict.works, (layout, shape)
            assert verdict.stride is None
            assert verdict.reason
        else:
            worked += 1
            assert verdict.works, (layout, shape)
            assert (verdict.shape, verdict.stride) == (tuple(view.shape), view.stride()), (layout, shape)
        assert layout.is_contiguous == tensor.is_contiguous(), layout
    return worked


# --------------------------------------------------------------------------------------------------- programs

DTYPES = ("float32", "int64", "bfloat16", "float64", "float16", "uint8", "bool", "complex64")
_MADE = (
    "torch.arange(6).view(2, 3)",
    "torch.randn(2, 3)",
    "torch.ones(3)",
    "torch.randint(0, 9, (3, 2))",
    "x",
    "x.t()",
)
_APPLIED = (
    *(".t()", "[0]", "[:, 1:]", "[::2]", "[..., None]", ".reshape(-1)", ".view(-1)", ".contiguous()", ".clone()"),
    *(
        ".sum(-1)",
        ".mean()",
        ".exp()",
        ".softmax(-1)",
        ".unsqueeze(0)",
        ".expand(2, 3)",
        "[[0, 1]]",
        "[torch.tensor([1])]",
    ),
    *(".flip(0)", ".abs()", ".max()", ".argmax()", ".cumsum(0)", ".unfold(0, 2, 1)", ".diagonal()", ".detach()"),
)
_SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "@", ">", "==", "&", "|")
_NUMBERS = ("2", "1.5", "-1", "True")
_WRITTEN = ("", "[0]", "[:, 0]", "[0, 0]", "[[1, 0]]", "[-1:]")


def random_program(rng: random.Random) -> str:
    """Lines of random tensors, element types, views and writes in place, most of which torch runs."""
    names, lines = ["x"], [f"torch.manual_seed({rng.randint(0, 9)})"]
    for number in range(rng.randint(2, 8)):
        one, other, kind = rng.choice(names), rng.choice([*names, *_NUMBERS]), rng.random()
        name = rng.choice([f"y{number}", rng.choice(names)])
        if kind < 0.25:
            lines.append(f"{name} = {rng.choice(_MADE)}.to(torch.{rng.choice(DTYPES)})")
        elif kind < 0.6:
            lines.append(f"{name} = {one}{''.join(rng.choices(_APPLIED, k=rng.randint(1, 3)))}")
        elif kind < 0.8:
            lines.append(f"{name} = ({one} {rng.choice(_SYMBOLS)} {other}){rng.choice(['', '.t()', '.sum(0)'])}")
        elif kind < 0.9:
            lines.append(f"{one}{rng.choice(_WRITTEN)} {rng.choice(['=', '+=', '*=', '-='])} {other}")
            continue
        else:
            method = rng.choice(["add_(1)", "mul_(2)", "zero_()", "clamp_(0, 3)", f"copy_({other})", "relu_()"])
            lines.append(f"{one}{rng.choice(_WRITTEN)}.{method}")
            continue
        names.append(name)
    return "\n".join(lines)
