"""A chain of views that is named gives the very layout asked for on torch; what torch cannot do is said to be so."""

from __future__ import annotations

import random
from typing import Any

import pytest

from core.tensors.examples.reachable_layouts import same_cells, views_to
from core.tensors.examples.typed_layout import try_layout
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace

torch: Any = pytest.importorskip("torch")


def layout_of(tensor: Any) -> TensorLayout:
    return TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def viewed(rng: random.Random, x: Any) -> Any:
    """Up to three random views of x."""
    for _ in range(rng.randint(0, 3)):
        dim = rng.randrange(x.dim()) if x.dim() else 0
        match rng.choice(("permute", "slice", "unsqueeze", "expand", "unfold", "select", "diagonal")):
            case "permute" if x.dim() > 1:
                x = x.permute(rng.sample(range(x.dim()), x.dim()))
            case "slice" if x.dim():
                start = rng.randrange(x.shape[dim])
                x = x[(slice(None),) * dim + (slice(start, None, rng.randint(1, 2)),)]
            case "unsqueeze" if x.dim() < 4:
                x = x.unsqueeze(rng.randint(0, x.dim()))
            case "expand" if x.dim() and x.shape[dim] == 1:
                x = x.expand(*x.shape[:dim], 3, *x.shape[dim + 1 :])
            case "unfold" if x.dim() and x.shape[dim] > 1 and x.dim() < 4:
                x = x.unfold(dim, 2, rng.randint(1, 2))
            case "select" if x.dim():
                x = x.select(dim, rng.randrange(x.shape[dim]))
            case "diagonal" if x.dim() > 1:
                x = x.diagonal(0, *rng.sample(range(x.dim()), 2))
            case _:
                pass
    return x


def compare_chains(count: int, seed: int) -> int:
    """How many of ``count`` random layouts of a storage have a chain from another; each chain is run on torch."""
    rng = random.Random(seed)
    reached = 0
    for _ in range(count):
        shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
        x = torch.arange(torch.Size(shape).numel()).view(shape)
        base, target = viewed(rng, x), viewed(rng, x)
        wanted = layout_of(target)
        calls = views_to(layout_of(base), wanted)
        if calls is None:
            continue
        traced = eval("base" + "".join(calls), {"base": base})  # noqa: S307 (text of our own making)
        assert same_cells(layout_of(traced), wanted), (layout_of(base), wanted, calls)
        assert traced.untyped_storage()._cdata == x.untyped_storage()._cdata
        assert torch.equal(traced, target)
        assert bool(calls) != same_cells(layout_of(base), wanted)
        reached += 1
    return reached


def test_the_chain_named_gives_the_layout_on_torch() -> None:
    assert compare_chains(1_500, seed=15) > 1_000


def test_a_dense_matrix_has_views_for_every_layout_of_two_strides_that_fits() -> None:
    """Windows of the flat tensor take any two steps, so as_strided is never alone there."""
    rng = random.Random(3)
    base = TensorLayout.contiguous((3, 4))
    for _ in range(300):
        shape, stride = (rng.randint(1, 5), rng.randint(1, 5)), (rng.randint(0, 5), rng.randint(0, 5))
        wanted = TensorLayout(shape, stride, rng.randint(0, 4))
        if bounds(wanted, 12).inside:
            assert views_to(base, wanted) is not None, wanted


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (TensorLayout((3, 2), (1, 3)), (".t()",)),
        (TensorLayout((2,), (3,), 1), ("[:, 1]",)),
        (TensorLayout((2,), (4,)), (".diagonal()",)),
        (TensorLayout((6,), (1,)), (".view(-1)",)),
        (TensorLayout((4, 2, 3), (0, 3, 1)), (".expand(4, 2, 3)",)),
        (TensorLayout((1, 2, 3), (9, 3, 1)), ("[None]",)),
        (TensorLayout((2, 2, 2), (3, 1, 1)), (".unfold(1, 2, 1)",)),
    ],
)
def test_the_shortest_chain_is_the_one_people_write(wanted: TensorLayout, calls: tuple[str, ...]) -> None:
    assert views_to(TensorLayout.contiguous((2, 3)), wanted) == calls


@pytest.mark.parametrize(
    ("program", "number", "wanted", "verdict", "words"),
    [
        ("y = x + 1", 1, TensorLayout((3, 2), (1, 3)), "found", "y.t()"),
        ("x.t().view(2, 3)", 1, TensorLayout((2, 3), (3, 1)), "found", "x.t().t()"),
        ("x[0]", 1, TensorLayout((2,), (3,)), "found", "x[:, 0]"),  # by another tensor of the storage
        ("x", 0, TensorLayout((2, 3), (1, 3)), "none", "cell 7"),
        ("x", 0, TensorLayout((2, 3), (-3, 1), 3), "none", "negative"),
        ("x", 0, TensorLayout((2, 3), (3, 1)), "found", "x itself"),
        ("y = x.t()\ny = y + 1\ny = y.t()", 2, TensorLayout((6,), (1,)), "found", ".view(-1)"),  # an old y has no name
    ],
)
def test_a_layout_tried_in_a_program(program: str, number: int, wanted: TensorLayout, verdict: str, words: str) -> None:
    attempt = try_layout(trace(program, (2, 3)), number, wanted)
    assert attempt.verdict == verdict
    assert words in f"{attempt.why} {attempt.code}"
    if attempt.source:
        assert same_cells(trace(attempt.source, (2, 3)).last.layout, wanted)


def test_strides_that_no_view_gives() -> None:
    """Every third cell of a start that has only every second one: the cells between are there, but not for views."""
    run = trace("x", (3,), (2,))
    attempt = try_layout(run, 0, TensorLayout((2,), (1,)))
    assert (attempt.verdict, attempt.code) == ("strided", "x.as_strided((2,), (1,), 0)")
    assert attempt.source.endswith(attempt.code)


def test_what_is_beyond_the_caps_is_refused() -> None:
    run = trace("x.t()", (2, 3))
    for number, wanted in (
        (9, TensorLayout((1,), (1,))),
        (-1, TensorLayout((1,), (1,))),
        (0, TensorLayout((1,) * 9, (1,) * 9)),
    ):
        with pytest.raises(ExpressionError):
            try_layout(run, number, wanted)
    for wanted in (TensorLayout((10**9,), (0,)), TensorLayout((2,), (10**12,)), TensorLayout((1,), (1,), 10**12)):
        with pytest.raises(ExpressionError):
            try_layout(run, 0, wanted)
