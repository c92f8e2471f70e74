"""Custom formats: ExMy with a bias and policies, checked before they exist."""

from __future__ import annotations

import re
from dataclasses import replace

from core.floats.formats import FORMATS, FloatFormat, FormatError, NanPolicy
from core.formula import Source
from core.messages import message

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
    """Return a format from its fields and policies (see `FloatFormat`).

    exponent_bits: 1 to 11; fraction_bits: 0 to 52.
    bias: None is 2^(E−1) − 1, or 2^(E−1) where NaN is the code of −0, as in the FNUZ and P3109 formats.
    negative_zero: None is True wherever the code is free for it.
    Raises `FormatError` with the reason and an example when the format cannot exist, or float64 cannot hold it.
    """
    if not 1 <= exponent_bits <= 11:
        raise FormatError(message("floats.custom.exponent", bits=float(exponent_bits)))
    if not 0 <= fraction_bits <= 52:
        raise FormatError(message("floats.custom.fraction", bits=float(fraction_bits)))
    if nan == "negative_zero" and (not signed or negative_zero):
        raise FormatError(message("floats.custom.zero_is_nan" if signed else "floats.custom.unsigned"))
    if nan == "none" and signed and negative_zero is False:
        raise FormatError(message("floats.custom.no_negative_zero"))
    if nan == "ieee" and infinity and fraction_bits == 0:
        raise FormatError(message("floats.custom.no_fraction"))
    if bias is None:
        bias = (1 << (exponent_bits - 1)) - (nan != "negative_zero")
    fmt = FloatFormat(
        "",
        "",
        exponent_bits,
        fraction_bits,
        bias,
        "",
        (_SOURCE,),
        signed=signed,
        infinity=infinity,
        nan=nan,
        negative_zero=signed and nan != "negative_zero" and negative_zero is not False,
        subnormals=subnormals,
    )
    if fmt.max_code < 1:
        raise FormatError(message("floats.custom.only_zero"))
    # A nosub format's smallest value may have bits further down than its first one.
    if fmt.emax > 1023 or fmt.min_subnormal.denominator.bit_length() > 1075:
        raise FormatError(message("floats.custom.bias", bias=str(bias).replace("-", "−")))
    name = _name(fmt)
    like = next((one.title for one in FORMATS.values() if one.exponent_bits and one.zero and _name(one) == name), "")
    used = message("floats.custom.like", fmt=like) if like else message("floats.custom.used")
    return replace(fmt, name=name, title=name.upper().replace("_", " "), used=used)


def parse_custom(text: str) -> FloatFormat:
    """Return the format that ``text`` names: ``e4m3``, then a bias ``b11``, a family and flags, all optional.

    Families: none is IEEE's; ``fn`` finite with NaN at all ones; ``fnuz`` finite with NaN at −0; ``f`` finite without
    NaN. Flags: ``_inf``, ``_noinf``, ``_unsigned``, ``_nosub``, ``_nonegzero``. Raises `FormatError`.
    """
    plain = text.strip().lower()
    match = _TEXT.fullmatch(plain)
    if match is None:
        clipped = plain if len(plain) <= 40 else f"{plain[:30]}…"
        raise FormatError(message("floats.custom.unreadable", text=clipped))
    flags = match[5].split("_")[1:]
    for flag in flags:
        if flag not in _FLAGS or flags.count(flag) > 1 or {"inf", "noinf"} <= set(flags):
            raise FormatError(message("floats.custom.flag", flag=flag))
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
    """Return the text that `parse_custom` reads back as this format."""
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
