"""Works numbers out: at once where all parts are known, else once the tensors that they ask are there.

Every result is bounded, whatever the arithmetic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

from core.limits import LIMITS, limit
from core.tensors.operations.values import Count, CountQuestion, DType, ExpressionError
from core.tensors.parsing.arguments import is_whole
from core.tensors.parsing.numbers import FUNCTIONS, stays_whole

_OPERATORS: Mapping[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "item": "getitem",
}
"""What puts two parts together → the function of Python's ``operator`` module that does it."""


def combined(what: str, parts: Sequence[Count | None], text: str, *, several: bool = False) -> Count:
    """The number or sizes that ``what`` makes of ``parts``: worked out at once where all of them are known.

    Raises `ExpressionError` quoting ``text`` beyond the caps and for what Python refuses, such as division by zero.
    """
    if any(isinstance(part, CountQuestion) for part in parts):
        of_whole = all(is_whole(part) for part in parts)
        whole = stays_whole(what, of_whole) if what in FUNCTIONS else what != "/" and of_whole
        return CountQuestion(what, tuple(parts), text=text, whole=whole, several=several)
    return _worked_out(what, parts, text)


def _worked_out(what: str, parts: Sequence[Any], text: str) -> Count:
    try:
        match what:
            case "negative":
                return bounded(-parts[0], text)
            case "tuple":
                return bounded(tuple(parts), text)
            case "count":
                return len(parts[0])
            case "slice":
                return tuple(parts[0][slice(*parts[1:])])
            case "unpack":
                return _unpacked(*parts)
            case "range":
                return _counting(*parts)
            case "finfo":
                return _float_info(*parts)
            case _ if what in FUNCTIONS:
                return bounded(FUNCTIONS[what](*parts), text)
            case "**" if all(isinstance(part, int) for part in parts) and abs(parts[0]) > 1 and parts[1] > 60:
                raise ExpressionError(_TOO_LARGE)  # before Python works out a number of a million digits
            case _:
                return bounded(getattr(operator, _OPERATORS[what])(*parts), text)
    except (ArithmeticError, IndexError, TypeError, ValueError) as problem:
        if isinstance(problem, ExpressionError):
            raise
        raise ExpressionError(f"`{text[:60]}`: {problem}.") from None


_TOO_LARGE = f"A number in an expression is at most {LIMITS['expression_number'].value:,}."


def bounded(value: Any, text: str) -> Count:
    """``value`` when it is a number, or sizes, within the caps. Raises `ExpressionError` for any other."""
    if isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        if len(items) > 4 * limit("tensor_rank"):
            raise ExpressionError(f"`{text[:60]}`: more sizes than a tensor can have.")
        return tuple(_number(item) for item in items)
    return _number(value)


def _number(value: Any) -> int | float:
    """Whole numbers may become sizes and are capped; others are values, such as 1e10 or −∞."""
    if isinstance(value, complex) or (isinstance(value, int) and abs(value) > limit("expression_number")):
        raise ExpressionError(_TOO_LARGE)
    if math.isnan(value):
        raise ValueError("this is not a number")
    return value


def check_argument(value: Any) -> None:
    """Refuse a whole number that is too large for a size, a stride or an index, wherever it stands in ``value``."""
    if isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            check_argument(item)
    elif isinstance(value, slice):
        cut = cast("slice[Any, Any, Any]", value)
        check_argument((cut.start, cut.stop, cut.step))
    elif isinstance(value, int) and abs(value) > limit("expression_integer"):
        raise ExpressionError(f"A number that an operation takes is at most {limit('expression_integer'):,}.")


def _float_info(dtype: DType, name: str) -> float:
    import torch

    return float(getattr(torch.finfo(getattr(torch, dtype.name)), name))


def _counting(*parts: Any) -> tuple[int, ...]:
    """The numbers of a range, as many as a tensor could have sizes several times over."""
    result, most = range(*parts), 4 * limit("tensor_rank")
    if len(result) > most:
        raise ExpressionError(f"A range has at most {most} numbers here, and this one has {len(result):,}.")
    return tuple(result)


def _unpacked(sizes: Sequence[Any], wanted: int, star: int | None) -> tuple[Any, ...]:
    """The sizes, one per name; the name at ``star`` takes all that the others leave."""
    if star is not None:
        rest = len(sizes) - wanted + 1
        if rest < 0:
            raise ValueError(f"not enough values to unpack (expected at least {wanted - 1}, got {len(sizes)})")
        return (*sizes[:star], tuple(sizes[star : star + rest]), *sizes[star + rest :])
    if len(sizes) > wanted:
        raise ValueError(f"too many values to unpack (expected {wanted}, got {len(sizes)})")
    if len(sizes) < wanted:
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {len(sizes)})")
    return tuple(sizes)


class Counts:
    """Works numbers out once their tensors are there; ``tensors`` grows while the program runs."""

    def __init__(self, named: Sequence[CountQuestion], tensors: Sequence[Any]) -> None:
        self.named = named
        self.tensors = tensors
        self.known: list[Any] = []

    def all(self) -> None:
        """Work out every number that a name stands for, also those that no operation uses."""
        if self.named:
            self._named(len(self.named) - 1)

    def _named(self, number: int) -> Any:
        # Each once, and in order: names made of names would otherwise double the work, or nest deeper, with every line.
        for earlier in range(len(self.known), number + 1):
            self.known.append(self.value(self.named[earlier]))
        return self.known[number]

    def value(self, part: Any) -> Any:
        """The number or tuple of sizes that ``part`` stands for; anything else is given back.

        Raises `ExpressionError` with the words of torch or Python where there is none.
        """
        if isinstance(part, slice):
            whole = cast("slice[Any, Any, Any]", part)
            return slice(self.value(whole.start), self.value(whole.stop), self.value(whole.step))
        if not isinstance(part, CountQuestion):
            return part
        if part.what == "name":
            return self._named(part.step)
        result: Any = self._asked(part) if part.step >= 0 else _worked_out(part.what, self.parts(part.parts), part.text)
        if part.whole and isinstance(result, float):
            raise ExpressionError(f"`{part.text[:60]}` is {result:g} here, which is no whole number.")
        return result

    def parts(self, parts: Sequence[Any]) -> list[Any]:
        """All of ``parts``, those with a star opened."""
        values: list[Any] = []
        for part in parts:
            if isinstance(part, CountQuestion) and part.what == "star":
                values += self.value(part.parts[0])
            else:
                values.append(self.value(part))
        return values

    def _asked(self, part: CountQuestion) -> Any:
        tensor = self.tensors[part.step]
        try:
            if part.what == "dtype":
                return DType(str(tensor.dtype).removeprefix("torch."))
            if part.what == "len":
                result: Any = len(tensor)
            else:
                result = getattr(tensor, part.what)
                result = result(*self.parts(part.parts)) if callable(result) else result
        except (IndexError, TypeError, RuntimeError) as problem:
            raise ExpressionError(f"`{part.text[:60]}`: {str(problem).splitlines()[0][:200]}.") from None
        return bounded(result, part.text)
