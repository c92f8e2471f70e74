"""What a person types for a number, read exactly: nothing passes through float64 on the way."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from core.floats.codec import classify, decode_exact, encode_exact, no_nan
from core.floats.decimals import exact_decimal, power_form, shortest_decimal
from core.floats.formats import FloatFormat, Overflow
from core.floats.rounding import Rounding, Seed, check_policies, infinity_code, zero_code
from core.limits import limit

Notation: TypeAlias = Literal["decimal", "fraction", "power", "sum", "hexfloat", "special", "hex code", "bits"]

EXAMPLES = "0.1, 1e-8, 1/3, 2^-24, 1 + 2^-8, 0x1.8p-3, nan, -inf"

_LONGEST_FLIP_TEXT = 24
"""A flipped bit's value is spelled out exactly up to this many characters."""

_FEWEST_PLAIN_BITS = 6
"""Bits that start with 1 and stand there without spaces or 0b are read as bits from this many on."""

_SIGN = r"(?P<sign>[+-]?)"
_DECIMAL = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_GROUPED = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d*)?", re.ASCII)
_NUMBER = re.compile(rf"{_SIGN}(?P<number>{_DECIMAL})", re.ASCII)
_RATIO = re.compile(rf"{_SIGN}(?P<top>{_DECIMAL})/(?P<bottom>{_DECIMAL})", re.ASCII)
_POWER = re.compile(
    rf"{_SIGN}(?:(?P<factor>{_DECIMAL})\*)?(?P<base>2|10)(?:\^|\*\*)(?P<power>[+-]?\d+|\([+-]?\d+\))", re.ASCII
)
_HEXFLOAT = re.compile(rf"{_SIGN}0x(?P<whole>[0-9a-f]*)(?:\.(?P<rest>[0-9a-f]*))?(?:p(?P<power>[+-]?\d+))?", re.ASCII)
_TERMS = (_NUMBER, _RATIO, _POWER, _HEXFLOAT)
_SPECIAL = re.compile(rf"{_SIGN}(?P<word>nan|inf|infinity|∞)", re.ASCII)
_SUPERSCRIPT = re.compile(r"(?<=\d)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FROM_SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_PLAIN = str.maketrans("−–×·", "--**")


class FloatTextError(ValueError):
    """A typed number that cannot be used; the message says why and gives an example."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A typed number, exact.

    text: what was typed, trimmed. notation: how it was read.
    value: the exact value, or None for infinity and NaN. negative: the sign, which zero, infinity and NaN also have.
    nan: whether it is NaN. terms: of a sum, each exact. code, code_format: where a code was typed, it and the name of
    the format it belongs to.
    """

    text: str
    notation: Notation
    value: Fraction | None
    negative: bool = False
    nan: bool = False
    code: int | None = None
    code_format: str = ""
    terms: tuple[Fraction, ...] = ()


def parse(text: str, fmt: FloatFormat) -> Typed:
    """Read ``text``: a decimal, fraction, power of two, hexfloat, a sum or difference of these, nan, inf, or a code of
    ``fmt`` in hex or binary.

    Raises `FloatTextError` with the reason and an example: too long, too many terms, malformed, a code with more bits
    than the format, bits of the wrong length, or a magnitude beyond 10^±400, where every format has long given up.
    """
    cap = limit("float_chars")
    if len(text) > cap:
        raise FloatTextError(
            f"That is {len(text):,} characters long, and a number here has at most {cap:,}: they end at "
            f"“…{text[cap - 8 : cap]}”. Type fewer, for example {text[:12]}."
        )
    tidy = " ".join(text.split())
    if not tidy:
        raise FloatTextError(f"Empty. Type a number, for example {_examples(fmt)}.")
    plain = _SUPERSCRIPT.sub(lambda m: "^" + m.group().translate(_FROM_SUPERSCRIPT), tidy.translate(_PLAIN).lower())
    bits = _bits(plain, fmt)
    if _GROUPED.fullmatch(plain) and (bits is None or len(bits) != fmt.bits):
        bits, plain = None, plain.replace(" ", "")
    if bits is not None:
        if len(bits) != fmt.bits:
            raise FloatTextError(
                f"“{clipped(tidy)}” has {len(bits)} bit{'s' * (len(bits) != 1)}; {fmt.name} has {fmt.bits}: "
                f"{_fields(fmt)}. For example {_one(fmt)}."
            )
        return _from_code(tidy, "bits", int(bits, 2), fmt)
    if re.search(r"[\w.] +[\w.]", plain):
        raise _unreadable(tidy, fmt)
    plain = plain.replace(" ", "")
    if match := _SPECIAL.fullmatch(plain):
        return Typed(tidy, "special", None, match["sign"] == "-", nan=match["word"] == "nan")
    terms = _split(plain)
    if len(terms) > 1:
        return _sum(tidy, terms, fmt)
    if "0x" in plain:
        return _hexadecimal(tidy, plain, fmt)
    return _real(tidy, plain, fmt)


def typed_code(
    typed: Typed,
    fmt: FloatFormat,
    overflow: Overflow = "format",
    *,
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> int:
    """The code ``typed`` becomes in ``fmt``: itself where it is a code of that format, else its value rounded once.

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
    """What to type so that ``fmt`` gives ``code``.

    Its exact value where that is short, else its shortest decimal; the hex code where no number gives it, as for a
    NaN with a payload.
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
    """``text`` unless it is a code of ``fmt``; then the number that code stands for, which means the same everywhere.

    Raises `FloatTextError` like `parse`.
    """
    typed = parse(text, fmt)
    if typed.code is None:
        return typed.text
    return "nan" if typed.nan else code_text(typed.code, fmt)


def misread(typed: Typed, fmt: FloatFormat) -> str:
    """A hint where what was read as a decimal could have been meant otherwise, as the bits of a code; else empty."""
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", typed.text):
        return f"Its comma groups thousands; if decimals were meant, write {typed.text.replace(',', '.')}."
    looks = typed.notation == "decimal" and len(typed.text) == fmt.bits and not typed.text.strip("01")
    return f"It was read as a decimal; for the {fmt.bits} bits of a code write 0b{typed.text}." * looks


def _bits(plain: str, fmt: FloatFormat) -> str | None:
    """The bits when ``plain`` is written as bits: after 0b, in groups, or at full length.

    At full length without 0b, a power of ten and a short number are decimals: people type 1000 and 10000000.
    """
    digits = re.sub(r"[ _|]", "", plain.removeprefix("0b"))
    if plain.startswith("0b"):
        if not digits or digits.strip("01"):
            raise FloatTextError(f"“{clipped(plain)}” is not binary: after 0b only 0 and 1. For example {_one(fmt)}.")
        return digits
    if not digits or digits.strip("01"):
        return None
    grouped = bool(re.search(r"[01][ |]+[01]", plain))
    plainly = digits[0] == "0" or (fmt.bits >= _FEWEST_PLAIN_BITS and digits.count("1") > 1)
    return digits if grouped or (len(digits) == fmt.bits and plainly) else None


def _hexadecimal(text: str, plain: str, fmt: FloatFormat) -> Typed:
    example = f"For example {_one_hex(fmt)} (a code of {fmt.name}) or 0x1.8p-3 (a hexadecimal number)."
    plain = plain.replace("_", "")
    match = _HEXFLOAT.fullmatch(plain)
    if match is None or not (match["whole"] or match["rest"]):
        raise FloatTextError(f"“{clipped(text)}” is not hexadecimal: after 0x come 0 to 9 and a to f. {example}")
    if match["rest"] is not None or match["power"] is not None:
        return _real_typed(text, "hexfloat", abs(_hexfloat(text, plain, fmt)), match["sign"])
    if match["sign"]:
        raise FloatTextError(
            f"“{clipped(text)}”: the sign of a code is its first bit, so none goes before it. {example}"
        )
    digits, code = len(match["whole"]), int(match["whole"], 16)
    if digits > fmt.hex_digits or code >> fmt.bits:
        raise FloatTextError(
            f"“{clipped(text)}” is longer than a code of {fmt.name}: {fmt.bits} bits are at most {fmt.hex_digits} hex "
            f"digits, 0x0 to {(1 << fmt.bits) - 1:#x}. For example {_one_hex(fmt)}."
        )
    return _from_code(text, "hex code", code, fmt)


def _split(plain: str) -> list[str]:
    """The terms of a sum, each with its sign; a single number is one term, and none are given for anything else."""
    terms: list[str] = []
    at = 0
    while at < len(plain):
        ends = [m.end() for pattern in _TERMS if (m := pattern.match(plain, at)) and m.end() > at]
        if not ends or (at and plain[at] not in "+-"):
            return []
        terms.append(plain[at : max(ends)])
        at = max(ends)
        if len(terms) > limit("float_terms"):
            break  # what follows is not looked at: the sum is refused
    return terms


def _sum(text: str, terms: list[str], fmt: FloatFormat) -> Typed:
    most = limit("float_terms")
    if len(terms) > most:
        raise FloatTextError(
            f"“{clipped(text)}” has too many terms: {most} are enough for any number here. For example 1 + 2^-8."
        )
    parts: list[Fraction] = []
    for term in terms:
        if "0x" in term and not set(term) & set(".p"):
            raise FloatTextError(
                f"“{clipped(text)}”: a code such as {clipped(term.lstrip('+-'))} cannot be part of a sum; a "
                "hexadecimal number can, for example 1 + 0x1p-8."
            )
        parts.append((_hexfloat(text, term, fmt) if "0x" in term else _real(text, term, fmt).value) or Fraction(0))
    value = sum(parts, Fraction(0))
    return replace(_real_typed(text, "sum", abs(value), "-" if value < 0 else ""), terms=tuple(parts))


def _hexfloat(text: str, term: str, fmt: FloatFormat) -> Fraction:
    match = _HEXFLOAT.fullmatch(term)
    if match is None or not (match["whole"] or match["rest"]):
        raise _unreadable(text, fmt)
    rest = match["rest"] or ""
    power = _bounded_power(text, match["power"] or "0", limit("float_exponent") * 4)
    value = Fraction(int(match["whole"] + rest, 16), 16 ** len(rest)) * Fraction(2) ** power
    return -value if match["sign"] == "-" else value


def _real(text: str, plain: str, fmt: FloatFormat) -> Typed:
    if match := _NUMBER.fullmatch(plain):
        return _real_typed(text, "decimal", _decimal(text, match["number"]), match["sign"])
    if match := _POWER.fullmatch(plain):
        base = int(match["base"])
        most = limit("float_exponent") * (4 if base == 2 else 1)
        power = _bounded_power(text, match["power"].strip("()"), most)
        factor = _decimal(text, match["factor"]) if match["factor"] else Fraction(1)
        return _real_typed(text, "power", factor * Fraction(base) ** power, match["sign"])
    if match := _RATIO.fullmatch(plain):
        bottom = _decimal(text, match["bottom"])
        if bottom == 0:
            raise FloatTextError(
                f"“{clipped(text)}” divides by zero. Type inf for infinity, or a fraction such as 1/3."
            )
        return _real_typed(text, "fraction", _decimal(text, match["top"]) / bottom, match["sign"])
    raise _unreadable(text, fmt)


def _real_typed(text: str, notation: Notation, value: Fraction, sign: str) -> Typed:
    most = limit("float_exponent")
    if value and not Fraction(10) ** -most <= value <= Fraction(10) ** most:
        raise _beyond(text)
    return Typed(text, notation, -value if sign == "-" else value, sign == "-")


def _decimal(shown_text: str, text: str) -> Fraction:
    mantissa, _, exponent = text.replace(",", "").replace("_", "").partition("e")
    # A mantissa may have hundreds of digits of its own, so its exponent gets that much more room.
    power = _bounded_power(shown_text, exponent or "0", limit("float_exponent") + limit("float_chars"))
    return Fraction(mantissa.rstrip(".")) * Fraction(10) ** power


def _bounded_power(text: str, digits: str, most: int) -> int:
    if len(digits.lstrip("+-0")) > 6 or abs(int(digits)) > most:
        raise _beyond(text)
    return int(digits)


def _examples(fmt: FloatFormat) -> str:
    """Numbers that can be typed, and a code of the very format in which codes are read."""
    return f"{EXAMPLES}, or a code of {fmt.name} such as {_one_hex(fmt)}"


def _unreadable(text: str, fmt: FloatFormat) -> FloatTextError:
    if why := _meant(text, fmt):
        return FloatTextError(f"“{clipped(text)}”: {why}.")
    return FloatTextError(f"“{clipped(text)}” is not a number Napkin can read. For example: {_examples(fmt)}.")


_CONSTANTS = {"π": math.pi, "pi": math.pi, "e": math.e, "τ": math.tau}
_ROOT = re.compile(r"(?:(?:math|np|torch)\.)?(?:sqrt ?\(? ?|√ ?\(? ?)(\d{1,6})\)?", re.ASCII | re.IGNORECASE)
_FUNCTION = re.compile(r"[a-z]\w*(?:\.\w+)* ?\(.*", re.ASCII | re.IGNORECASE)


def _meant(text: str, fmt: FloatFormat) -> str:
    """What is wrong with a text whose meaning is plain, and what to type instead; empty for any other."""
    root = _ROOT.fullmatch(text)
    constant = math.sqrt(int(root[1])) if root else _CONSTANTS.get(text.lower())
    if constant is not None:
        return (
            f"only numbers that are written out are read. For example {constant:.17g}, which is as close as fp64 comes"
        )
    if _FUNCTION.fullmatch(text):
        return "functions are not worked out here; type what it gives. For example 1.25"
    plain = "".join(_ascii(letter) for letter in text)
    if plain != text:
        plain = re.sub(r"(^|[+-]) \+ ", r"\1", plain)
        plain = plain.replace(" + ", " - ") if text.startswith("-") else plain
        return _instead("write digits and fractions in plain figures", plain, fmt)
    if text.count(",") == 1 and re.search(r"\d,\d", text):
        point = re.sub(r"(?<=\d)[. ](?=\d{3}(?!\d))", "", text).replace(",", ".")
        return _instead("here a comma groups thousands, and decimals follow a point", point, fmt)
    return ""


def _ascii(letter: str) -> str:
    """A digit of any script, or a fraction in one character, in ASCII; any other letter as it is."""
    value = unicodedata.numeric(letter, None)
    if letter.isascii() or value is None:
        return letter
    if letter.isdecimal():
        return str(int(value))
    ratio = Fraction(value).limit_denominator(10)
    return f" + {ratio}" if ratio.denominator > 1 else letter


def _instead(why: str, text: str, fmt: FloatFormat) -> str:
    """Why it is not read, and ``text`` as an example, where that can be read."""
    try:
        parse(text, fmt)
    except FloatTextError:
        return ""
    return f"{why}. For example {clipped(text)}"


def _beyond(text: str) -> FloatTextError:
    return FloatTextError(
        f"“{clipped(text)}” is beyond every format here: even fp64 ends at 1.8e308 and 4.9e-324, and numbers are read "
        f"up to 1e±{limit('float_exponent')}. For example 3e38, or inf for infinity."
    )


def _from_code(text: str, notation: Notation, code: int, fmt: FloatFormat) -> Typed:
    negative = bool(code & fmt.sign_mask)
    nan = classify(code, fmt) == "nan"
    return Typed(text, notation, decode_exact(code, fmt), negative, nan, code, fmt.name)


def _fields(fmt: FloatFormat) -> str:
    widths = {"sign": int(fmt.signed), "exponent": fmt.exponent_bits, "fraction": fmt.fraction_bits}
    return ", ".join(f"{width} {name}" for name, width in widths.items() if width)


def _one(fmt: FloatFormat) -> str:
    """The bits of 1.0, as an example."""
    bits = f"{encode_exact(Fraction(1), fmt):0{fmt.bits}b}"
    return f"0b{bits}" if fmt.bits <= 32 else f"0b{bits[:12]}… ({fmt.bits} bits)"


def _one_hex(fmt: FloatFormat) -> str:
    return f"0x{encode_exact(Fraction(1), fmt):0{fmt.hex_digits}x}"


def clipped(text: str) -> str:
    """``text`` short enough for a message."""
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"
