"""An operation in a format told in sentences: the answer, each stage, and where the error comes from.

Markup as in `core.views.floats.text`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from core.floats.arithmetic.errors import TypedOperation, multiply_then_add, work
from core.floats.arithmetic.operations import Cut, FloatOperation, Operand, goes_up
from core.floats.codec import classify, decode_exact
from core.floats.comparison import percent
from core.floats.decimals import exact_decimal, rounded, shortest_decimal
from core.floats.formats import FloatFormat
from core.floats.rounding import ROUNDINGS, Rounding
from core.floats.rounding_cases import WORDS, shares
from core.floats.typed_numbers import Typed
from core.units import QuantityText
from core.views.floats.text import OUTCOMES, as_read

NAMES = ("a", "b", "c")
_EXACT_LENGTH, _SHORT = 60, 22
"""An exact value is written out up to this many characters, and as a result up to so many."""

_HALF_WORD: dict[Rounding, str] = {
    "toward_zero": "what is cut off is dropped",
    "up": "what is cut off pushes a positive number up, a negative one not",
    "down": "what is cut off pushes a negative number down, a positive one not",
}
_THING = {"add": "sum", "multiply": "product", "fma": "a × b + c"}


def operands_text(done: TypedOperation) -> str:
    """The operation as typed: ``0.1 + 0.2``, ``1.01 − 1``, ``a × b + c``."""
    first, *rest = (_term(typed) for typed in done.typed)
    text = first
    for sign, item in zip("+" if done.operation.operator == "add" else "×+", rest, strict=False):
        negative = item.startswith(("-", "−"))
        text += f" − {item[1:]}" if sign == "+" and negative else f" {sign} {f'({item})' if negative else item}"
    return re.sub(r"(?<!e)-", "−", text)


def _term(typed: Typed) -> str:
    text = typed.text if typed.code is not None else as_read(typed)
    return f"({text})" if len(typed.terms) > 1 else text


def operation_text(code: int, fmt: FloatFormat) -> str:
    """The value of a code: exact where that is short, else in as few digits as tell it from its neighbours."""
    sign = "−" if code & fmt.sign_mask else ""
    kind = classify(code, fmt)
    if kind in ("inf", "nan"):
        return "NaN" if kind == "nan" else f"{sign}infinity"
    value = decode_exact(code, fmt)
    if not value:
        return QuantityText(f"{sign}0", 0.0)
    if len(exact_decimal(value)) <= _SHORT:
        return QuantityText(rounded(value, _SHORT), float(value))
    text = shortest_decimal(code, fmt)
    digits = sum(c.isdigit() for c in text.partition("e")[0])
    return QuantityText(rounded(Fraction(text), digits), float(value))


def representable_text(code: int, fmt: FloatFormat) -> str:
    """The value of a code: exact where that is short, else with enough digits to see what it is off by."""
    value = decode_exact(code, fmt)
    if not value or len(exact_decimal(value)) <= _SHORT:
        return operation_text(code, fmt)
    return f"≈ {rounded(value, fmt.decimal_digits + 4)}"


def exactly(value: Fraction, fmt: FloatFormat) -> str:
    """All digits of an exact result where they are few enough to read, else some more than the format has."""
    ends = value.denominator & (value.denominator - 1) == 0
    if ends and len(exact_decimal(value)) <= _EXACT_LENGTH:
        return rounded(value, _EXACT_LENGTH)
    return f"≈ {rounded(value, fmt.decimal_digits + 8)}"


def answer(done: TypedOperation) -> str:
    """The result in one sentence, and what decided it."""
    operation, fmt = done.operation, done.operation.fmt
    return f"**{operands_text(done)}** in {fmt.title} is **{operation_text(operation.code, fmt)}**: {_why(done)}"


def _why(done: TypedOperation) -> str:
    operation, fmt, cut = done.operation, done.operation.fmt, done.operation.cut
    lost = [i for i, typed in enumerate(done.typed) if typed.value and operation.operands[i].kind == "zero"]
    if lost and operation.special in ("", "zero", "zeros") and operation.operator != "fma":
        so = "nothing is added" if operation.operator == "add" else "the product is 0"
        return f"{as_read(done.typed[lost[0]])} is too small for the format and is stored as 0, so {so}."
    if operation.special:
        return _special(operation)
    exact = operation.exact or Fraction(0)
    if cut is None:
        if exact < 0 and not fmt.signed:
            return f"the exact result is {exactly(exact, fmt)}, and the format has no sign."
        return (
            f"the exact result, {exactly(exact, fmt)}, lies between 0 and {rounded(fmt.min_subnormal, 3)}, the "
            "smallest value, with no subnormals between them."
        )
    thing = f"the exact {_THING[operation.operator]} of the stored operands"
    if not cut.inexact:
        return f"{thing} fits, and nothing is cut off."
    swallowed = _swallowed(operation)
    if swallowed is not None:
        step = rounded(Fraction(2) ** cut.last, 3)
        return (
            f"{NAMES[swallowed]} is swallowed. {_sentence(thing)} is {exactly(exact, fmt)}, but the step between "
            f"neighbours is {step} there: {_decision(cut, operation)}."
        )
    over = f", past the largest finite value, {rounded(fmt.max_finite, 5)}" if operation.overflowed else ""
    return f"{thing} is {exactly(exact, fmt)}; {_decision(cut, operation)}{over}."


def _swallowed(operation: FloatOperation) -> int | None:
    """The addend that leaves no trace in the result."""
    if operation.operator != "add":
        return None
    first, second = operation.operands
    for operand, gone, place in ((first, second, 1), (second, first, 0)):
        if operation.value == operand.value and gone.significand:
            return place
    return None


def _special(operation: FloatOperation) -> str:
    kinds = [operand.kind for operand in operation.operands]
    if operation.special == "nan":
        return "an operand is NaN, and a NaN goes through every operation."
    if operation.special == "invalid":
        if "zero" in kinds and operation.operator != "add":
            return "0 × infinity could be anything, so it is no number."
        return "infinity − infinity could be anything, so it is no number."
    if operation.special == "infinity":
        ends = "" if operation.value is None else ", clipped to the largest finite value"
        return f"an operand is infinite, and nothing finite changes that{ends}."
    if operation.special == "zero":
        return "a factor is 0; the sign is that of a product."
    same = "the sum of two zeros of one sign keeps it"
    other = "0 with the sign +, and only rounding toward −∞ gives −0"
    if operation.special == "zeros":
        first, second = operation.addends or operation.operands[:2]
        return f"{same if first.negative == second.negative else f'zeros of two signs add up to {other}'}."
    return f"what is stored cancels exactly, and x − x is {other}."


def _decision(cut: Cut, operation: FloatOperation) -> str:
    """What the three bits say in the operation's rounding mode."""
    rounding, negative = operation.rounding, (operation.exact or 0) < 0
    bits = f"guard {cut.guard}, round {cut.round_}, sticky {cut.sticky}"
    if not cut.inexact:
        return f"{bits}: nothing is cut off"
    way = f"{'up' if cut.up else 'down'}{' in magnitude' if negative else ''}"
    if rounding == "stochastic":
        return f"{bits}; by chance, with {shares(cut.chance)[0]}% for up, **{way}**"
    if rounding not in ("nearest_even", "nearest_away"):
        return f"{bits}; {WORDS[rounding]}, {_HALF_WORD[rounding]}: **{way}**"
    if cut.tie:
        rule = f"and the last kept bit is {cut.kept & 1}, {'odd' if cut.kept & 1 else 'even'}"
        rule = f", {rule}" if rounding == "nearest_even" else ", and ties go away from zero"
        return f"{bits}: a **tie**{rule}, so it goes **{way}**"
    half = "more" if cut.guard else "less"
    return f"{bits}: {half} than half a step, so it goes **{way}**"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------------------------------ stages


def stages(done: TypedOperation) -> tuple[tuple[str, str], ...]:
    """Name and sentence of each stage, in the order in which hardware goes through them."""
    operation = done.operation
    rows = [("Stored", _stored(done))]
    if not operation.special:
        if operation.product is not None:
            rows.append(("Multiply", _multiplied(operation, operation.product)))
        if operation.register is not None:
            rows.append(("Align", _aligned(operation)))
            rows.append(("Subtract" if operation.subtracts else "Add", _summed(done)))
        if operation.cut is not None:
            rows.append(("Normalise", _shifted(operation, operation.cut)))
            rows.append(("Round", f"{_sentence(_decision(operation.cut, operation))}."))
    rows.append(("Result", _result(operation)))
    fused = fused_or_not(done)
    error = _error(done)
    return tuple(pair for pair in (*rows, ("Unfused", fused), ("Error", error)) if pair[1])


def _stored(done: TypedOperation) -> str:
    operation = done.operation
    fmt = operation.fmt
    parts: list[str] = []
    for name, typed, operand in zip(NAMES, done.typed, operation.operands, strict=False):
        same = operand.kind == ("nan" if typed.nan else "inf") if typed.value is None else operand.value == typed.value
        if same and typed.code is None:
            continue
        parts.append(f"{name} as {_stored_as(operand, fmt)}")
    if not parts:
        return "The operands are stored exactly."
    exact = "; the rest exactly" if len(parts) < len(done.typed) else ""
    return f"Rounded into {fmt.title} first, to nearest: {', '.join(parts)}{exact}."


def _stored_as(operand: Operand, fmt: FloatFormat) -> str:
    return operation_text(operand.code, fmt) if not operand.value else exactly(operand.value, fmt)


def _power(operand: Operand, fmt: FloatFormat) -> int:
    """The exponent of 1.M, or of a subnormal's 0.M."""
    return operand.exponent + fmt.fraction_bits


def _multiplied(operation: FloatOperation, product: Operand) -> str:
    fmt = operation.fmt
    a, b = operation.operands[:2]
    width = fmt.fraction_bits + 1
    first, second = _power(a, fmt), _power(b, fmt)
    exponents = f"{_signed(first)} {'−' if second < 0 else '+'} {abs(second)} = {_signed(first + second)}"
    sign = "the signs differ, so it is negative" if product.negative else "the sign is +"
    return f"Two significands of {width} bits give one of {2 * width}, exactly; exponents add, {exponents}; {sign}."


def _aligned(operation: FloatOperation) -> str:
    register, fmt = operation.register, operation.fmt
    if register is None:
        return ""
    if operation.operator == "fma":
        return (
            "The product is not rounded: all its bits and c lie in one register, of three significands and three bits "
            f"more.{_fell(register.fell)}"
        )
    if not register.moved:
        return f"Both exponents are {_signed(_power(operation.operands[0], fmt))}: nothing moves."
    mover, stays = (0, 1) if register.swapped else (1, 0)
    low, high = (_signed(_power(operation.operands[i], fmt)) for i in (mover, stays))
    places = f"{register.moved} place{'s' * (register.moved != 1)}"
    return f"Exponents {high} and {low}: {NAMES[mover]} moves {places} to the right.{_fell(register.fell)}"


def _fell(count: int) -> str:
    return f" {count:,} of its bits share the sticky place, which is 1 if any of them is." * (count > 1)


def _summed(done: TypedOperation) -> str:
    operation = done.operation
    text = f"Exactly {exactly(operation.exact or Fraction(0), operation.fmt)}."
    if not operation.cancelled or done.errors is None:
        return text
    count = operation.cancelled
    text += f" **{count}** leading bit{'s' * (count != 1)} cancel{'s' * (count == 1)}."
    if operation.operator == "add" and is_sterbenz(operation):
        text += " The two are within a factor of two of each other, so the difference is exact (Sterbenz)."
    return text


def is_sterbenz(operation: FloatOperation) -> bool:
    """Whether Sterbenz's lemma says that an addition is exact: y/2 ≤ x ≤ 2y for x − y, in a format with subnormals.

    Source: Sterbenz 1974, Floating-Point Computation, 4.3.
    """
    values = [abs(operand.value) for operand in operation.operands if operand.value]
    if operation.operator != "add" or not operation.subtracts or len(values) < 2 or not operation.fmt.gradual:
        return False
    return max(values) <= 2 * min(values)


def _shifted(operation: FloatOperation, cut: Cut) -> str:
    fmt = operation.fmt
    if fmt.twos_complement:
        return "Fixed point: the last place never moves."
    subnormal = cut.last == fmt.emin - fmt.fraction_bits and cut.kept < 1 << fmt.fraction_bits
    end = " The exponent ends there: the result is subnormal, with zeros in front." * subnormal
    if not cut.shift:
        return f"The leading bit is where it should be.{end}"
    places = f"{abs(cut.shift)} place{'s' * (abs(cut.shift) != 1)}"
    if cut.shift > 0:
        if subnormal:
            return f"{places} to the right, to the last place that the format has.{end}"
        return f"A carry came out: 1 place to the right.{end}" if cut.shift == 1 else f"{places} to the right.{end}"
    exact = " Zeros come in from the right." * (not cut.inexact and operation.cancelled > 0)
    return f"Leading bits are 0: {places} to the left.{exact}{end}"


def _result(operation: FloatOperation) -> str:
    fmt, cut = operation.fmt, operation.cut
    if operation.overflowed:
        fate = fmt.outcome(operation.overflow)
        stays_finite = operation.value is not None and fate != "saturate"
        what = "the largest finite value, as this mode never goes outward" if stays_finite else OUTCOMES[fate]
        return f"Beyond the largest finite value, {rounded(fmt.max_finite, 5)}: it becomes {what}."
    if cut is None or operation.value is None or operation.error is None:
        return f"{_sentence(operation_text(operation.code, fmt))}."
    tiny = operation.value and abs(operation.value) < fmt.min_normal and fmt.has_subnormals
    if tiny and operation.operator == "add":
        why = "A sum in the subnormal range is always exact: all its numbers are multiples of the smallest one"
        return f"{why} (gradual underflow)."
    if operation.error == 0:
        return "Exact."
    off = rounded(abs(operation.error) / Fraction(2) ** cut.last, 3)
    return f"{exactly(operation.value, fmt)}, off by {off} ULP of the exact result."


def _error(done: TypedOperation) -> str:
    errors, operation = done.errors, done.operation
    if errors is None:
        return ""
    if not errors.total:
        return "None: it is the exact result of the numbers as typed."
    size = f", {percent(abs(errors.total / errors.wanted))} of it" if errors.wanted else ""
    text = f"Of the numbers as typed the result is {_off(errors.total)}{size}."
    if not errors.inherited:
        return f"{text} All of it is the rounding of the result."
    most = "most of it " * (sum(map(bool, errors.shares)) > 1)
    worst = f", {most}from {NAMES[errors.worst]}" if errors.worst is not None else ""
    rounding = f"rounding adds {_signed_value(errors.rounding)}" if errors.rounding else "rounding adds nothing"
    text += f" The stored operands bring {_signed_value(errors.inherited)}{worst}; {rounding}."
    before = max(
        abs(operand.value - typed.value) / abs(typed.value)
        if typed.value and operand.value is not None
        else Fraction(0)
        for operand, typed in zip(operation.operands, done.typed, strict=True)
    )
    grown = abs(errors.inherited / errors.wanted) if errors.wanted else Fraction(0)
    if operation.cancelled and errors.mostly_inherited and grown > 2 * before:
        text += (
            f" **Cancellation**: the operands’ own rounding was {percent(before)} of an operand at most, and is "
            f"{percent(grown)} of the result."
        )
    return text


def _off(error: Fraction) -> str:
    return f"{rounded(abs(error), 3)} too {'large' if error > 0 else 'small'}"


def _signed_value(value: Fraction) -> str:
    return ("+" if value > 0 else "") + rounded(value, 3)


def _signed(power: int) -> str:
    return str(power).replace("-", "−")


def fused_or_not(done: TypedOperation) -> str:
    """What multiplying and adding with two roundings gives, against one."""
    both = multiply_then_add(done)
    if both is None:
        return ""
    product, total = both
    fmt = done.operation.fmt
    head = (
        f"Multiplied, rounded to {operation_text(product.code, fmt)}, then added: **{operation_text(total.code, fmt)}**"
    )
    if total.code == done.operation.code:
        return f"{head}, the same here."
    return f"{head}. The product’s lower bits, which the fused operation keeps, are lost by then."


def modes(done: TypedOperation) -> tuple[tuple[str, str, str], ...]:
    """A row for each rounding mode: its name, what it decides, and the result."""
    operation, cut = done.operation, done.operation.cut
    if cut is None or not cut.inexact:
        return ()
    negative = (operation.exact or 0) < 0
    given: dict[Rounding, str] = {
        mode: operation_text(_in_mode(done, mode).code, operation.fmt) for mode in ROUNDINGS if mode != "stochastic"
    }
    bits = cut.kept & 1, cut.guard, cut.round_, cut.sticky
    rows = [(WORDS[mode], f"+{goes_up(*bits, mode, negative=negative):d}", result) for mode, result in given.items()]
    up, down = shares(cut.chance)
    either = f"{given['down' if negative else 'up']} or {given['toward_zero']}"
    return (*rows, (WORDS["stochastic"], f"+1 with {up}%, +0 with {down}%", either))


def _in_mode(done: TypedOperation, mode: Rounding) -> FloatOperation:
    operation = done.operation
    return work(operation.operator, done.typed, operation.fmt, rounding=mode, overflow=operation.overflow).operation
