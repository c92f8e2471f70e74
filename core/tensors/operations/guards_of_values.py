"""Guards of operations whose result is as large as the values of a tensor say: one_hot, bincount, repeat_interleave.

They take what a `Guard` takes, and what says of an input the largest of its elements and their sum, 0 for none; where
a tensor is only counted, it can be asked of none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from core.tensors.operations.guards import check_elements, check_pieces, check_size, padded_numel
from core.tensors.operations.values import Arguments, Keywords, Shape, integers, named

Sums: TypeAlias = Callable[[int], tuple[int, int]]
Measured: TypeAlias = Callable[[Sequence[Shape], Arguments, Keywords, Sums], None]


def classes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords, sums: Sums) -> None:
    """one_hot: one dimension more, as long as asked or as the largest element needs."""
    (number,) = integers((named(("num_classes",), args, keywords).get("num_classes"),)) or (-1,)
    check_size((*shapes[0], max(number, sums(0)[0] + 1)), "The result")


def counts(shapes: Sequence[Shape], args: Arguments, keywords: Keywords, sums: Sums) -> None:
    """bincount: one count per number up to the largest."""
    (least,) = integers((named(("weights", "minlength"), args, keywords).get("minlength"),)) or (0,)
    check_elements(max(least, sums(0)[0] + 1), "The result")


def cuts(shapes: Sequence[Shape], args: Arguments, keywords: Keywords, sums: Sums) -> None:
    """tensor_split at the places that a tensor holds, or into as many pieces as it says."""
    if len(shapes) > 1:
        check_pieces(max(sums(1)[0] if not shapes[1] else padded_numel(shapes[1]) + 1, 1), "tensor_split")


def repeated(shapes: Sequence[Shape], args: Arguments, keywords: Keywords, sums: Sums) -> None:
    """repeat_interleave: all elements times the sum of a tensor of repeats, which one dimension grows to."""
    if len(shapes) > 1:
        check_elements(padded_numel(shapes[0]) * max(*sums(1), 1), "The result, at most,")
