"""The lecture's program in words of our own, part by part in its order, with the claims that stand at its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.rows import read_rows


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the program that runs by itself. claims: of the lecture, by their ids → the line that shows each."""

    title: str
    source: str
    claims: Mapping[str, int]


def _part(title: str, claims: str, source: str) -> Part:
    pairs = (claim.split(":") for claim in claims.split())
    return Part(title, source, {name: int(line) for name, line in pairs})


PROGRAM: tuple[Part, ...] = tuple(_part(**row) for row in read_rows("tensor_lecture"))
"""The rows of ``assets/data/tensor_lecture.csv``."""
