"""Guards of operations whose results have sizes of their own: starts, products, joins, padding, attention.

See `core.tensors.operations.guards` for what a guard is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from core.limits import limit
from core.tensors.operations.guards import (
    broadcast,
    check_elements,
    check_size,
    check_work,
    elementwise,
    joined,
    matmul,
    padded_numel,
)
from core.tensors.operations.values import Arguments, ExpressionError, Keywords, Shape, Value, integers, named


def _whole(value: Value, default: int) -> int:
    return (*integers((value,)), default)[0]


def full_size(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """full and new_full: the size first, then what it is filled with, which is no size."""
    check_size(integers((named(("size",), args[:1], keywords).get("size"),)), "The result")


def integer_sizes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """randint: the bounds are numbers, the size is a tuple. So are size and strides of empty_strided."""
    tuples = [value for value in (*args, *keywords.values()) if isinstance(value, tuple)]
    for sizes in tuples[:1]:
        check_size(integers((sizes,)), "The result")
    if len(tuples) > 1:
        reach = zip(integers((tuples[0],)), integers((tuples[1],)), strict=False)
        check_elements(1 + sum((max(size, 1) - 1) * abs(stride) for size, stride in reach), "Its storage")


def square(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """eye: rows by columns, as many as rows if not given."""
    given = named(("n", "m"), args, keywords)
    rows = _whole(given.get("n"), 1)
    check_size((rows, _whole(given.get("m"), rows)), "The result")


def steps(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """linspace and logspace: as many elements as steps."""
    check_elements(_whole(named(("start", "end", "steps"), args, keywords).get("steps"), 1), "The result")


def line(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """randperm: n elements."""
    check_elements(_whole(named(("n",), args, keywords).get("n"), 1), "The result")


def triangle(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """tril_indices and triu_indices: at most two numbers per place of the matrix."""
    given = named(("row", "col"), args, keywords)
    check_elements(2 * max(_whole(given.get("row"), 1), 1) * max(_whole(given.get("col"), 1), 1), "The result")


def embedded(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """diag_embed: the last dimension becomes the diagonal of a square."""
    side = shapes[0][-1] if shapes[0] else 1
    side += abs(_whole(named(("offset",), args, keywords).get("offset"), 0))
    check_size((*shapes[0][:-1], side, side), "The result")


def products(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """outer, kron and meshgrid: every element of one with every element of the others."""
    check_elements(math.prod(padded_numel(shape) for shape in shapes), "The result")


def tuples(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """cartesian_prod: as many numbers per row as tensors, a row per combination."""
    check_elements(len(shapes) * math.prod(padded_numel(shape) for shape in shapes), "The result")


def blocks(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """block_diag: all rows by all columns."""
    sides = [(1, 1, *shape)[-2:] for shape in shapes]
    check_size((sum(rows for rows, _ in sides), sum(columns for _, columns in sides)), "The result")


def added_matmul(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """addmm and its like: the first tensor is added to the product of the other two."""
    if len(shapes) == 3:
        matmul(shapes[1:], args, keywords)
        check_size(shapes[0], "The result")


def inner(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """inner and linear: rows of both multiplied and summed; a bias is added."""
    if len(shapes) < 2:
        return
    left, right = shapes[:2]
    result = (*left[:-1], *right[:-1])
    check_size(result, "The product")
    check_work(padded_numel(result) * max((1, *left)[-1], (1, *right)[-1], 1), "The product")


def both_multiplied(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """bilinear: each pair of elements of two rows, times a weight for every output."""
    if len(shapes) > 2 and shapes[0] and len(shapes[2]) == 3:
        check_size((*shapes[0][:-1], shapes[2][0]), "The result")
        check_work(padded_numel(shapes[0][:-1]) * padded_numel(shapes[2]), "bilinear")


def contracted(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """tensordot: dims counts last dimensions of the left and first of the right, or names them in two lists."""
    if len(shapes) < 2:
        return
    left, right = shapes[:2]
    dims = named(("other", "dims"), args, keywords).get("dims", 2)
    lists = isinstance(dims, tuple) and len(dims) == 2 and all(isinstance(part, tuple) for part in dims)
    if len(shapes) > 2 or (isinstance(dims, tuple) and not lists):
        raise ExpressionError("tensordot takes dims as a number or as two lists, dims=([1], [0]).")
    if isinstance(dims, tuple):
        results, theirs = (integers((part,)) if isinstance(part, tuple) else () for part in dims)
        summed = [left[dim] for dim in results if -len(left) <= dim < len(left)]
        gone = [right[dim] for dim in theirs if -len(right) <= dim < len(right)]
    else:
        count = max(_whole(dims, 2), 0)
        summed, gone = list(left[max(len(left) - count, 0) :]), list(right[:count])
    both = max(padded_numel(summed), 1)
    rows, columns = padded_numel(left) // both, padded_numel(right) // max(padded_numel(gone), 1)
    check_elements(rows * columns, "The product")
    check_work(rows * columns * both, "The product")


def attention(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """scaled_dot_product_attention: scores of every query with every key, which some of its kernels hold."""
    if len(shapes) < 3 or min(len(shape) for shape in shapes[:3]) < 2:
        return  # torch refuses
    queries, keys, values = shapes[:3]
    batch = broadcast((queries[:-2], keys[:-2], values[:-2]))
    scores = (*broadcast((batch, shapes[3][:-2] if len(shapes) > 3 else ())), queries[-2], keys[-2])
    check_size(scores, "The scores")
    check_size((*batch, queries[-2], values[-1]), "The result")
    check_work(padded_numel(scores) * (max(queries[-1], 1) + max(values[-1], 1)), "Attention")


def looked_up(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """embedding: a row of the weight per index."""
    if len(shapes) == 2:
        check_size((*shapes[0], *shapes[1][-1:]), "The result")


def places(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """nonzero and argwhere: at most one row per element, with an index per dimension."""
    check_elements(padded_numel(shapes[0]) * max(len(shapes[0]), 1), "The result, at most,")


def padded(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """F.pad: pairs from the last dimension backwards, before and after; negative ones cut."""
    pads = integers((named(("pad",), args, keywords).get("pad"),))
    sizes = list(shapes[0])
    for pair in range(min(len(pads) // 2, len(sizes))):
        sizes[-1 - pair] += sum(max(pad, 0) for pad in pads[2 * pair : 2 * pair + 2])
    check_size(sizes, "The result")


def along(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """softmax and its like: torch guesses a dimension that is not given, and warns that it will not for long."""
    if not args and "dim" not in keywords:
        raise ExpressionError("Which dimension is softmax to run along? Say so, softmax(x, dim=-1).")


def differences(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """diff: no longer than what is joined; as many rounds as asked, and no more than sizes are drawn."""
    rounds = _whole(named(("n",), args, keywords).get("n"), 1)
    if rounds > limit("tensor_pieces"):
        raise ExpressionError(f"diff is run at most {limit('tensor_pieces')} times over here, not {rounds:,}.")
    joined(shapes, args, keywords)


def chosen(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """where: the condition and both sides broadcast. The condition alone would give an index tensor per dimension."""
    if len(args) + len(keywords) < 2:
        raise ExpressionError("where takes a condition and both sides, torch.where(x > 2, x, 0); or write nonzero().")
    elementwise(shapes, args, keywords)


def truncated(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """trunc_normal_: torch draws until all numbers are accepted, for ever where few ever are."""
    given = {"mean": 0.0, "std": 1.0, "a": -2.0, "b": 2.0} | named(("mean", "std", "a", "b"), args, keywords)
    if not all(isinstance(value, int | float) for value in given.values()):
        return  # torch says what it takes
    mean, std, low, high = (float(cast("float", given[name])) for name in ("mean", "std", "a", "b"))
    away = max(low - mean, mean - high, 0.0)
    hardly = away > 2 * std
    if std > 0 and low < high and not hardly:
        accepted = (math.erf((high - mean) / std / math.sqrt(2)) - math.erf((low - mean) / std / math.sqrt(2))) / 2
        # Where that is little, torch draws evenly between the bounds and accepts by the density.
        hardly = accepted <= 0.3 and std / max(1.0, away / std) / (high - low) < 0.01
    if hardly:
        raise ExpressionError(
            f"trunc_normal_ draws until every number lies between {low:g} and {high:g}, where a normal distribution of "
            f"mean {mean:g} and deviation {std:g} has hardly any."
        )


def drawn(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """multinomial: as many for every row as are asked for."""
    count = _whole(named(("num_samples",), args, keywords).get("num_samples"), 1)
    check_elements(count * math.prod(shapes[0][:-1]), "The result")


def added_outer(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """addr: the tensor is added to the outer product of two vectors."""
    products(shapes[1:], args, keywords)
    check_size(broadcast(shapes[:1]), "The result")


def outside(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """Activations: ``inplace=True`` writes into the tensor, which the method with a _ does too, and says so."""
    if True in (keywords.get("inplace"), *(args if len(args) > 2 else ())):
        raise ExpressionError("inplace=True is not run here; write x.relu_(), or leave it away.")
