"""Guards: what an operation could allocate, worked out before it runs, and refused beyond core.limits.

Views allocate nothing, so their results are checked afterwards. Sizes are counted with every 0 as 1: a tensor of shape
(0, 10⁹) holds no element, but its sum over the first dimension would hold a thousand million.

A guard takes the shapes of all input tensors, the arguments after the tensor the operation is a method of, and the
keywords; it raises `ExpressionError` or returns nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias, TypeGuard, cast

from core.limits import LIMITS, limit
from core.tensors.operations.values import Arguments, ExpressionError, Keywords, Shape, Value, integers, named
from core.units import scientific

Guard: TypeAlias = Callable[[Sequence[Shape], Arguments, Keywords], None]

_FAR = 10**12
"""Beyond this a product of sizes might leave 64 bits in one more step; torch checks everything below by itself."""


def padded_numel(shape: Sequence[int]) -> int:
    """Elements of ``shape`` with every size below 1 counted as 1."""
    return math.prod(max(size, 1) for size in shape)


class TooLargeError(ExpressionError):
    """More than is run on real numbers; shapes of so many elements may still be followed without memory.

    count: of elements, 0 where it is the work that is too much. what: names the tensor.
    """

    def __init__(self, message: str, count: int = 0, what: str = "") -> None:
        super().__init__(message)
        self.count = count
        self.what = what


def check_elements(count: int, what: str, cap: str = "tensor_elements") -> None:
    """Refuse a tensor of ``count`` elements beyond the cap; ``what`` names it in the message."""
    if count > limit(cap):
        text = f"{count:,}" if count < 10**15 else scientific(float(min(count, 10**300)))
        raise TooLargeError(
            f"{what} would have {text} elements. Tensors here have at most {limit(cap):,}: {LIMITS[cap].reason}.",
            count,
            what,
        )


def check_size(shape: Sequence[int], what: str, cap: str = "tensor_elements") -> None:
    """Refuse a tensor of ``shape`` beyond the caps on rank and elements; ``what`` names it in the message."""
    if len(shape) > limit("tensor_rank"):
        raise ExpressionError(f"{what} would have {len(shape)} dimensions. At most {limit('tensor_rank')} are drawn.")
    check_elements(padded_numel(shape), what, cap)


def check_work(points: int, what: str) -> None:
    """Refuse a contraction of more than the capped number of multiply-adds."""
    if points > limit("contraction_points"):
        raise TooLargeError(
            f"{what} would take {points:,} multiply-adds; at most {limit('contraction_points'):,} are run here."
        )


def check_total(elements: int, last: str) -> None:
    """Refuse a program whose steps up to ``last`` have handled more elements together than one click may take."""
    if elements > limit("expression_work"):
        raise TooLargeError(
            f"Up to `{last[:60]}` the lines make or write {elements:,} elements, each step counted; at most "
            f"{limit('expression_work'):,} are handled here. A smaller x shows the same."
        )


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The sizes broadcasting could reach at most; for shapes that do not broadcast, torch refuses by itself."""
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(max(sizes) for sizes in columns)[::-1]


def exact_sizes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """expand, broadcast_to, zeros: the integers are the sizes of the result, -1 keeps one."""
    check_size(integers((*args, *keywords.values())), "The result")


def view_sizes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """view and reshape: torch refuses a wrong number of elements itself, while the product stays in range."""
    sizes = integers((*args, *keywords.values()))
    if len(sizes) > limit("tensor_rank") + 1 or padded_numel(sizes) > _FAR:
        check_size(sizes, "The result")


def strided(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """as_strided: torch checks the bounds of the storage, while the sum that reaches furthest stays in range."""
    given = named(("size", "stride", "storage_offset"), args, keywords)
    sizes, strides = integers((given.get("size"),)), integers((given.get("stride"),))
    check_size(sizes, "The result")
    reach = sum((max(size, 1) - 1) * abs(stride) for size, stride in zip(sizes, strides, strict=False))
    if reach > _FAR:
        raise ExpressionError(f"as_strided would reach storage cell {reach:,}, far outside the storage.")


def check_pieces(count: int, name: str) -> None:
    if count > limit("tensor_pieces"):
        raise ExpressionError(f"{name} would make {count:,} tensors; at most {limit('tensor_pieces')} are listed here.")


def _size(shape: Shape, dim: int) -> int:
    return shape[dim] if -len(shape) <= dim < len(shape) else 1  # torch refuses a dimension that is not there


def _dim(value: object) -> int:
    return value if isinstance(value, int) else 0


def chunks(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """chunk: as many pieces as asked for, but no more than the dimension is long."""
    given = named(("chunks", "dim"), args, keywords)
    size = _size(shapes[0], _dim(given.get("dim")))
    number = _dim(given.get("chunks"))
    check_pieces(min(number, size) if size else number, "chunk")


def sections(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """tensor_split and hsplit: as many pieces as asked for, or one more than the places to cut at."""
    given = args[0] if args else next((value for name, value in keywords.items() if name != "dim"), 0)
    check_pieces(len(given) + 1 if isinstance(given, tuple) else _dim(given), "This")


def split_pieces(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """split: the size of the dimension over the size of a piece, or one piece per size given."""
    given = named(("split_size", "dim"), args, keywords)
    sizes = given.get("split_size")
    if isinstance(sizes, tuple):
        check_pieces(len(sizes), "split")
    elif isinstance(sizes, int) and sizes > 0:
        check_pieces(-(-_size(shapes[0], _dim(given.get("dim"))) // sizes), "split")


def unbind_pieces(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """unbind: one piece per index of the dimension."""
    check_pieces(_size(shapes[0], _dim(named(("dim",), args, keywords).get("dim"))), "unbind")


def elementwise(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """Arithmetic: the operands broadcast against each other."""
    check_size(broadcast(shapes), "The result")


def one_operand(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """add and its like: one number or tensor, of a shape that broadcasts. An older form with two only warns."""
    if len(args) + ("other" in keywords) > 1:
        raise ExpressionError("add, sub, mul and div take one number or tensor, for example x.add(2).")
    elementwise(shapes, args, keywords)


def counted(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """arange: from start to end by step; whichever of the ends are given, the longest way between them and 0."""
    given = named(("start", "end", "step"), args, {})
    step = keywords.get("step", given.pop("step", 1))
    if any(isinstance(value, float) and not math.isfinite(value) for value in (*args, *keywords.values())):
        raise ExpressionError("arange counts in finite numbers.")
    ends = [value for value in (*given.values(), keywords.get("start"), keywords.get("end")) if _is_number(value)]
    length = max((0, *ends)) - min((0, *ends))
    if _is_number(step) and step:
        check_elements(math.ceil(min(length / abs(step), 1e300)), "The result")


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float)


def _whole(value: Value, default: int) -> int:
    return (*integers((value,)), default)[0]


def both_multiplied(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """bilinear: each pair of elements of two rows, times a weight for every output."""
    if len(shapes) > 2 and shapes[0] and len(shapes[2]) == 3:
        check_size((*shapes[0][:-1], shapes[2][0]), "The result")
        check_work(padded_numel(shapes[0][:-1]) * padded_numel(shapes[2]), "bilinear")


def places(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """nonzero and argwhere: at most one row per element, with an index per dimension."""
    check_elements(padded_numel(shapes[0]) * max(len(shapes[0]), 1), "The result, at most,")


def along(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """softmax and its like: torch guesses a dimension that is not given, and warns that it will not for long."""
    if not args and "dim" not in keywords:
        raise ExpressionError("Which dimension is softmax to run along? Say so, softmax(x, dim=-1).")


def differences(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """diff: as many rounds as asked, and no more than sizes are drawn."""
    rounds = _whole(named(("n",), args, keywords).get("n"), 1)
    if rounds > limit("tensor_pieces"):
        raise ExpressionError(f"diff is run at most {limit('tensor_pieces')} times over here, not {rounds:,}.")


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


def outside(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """Activations: ``inplace=True`` writes into the tensor, which the method with a _ does too, and says so."""
    if True in (keywords.get("inplace"), *(args if len(args) > 2 else ())):
        raise ExpressionError("inplace=True is not run here; write x.relu_(), or leave it away.")


@dataclass(frozen=True, slots=True)
class Picker:
    """A list, index tensor or mask in square brackets: the shape it picks, and how many dimensions it stands for."""

    shape: Shape
    dims: int = 1


def picked(shape: Shape, items: Sequence[Picker | int | None]) -> None:
    """Indexing with lists, index tensors and masks: they broadcast together, the other dimensions stay at most.

    items: for each item in the brackets a `Picker`, or the number of dimensions it passes (None in the brackets
    passes 0, an integer or slice 1); ``None`` stands for the dots.
    """
    pickers = [item for item in items if isinstance(item, Picker)]
    if not pickers:
        return  # a view
    passes = [item.dims if isinstance(item, Picker) else item for item in items]
    dots = passes.index(None) if None in passes else len(passes)
    after = sum(count or 0 for count in passes[dots + 1 :])
    numbers = list(shape)
    at = 0
    for number, (item, count) in enumerate(zip(items, passes, strict=True)):
        if number == dots:
            at = max(at, len(shape) - after)
        if isinstance(item, Picker):
            numbers[at : at + item.dims] = [1] * len(numbers[at : at + item.dims])
        at += count or 0
    check_elements(padded_numel(broadcast([picker.shape for picker in pickers])) * padded_numel(numbers), "The result")
