"""Arrays that broadcast against each other, cut into pieces that a processor's cache holds. None is ever spread out.

What depends on one axis alone stays as long as that axis, so that its part of a formula costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np

Key = TypeVar("Key")

Piece: TypeAlias = "tuple[slice, ...]"


def pieces(size: tuple[int, ...], most: int) -> Iterator[Piece]:
    """Slices that cover a shape, each of ``most`` points or fewer, the first axis being cut first."""
    steps: list[int] = []
    for axis, length in enumerate(size):
        inner = math.prod(size[axis + 1 :])
        steps.append(max(1, min(length, most // inner)) if inner else 1)
    yield from product(*(tuple(slice(i, i + s) for i in range(0, n, s)) for n, s in zip(size, steps, strict=True)))


def aligned(values: Mapping[Key, Any]) -> tuple[tuple[int, ...], dict[Key, Any]]:
    """The shape that values broadcast to, and arrays among them with as many axes; single numbers stay as they are."""
    size = np.broadcast_shapes(*(np.shape(value) for value in values.values()))

    def padded(value: Any) -> Any:
        return value.reshape((1,) * (len(size) - value.ndim) + value.shape) if np.ndim(value) else value

    return size, {key: padded(value) for key, value in values.items()}


def cut(value: Any, piece: Piece) -> Any:
    """The part of an aligned value that lies in a piece; axes along which it does not differ stay of length 1."""
    if not np.ndim(value):
        return value
    return value[tuple(at if n > 1 else slice(None) for at, n in zip(piece, value.shape, strict=True))]
