"""Sentences on one operation: its result, what each stage does, and where the error comes from."""

from __future__ import annotations

import re
from fractions import Fraction

from core.floats.arithmetic.errors import TypedOperation, multiply_then_add, work
from core.floats.arithmetic.operations import FloatOperation, Operand
from core.floats.codec import decode_exact
from core.floats.decimals import exact_decimal, rounded, shortest_decimal
from core.floats.formats import FloatFormat
from core.floats.rounding import ROUNDINGS
from core.floats.typed_numbers import Typed
from core.messages import Message, message, pick_message
from core.units import QuantityText
from core.views.floats.text import as_read, code_value
from core.views.floats.text_rounding import mode_label

NAMES = ("a", "b", "c")
_EXACT_LENGTH, _SHORT = 60, 22
"""An exact value is written out up to this many characters, and as a result up to so many."""


def expression_text(done: TypedOperation) -> str:
    """Return the operation as entered: ``0.1 + 0.2``, ``1.01 − 1``, ``a × b + c``."""
    first, *rest = (_term(typed) for typed in done.typed)
    text = first
    for sign, item in zip("+" if done.operation.operator == "add" else "×+", rest, strict=False):
        negative = item.startswith(("-", "−"))
        text += f" − {item[1:]}" if sign == "+" and negative else f" {sign} {f'({item})' if negative else item}"
    return re.sub(r"(?<!e)-", "−", text)


def _term(typed: Typed) -> str:
    text = typed.text if typed.code is not None else as_read(typed)
    return f"({text})" if len(typed.terms) > 1 else text


def value_text(code: int, fmt: FloatFormat) -> str:
    """Return the value of a code: exact where that is short, else in as few digits as tell it from its neighbors."""
    value = decode_exact(code, fmt)
    if not value:
        return code_value(code, fmt)
    if len(exact_decimal(value)) <= _SHORT:
        return QuantityText(rounded(value, _SHORT), float(value))
    text = shortest_decimal(code, fmt)
    digits = sum(c.isdigit() for c in text.partition("e")[0])
    return QuantityText(rounded(Fraction(text), digits), float(value))


def stored_text(code: int, fmt: FloatFormat) -> str:
    """Return the value of a code: exact where that is short, else with enough digits to see its error."""
    value = decode_exact(code, fmt)
    if not value or len(exact_decimal(value)) <= _SHORT:
        return value_text(code, fmt)
    return f"≈ {rounded(value, fmt.decimal_digits + 4)}"


def exact_text(value: Fraction, fmt: FloatFormat) -> str:
    """Return all digits of an exact result where they are few enough to read, else some more than the format has."""
    ends = value.denominator & (value.denominator - 1) == 0
    if ends and len(exact_decimal(value)) <= _EXACT_LENGTH:
        return rounded(value, _EXACT_LENGTH)
    return f"≈ {rounded(value, fmt.decimal_digits + 8)}"


def answer_texts(done: TypedOperation) -> list[Message]:
    """Return the result, and what decided it."""
    fmt, code = done.operation.fmt, done.operation.code
    result = message("arithmetic.answer", expression=expression_text(done), fmt=fmt.title, result=value_text(code, fmt))
    return [result, _reason(done)]


def _reason(done: TypedOperation) -> Message:
    operation, fmt, cut = done.operation, done.operation.fmt, done.operation.cut
    lost = [i for i, typed in enumerate(done.typed) if typed.value and operation.operands[i].kind == "zero"]
    if lost and operation.special in ("", "zero", "zeros"):
        return message("arithmetic.reason.underflow", number=as_read(done.typed[lost[0]]), fmt=fmt.title)
    if operation.special:
        return message(f"arithmetic.reason.{operation.special}")
    exact = exact_text(operation.exact or Fraction(0), fmt)
    if cut is None or operation.overflowed:
        return message("arithmetic.reason.outside", exact=exact, fmt=fmt.title, largest=rounded(fmt.max_finite, 5))
    if not cut.inexact:
        return message("arithmetic.reason.exact")
    lost_addend = _lost_addend(operation)
    if lost_addend is not None:
        step = rounded(Fraction(2) ** cut.last, 3)
        return message("arithmetic.reason.lost", name=NAMES[lost_addend], exact=exact, step=step)
    return message("arithmetic.reason.rounded_up" if cut.up else "arithmetic.reason.rounded_down", exact=exact)


def _lost_addend(operation: FloatOperation) -> int | None:
    """Return the addend that leaves no trace in the result."""
    if operation.operator != "add":
        return None
    first, second = operation.operands
    for operand, gone, place in ((first, second, 1), (second, first, 0)):
        if operation.value == operand.value and gone.significand:
            return place
    return None


# ------------------------------------------------------------------------------------------ stages


def stage_texts(done: TypedOperation) -> list[tuple[str, Message, list[Message]]]:
    """Return each stage's id, label, and sentences, in the order in which hardware goes through them."""
    operation = done.operation
    stages = {"Stored": _stored(done)}
    if not operation.special:
        if operation.product is not None:
            stages["Multiply"] = [_multiplied(operation, operation.product)]
        if operation.register is not None:
            stages["Align"] = [_aligned(operation)]
            stages["Subtract" if operation.subtracts else "Add"] = _added(operation)
        if operation.cut is not None:
            stages["Normalize"] = [_shifted(operation)]
            stages["Round"] = [_decision(operation)]
    stages |= {"Result": [_result(operation)], "Unfused": _unfused(done), "Error": _error(done)}
    return [(stage, message(f"arithmetic.stage.{stage.lower()}"), said) for stage, said in stages.items() if said]


def _stored(done: TypedOperation) -> list[Message]:
    fmt = done.operation.fmt
    return [
        message("arithmetic.stored.rounded", name=name, value=stored_text(operand.code, fmt))
        for name, typed, operand in zip(NAMES, done.typed, done.operation.operands, strict=False)
        if typed.value != operand.value
    ] or [message("arithmetic.stored.exact")]


def _power(operand: Operand, fmt: FloatFormat) -> str:
    """Return the exponent of 1.M, or of a subnormal's 0.M."""
    return str(operand.exponent + fmt.fraction_bits).replace("-", "−")


def _multiplied(operation: FloatOperation, product: Operand) -> Message:
    fmt = operation.fmt
    a, b = operation.operands[:2]
    total = str(product.exponent + 2 * fmt.fraction_bits).replace("-", "−")
    width = float(fmt.fraction_bits + 1)
    return message(
        "arithmetic.multiply", bits=width, product=2 * width, a=_power(a, fmt), b=_power(b, fmt), total=total
    )


def _aligned(operation: FloatOperation) -> Message:
    register, fmt = operation.register, operation.fmt
    if register is None or operation.operator == "fma":
        return message("arithmetic.align.fma")
    if not register.moved:
        return message("arithmetic.align.equal", exponent=_power(operation.operands[0], fmt))
    mover, stays = (0, 1) if register.swapped else (1, 0)
    return message(
        "arithmetic.align.shift",
        name=NAMES[mover],
        places=float(register.moved),
        high=_power(operation.operands[stays], fmt),
        low=_power(operation.operands[mover], fmt),
    )


def _added(operation: FloatOperation) -> list[Message]:
    said = [message("arithmetic.add.exact", exact=exact_text(operation.exact or Fraction(0), operation.fmt))]
    if operation.cancelled:
        said.append(message("arithmetic.add.cancelled", bits=float(operation.cancelled)))
        said += [message("arithmetic.add.sterbenz")] * is_sterbenz(operation)
    return said


def is_sterbenz(operation: FloatOperation) -> bool:
    """Return whether Sterbenz's lemma says that an addition is exact: y/2 ≤ x ≤ 2y for x − y, in a format with
    subnormals.

    Source: Sterbenz 1974, Floating-Point Computation, 4.3.
    """
    values = [abs(operand.value) for operand in operation.operands if operand.value]
    if operation.operator != "add" or not operation.subtracts or len(values) < 2 or not operation.fmt.gradual:
        return False
    return max(values) <= 2 * min(values)


def _shifted(operation: FloatOperation) -> Message:
    fmt, cut = operation.fmt, operation.cut
    if cut is None or not cut.shift:
        return message("arithmetic.normalize.none")
    if cut.last == fmt.emin - fmt.fraction_bits and cut.kept < 1 << fmt.fraction_bits:
        return message("arithmetic.normalize.subnormal")
    name = "arithmetic.normalize.right" if cut.shift > 0 else "arithmetic.normalize.left"
    return message(name, places=float(abs(cut.shift)))


def _decision(operation: FloatOperation) -> Message:
    """Return what guard, round, and sticky say in the operation's rounding mode."""
    cut, nearest = operation.cut, operation.rounding in ("nearest_even", "nearest_away")
    if cut is None or not cut.inexact:
        return message("arithmetic.round.exact")
    if not nearest:
        return message("arithmetic.round.directed", mode=mode_label(operation.rounding))
    if not cut.tie:
        return message("arithmetic.round.more" if cut.guard else "arithmetic.round.less")
    even = "arithmetic.round.tie_odd" if cut.kept & 1 else "arithmetic.round.tie_even"
    return message(even if operation.rounding == "nearest_even" else "arithmetic.round.tie_away")


def _result(operation: FloatOperation) -> Message:
    fmt, cut = operation.fmt, operation.cut
    if operation.overflowed:
        return message("arithmetic.result.overflow", value=value_text(operation.code, fmt))
    if cut is None or operation.value is None or operation.error is None:
        return message("arithmetic.result.value", value=value_text(operation.code, fmt))
    if not operation.error:
        return message("arithmetic.result.exact")
    ulps = rounded(abs(operation.error) / Fraction(2) ** cut.last, 3)
    return message("arithmetic.result.rounded", value=stored_text(operation.code, fmt), ulps=ulps)


def _unfused(done: TypedOperation) -> list[Message]:
    """Return what multiplying and adding with two roundings gives."""
    both = multiply_then_add(done)
    if both is None:
        return []
    product, total = (value_text(part.code, done.operation.fmt) for part in both)
    return [message("arithmetic.unfused", product=product, total=total)]


def _error(done: TypedOperation) -> list[Message]:
    errors, operation = done.errors, done.operation
    if errors is None:
        return []
    if not errors.total:
        return [message("arithmetic.error.none")]
    said = [
        pick_message(
            "arithmetic.error.parts" if errors.inherited else "arithmetic.error.rounding",
            total=_signed(errors.total),
            inherited=_signed(errors.inherited),
            rounding=_signed(errors.rounding),
        )
    ]
    before = max(
        abs(operand.value - typed.value) / abs(typed.value)
        if typed.value and operand.value is not None
        else Fraction(0)
        for operand, typed in zip(operation.operands, done.typed, strict=True)
    )
    grown = abs(errors.inherited / errors.wanted) if errors.wanted else Fraction(0)
    if operation.cancelled and errors.mostly_inherited and grown > 2 * before:
        said.append(message("arithmetic.error.cancellation", before=float(before), after=float(grown)))
    return said


def _signed(value: Fraction) -> str:
    return ("+" if value > 0 else "") + rounded(value, 3)


def mode_rows(done: TypedOperation) -> list[tuple[str, str]]:
    """Return each deterministic rounding mode with its result; empty if nothing is rounded."""
    operation = done.operation
    if operation.cut is None or not operation.cut.inexact:
        return []
    rows: list[tuple[str, str]] = []
    for mode in ROUNDINGS[:-1]:
        other = work(operation.operator, done.typed, operation.fmt, rounding=mode, overflow=operation.overflow)
        rows.append((mode_label(mode), value_text(other.operation.code, operation.fmt)))
    return rows
