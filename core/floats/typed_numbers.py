"""What a person types for a number, read exactly: nothing passes through float64 on the way."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fractions import Fraction

from core.floats.codec import classify, decode_exact, encode_exact, no_nan
from core.floats.decimals import exact_decimal, power_form, shortest_decimal
from core.floats.formats import FloatFormat, Overflow
from core.floats.rounding import Rounding, Seed, check_policies, infinity_code, zero_code
from core.limits import limit
from core.messages import Message, message

_LONGEST_FLIP_TEXT = 24
"""A flipped bit's value is spelled out exactly up to this many characters."""

_FEWEST_PLAIN_BITS = 6
"""Bits that start with 1 and stand there without spaces or 0b are read as bits from this many on."""

_MOST_POWER_BITS = 100_000
"""Bits of a power's value; the numbers that are read have 5,000 at most."""

_CONSTANTS = {
    "pi": Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"),
    "e": Fraction("2.71828182845904523536028747135266249775724709369995957496696762772407663035354759"),
}
"""Numbers without an end, to 80 decimal places: rounding into fp64 needs 20 of them."""

_DECIMAL = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_HEX = r"0x(?P<whole>[0-9a-f]*)\.?(?P<rest>[0-9a-f]*)(?:p(?P<power>[+-]?\d+))?"
_TOKEN = re.compile(rf"(?P<hex>{_HEX})|(?P<decimal>{_DECIMAL})|(?P<name>pi|e)|\*\*|[-+*/()]", re.ASCII)
_CODE = re.compile(r"[+-]?0x[0-9a-z_]*", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d*)?", re.ASCII)
_SPECIAL = re.compile(r"(?P<sign>[+-]?)(?P<word>nan|inf|infinity|∞)", re.ASCII)
_SUPERSCRIPT = re.compile(r"(?<=[\de)π])[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FROM_SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_PLAIN = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "π": "pi"})


class FloatTextError(ValueError):
    """An entered number that cannot be used. Its argument is a `Message`."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Exact number that a user entered.

    text: what was entered, trimmed. value: the exact value, or None for infinity and NaN. negative: the sign, which
    zero, infinity, and NaN also have. nan: whether it is NaN. terms: the exact terms of a sum. code, code_format: the
    code and the name of its format, if a code was entered.
    """

    text: str
    value: Fraction | None
    negative: bool = False
    nan: bool = False
    code: int | None = None
    code_format: str = ""
    terms: tuple[Fraction, ...] = ()


def parse(text: str, fmt: FloatFormat) -> Typed:
    """Read ``text``: a number, an expression of ``+ - * / ^ ( )``, π and e, nan, inf, or a code of ``fmt``.

    Numbers are decimal (65,504 and 1e-8 too) or hexadecimal (0x1.8p-3); codes are hexadecimal (0x3c00) or bits.
    Raises `FloatTextError` for what is too long, malformed, no code of the format, or beyond 10^±400.
    """
    cap = limit("float_chars")
    if len(text) > cap:
        raise FloatTextError(message("floats.error.long", length=float(len(text)), most=float(cap)))
    tidy = " ".join(text.split())
    if not tidy:
        raise FloatTextError(message("floats.error.empty"))
    plain = _SUPERSCRIPT.sub(lambda m: "^" + m.group().translate(_FROM_SUPERSCRIPT), tidy.lower()).translate(_PLAIN)
    bits = _bits(plain, fmt)
    if _GROUPED.fullmatch(plain) and (bits is None or len(bits) != fmt.bits):
        bits, plain = None, plain.replace(" ", "")
    if bits is not None:
        if len(bits) != fmt.bits:
            raise FloatTextError(
                message(
                    "floats.error.bits",
                    text=clipped(tidy),
                    given=float(len(bits)),
                    fmt=fmt.title,
                    bits=float(fmt.bits),
                    example=_one_in_bits(fmt),
                )
            )
        return _from_code(tidy, int(bits, 2), fmt)
    joined = plain.replace(" ", "")
    if match := _SPECIAL.fullmatch(joined):
        return Typed(tidy, None, match["sign"] == "-", nan=match["word"] == "nan")
    if _CODE.fullmatch(joined) and "p" not in joined:
        return _hex_code(tidy, joined, fmt)
    return _expression(tidy, plain, fmt)


def typed_code(
    typed: Typed,
    fmt: FloatFormat,
    overflow: Overflow = "format",
    *,
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> int:
    """Return the code ``typed`` becomes in ``fmt``: itself where it is a code of that format, else its value rounded
    once.

    Raises `FormatError` for NaN in a format without one, and for an overflow policy that the format cannot follow.
    """
    check_policies(fmt, rounding, overflow)
    if typed.code is not None and typed.code_format == fmt.name:
        return typed.code
    if typed.nan:
        if not fmt.has_nan:
            raise no_nan(fmt)
        return fmt.nan_code | (fmt.sign_mask if typed.negative and fmt.nan != "negative_zero" else 0)
    if typed.value is None:
        return infinity_code(fmt, overflow, negative=typed.negative)
    if typed.value == 0:
        return zero_code(fmt, negative=typed.negative)
    return encode_exact(typed.value, fmt, overflow, rounding=rounding, seed=seed)


def code_text(code: int, fmt: FloatFormat, overflow: Overflow = "format") -> str:
    """Return a text that gives ``code`` in ``fmt`` when entered.

    This is the exact value if it is short, else the shortest decimal, or the hexadecimal code if no number gives it, as
    for a NaN with a payload.
    """
    value = decode_exact(code, fmt)
    if classify(code, fmt) == "nan":
        text = "-nan" if code & fmt.sign_mask and fmt.nan != "negative_zero" else "nan"
    elif value is None:
        text = "-inf" if code & fmt.sign_mask else "inf"
    else:
        exact = exact_decimal(value), power_form(value)
        text = next((t for t in exact if value and len(t) <= _LONGEST_FLIP_TEXT), shortest_decimal(code, fmt))
    return text if typed_code(parse(text, fmt), fmt, overflow) == code else f"0x{code:0{fmt.hex_digits}x}"


def number_text(text: str, fmt: FloatFormat) -> str:
    """Return ``text``, or the number that it stands for if it is a code of ``fmt``, so that every format reads it
    alike.

    Raises `FloatTextError` like `parse`.
    """
    typed = parse(text, fmt)
    if typed.code is None:
        return typed.text
    return "nan" if typed.nan else code_text(typed.code, fmt)


def hint(typed: Typed, fmt: FloatFormat) -> Message | str:
    """Return what else the text could have meant: decimals, or the bits of a code; else empty."""
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", typed.text):
        return message("floats.hint.comma", meant=typed.text.replace(",", "."))
    if typed.code is None and len(typed.text) == fmt.bits and not typed.text.strip("01"):
        return message("floats.hint.bits", meant=f"0b{typed.text}")
    return ""


def _bits(plain: str, fmt: FloatFormat) -> str | None:
    """Return the bits when ``plain`` is written as bits: after 0b, in groups, or at full length.

    At full length without 0b, a power of ten and a short number are decimals: people type 1000 and 10000000.
    """
    digits = re.sub(r"[ _|]", "", plain.removeprefix("0b"))
    if plain.startswith("0b"):
        if not digits or digits.strip("01"):
            raise FloatTextError(message("floats.error.binary", text=clipped(plain), example=_one_in_bits(fmt)))
        return digits
    if not digits or digits.strip("01"):
        return None
    grouped = bool(re.search(r"[01][ |]+[01]", plain))
    plainly = digits[0] == "0" or (fmt.bits >= _FEWEST_PLAIN_BITS and digits.count("1") > 1)
    return digits if grouped or (len(digits) == fmt.bits and plainly) else None


def _hex_code(text: str, plain: str, fmt: FloatFormat) -> Typed:
    digits = plain.replace("_", "").lstrip("+-").removeprefix("0x")
    try:
        code = int(digits, 16)
    except ValueError:
        raise FloatTextError(message("floats.error.hex", text=clipped(text), example=_one_in_hex(fmt))) from None
    if plain[0] in "+-":
        raise FloatTextError(message("floats.error.hex_sign", text=clipped(text), example=_one_in_hex(fmt)))
    if len(digits) > fmt.hex_digits or code >> fmt.bits:
        last = f"{(1 << fmt.bits) - 1:#x}"
        raise FloatTextError(message("floats.error.hex_long", text=clipped(text), fmt=fmt.title, last=last))
    return _from_code(text, code, fmt)


def _expression(text: str, plain: str, fmt: FloatFormat) -> Typed:
    """Return the expression with names for its numbers, so that Python's parser sees only names and operators."""
    values = dict[str, Fraction]()
    plain, parts, at = plain.replace("^", "**"), list[str](), 0
    while at < len(plain):
        if plain[at] == " ":
            at += 1
            continue
        token = _TOKEN.match(plain, at)
        if token is None:
            raise _unreadable(text, fmt)
        at, part = token.end(), token.group()
        if token["hex"] or token["decimal"] or token["name"]:
            part = f"n{len(values)}"
            values[part] = _CONSTANTS[token["name"]] if token["name"] else _number(text, token, fmt)
        parts.append(part)
    if len(values) > limit("float_terms"):
        raise FloatTextError(message("floats.error.terms", text=clipped(text), most=float(limit("float_terms"))))
    try:
        tree = ast.parse(" ".join(parts), mode="eval").body
        terms = _terms(tree, values)
        value = sum(terms, Fraction(0))
    except ZeroDivisionError:
        raise FloatTextError(message("floats.error.zero", text=clipped(text))) from None
    except OverflowError:
        raise _beyond(text) from None
    except (SyntaxError, TypeError, MemoryError, RecursionError):
        raise _unreadable(text, fmt) from None
    most = limit("float_exponent")
    if value and not Fraction(10) ** -most <= abs(value) <= Fraction(10) ** most:
        raise _beyond(text)
    negative = value < 0 or (not value and plain.startswith("-"))
    return Typed(text, value, negative, terms=terms if len(terms) > 1 else ())


def _number(text: str, token: re.Match[str], fmt: FloatFormat) -> Fraction:
    most = limit("float_exponent")
    if token["decimal"]:
        mantissa, _, exponent = token["decimal"].replace(",", "").replace("_", "").partition("e")
        # A mantissa may have hundreds of digits of its own, so its exponent gets that much more room.
        power = _bounded(text, exponent or "0", most + limit("float_chars"))
        return Fraction(mantissa.rstrip(".")) * Fraction(10) ** power
    whole, rest = token["whole"], token["rest"]
    if not whole + rest:
        raise FloatTextError(message("floats.error.hex", text=clipped(text), example=_one_in_hex(fmt)))
    if not set(token["hex"]) & set(".p"):
        raise FloatTextError(message("floats.error.code_in_sum", text=clipped(text), code=clipped(token["hex"])))
    power = _bounded(text, token["power"] or "0", 4 * most)
    return Fraction(int(whole + rest, 16), 16 ** len(rest)) * Fraction(2) ** power


def _bounded(text: str, digits: str, most: int) -> int:
    if len(digits.lstrip("+-0")) > 6 or abs(int(digits)) > most:
        raise _beyond(text)
    return int(digits)


def _terms(node: ast.expr, values: dict[str, Fraction]) -> tuple[Fraction, ...]:
    """Return the terms of a sum from left to right; of anything else its value."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (*_terms(left, values), _value(right, values))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return (*_terms(left, values), -_value(right, values))
        case _:
            return (_value(node, values),)


def _value(node: ast.expr, values: dict[str, Fraction]) -> Fraction:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, values)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _value(inner, values)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return sum(_terms(node, values), Fraction(0))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, values) * _value(right, values)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _value(left, values) / _value(right, values)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _value(left, values), _value(right, values)
            if power.denominator != 1:
                raise TypeError(node)
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if abs(power) * bits > _MOST_POWER_BITS:
                raise OverflowError(node)
            return base**power.numerator
        case _:
            raise TypeError(node)


def _unreadable(text: str, fmt: FloatFormat) -> FloatTextError:
    if re.search(r"\d,\d", text) and "." not in text:
        return FloatTextError(message("floats.error.comma", text=clipped(text)))
    example = _one_in_hex(fmt)
    return FloatTextError(message("floats.error.unreadable", text=clipped(text), fmt=fmt.title, example=example))


def _beyond(text: str) -> FloatTextError:
    return FloatTextError(message("floats.error.beyond", text=clipped(text), most=float(limit("float_exponent"))))


def _from_code(text: str, code: int, fmt: FloatFormat) -> Typed:
    nan = classify(code, fmt) == "nan"
    return Typed(text, decode_exact(code, fmt), bool(code & fmt.sign_mask), nan, code, fmt.name)


def _one_in_bits(fmt: FloatFormat) -> str:
    bits = f"{encode_exact(Fraction(1), fmt):0{fmt.bits}b}"
    return f"0b{bits}" if fmt.bits <= 32 else f"0b{bits[:12]}…"


def _one_in_hex(fmt: FloatFormat) -> str:
    return f"0x{encode_exact(Fraction(1), fmt):0{fmt.hex_digits}x}"


def clipped(text: str) -> str:
    """Return ``text``, cut to 60 characters for an error."""
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"
