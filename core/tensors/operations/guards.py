"""Guards: what an operation could allocate, worked out before it runs, and refused beyond core.limits.

Views allocate nothing, so their results are checked afterwards. Sizes are counted with every 0 as 1: a tensor of shape
(0, 10⁹) holds no element, but its sum over the first dimension would hold a thousand million.

A guard takes the shapes of all input tensors, the arguments after the tensor the operation is a method of, and the
keywords; it raises `ExpressionError` or returns nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias, TypeGuard

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


def repeats(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """repeat and tile: each size times its count."""
    counts = integers((*args, *keywords.values()))
    pairs = zip_longest(reversed(shapes[0]), reversed(counts), fillvalue=1)
    check_size(tuple(max(size, 1) * max(count, 1) for size, count in pairs)[::-1], "The result")


def interleaved(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """repeat_interleave: all elements times the repeats."""
    (times,) = integers((named(("repeats",), args, keywords).get("repeats"),)) or (1,)
    check_elements(padded_numel(shapes[0]) * max(times, 1), "The result")


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


def selected(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """index_select: the dimension becomes as long as the index."""
    if len(shapes) == 2:
        size = max(_size(shapes[0], _dim(named(("dim",), args, keywords).get("dim"))), 1)
        check_elements(padded_numel(shapes[0]) // size * padded_numel(shapes[1]), "The result")


def matmul(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """@: batch sizes broadcast, rows by columns, each a sum over the inner size."""
    if len(shapes) != 2 or not shapes[0] or not shapes[1]:
        return  # torch refuses 0-d operands
    left, right = shapes
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    result = (*broadcast((left[:-2], right[:-2])), *rows, *columns)
    check_size(result, "The product")
    check_work(padded_numel(result) * max(left[-1], 1), "The product")


def joined(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """cat, stack, hstack and their like: all elements together; the tensors have at least one dimension then."""
    check_elements(sum(padded_numel(shape) for shape in shapes), "The result")


def squared(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """diag: a vector becomes the diagonal of a square."""
    if len(shapes[0]) == 1:
        away = (*integers((named(("diagonal",), args, keywords).get("diagonal"),)), 0)[0]
        side = shapes[0][0] + abs(away)
        check_size((side, side), "The result")


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


def columns(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """F.unfold: each position of the kernel copies the kernel; padding widens the picture."""
    given = named(("kernel_size", "dilation", "padding", "stride"), args, keywords)
    kernel = math.prod(_pair(given.get("kernel_size"), 1))
    padding = _pair(given.get("padding"), 0)
    if max(padding) > limit("tensor_elements") or kernel > limit("tensor_elements"):
        check_elements(max(*padding, kernel), "The result")
    rows = [size + 2 * pad for size, pad in zip(shapes[0][-2:], padding, strict=False)]
    check_elements(padded_numel(shapes[0][:-2]) * padded_numel(rows) * kernel, "The result, at most,")


def _pair(value: Value, default: int) -> tuple[int, int]:
    numbers = integers((value,)) or (default,)
    return max(numbers[0], 0), max(numbers[-1], 0)


_EQUATION = re.compile(r"[A-Za-z,.\-> ]*")
_AXIS = re.compile(r"\w+|\.\.\.")


def einsum(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """torch.einsum: one letter per axis. See `_contraction`."""
    equation = args[0] if args else None
    if not isinstance(equation, str) or not _EQUATION.fullmatch(equation):
        raise ExpressionError("einsum takes an equation of letters first, for example torch.einsum('ij,kj->ik', x, x).")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_AXIS.findall(re.sub(r"([A-Za-z])", r" \1 ", term)) for term in left.split(",")]
    if arrow:
        output = _AXIS.findall(re.sub(r"([A-Za-z])", r" \1 ", right))
    else:  # implicit output: the letters that occur once
        letters = [axis for term in terms for axis in term if axis != "..."]
        output = [axis for axis in letters if letters.count(axis) == 1]
    _contraction(terms, output, shapes)


def einops_einsum(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """einops.einsum: one word per axis, the pattern last. See `_contraction`."""
    pattern = next((value for value in args if isinstance(value, str)), None)
    if pattern is None:
        raise ExpressionError("einops.einsum takes tensors, then a pattern: einsum(x, x, 'a c, b c -> a b').")
    left, _, right = pattern.partition("->")
    _contraction([_AXIS.findall(term) for term in left.split(",")], _AXIS.findall(right), shapes)


def _contraction(terms: list[list[str]], output: list[str], shapes: Sequence[Shape]) -> None:
    """Bound the whole iteration space: every intermediate of a pairwise contraction lies inside it."""
    if max(len(term) for term in (*terms, output)) > limit("pattern_axes"):
        raise ExpressionError(f"einsum takes at most {limit('pattern_axes')} axes per operand here.")
    if len(terms) != len(shapes):
        return  # torch refuses, before any work
    largest: dict[str, int] = {}
    ellipses: list[Shape] = []
    for term, shape in zip(terms, shapes, strict=True):
        dots = term.index("...") if "..." in term else len(term)
        before, after = term[:dots], term[dots + 1 :]
        if len(before) + len(after) > len(shape) or (dots == len(term) and len(before) != len(shape)):
            return  # torch refuses, before any work
        sizes = shape[: len(before)] + shape[len(shape) - len(after) :]
        for axis, size in zip(before + after, sizes, strict=True):
            largest[axis] = max(largest.get(axis, 1), size)
        ellipses.append(shape[len(before) : len(shape) - len(after)])
    check_work(math.prod(largest.values()) * padded_numel(broadcast(ellipses)), "einsum")
    numbers = [largest.get(axis, 1) for axis in output if axis != "..."]
    check_size((*broadcast(ellipses), *numbers), "The result")


def pattern(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """rearrange, reduce, repeat: bound the axes of the pattern and the elements that new axes add."""
    text = args[0] if args else None
    if not isinstance(text, str):
        raise ExpressionError("einops takes the tensor, then a pattern, for example rearrange(x, 'a b -> b a').")
    left, _, right = text.partition("->")
    known, wanted = _AXIS.findall(left), _AXIS.findall(right)
    if max(len(known), len(wanted)) > limit("pattern_axes"):
        raise ExpressionError(f"einops patterns have at most {limit('pattern_axes')} axes per side here.")
    new = [size for name, size in keywords.items() if name not in known and isinstance(size, int)]
    new += [min(int(axis), 10**9) for axis in wanted if axis.isascii() and axis.isdigit() and len(axis) < 19]
    check_elements(padded_numel(shapes[0]) * padded_numel(new), "The result")


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
