"""Add, multiply and fused multiply-add in a binary format as hardware does them, with every stage kept.

The operands' significands are aligned in a register with a guard, a round and a sticky bit after the last place, added
or multiplied as whole numbers, normalized and rounded once by those three bits. Nothing passes through float64. That
the three bits always find what rounding the exact result finds is what IEEE 754-2019, 5.1 asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from core.floats.codec import NumberClass, classify, decode_exact, encode_exact, floor_log2, no_nan, split
from core.floats.formats import FloatFormat, FormatError, Overflow
from core.floats.rounding import (
    Rounding,
    Seed,
    below_zero_code,
    check_policies,
    infinity_code,
    is_away,
    is_inward,
    overflow_code,
    round_fraction,
    signed_code,
    zero_code,
)
from core.messages import message

Operator: TypeAlias = Literal["add", "multiply", "fma"]
OPERATORS: tuple[Operator, ...] = ("add", "multiply", "fma")

Special: TypeAlias = Literal["", "nan", "invalid", "infinity", "zeros", "cancelled", "zero"]
"""Why no significands were rounded.

``nan``: an operand is NaN. ``invalid``: ∞ − ∞ or 0 × ∞. ``infinity``: an operand is infinite. ``zeros``: a sum of
zeros. ``cancelled``: a sum that is 0 of operands that are not. ``zero``: a product with 0. Empty: they were rounded.
"""

GUARDS = 3
"""Guard, round and sticky: the bits after the last place that a register keeps."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A number as the unit takes it in: significand · 2^exponent, both 0 if it is infinite or NaN.

    significand: a whole number, the leading bit included; exponent: the power of two of its last bit.
    """

    code: int
    kind: NumberClass
    negative: bool
    significand: int
    exponent: int
    value: Fraction | None


@dataclass(frozen=True, slots=True)
class Register:
    """Two addends in one register whose last bit weighs 2^low, and their sum there.

    first, second: magnitudes as they lie in it. moved: places that the addend of lower exponent (the second where
    ``swapped`` is false) moved right against the other. fell: how many of its bits share the register's last place, the
    sticky bit, which is 1 if any of them is; 0 if no two do. total, negative: magnitude and sign of the sum.
    """

    low: int
    first: int
    second: int
    moved: int
    swapped: bool
    fell: int
    total: int
    negative: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """The exact magnitude cut at the format's last place, and what the bits after it decide.

    last: the power of two of the last kept bit. kept: the bits before the cut, as a whole number. shift: places that
    normalizing moves the register, to the right where a carry came out (1), to the left where leading bits cancelled
    or were 0. up: whether the kept bits go up by one. carried: whether that makes them one bit longer.
    chance: the part of a step that was cut off, which is the chance of going up under stochastic rounding.
    """

    last: int
    kept: int
    guard: int
    round_: int
    sticky: int
    shift: int
    up: bool
    carried: bool
    chance: Fraction

    @property
    def tie(self) -> bool:
        """Whether the number is halfway between its neighbors."""
        return bool(self.guard) and not (self.round_ or self.sticky)

    @property
    def inexact(self) -> bool:
        return bool(self.guard or self.round_ or self.sticky)


@dataclass(frozen=True, slots=True)
class FloatOperation:
    """One operation and all its stages. Made by `operate`.

    product: the exact product of the first two significands, for ``multiply`` and ``fma``: an operand without a code
    (−1). register: for ``add`` and ``fma``. cut: None if nothing was rounded by bits, as in special cases and in the
    gap between 0 and the smallest value of a format without subnormals. exact: of the operands as they are stored; None
    if it is infinite or NaN. value: of ``code``, likewise. cancelled: leading bits that a sum lost against the longer
    of its addends, 0 for a product.
    """

    operator: Operator
    fmt: FloatFormat
    rounding: Rounding
    overflow: Overflow
    operands: tuple[Operand, ...]
    product: Operand | None
    register: Register | None
    cut: Cut | None
    special: Special
    code: int
    value: Fraction | None
    exact: Fraction | None
    cancelled: int

    @property
    def error(self) -> Fraction | None:
        """What rounding added: the result minus the exact result of the stored operands."""
        return None if self.value is None or self.exact is None else self.value - self.exact

    @property
    def overflowed(self) -> bool:
        """Whether the rounded result is beyond the largest finite value."""
        return self.cut is not None and overflows(self.cut, self.fmt)

    @property
    def addends(self) -> tuple[Operand, Operand] | None:
        """The two numbers that the register adds."""
        if self.operator == "multiply":
            return None
        return (self.product or self.operands[0]), self.operands[-1]

    @property
    def subtracts(self) -> bool:
        """Whether the two addends have opposite signs."""
        return self.addends is not None and self.addends[0].negative != self.addends[1].negative


def take_in(code: int, fmt: FloatFormat) -> Operand:
    """Return a code as significand and exponent."""
    kind = classify(code, fmt)
    magnitude, negative = split(code, fmt)
    if kind in ("inf", "nan"):
        return Operand(code, kind, bool(code & fmt.sign_mask), 0, 0, None)
    field = magnitude >> fmt.fraction_bits
    lead = 0 if kind == "zero" else fmt.lead(field) << fmt.fraction_bits
    exponent = fmt.power(field) - fmt.fraction_bits
    return Operand(code, kind, negative, (magnitude & fmt.fraction_mask) + lead, exponent, decode_exact(code, fmt))


def operate(
    operator: Operator,
    codes: Sequence[int],
    fmt: FloatFormat,
    *,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "format",
    seed: Seed = None,
) -> FloatOperation:
    """Return a + b, a × b or a × b + c of codes of ``fmt``, rounded once.

    Raises `FormatError` for a format that is only a scale (without zero no sum is closed), for a policy that the format
    cannot follow, and where the result is NaN in a format without one; ``ValueError`` for a wrong number of operands
    and for a code with more bits than the format.
    """
    if len(codes) != (3 if operator == "fma" else 2):
        raise ValueError(f"{operator} takes {3 if operator == 'fma' else 2} operands, not {len(codes)}")
    check_arithmetic(fmt)
    check_policies(fmt, rounding, overflow)
    operands = tuple(take_in(code, fmt) for code in codes)
    product = None if operator == "add" else _product(*operands[:2])
    addends = (operands[0] if product is None else product), operands[-1]
    exact = _exact(operator, operands)
    cancelled = 0 if operator == "multiply" else _cancelled(*addends)
    blank = FloatOperation(
        operator, fmt, rounding, overflow, operands, product, None, None, "", 0, None, exact, cancelled
    )
    special = _special(operator, operands, addends, exact)
    if special or exact is None:
        code, register, cut = _special_code(blank, special, addends), None, None
    else:
        register = None if operator == "multiply" else _align(*addends, _lowest(operator, addends, fmt))
        code, cut = _round(blank, exact, addends, register, seed)
    return replace(blank, register=register, cut=cut, special=special, code=code, value=decode_exact(code, fmt))


def _round(
    operation: FloatOperation, exact: Fraction, addends: tuple[Operand, Operand], register: Register | None, seed: Seed
) -> tuple[int, Cut | None]:
    """Return the code of what stands in the register, or of the product if there is none, and how it was cut."""
    fmt, rounding = operation.fmt, operation.rounding
    negative, longer = exact < 0, max(addends, key=_reach)
    if negative and not fmt.signed:
        return below_zero_code(fmt), None
    if not fmt.gradual and abs(exact) < fmt.min_subnormal:  # the gap around 0 has no bits, only its two ends
        steps = round_fraction(abs(exact) / fmt.min_subnormal, rounding, negative=negative, seed=seed)
        return signed_code(steps, fmt, negative=negative), None
    if register is None:
        total, low, longer = addends[0].significand, addends[0].exponent, addends[0]
    else:
        total, low = register.total, register.low
    # Before normalizing, the last place is that of the longer addend; a product counts as if it lay in [1, 2).
    before = longer.exponent + (fmt.fraction_bits if longer is operation.product else 0)
    cut = _cut(total, low, before, negative, abs(exact), fmt, rounding, seed)
    return _code(cut, negative, fmt, rounding, operation.overflow), cut


def add_up(terms: Sequence[Fraction], fmt: FloatFormat) -> int | None:
    """Return the code of a sum as hardware computes it: each term is rounded, then added from the left with rounding.

    None if an intermediate sum is infinite or NaN, or if the format is only a scale.
    """
    if not fmt.zero:
        return None
    codes = [encode_exact(term, fmt) for term in terms]
    total = codes[0]
    for code in codes[1:]:
        if decode_exact(total, fmt) is None or decode_exact(code, fmt) is None:
            return None
        total = operate("add", (total, code), fmt).code
    return None if decode_exact(total, fmt) is None else total


def check_arithmetic(fmt: FloatFormat) -> None:
    """Raise `FormatError` for a format that is only a scale."""
    if not fmt.zero:
        raise FormatError(message("arithmetic.error.scale", fmt=fmt.title))


def _product(a: Operand, b: Operand) -> Operand:
    """Return the exact product, twice as wide as a significand."""
    infinite = "inf" in (a.kind, b.kind)
    nothing = "zero" in (a.kind, b.kind)
    kind: NumberClass = "nan" if "nan" in (a.kind, b.kind) or (infinite and nothing) else "normal"
    if kind != "nan" and (infinite or nothing):
        kind = "inf" if infinite else "zero"
    value = None if a.value is None or b.value is None else a.value * b.value
    return Operand(-1, kind, a.negative != b.negative, a.significand * b.significand, a.exponent + b.exponent, value)


def _exact(operator: Operator, operands: tuple[Operand, ...]) -> Fraction | None:
    values = [operand.value for operand in operands if operand.value is not None]
    if len(values) < len(operands):
        return None
    if operator == "add":
        return values[0] + values[1]
    return values[0] * values[1] + (values[2] if operator == "fma" else 0)


def _special(
    operator: Operator, operands: tuple[Operand, ...], addends: tuple[Operand, Operand], exact: Fraction | None
) -> Special:
    """Return IEEE 754-2019, 6.1 to 6.3 and 7.2: infinities, NaNs, signs of zero, invalid operations."""
    kinds = [addend.kind for addend in addends]
    if "nan" in [operand.kind for operand in operands]:
        return "nan"
    if operator == "multiply":
        kinds = kinds[:1]
    if "nan" in kinds or (kinds == ["inf", "inf"] and addends[0].negative != addends[1].negative):
        return "invalid"
    if exact is None:
        return "infinity"
    if exact:
        return ""
    if operator == "multiply":
        return "zero"
    return "zeros" if kinds == ["zero", "zero"] else "cancelled"


def _special_code(operation: FloatOperation, special: Special, addends: tuple[Operand, Operand]) -> int:
    fmt, rounding = operation.fmt, operation.rounding
    if special in ("nan", "invalid"):
        if not fmt.has_nan:
            raise no_nan(fmt)
        return fmt.nan_code
    first, second = addends
    if special == "infinity":
        negative = next(addend.negative for addend in addends if addend.kind == "inf")
        return infinity_code(fmt, operation.overflow, negative=negative)
    if special == "zero" or (special == "zeros" and first.negative == second.negative):
        return zero_code(fmt, negative=first.negative and fmt.signed)
    return zero_code(fmt, negative=rounding == "down" and fmt.signed)


def _reach(operand: Operand) -> int:
    """Return one more than the power of two of its leading bit; far below everything for zero."""
    return operand.exponent + operand.significand.bit_length() if operand.significand else -(1 << 30)


def _lowest(operator: Operator, addends: tuple[Operand, Operand], fmt: FloatFormat) -> int:
    """Return the power of two of the register's last bit.

    Of two significands of one width the one of higher exponent stays, and three places follow it. A product is wider
    than what is added to it, and either may be the longer: all their bits fit, down to 3p + 3 below the leading one.
    """
    exponents = [addend.exponent for addend in addends]
    if operator == "add":
        return max(exponents) - GUARDS
    return max(min(exponents), max(map(_reach, addends)) - 3 * (fmt.fraction_bits + 1) - GUARDS)


def _align(first: Operand, second: Operand, low: int) -> Register:
    """Return both addends in a register whose last bit weighs 2^low, and their sum."""
    swapped = first.exponent < second.exponent
    mover = first if swapped else second
    lying = [_lie(operand, low) for operand in (first, second)]
    signed = sum(-bits if operand.negative else bits for operand, bits in zip((first, second), lying, strict=True))
    fell = min(low + 1 - mover.exponent, mover.significand.bit_length()) if mover.exponent < low else 0
    moved = abs(first.exponent - second.exponent)
    return Register(low, lying[0], lying[1], moved, swapped, max(fell, 0), abs(signed), signed < 0)


def _lie(operand: Operand, low: int) -> int:
    """Return a significand in a register whose last bit weighs 2^low; the bits beyond it make that last bit sticky."""
    places = operand.exponent - low
    if places >= 0:
        return operand.significand << places
    number = operand.significand >> -places
    return number | (number << -places != operand.significand)


def cut_exact(value: Fraction, fmt: FloatFormat, rounding: Rounding = "nearest_even") -> Cut | None:
    """Return an exact number cut at the last place of ``fmt``; None for 0, and if the format has no such bits."""
    if value == 0 or (value < 0 and not fmt.signed) or (not fmt.gradual and abs(value) < fmt.min_subnormal):
        return None
    last = max(floor_log2(abs(value)), fmt.emin) - fmt.fraction_bits
    steps = abs(value) / Fraction(2) ** (last - GUARDS)
    whole = steps.numerator // steps.denominator
    return _cut(whole | (whole != steps), last - GUARDS, last, value < 0, abs(value), fmt, rounding, None)


def _cut(
    total: int,
    low: int,
    before: int,
    negative: bool,
    magnitude: Fraction,
    fmt: FloatFormat,
    rounding: Rounding,
    seed: Seed,
) -> Cut:
    """Normalize ``total`` · 2^low, and round by the three bits after the last place."""
    leads = total.bit_length() - 1 + low
    last = max(leads, fmt.emin) - fmt.fraction_bits
    beyond = last - low
    number = total >> beyond if beyond > 0 else total << -beyond
    guard, round_ = (total >> beyond - place & 1 if beyond >= place else 0 for place in (1, 2))
    sticky = int(beyond > 2 and total & ((1 << beyond - 2) - 1) > 0)
    rest = magnitude / Fraction(2) ** last - number
    if rounding == "stochastic":
        up = round_fraction(number + rest, rounding, seed=seed) > number
    else:
        up = goes_up(number & 1, guard, round_, sticky, rounding, negative=negative)
    return Cut(
        last, number, guard, round_, sticky, last - before, up, bool((number + up) >> fmt.fraction_bits + 1), rest
    )


def overflows(cut: Cut, fmt: FloatFormat) -> bool:
    """Return whether the rounded number is beyond the largest finite value."""
    return (cut.kept + cut.up) * Fraction(2) ** cut.last > fmt.max_finite


def goes_up(odd: int, guard: int, round_: int, sticky: int, rounding: Rounding, *, negative: bool) -> bool:
    """Return whether the magnitude rounds up, from the last kept bit and the three bits after it; not for stochastic
    rounding."""
    if rounding == "nearest_even":
        return bool(guard and (round_ or sticky or odd))
    if rounding == "nearest_away":
        return bool(guard)
    return is_away(rounding, negative) and bool(guard or round_ or sticky)


def _code(cut: Cut, negative: bool, fmt: FloatFormat, rounding: Rounding, overflow: Overflow) -> int:
    """Return exponent and kept bits as a code; what went past the largest finite value as the policy says."""
    steps = (cut.last + fmt.fraction_bits - fmt.emin) << fmt.fraction_bits
    code = steps + cut.kept + cut.up - (0 if fmt.gradual else 1 << fmt.fraction_bits)
    if code > fmt.max_code:
        code = fmt.max_code if is_inward(rounding, negative) else overflow_code(fmt, overflow)
    return signed_code(code, fmt, negative=negative)


def _cancelled(first: Operand, second: Operand) -> int:
    """Return the leading bits of the longer addend that the exact sum no longer has; of a sum that is 0, all of
    them."""
    if first.value is None or second.value is None or first.negative == second.negative:
        return 0
    low = min(first.exponent, second.exponent)
    left, right = (operand.significand << operand.exponent - low for operand in (first, second))
    return max(left.bit_length(), right.bit_length()) - abs(left - right).bit_length()
