"""Programs as people paste them: comments, imports, semicolons, and numbers that are asked of tensors."""

from __future__ import annotations

import random

import pytest
import torch

from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from tests.core.test_tensors_script import check
from tests.every import every

PASTED: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("x.view(x.size(0), -1)", (2, 3, 4), (2, 12)),
    ("x.reshape(x.size(dim=-1), len(x), -1)", (2, 3, 4), (4, 2, 3)),
    ("x.t().reshape(x.shape)", (2, 3), (2, 3)),
    ("x.view(x.shape[:-1] + (2, 2))", (2, 3, 4), (2, 3, 2, 2)),
    ("x.view((*x.shape[:2], 2, 2))", (2, 3, 4), (2, 3, 2, 2)),
    ("x.t()  # a comment", (2, 3), (3, 2)),
    ("# flatten – “all” of it\nx.view(6)  # → 6", (2, 3), (6,)),
    ("y = x.t(); z = y.contiguous(); z.view(6);", (2, 3), (6,)),
    ("import torch\nimport einops\ny = torch.zeros(2)", (2, 3), (2,)),
    ("from torch.nn import functional as F\nF.unfold(x.float(), 2)", (1, 1, 2, 3), (1, 4, 2)),
    ("from einops import rearrange, reduce\nrearrange(x, 'a b -> b a')", (2, 3), (3, 2)),
    ("import torch\n" + "x\n" * 12, (2, 3), (2, 3)),
    ("n = -1\nx.view(2 * 3, n)", (2, 3), (6, 1)),
    ("b, n, d = x.shape\nh = 2\nx.view(b, n, h, d // h).transpose(1, 2)", (2, 3, 4), (2, 2, 3, 2)),
    ("h, d = 2, x.shape[-1] // 2\nx.view(-1, h, d)", (2, 4), (2, 2, 2)),
    ("b, *rest = x.shape\nx.view(b * rest[0], *rest[1:])", (2, 3, 4), (6, 4)),
    ("*rest, d = x.shape\nx.permute(2, 0, 1).reshape(d, *rest)", (2, 3, 4), (4, 2, 3)),
    ("b, *_, d = x.t().shape\nx.view(b, d)", (2, 3), (3, 2)),
    ("a, b, *c = (3, 2)\nx.view(a, b, *c)", (2, 3), (3, 2)),
    ("q, k, v = x[0], x[1], x[2]\nq[0] = 7\nq + k + v", (3, 4), (4,)),
    ("n, y = x.size(0), x.t()\ny.reshape(n, -1)", (2, 3), (2, 3)),
    ("y = x.t()\nx, y = y, x\nx[0] = 7\ny", (2, 3), (2, 3)),
    ("[a, b] = [x[0], x.chunk(2)[1]]\nb[0]", (2, 3), (3,)),
    ("q, k = x[:, 0], 3\nk, q = 2, q.t()\nq.expand(k, -1)", (2, 3), (2, 2)),
    ('"""What it does – in words.\n\nx[9]"""\nx.t()', (2, 3), (3, 2)),
    ("s = x.shape\nx.t().contiguous().view(s[1] * s[0])", (2, 3), (6,)),
    ("n = x.size(0)\nn += 4\nn //= 3\nx.view(-1, n)", (2, 3), (3, 2)),
    ("n = x.t()\nn = n.size(0)\nx.view(n, 2)", (2, 3), (3, 2)),
    ("x @ x.t() / x.size(-1) ** 0.5", (2, 3), (2, 2)),
    ("scale = x.shape[-1] ** -0.5\nx * scale", (2, 3), (2, 3)),
    ("x[x.size(0) - 1, -x.size(1) :]", (2, 3), (3,)),
    ("i = 1\nx.chunk(2)[i]", (2, 3), (1, 3)),
    ("parts = x.chunk(2)\nparts[0].view(len(parts[0]), -1)", (2, 3), (1, 3)),
    ("x.chunk(x.size(1), dim=x.dim() - 1)[0]", (2, 3), (2, 1)),
    ("x.as_strided((2, 2), (x.stride(0), x.stride()[1]), x.storage_offset())", (2, 3), (2, 2)),
    ("x[0] = x.size(1)\nx += len(x)\nx", (2, 3), (2, 3)),
    ("rearrange(x, 'a (h d) -> h a d', h=x.size(1) // 2)", (2, 6), (3, 2, 2)),
    ("torch.arange(x.numel()).view(x.size(1), x.ndim)", (2, 3), (3, 2)),
]


@every(("source", "start", "shape"), PASTED)
def test_what_people_paste_runs_and_becomes_a_script(
    source: str, start: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    run = trace(source, start)
    assert run.refusal is None
    assert run.last.layout.shape == shape
    check(source, start, "int64")


REAL = (
    '"""Attention – by hand."""\n_, *rest = x.shape\nq, k, v = x[0], x[1], x[2]\nz = q.reshape(-1, rest[-1])',
    "q, k, v = x.unbind(0)\n*_, d = q.shape\nk, q = q, k\nz = (q * d).reshape(d, -1)",
    "q, k, v = x.split(1)\nn, z = q.numel(), k.transpose(0, -1)\nz = z.reshape(n)",
)


@every("seed", range(12))
@every("source", REAL)
def test_names_are_bound_as_in_python(source: str, seed: int) -> None:
    """Sizes, strides, values and who shares storage, on random shapes."""
    rng = random.Random(seed)
    shape = (3, *(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))
    names = {"x": torch.arange(torch.Size(shape).numel()).view(shape)}
    exec(source, {}, names)  # noqa: S102 (text of our own making)
    run = trace(f"{source}\nz", shape).last
    z = names["z"]
    assert run.layout.shape == tuple(z.shape)
    assert run.layout.stride == tuple(z.stride())
    assert run.values == tuple(z.flatten()[: len(run.values)].tolist())
    assert (run.storage == 0) == (z.untyped_storage().data_ptr() == names["x"].untyped_storage().data_ptr())


def test_too_few_sizes_for_a_star_and_too_few_values() -> None:
    for text, words in (
        ("a, b, c, *d = x.shape", r"expected at least 3, got 2"),
        ("a, *b, *c = x.shape", "Unpack into names"),
        ("a, b = x[0], x[1], x", r"too many values to unpack \(expected 2\)"),
    ):
        with pytest.raises(ExpressionError, match=words):
            trace(f"{text}\nx", (2, 3))


def test_a_fix_keeps_comments_imports_and_names() -> None:
    source = "import torch\nn = x.size(0)  # rows\nx.t().view(n, -1)  # fails\nx.t()"
    refused = trace(source, (2, 3)).refusal
    assert refused is not None
    assert refused.verdict is not None
    assert refused.verdict.shape == (2, 3)
    assert refused.fixes[0].source == source.replace(".view(n, -1)", ".reshape(n, -1)")
    assert trace(refused.fixes[0].source, (2, 3)).refusal is None


def test_steps_stand_as_typed_and_numbers_make_none() -> None:
    run = trace("n = x.t().size(0)\nx.view(n, -1)", (2, 3))
    assert [(step.source, step.line) for step in run] == [("x", 0), (".t()", 1), (".view(n, -1)", 2)]
    assert [step.args for step in run.planned] == [(), (3, -1)]


def test_names_of_names_cost_no_more_than_their_lines() -> None:
    """Each line uses the one before many times: worked out once, and not nested, or this would take forever."""
    lines = ["n = x.size(0) - 1", *["n = " + " + ".join(["n"] * 20) + " - n * 19"] * 11]
    assert trace("\n".join(lines[:8]) + "\nx.view(n * 2, -1)", (2, 3)).last.layout.shape == (2, 3)
    deep = "n = x.size(0)" + "+ 0" * 60
    assert trace(f"{deep}\n" + "n = n" + " + 0" * 60 + "\nx.view(n, -1)", (2, 3)).last.layout.shape == (2, 3)


def test_random_arithmetic_is_that_of_python() -> None:
    rng = random.Random(20251120)
    agreed = 0
    for _ in range(400):
        text = _sum(rng, 3)
        try:
            run = trace(f"n = x.size(0)\nm = {text}\nx.add(m)", (2, 3))
        except ExpressionError:
            continue
        names = {"x": torch.arange(6).view(2, 3), "n": 2}
        assert run.planned[-1].args[0] == eval(text, names)  # noqa: S307 (text of our own making)
        agreed += 1
    assert agreed > 200


def _sum(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["n", "x.size(1)", "x.shape[-1]", "x.numel()", "2", "7", "0", "-3", "x.stride(0)", "x.ndim"])
    return f"({_sum(rng, depth - 1)} {rng.choice(['+', '-', '*', '//', '%', '**', '/'])} {_sum(rng, depth - 1)})"
