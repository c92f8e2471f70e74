"""The lecture's claims about tensors as something to run: one preset per claim, T1 to T15."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Room: TypeAlias = Literal["expression", "names", "devices"]


@dataclass(frozen=True, slots=True)
class LecturePreset:
    """An example: a claim of the lecture, and what to run to see it.

    claim: its id. room: ``expression`` (run on x), ``names`` (shapes against names) or ``devices`` (bytes moved).
    shape, dtype, source: the start tensor and the program; for ``names`` the source is one tensor per line.
    """

    claim: str
    label: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    room: Room = "expression"


LECTURE: tuple[LecturePreset, ...] = (
    LecturePreset("T1", "Strides of a 4 × 4", (4, 4), "float32", "x[1, 2]"),
    LecturePreset("T2", "Which index, which stride", (2, 3), "int64", "x[1, 2]\nx.t()[2, 1]"),
    LecturePreset("T3", "Four views of one storage", (2, 3), "int64", "x[0]\nx[:, 1]\nx.view(3, 2)\nx.transpose(1, 0)"),
    LecturePreset("T4", "Written through the transpose", (2, 3), "int64", "y = x.transpose(1, 0)\nx[0][0] = 100\ny"),
    LecturePreset("T5", "Transpose, then view: fails", (2, 3), "int64", "x.transpose(1, 0).view(2, 3)"),
    LecturePreset("T6", "contiguous first: works", (2, 3), "int64", "x.transpose(1, 0).contiguous().view(2, 3)"),
    LecturePreset("T7", "What a copy costs", (2, 3, 4), "float32", "x.view(6, 4).t().reshape(3, 8)"),
    LecturePreset("T8", "View without contiguity", (4, 6), "int64", "x[:, ::2].view(-1)"),
    LecturePreset("T9", "reshape copies when it must", (2, 3), "int64", "x.reshape(3, 2)\nx.t().reshape(6)"),
    LecturePreset(
        "T10",
        "Attention heads, two ways",
        (2, 3, 8),
        "float32",
        "x.view(2, 3, 2, 4).permute(0, 2, 1, 3)\nrearrange(x, 'b s (h d) -> b h s d', h=2)",
    ),
    LecturePreset(
        "T11",
        "einsum names dimensions",
        (2, 3, 4),
        "float32",
        "y = x + 1\nz = torch.einsum('bij,bkj->bik', x, y)\nz - x @ y.transpose(-2, -1)",
    ),
    LecturePreset("T12", "A causal mask", (3, 3), "float32", "x + x\ntorch.ones(3, 3).triu()"),
    LecturePreset("T13", "Batched matmul", (4, 8, 16, 32), "float32", "w = torch.ones(32, 2)\nx @ w"),
    LecturePreset(
        "T14",
        "Names that are checked",
        (2, 3, 8),
        "float32",
        "x: batch seq hidden = 2, 3, 8\nw: hidden vocab = 9, 50",
        "names",
    ),
    LecturePreset("T15", "Onto the device", (32, 32), "float32", "torch.zeros(32, 32)", "devices"),
)
"""One preset per claim, in order."""
