"""Guards: what an operation could allocate, worked out before it runs, and refused beyond core.limits.

Views allocate nothing, so their results are checked afterwards. Sizes are counted with every 0 as 1: a tensor of shape
(0, 10⁹) holds no element, but its sum over the first dimension would hold a thousand million.

A guard takes a `Call`; it raises `ExpressionError` or returns nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias, cast

from core.limits import LIMITS, limit
from core.tensors.operations.values import ExpressionError, Keywords, Shape, Value, integers
from core.units import scientific

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


def check_length(count: int) -> None:
    """Refuse more characters than an expression may have; not how many, as the box itself cuts a longer paste."""
    if count > limit("expression_chars"):
        raise ExpressionError(f"That is more than the {limit('expression_chars'):,} characters of an expression.")


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


@dataclass(frozen=True, slots=True)
class Call:
    """What an operation is given. shapes: of all input tensors; values: its arguments; given: by their parameters.

    sums: of an input the largest of its elements and their sum, 0 for none; a tensor that is only counted has none.
    """

    shapes: Sequence[Shape]
    values: Sequence[Value]
    given: Keywords
    sums: Callable[[int], tuple[int, int]]

    def sizes(self, *names: str) -> tuple[int, ...]:
        """The whole numbers among these arguments, by default among all."""
        return integers([self.given.get(name) for name in names] if names else self.values)

    def number(self, name: str, default: int = 0) -> int:
        """The whole number that one argument is."""
        return (*self.sizes(name), default)[0]

    def along(self) -> int:
        """The size of the dimension ``dim``; 1 where it is not there, which torch refuses."""
        shape, dim = self.shapes[0], self.number("dim")
        return shape[dim] if -len(shape) <= dim < len(shape) else 1


Guard: TypeAlias = Callable[[Call], None]


def exact_sizes(call: Call) -> None:
    """expand, broadcast_to, zeros: the integers are the sizes of the result, -1 keeps one."""
    check_size(call.sizes(), "The result")


def view_sizes(call: Call) -> None:
    """view and reshape: torch refuses a wrong number of elements itself, while the product stays in range."""
    sizes = call.sizes()
    if len(sizes) > limit("tensor_rank") + 1 or padded_numel(sizes) > _FAR:
        check_size(sizes, "The result")


def strided(call: Call) -> None:
    """as_strided: torch checks the bounds of the storage, while the sum that reaches furthest stays in range."""
    sizes, strides = call.sizes("size"), call.sizes("stride")
    check_size(sizes, "The result")
    reach = sum((max(size, 1) - 1) * abs(stride) for size, stride in zip(sizes, strides, strict=False))
    if reach > _FAR:
        raise ExpressionError(f"as_strided would reach storage cell {reach:,}, far outside the storage.")


def check_pieces(count: int, name: str) -> None:
    if count > limit("tensor_pieces"):
        raise ExpressionError(f"{name} would make {count:,} tensors; at most {limit('tensor_pieces')} are listed here.")


def chunks(call: Call) -> None:
    """chunk: as many pieces as asked for, but no more than the dimension is long."""
    check_pieces(min(call.number("chunks"), call.along() or limit("expression_integer")), "chunk")


def sections(call: Call) -> None:
    """tensor_split and hsplit: as many pieces as asked for, or one more than the places to cut at."""
    given = next((value for name, value in call.given.items() if name != "dim"), 0)
    check_pieces(len(given) + 1 if isinstance(given, tuple) else max((*integers((given,)), 0)), "This")


def split_pieces(call: Call) -> None:
    """split: the size of the dimension over the size of a piece, or one piece per size given."""
    sizes = next((value for name, value in call.given.items() if name != "dim"), 0)
    if isinstance(sizes, tuple):
        check_pieces(len(sizes), "split")
    elif isinstance(sizes, int) and sizes > 0:
        check_pieces(-(-call.along() // sizes), "split")


def unbind_pieces(call: Call) -> None:
    """unbind: one piece per index of the dimension."""
    check_pieces(call.along(), "unbind")


def elementwise(call: Call) -> None:
    """Arithmetic: the operands broadcast against each other."""
    check_size(broadcast(call.shapes), "The result")


def both_multiplied(call: Call) -> None:
    """bilinear: each pair of elements of two rows, times a weight for every output."""
    shapes = call.shapes
    if len(shapes) > 2 and shapes[0] and len(shapes[2]) == 3:
        check_size((*shapes[0][:-1], shapes[2][0]), "The result")
        check_work(padded_numel(shapes[0][:-1]) * padded_numel(shapes[2]), "bilinear")


def places(call: Call) -> None:
    """nonzero and argwhere: at most one row per element, with an index per dimension."""
    check_elements(padded_numel(call.shapes[0]) * max(len(call.shapes[0]), 1), "The result, at most,")


def along(call: Call) -> None:
    """softmax and its like: torch guesses a dimension that is not given, and warns that it will not for long."""
    if "dim" not in call.given:
        raise ExpressionError("Which dimension is softmax to run along? Say so, softmax(x, dim=-1).")


def differences(call: Call) -> None:
    """diff: as many rounds as asked, and no more than sizes are drawn."""
    rounds = call.number("n", 1)
    if rounds > limit("tensor_pieces"):
        raise ExpressionError(f"diff is run at most {limit('tensor_pieces')} times over here, not {rounds:,}.")


def truncated(call: Call) -> None:
    """trunc_normal_: torch draws until all numbers are accepted, for ever where few ever are."""
    given = {"mean": 0.0, "std": 1.0, "a": -2.0, "b": 2.0, **call.given}
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


def outside(call: Call) -> None:
    """Activations: ``inplace=True`` writes into the tensor, which the method with a _ does too, and says so."""
    if call.given.get("inplace") is True:
        raise ExpressionError("inplace=True is not run here; write x.relu_(), or leave it away.")


def groups(call: Call) -> None:
    """group_norm: a mean and a deviation for each group, of which a dimension of no channels has any number."""
    check_elements(2 * max((*call.shapes[0][:1], 1)) * call.number("num_groups", 1), "The groups’ statistics")


# ------------------------------------------------------------------- where values say how large the result is


def classes(call: Call) -> None:
    """one_hot: one dimension more, as long as asked or as the largest element needs."""
    check_size((*call.shapes[0], max(call.number("num_classes", -1), call.sums(0)[0] + 1)), "The result")


def counts(call: Call) -> None:
    """bincount: one count per number up to the largest."""
    check_elements(max(call.number("minlength"), call.sums(0)[0] + 1), "The result")


def cuts(call: Call) -> None:
    """tensor_split at the places that a tensor holds, or into as many pieces as it says."""
    if len(call.shapes) > 1:
        other = call.shapes[1]
        check_pieces(max(padded_numel(other) + 1 if other else call.sums(1)[0], 1), "tensor_split")


def repeated(call: Call) -> None:
    """repeat_interleave: all elements times the sum of a tensor of repeats, which one dimension grows to."""
    if len(call.shapes) > 1:
        check_elements(padded_numel(call.shapes[0]) * max(*call.sums(1), 1), "The result, at most,")
