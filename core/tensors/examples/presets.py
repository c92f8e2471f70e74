"""The lecture's claims about tensors as something to run, one preset per claim, T1 to T13; and a program of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """An example, and what to run to see it.

    claim: of the lecture, its id; empty for others. shape, dtype, source: the start tensor and the program.
    """

    claim: str
    label: str
    shape: tuple[int, ...]
    dtype: str
    source: str


LECTURE: tuple[Preset, ...] = (
    Preset("T1", "Strides of a 4 × 4", (4, 4), "float32", "x[1, 2]"),
    Preset("T2", "Which index, which stride", (2, 3), "int64", "x[1, 2]"),
    Preset("T3", "Four views of one storage", (2, 3), "int64", "x[0]\nx[:, 1]\nx.view(3, 2)\nx.transpose(1, 0)"),
    Preset("T4", "Written through the transpose", (2, 3), "int64", "y = x.transpose(1, 0)\nx[0][0] = 100\ny"),
    Preset("T5", "Transpose, then view: fails", (2, 3), "int64", "x.transpose(1, 0).view(2, 3)"),
    Preset("T6", "contiguous first: works", (2, 3), "int64", "x.transpose(1, 0).contiguous().view(2, 3)"),
    Preset("T7", "What a copy costs", (2, 3, 4), "float32", "x.view(6, 4).t().reshape(3, 8)"),
    Preset("T8", "View without contiguity", (4, 6), "int64", "x[:, ::2].view(-1)"),
    Preset("T9", "reshape copies when it must", (2, 3), "int64", "x.reshape(3, 2)\nx.t().reshape(6)"),
    Preset(
        "T10",
        "Attention heads, two ways",
        (2, 3, 8),
        "float32",
        "x.view(2, 3, 2, 4).permute(0, 2, 1, 3)\nrearrange(x, 'b s (h d) -> b h s d', h=2)",
    ),
    Preset(
        "T11",
        "einsum names dimensions",
        (2, 3, 4),
        "float32",
        "y = x + 1\nz = torch.einsum('bij,bkj->bik', x, y)\nz - x @ y.transpose(-2, -1)",
    ),
    Preset("T12", "A causal mask", (3, 3), "float32", "x + x\ntorch.ones(3, 3).triu()"),
    Preset("T13", "Batched matmul", (4, 8, 16, 32), "float32", "w = torch.ones(32, 2)\nx @ w"),
)
"""One preset per claim, in order."""

ATTENTION = Preset(
    "",
    "Six lines of attention",
    (2, 4, 24),
    "float32",
    """q, k, v = x.chunk(3, dim=-1)
q = q.view(2, 4, 2, 4).transpose(1, 2)
k = k.view(2, 4, 2, 4).transpose(1, 2)
v = v.view(2, 4, 2, 4).transpose(1, 2)
scores = (q @ k.transpose(-2, -1)).softmax(-1)
(scores @ v).transpose(1, 2).reshape(2, 4, 8)""",
)
"""What heads of attention do to memory, unscaled: views up to the first product, and a copy at the end."""
