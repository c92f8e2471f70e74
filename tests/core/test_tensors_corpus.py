"""Real code: attention, rotary, routing and normalisation as public repositories write them, examples of einops, and
what a course on language models hands out, in words of our own.

``tests/data/README.md`` says where the first come from. Every line is read, and every tensor it makes is held against
torch running the same lines.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import einops
import numpy as np
import pytest
import torch
from torch import nn

from core.tensors.layout import bounds
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import follow, trace
from tests.every import every

DATA = Path(__file__).parents[1] / "data" / "snippets"
SNIPPETS: list[dict[str, Any]] = json.loads((DATA / "tensors.json").read_text(encoding="utf-8"))
EINOPS = list(csv.DictReader((DATA / "einops.csv").read_text(encoding="utf-8").splitlines()))
LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause"}


def in_torch(program: str, shape: list[int], dtype: str) -> dict[str, Any]:
    """Every name that torch itself has after the same lines."""
    x = torch.arange(int(np.prod(shape)), dtype=getattr(torch, dtype)).view(shape)
    names: dict[str, Any] = {"x": x, "torch": torch, "F": nn.functional, "nn": nn, "np": np, "einops": einops}
    names |= {name: getattr(einops, name) for name in ("rearrange", "reduce", "repeat", "einsum")}
    kind = type("Kind", (), {"__class_getitem__": classmethod(lambda cls, item: Any)})
    names |= {"math": math, "Tensor": torch.Tensor, **dict.fromkeys(("Float", "Int", "Bool"), kind)}
    exec(program, names)  # noqa: S102 (text of our own making)
    return names


def hold_against_torch(run: Trace, names: dict[str, Any], what: str) -> int:
    """Shape, strides and dtype of every tensor that a name stands for in the end; how many there are."""
    compared = 0
    for name, value in names.items():
        if not isinstance(value, torch.Tensor):
            continue
        step = next((s for s in reversed(run.steps) if s.name == name), run[0] if name == "x" else None)
        if step is None:
            continue
        facts = (step.layout.shape, step.layout.stride, step.dtype)
        assert facts == (tuple(value.shape), value.stride(), str(value.dtype).removeprefix("torch.")), (what, name)
        compared += 1
    return compared


def test_snippets_are_of_many_sources_that_may_be_quoted() -> None:
    assert len(SNIPPETS) >= 40
    assert {snippet["licence"] for snippet in SNIPPETS} <= LICENCES
    assert len({snippet["source"].split()[0] for snippet in SNIPPETS}) >= 12
    assert all("/" in snippet["source"] and snippet["lines"] for snippet in SNIPPETS)


def test_real_code_runs_and_gives_what_it_gives_without_a_recorder() -> None:
    compared = 0
    for snippet in SNIPPETS:
        program = "\n".join([*snippet["given"], *snippet["lines"]])
        run = follow(program, snippet["shape"], dtype=snippet["dtype"])
        assert run.unread is None, (snippet["name"], run.unread)
        assert run.refusal is None, (snippet["name"], run.last.error_message)
        compared += hold_against_torch(run, in_torch(program, snippet["shape"], snippet["dtype"]), snippet["name"])
    assert compared > 250


@every("row", EINOPS, ids=lambda row: row["code"][:60])
def test_examples_of_einops_documentation(row: dict[str, str]) -> None:
    shape = [int(size) for size in row["shape"].split()]
    run = trace(f"y = {row['code']}", shape, dtype="float32")
    assert run.refusal is None
    names = in_torch(f"y = {row['code']}", shape, "float32")
    assert hold_against_torch(run, {"y": names["y"]}, row["code"]) == 1
    assert np.allclose(run.last.values, names["y"].flatten().tolist())


# ---------------------------------------------------------------------------------------- code of a course

_LINEAR = '''
class Dense(nn.Module):
    """y = W x, without a bias."""

    def __init__(self, d_in: int, d_out: int, device=None, dtype=None):
        super().__init__()
        std = math.sqrt(2 / (d_in + d_out))
        self.weight: Float[Tensor, " d_out d_in"] = nn.Parameter(
            nn.init.trunc_normal_(torch.empty(d_out, d_in, device=device, dtype=dtype), std=std, a=-3 * std, b=3 * std)
        )

    def forward(self, x: Float[Tensor, " ... d_in"]) -> Float[Tensor, " ... d_out"]:
        return einsum(x, self.weight, "... d_in, d_out d_in -> ... d_out")
'''
_SOFTMAX = """
def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    shifted = x - torch.amax(x, dim=dim, keepdim=True)
    e = torch.exp(shifted)
    return e / e.sum(dim=dim, keepdim=True)
"""
_ATTENTION = """
def scaled_dot_product_attention(
    Q: Float[Tensor, " ... queries d_k"],
    K: Float[Tensor, " ... keys d_k"],
    V: Float[Tensor, " ... keys d_v"],
    mask: Bool[Tensor, " ... queries keys"] | None = None,
) -> Float[Tensor, " ... queries d_v"]:
    d_k = K.shape[-1]
    scores = einsum(Q, K, "... q d, ... k d -> ... q k") / math.sqrt(d_k)
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores, dim=-1)
    return einsum(weights, V, "... q k, ... k d -> ... q d")
"""
_ROPE = """
class Rotary(nn.Module):
    def __init__(self, theta: float, d_k: int, max_len: int, device=None):
        super().__init__()
        freqs = theta ** -(torch.arange(0, d_k, 2, device=device) / d_k)
        angles = torch.arange(max_len, device=device)[:, None] * freqs[None, :]
        self.register_buffer("table", torch.stack([angles.cos(), angles.sin()]), persistent=False)

    def forward(self, x: Float[Tensor, " ... seq d"], pos: Int[Tensor, " ... seq"]) -> Float[Tensor, " ... seq d"]:
        a, b = rearrange(x, "... (half two) -> two ... half", two=2)
        cos, sin = self.table[:, pos]
        first = cos * a - sin * b
        second = sin * a + cos * b
        return rearrange(torch.stack([first, second], dim=-1), "... half two -> ... (half two)").contiguous()
"""
_NORM = """
class RMS(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x):
        in_dtype = x.dtype
        x = x.to(torch.float32)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (x * scale * self.gain).to(in_dtype)
"""
_GATED = """
def silu(x):
    return x * torch.sigmoid(x)


class Gated(nn.Module):
    def __init__(self, d_model: int, d_ff: int | None = None):
        super().__init__()
        d_ff = d_ff if d_ff is not None else 8 * ((int(d_model * 8 / 3) + 7) // 8)
        self.w1, self.w3 = Dense(d_model, d_ff), Dense(d_model, d_ff)
        self.w2 = Dense(d_ff, d_model)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))
"""
_HEADS = """
class SelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, rope: nn.Module | None = None):
        super().__init__()
        assert d_model % num_heads == 0
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.q, self.k, self.v, self.out = [Dense(d_model, d_model) for _ in range(4)]
        self.rope = rope

    def forward(self, x, positions=None):
        *b, n, d = x.shape
        q, k, v = (rearrange(f(x), "... s (h d) -> ... h s d", h=self.num_heads) for f in (self.q, self.k, self.v))
        if self.rope is not None:
            positions = torch.arange(n, device=x.device) if positions is None else positions
            q, k = self.rope(q, positions), self.rope(k, positions)
        where = torch.arange(n)
        causal = where[:, None] >= where[(None,) * 1 + (...,)]
        mixed = scaled_dot_product_attention(q, k, v, mask=causal)
        return self.out(rearrange(mixed, "... h s d -> ... s (h d)"))
"""
_BLOCK = """
class Block(nn.Module):
    def __init__(self, d_model, num_heads, rope):
        super().__init__()
        self.attn, self.ffn = SelfAttention(d_model, num_heads, rope), Gated(d_model, 16)
        self.norms = nn.ModuleList([RMS(d_model) for _ in range(2)])

    def forward(self, x):
        x = x + self.attn(self.norms[0](x))
        return x + self.ffn(self.norms[1](x))
"""

PIECES: dict[str, str] = {
    "embedding": """
class Table(nn.Module):
    def __init__(self, vocab: int, dim: int, device=None, dtype=None):
        super().__init__()
        table = torch.empty((vocab, dim), device=device, dtype=dtype)
        self.weight = nn.Parameter(table, requires_grad=True)
        nn.init.trunc_normal_(self.weight, mean=0.0, std=1.0, a=-3.0, b=3.0)

    def forward(self, ids: Int[Tensor, " ..."]) -> Float[Tensor, " ... dim"]:
        return self.weight[ids, :]

table = Table(10, 4)
y = table(torch.tensor([[1, 2], [3, 9]]))
assert y.shape == (2, 2, 4)
""",
    "RoPE": f"{_ROPE}\nrope = Rotary(theta=10000.0, d_k=4, max_len=6)\ny = rope(torch.ones(2, 3, 4), torch.arange(3))",
    "RMSNorm": f"{_NORM}\nnorm = RMS(4)\ny = norm(torch.arange(8.0).view(2, 4).to(torch.bfloat16))\n"
    "assert y.dtype == torch.bfloat16",
    "attention": f"{_SOFTMAX}{_ATTENTION}\nq, k, v = (torch.arange(24.0).view(1, 2, 3, 4) / n for n in (7, 8, 9))\n"
    "y = scaled_dot_product_attention(q, k, v, torch.ones(3, 3).tril().bool())",
    "cross entropy": """
def cross_entropy(logits: Float[Tensor, " ... vocab"], targets: Int[Tensor, " ..."]) -> Float[Tensor, ""]:
    logits = logits - logits.max(dim=-1, keepdim=True).values
    chosen = torch.gather(logits, -1, targets.unsqueeze(-1)).squeeze(-1)
    return (torch.log(torch.exp(logits).sum(dim=-1)) - chosen).mean()

logits, targets = torch.arange(12.0).view(2, 2, 3).requires_grad_(), torch.tensor([[0, 1], [2, 2]])
y = cross_entropy(logits, targets)
y.backward()
assert torch.allclose(y, F.cross_entropy(logits.view(-1, 3), targets.flatten()))
""",
    "AdamW": """
class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01):
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            lr, (b1, b2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                t = state.get("t", 1)
                m = state.get("m", torch.zeros_like(p.data))
                v = state.get("v", torch.zeros_like(p.data))
                g = p.grad.data
                m = b1 * m + (1 - b1) * g
                v = b2 * v + (1 - b2) * g ** 2
                rate = lr * math.sqrt(1 - b2 ** t) / (1 - b1 ** t)
                p.data -= rate * m / (torch.sqrt(v) + group["eps"])
                p.data *= 1 - lr * group["weight_decay"]
                state["t"], state["m"], state["v"] = t + 1, m, v
        return loss

w = nn.Parameter(torch.ones(3))
opt = AdamW([w], lr=0.1)
for _ in range(2):
    opt.zero_grad()
    loss = (w ** 2).sum()
    loss.backward()
    opt.step()
y = w.data
""",
    "gradient clipping": """
def clip(parameters, max_norm: float, eps: float = 1e-6) -> None:
    grads = [p.grad for p in parameters if p.grad is not None]
    total = torch.sqrt(sum(torch.sum(g ** 2) for g in grads))
    if total > max_norm:
        factor = max_norm / (total + eps)
        for g in grads:
            g.mul_(factor)

a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2, 2))
unused = nn.Parameter(torch.ones(1))
(3 * a.sum() + 4 * b.sum()).backward()
clip([a, b, unused], 1.0)
y = a.grad
assert unused.grad is None
""",
    "get_batch": """
def get_batch(dataset, batch_size: int, context_length: int, device: str = "cpu"):
    last = len(dataset) - context_length
    starts = torch.randint(0, last, (batch_size,))
    x = torch.stack([dataset[s : s + context_length] for s in starts])
    y = torch.stack([dataset[s + 1 : s + 1 + context_length] for s in starts])
    return x.to(device), y.to(device)

inputs, y = get_batch(torch.arange(20), batch_size=2, context_length=4)
assert y.shape == (2, 4)
""",
    "layers of torch": "model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2, bias=False))\n"
    "y = model(torch.ones(3, 4))\nassert sum(p.numel() for p in model.parameters()) == 4 * 8 + 8 + 8 * 2",
    "block": f"{_LINEAR}{_SOFTMAX}{_ATTENTION}{_ROPE}{_NORM}{_GATED}{_HEADS}{_BLOCK}\n"
    "block = Block(8, 2, Rotary(1e4, 4, 16))\ny = block(torch.ones(1, 3, 8))\ny.mean().backward()\n"
    "assert all(p.grad is not None for p in block.parameters())",
}
"""What each piece is → a program that uses it and leaves its result in y."""


@every("name", list(PIECES))
def test_each_piece_runs_and_does_what_torch_does(name: str) -> None:
    run = follow(PIECES[name], (2, 3), dtype="float32")
    assert run.unread is None, run.unread
    assert run.refusal is None, run.last.error_message
    assert not run.asked
    assert all(fact.holds in (None, True) for fact in run.facts), run.facts
    theirs = in_torch(PIECES[name], [2, 3], "float32")["y"]
    ours = run.steps[run.last.names["y"]]
    assert (ours.layout.shape, ours.layout.stride) == (tuple(theirs.shape), theirs.stride())
    assert f"torch.{ours.dtype}" == str(theirs.dtype)
    if name not in ("embedding", "layers of torch", "block", "get_batch"):  # random there
        values = ours.values
        for later in run.steps[ours.number + 1 :]:
            if ours.number in later.changed:
                values = later.after[later.changed.index(ours.number)]
        assert torch.allclose(torch.tensor(values), theirs.detach().flatten().float(), atol=1e-6)


@pytest.mark.parametrize("text", [_NORM, _SOFTMAX, _LINEAR])
def test_a_piece_that_nothing_calls_is_run_with_what_its_names_suggest(text: str) -> None:
    run = follow(text, (2, 8), dtype="float32")
    assert run.unread is None, run.unread
    assert run.refusal is None, run.last.error_message
    assert len(run.steps) > 3


def test_autocast_gives_the_dtypes_of_torch() -> None:
    source = (
        "w = torch.ones(3, 3)\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n    y = x @ w\n    z = y.softmax(-1)"
    )
    run, names = trace(source, (2, 3), dtype="float32"), in_torch(source, [2, 3], "float32")
    for name in ("y", "z"):
        assert f"torch.{run.steps[run.last.names[name]].dtype}" == str(names[name].dtype)


# -------------------------------------------------------------------------------- the table of views

VIEWS = (Path(__file__).parents[1] / "data" / "tensor_views.csv").read_text(encoding="utf-8")
VIEW_ROWS = list(csv.DictReader(io.StringIO(VIEWS, newline="")))


def normal(message: str) -> str:
    """White space as single spaces, and einops' sets of axes, whose order varies with the hash seed, sorted."""
    spaced = " ".join(message.split())
    return re.sub(r"\{('[^{}]*')\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", spaced)


def number(text: str) -> int | float:
    return float(text) if "." in text or "e" in text else int(text)


def test_the_table_asks_each_thing_once() -> None:
    assert len({row["id"] for row in VIEW_ROWS}) == len(VIEW_ROWS)


@every("row", VIEW_ROWS, ids=[f"{row['id']}-{row['expr']}" for row in VIEW_ROWS])
def test_every_view_is_as_torch_has_it(row: dict[str, str]) -> None:
    shape, stride = ast.literal_eval(row["start_shape"]), ast.literal_eval(row["start_stride"])
    run = follow(row["expr"], shape, stride, row["dtype"])
    assert not run.starts_with_x or run.steps[0].layout.stride == ast.literal_eval(row["start_stride"])
    last = run.last
    if row["error_type"]:
        said = f"{last.error_type}: {last.error_message}" if run.unread is None else run.unread.why
        assert normal(said) == normal(f"{row['error_type']}: {row['error_message']}")
        return
    assert last.kind != "refused", last.error_message
    assert last.layout.shape == ast.literal_eval(row["result_shape"])
    assert last.layout.stride == ast.literal_eval(row["stride"])
    assert last.layout.offset == int(row["storage_offset"])
    assert last.layout.numel == int(row["numel"])
    assert last.is_contiguous == last.layout.is_contiguous == (row["is_contiguous"] == "1")
    assert (last.storage == 0 and run.starts_with_x) == (row["shares_storage"] == "1")
    assert last.storage_elements == int(row["storage_numel"])
    if row["values_first24"]:
        assert last.values[:24] == tuple(number(value) for value in row["values_first24"].split())
    assert bounds(last.layout, last.storage_elements).inside
    assert last.layout.overlaps == (row["exact_overlap"] == "1")
