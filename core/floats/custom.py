"""Formats of your own: ExMy with a bias and policies, checked before they exist."""

from __future__ import annotations

import re
from dataclasses import replace

from core.floats.decimals import raised
from core.floats.formats import FORMATS, FloatFormat, FormatError, NanPolicy
from core.formula import Source

EXAMPLE = "e4m3, e5m10b15, e4m3fn, e4m3b11fnuz, e3m2f or e8m7_nosub"

NAN_WORDS: dict[NanPolicy, str] = {
    "ieee": "exponent all ones",
    "all_ones": "all ones",
    "negative_zero": "in place of −0",
    "none": "none",
}
"""Which codes are NaN, in words."""

_FAMILIES: dict[str, tuple[bool, NanPolicy]] = {
    "": (True, "ieee"),
    "fn": (False, "all_ones"),
    "fnuz": (False, "negative_zero"),
    "f": (False, "none"),
}
"""Suffix → infinity and NaN policy: F is finite, N has NaN, UZ has an unsigned zero, as in LLVM's names."""

_TEXT = re.compile(r"e(\d{1,4})m(\d{1,4})(?:b(-?\d{1,5}))?(fnuz|fn|f|)((?:_[a-z]+)*)", re.ASCII)
_FLAGS = ("inf", "noinf", "unsigned", "nosub", "nonegzero")
_SOURCE = Source("LLVM, APFloat.h", "naming of float semantics", "https://llvm.org/doxygen/APFloat_8h_source.html")


def custom_format(
    exponent_bits: int,
    fraction_bits: int,
    *,
    bias: int | None = None,
    signed: bool = True,
    infinity: bool = True,
    nan: NanPolicy = "ieee",
    negative_zero: bool | None = None,
    subnormals: bool = True,
) -> FloatFormat:
    """A format from its fields and policies (see `FloatFormat`).

    exponent_bits: 1 to 11; fraction_bits: 0 to 52.
    bias: None is 2^(E−1) − 1, or 2^(E−1) where NaN is the code of −0, as in the FNUZ and P3109 formats.
    negative_zero: None is True wherever the code is free for it.
    Raises `FormatError` with the reason and an example when the format cannot exist, or float64 cannot hold it.
    """
    if not 1 <= exponent_bits <= 11:
        why = ": every value would be subnormal, a fixed-point number" * (exponent_bits == 0)
        raise _refusal(f"An exponent of {exponent_bits} bits is outside 1 to 11{why}")
    if not 0 <= fraction_bits <= 52:
        raise _refusal(f"A fraction of {fraction_bits} bits is outside 0 to 52, float64's own")
    if nan not in NAN_WORDS:
        raise _refusal(f"“{nan}” is no NaN policy; it is one of {', '.join(NAN_WORDS)}")
    if nan == "negative_zero" and not signed:
        raise _refusal("NaN cannot stand in place of −0 in an unsigned format, which has no −0")
    if nan == "negative_zero" and negative_zero:
        raise _refusal("The code of −0 cannot be both −0 and NaN")
    if nan == "none" and signed and negative_zero is False:
        raise _refusal(
            "Without −0 its code is NaN, but NaN is set to none: allow −0, or choose NaN in place of −0 (fnuz)"
        )
    if nan == "ieee" and infinity and fraction_bits == 0:
        raise _refusal("IEEE's rule needs a fraction bit to tell NaN from infinity")
    if bias is None:
        bias = (1 << (exponent_bits - 1)) - (nan != "negative_zero")
    fmt = FloatFormat(
        "",
        "",
        exponent_bits,
        fraction_bits,
        bias,
        "a format of your own",
        (_SOURCE,),
        signed=signed,
        infinity=infinity,
        nan=nan,
        negative_zero=signed and nan != "negative_zero" and negative_zero is not False,
        subnormals=subnormals,
    )
    if fmt.max_code < 1:
        raise _refusal(
            f"E{exponent_bits}M{fraction_bits} with these policies has no value but zero: every other code is infinity "
            "or NaN"
        )
    if fmt.emax > 1023:
        raise _refusal(
            f"With bias {bias} the largest value is {_power(fmt.emax)} or more, but float64, which must hold all "
            f"values, ends just below {_power(1024)}"
        )
    # A nosub format's smallest value may have bits further down than its first one.
    last = 1 - fmt.min_subnormal.denominator.bit_length()
    if last < -1074:
        raise _refusal(
            f"With bias {bias} the smallest values go in steps of {_power(last)}, but float64, which must hold all "
            f"values, has none finer than {_power(-1074)}"
        )
    return replace(fmt, name=_name(fmt), title=_name(fmt).upper().replace("_", " "), used=_kin(fmt))


def _kin(fmt: FloatFormat) -> str:
    """What a format is beside those of the same fields that have a name: one of them, or how each is written."""
    fields = fmt.exponent_bits, fmt.fraction_bits, fmt.signed
    kin = {
        _name(one): one.title
        for one in FORMATS.values()
        if (one.exponent_bits, one.fraction_bits, one.signed) == fields
    }
    if _name(fmt) in kin:
        return f"{fmt.used}, with the codes of {kin[_name(fmt)]}"
    return "; ".join([fmt.used, *(f"{title} is {name}" for name, title in kin.items())])


def parse_custom(text: str) -> FloatFormat:
    """The format that ``text`` names: ``e4m3``, then a bias ``b11``, a family and flags, all optional.

    Families: none is IEEE's; ``fn`` finite with NaN at all ones; ``fnuz`` finite with NaN at −0; ``f`` finite without
    NaN. Flags: ``_inf``, ``_noinf``, ``_unsigned``, ``_nosub``, ``_nonegzero``. Raises `FormatError`.
    """
    plain = text.strip().lower()
    match = _TEXT.fullmatch(plain)
    if match is None:
        clipped = plain if len(plain) <= 40 else f"{plain[:30]}… ({len(plain)} characters)"
        raise _refusal(f"“{clipped}” is not a format: e, exponent bits, m, fraction bits, then bias and family")
    flags = match[5].split("_")[1:]
    for flag in flags:
        if flag not in _FLAGS or flags.count(flag) > 1 or {"inf", "noinf"} <= set(flags):
            raise _refusal(
                f"“_{flag}” cannot stand there; flags are {', '.join(f'_{name}' for name in _FLAGS)}, each once"
            )
    infinity, nan = _FAMILIES[match[4]]
    return custom_format(
        int(match[1]),
        int(match[2]),
        bias=None if match[3] is None else int(match[3]),
        signed="unsigned" not in flags,
        infinity=(infinity or "inf" in flags) and "noinf" not in flags,
        nan=nan,
        negative_zero=False if "nonegzero" in flags else None,
        subnormals="nosub" not in flags,
    )


def _name(fmt: FloatFormat) -> str:
    """The text that `parse_custom` reads back as this format."""
    family = next(suffix for suffix, (_, nan) in _FAMILIES.items() if nan == fmt.nan)
    usual_bias = (1 << (fmt.exponent_bits - 1)) - (fmt.nan != "negative_zero")
    bias = "" if fmt.bias == usual_bias else f"b{fmt.bias}"
    flags = {
        "inf": fmt.infinity and not _FAMILIES[family][0],
        "noinf": not fmt.infinity and _FAMILIES[family][0],
        "unsigned": not fmt.signed,
        "nosub": not fmt.subnormals,
        "nonegzero": fmt.signed and not fmt.negative_zero and fmt.nan != "negative_zero",
    }
    return f"e{fmt.exponent_bits}m{fmt.fraction_bits}{bias}{family}{''.join(f'_{k}' for k, on in flags.items() if on)}"


def _power(exponent: int) -> str:
    return raised(f"2^{exponent}")


def _refusal(reason: str) -> FormatError:
    return FormatError(f"{reason}. For example {EXAMPLE}.")
