"""Where the error of one operation comes from: what its operands were off by before it, and its own rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from core.floats.arithmetic.operations import FloatOperation, Operator, operate
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.laws import error_in_ulp
from core.floats.rounding import Rounding
from core.floats.typed_numbers import Typed, typed_code
from core.formula import Explanation, Formula, Source, Symbol, formula

_HANDBOOK = Source(
    "Muller et al. 2018, Handbook of Floating-Point Arithmetic, second edition",
    url="https://doi.org/10.1007/978-3-319-76526-6",
)
_GOLDBERG = Source(
    "Goldberg 1991, What every computer scientist should know about floating-point arithmetic",
    url="https://docs.oracle.com/cd/E19957-01/806-3568/ncg_goldberg.html",
)
_IEEE = Source("IEEE 754-2019", "5.1 Overview of operations", "https://standards.ieee.org/ieee/754/6210/")


@formula(
    r"\v{larger} - \v{smaller}",
    result=Symbol("d", "bits that the smaller significand shifts right", "number"),
    symbols={
        "larger": Symbol("e_1", "exponent of the larger term", "number"),
        "smaller": Symbol("e_2", "exponent of the smaller term", "number"),
    },
    sources=(_HANDBOOK.at("floating-point addition and subtraction"),),
)
def shift_distance(larger: float, smaller: float) -> float:
    """Shift distance of an addition.

    After the shift both significands have the same unit and are added as integers. A subnormal has the exponent of the
    smallest normal number.
    """
    return larger - smaller


@formula(
    r"\frac{|\v{first}| + |\v{second}|}{|\v{first} + \v{second}|}",
    result=Symbol(r"\kappa", "condition of the sum", "number"),
    symbols={
        "first": Symbol("a", "first term", "number"),
        "second": Symbol("b", "second term", "number"),
    },
    sources=(_HANDBOOK.at("cancellation and the condition number of a sum"), _GOLDBERG.at("Cancellation")),
)
def condition_of_sum(first: float, second: float) -> float:
    """Condition of a sum.

    Factor by which the relative error of the sum can exceed those of the terms, even if the addition is exact. It is 1
    for equal signs and grows without bound as the terms cancel.
    """
    return (abs(first) + abs(second)) / abs(first + second)


@formula(
    r"\v{inherited} + \v{rounding}",
    result=Symbol(r"\Delta", "result minus the exact result of the numbers you entered", "number"),
    symbols={
        "inherited": Symbol(r"\Delta_0", "error from storing the operands", "number"),
        "rounding": Symbol(r"\Delta_1", "error from rounding the result", "number"),
    },
    sources=(_GOLDBERG.at("Cancellation"), _IEEE),
)
def total_error(inherited: float, rounding: float) -> float:
    """Error of an operation.

    IEEE 754 limits only the second part. An operation is exact for the stored operands and is then rounded once.
    """
    return inherited + rounding


@dataclass(frozen=True, slots=True)
class Errors:
    """Error of a result in two parts that add up to result − wanted.

    wanted: the exact result of the entered numbers. inherited: the exact result of the stored operands, minus
    ``wanted``. rounding: the result, minus the exact result of the stored operands. shares: the contribution of each
    operand's rounding to ``inherited``, to first order; for a sum these add up to it.
    """

    wanted: Fraction
    inherited: Fraction
    rounding: Fraction
    shares: tuple[Fraction, ...]

    @property
    def total(self) -> Fraction:
        return self.inherited + self.rounding

    @property
    def worst(self) -> int | None:
        """The operand that brings most; None if none brings anything."""
        largest = max(map(abs, self.shares))
        return None if not largest else next(i for i, share in enumerate(self.shares) if abs(share) == largest)

    @property
    def mostly_inherited(self) -> bool:
        """Whether the operands' own rounding outweighs that of the operation."""
        return abs(self.inherited) > abs(self.rounding)


@dataclass(frozen=True, slots=True)
class TypedOperation:
    """An operation on entered numbers: each was rounded into the format first, to nearest, ties to even.

    errors: None if anything is infinite or NaN.
    """

    typed: tuple[Typed, ...]
    operation: FloatOperation
    errors: Errors | None


def work(
    operator: Operator,
    typed: Sequence[Typed],
    fmt: FloatFormat,
    *,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "format",
) -> TypedOperation:
    """Round the operands into ``fmt``, then do one operation. Raises `FormatError` like `operate` and `typed_code`."""
    codes = [typed_code(item, fmt, overflow) for item in typed]
    operation = operate(operator, codes, fmt, rounding=rounding, overflow=overflow)
    return TypedOperation(tuple(typed), operation, _errors(operator, typed, operation))


def _errors(operator: Operator, typed: Sequence[Typed], operation: FloatOperation) -> Errors | None:
    fractions = [item.value for item in typed if item.value is not None]
    stored = [operand.value for operand in operation.operands if operand.value is not None]
    exact, value = operation.exact, operation.value
    if len(fractions) < len(typed) or len(stored) < len(typed) or exact is None or value is None:
        return None
    off = [fraction - given for fraction, given in zip(stored, fractions, strict=True)]
    if operator == "add":
        wanted, weights = fractions[0] + fractions[1], [Fraction(1), Fraction(1)]
    else:
        added = fractions[2] if operator == "fma" else Fraction(0)
        wanted, weights = (
            fractions[0] * fractions[1] + added,
            [fractions[1], fractions[0], Fraction(1)][: len(fractions)],
        )
    shares = tuple(error * weight for error, weight in zip(off, weights, strict=True))
    return Errors(wanted, exact - wanted, value - exact, shares)


def multiply_then_add(done: TypedOperation) -> tuple[FloatOperation, FloatOperation] | None:
    """Return a fused multiply-add as two operations, with the product rounded before the sum; None for other
    operations."""
    operation = done.operation
    if operation.operator != "fma":
        return None
    a, b, c = (operand.code for operand in operation.operands)
    fmt, rounding, overflow = operation.fmt, operation.rounding, operation.overflow
    product = operate("multiply", (a, b), fmt, rounding=rounding, overflow=overflow)
    return product, operate("add", (product.code, c), fmt, rounding=rounding, overflow=overflow)


def explain_work(done: TypedOperation) -> tuple[Explanation, ...]:
    """Return how shift, condition and errors are computed; what a float64 cannot show is left out."""
    operation, errors = done.operation, done.errors
    explanations: list[Explanation] = []
    if operation.operator == "add" and operation.register is not None:
        larger, smaller = sorted(
            (operand.exponent + operation.fmt.fraction_bits for operand in operation.operands), reverse=True
        )
        explanations.append(shift_distance.explain(larger=float(larger), smaller=float(smaller)))
    if operation.subtracts and operation.addends is not None and operation.exact:
        first, second = (addend.value or Fraction(0) for addend in operation.addends)
        explanations += _shown(condition_of_sum, first=first, second=second)
    if errors is not None and errors.total:
        explanations += _shown(total_error, inherited=errors.inherited, rounding=errors.rounding)
    if operation.error and operation.cut is not None:
        explanations += _shown(error_in_ulp, error=operation.error, ulp=Fraction(2) ** operation.cut.last)
    return tuple(explanations)


def _shown(law: Formula[...], **exact: Fraction) -> list[Explanation]:
    """Return a formula with exact values, where float64 holds them all and does not lose the difference that it is
    about."""
    if max(map(abs, exact.values())) > FORMATS["fp64"].max_finite:
        return []
    values = {name: float(value) for name, value in exact.items()}
    if any((value == 0) != (values[name] == 0) for name, value in exact.items()):
        return []
    if law is condition_of_sum and sum(values.values()) == 0:
        return []
    return [law.explain(**values)]
