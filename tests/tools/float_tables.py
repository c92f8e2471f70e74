"""Floating-point formats by their definitions, with one exact rounding, and what gfloat, ml_dtypes and torch give.

A format is a row of ``DEFINED``, read off its specification. All that follows uses integers and fractions: no code of
core, and no float arithmetic, takes part in what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import gfloat
import ml_dtypes
import numpy as np
import torch
from gfloat import FormatInfo, formats
from gfloat.types import Domain

from tests.tools.tables import Row, Table


def _own(
    name: str, bits: int, precision: int, bias: int, *, infinity: bool, negative_zero: bool, high_nans: int
) -> FormatInfo:
    """A format that gfloat has no name for. precision: with the leading 1; high_nans: codes of NaN per sign."""
    return FormatInfo(
        name,
        bits,
        precision,
        bias=bias,
        is_signed=True,
        domain=Domain.Extended if infinity else Domain.Finite,
        has_nz=negative_zero,
        num_high_nans=high_nans,
        has_subnormals=True,
        is_twos_complement=False,
    )


DEFINED: dict[str, FormatInfo] = {
    "fp64": formats.format_info_binary64,
    "fp32": formats.format_info_binary32,
    "tf32": _own("tf32", 19, 11, 127, infinity=True, negative_zero=True, high_nans=1023),
    "fp16": formats.format_info_binary16,
    "bf16": formats.format_info_bfloat16,
    "fp8_e5m2": formats.format_info_ocp_e5m2,
    "fp8_e4m3fn": formats.format_info_ocp_e4m3,
    "fp8_e4m3fnuz": _own("e4m3fnuz", 8, 4, 8, infinity=False, negative_zero=False, high_nans=0),
    "fp8_e5m2fnuz": _own("e5m2fnuz", 8, 3, 16, infinity=False, negative_zero=False, high_nans=0),
    "fp8_e4m3b11fnuz": _own("e4m3b11fnuz", 8, 4, 11, infinity=False, negative_zero=False, high_nans=0),
    "fp8_e4m3_ieee": _own("e4m3ieee", 8, 4, 7, infinity=True, negative_zero=True, high_nans=7),
    "fp8_e3m4_ieee": _own("e3m4ieee", 8, 5, 3, infinity=True, negative_zero=True, high_nans=15),
    "p3109_k8p3se": formats.format_info_p3109(8, 3, domain=Domain.Extended),
    "p3109_k8p4se": formats.format_info_p3109(8, 4, domain=Domain.Extended),
    "p3109_k4p2sf": formats.format_info_p3109(4, 2, domain=Domain.Finite),
    "fp6_e3m2fn": formats.format_info_ocp_e3m2,
    "fp6_e2m3fn": formats.format_info_ocp_e2m3,
    "fp4_e2m1fn": formats.format_info_ocp_e2m1,
    "e8m0fnu": formats.format_info_ocp_e8m0,
    "mxint8": formats.format_info_ocp_int8,
}
"""Our name → gfloat's definition. A new format is a row here."""

ML_DTYPES: dict[str, type] = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "fp8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "fp8_e4m3_ieee": ml_dtypes.float8_e4m3,
    "fp8_e3m4_ieee": ml_dtypes.float8_e3m4,
    "fp6_e3m2fn": ml_dtypes.float6_e3m2fn,
    "fp6_e2m3fn": ml_dtypes.float6_e2m3fn,
    "fp4_e2m1fn": ml_dtypes.float4_e2m1fn,
    "e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
TORCH: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e5m2": torch.float8_e5m2,
    "fp8_e4m3fn": torch.float8_e4m3fn,
    "fp8_e4m3fnuz": torch.float8_e4m3fnuz,
    "fp8_e5m2fnuz": torch.float8_e5m2fnuz,
    "e8m0fnu": torch.float8_e8m0fnu,
}
"""Our name → the dtype of a library that converts into the format."""


class Exact:
    """A format in integers and fractions."""

    def __init__(self, info: FormatInfo) -> None:
        self.info = info
        self.bits, self.fraction = info.k, info.precision - 1
        self.sign = 1 << (info.k - 1) if info.is_signed else 0
        self.integer = info.is_twos_complement
        self.infinite = info.domain == Domain.Extended
        self.least = 1 - info.bias if info.has_subnormals else -info.bias  # exponent of the lowest binade
        self.last = self._codes() - info.num_high_nans - self.infinite - 1

    def _codes(self) -> int:
        return self.sign or 1 << self.bits

    @property
    def nan(self) -> int | None:
        """The code of NaN that a conversion gives, without a sign where it can have one; None without any."""
        if not self.info.num_high_nans:
            return None if self.info.has_nz or self.integer else self.sign
        quiet = 1 << (self.fraction - 1) if self.infinite and self.info.num_high_nans > 1 else 0
        return self.last + 1 + quiet if self.infinite else self._codes() - 1

    @property
    def zero(self) -> bool:
        return self.info.has_subnormals or self.integer

    def kind(self, code: int) -> str:
        """zero, subnormal, normal, inf or nan."""
        if self.integer:
            return "normal" if code else "zero"
        magnitude = code & (self._codes() - 1)
        if code == self.sign and code and not self.info.has_nz:
            return "nan"
        if magnitude > self.last:
            return "inf" if self.infinite and magnitude == self.last + 1 else "nan"
        if magnitude == 0 and self.zero:
            return "zero"
        return "subnormal" if self.zero and magnitude < 1 << self.fraction else "normal"

    def value(self, code: int) -> Fraction:
        """What a finite code stands for."""
        if self.integer:
            return Fraction(code - (code >> (self.bits - 1) << self.bits), 1 << (self.bits - 2))
        field, low = divmod(code & (self._codes() - 1), 1 << self.fraction)
        lead = 0 if field == 0 and self.zero else 1
        power = max(field, int(self.zero)) - self.info.bias - self.fraction
        size = ((lead << self.fraction) + low) * Fraction(2) ** power
        return -size if code & self.sign else size

    def round(self, value: float, *, saturate: bool = False) -> int | None:
        """The code of a float64, rounded once to the nearest, ties to even; None for a NaN without a code."""
        if math.isnan(value):
            return self.nan
        negative = math.copysign(1.0, value) < 0
        if self.integer:
            top = (1 << (self.bits - 1)) - 1
            whole = (
                round(Fraction(value) * (1 << (self.bits - 2))) if math.isfinite(value) else (-top if negative else top)
            )
            return max(-top, min(top, whole)) & ((1 << self.bits) - 1)
        if not self.sign and (negative or value == 0):  # a format of positive numbers only, without zero
            return self.nan
        code = self._magnitude(abs(value))
        if code > self.last:
            if saturate or self.nan is None:
                code = self.last
            elif self.infinite:
                code = self.last + 1
            else:
                return self.nan if self.nan == self.sign else self.nan | (self.sign if negative else 0)
        if code == 0 and not self.info.has_nz:
            return 0
        return code | (self.sign if negative else 0)

    def _magnitude(self, size: float) -> int:
        if math.isinf(size):
            return self._codes()
        if size == 0:
            return 0
        power = max(math.frexp(size)[1] - 1, self.least)
        steps = round(Fraction(size) / Fraction(2) ** (power - self.fraction))  # Fraction rounds ties to even
        code = ((power - self.least) << self.fraction) + steps
        return code if self.zero else max(code - 1, 0)

    def hex(self, code: int | None) -> str:
        return "" if code is None else f"0x{code:0{(self.bits + 3) // 4}x}"


HIP = ("fp8_e4m3fnuz", "fp8_e5m2fnuz")
"""Formats of AMD, whose cast_to_f8 makes NaN of infinity before it clips anything."""

EXACT = {name: Exact(info) for name, info in DEFINED.items()}


def by_gfloat(value: float, name: str) -> str:
    info = DEFINED[name]
    try:
        return EXACT[name].hex(gfloat.encode_float(info, gfloat.round_float(info, value)))
    except (ValueError, AssertionError):
        return "ValueError"


def by_ml_dtypes(value: float, name: str) -> str:
    if name not in ML_DTYPES:
        return ""
    with np.errstate(all="ignore"):
        made = np.array([value]).astype(ML_DTYPES[name])
    return EXACT[name].hex(int(made.view(f"u{made.dtype.itemsize}")[0]))


def by_torch(value: float, name: str) -> str:
    if name not in TORCH:
        return ""
    made = torch.tensor([value], dtype=torch.float64).to(TORCH[name])
    raw = made.view(torch.uint8).numpy().tobytes()
    return EXACT[name].hex(int.from_bytes(raw, "little"))


def number(bits: str) -> float:
    return float(np.array([int(bits, 16)], dtype=np.uint64).view(np.float64)[0])


def encoded(row: Mapping[str, str]) -> Row:
    """What a float64 becomes, exactly, saturating, through float32 first, and by three libraries."""
    name, value = row["format"], number(row["input_f64_bits"])
    exact = EXACT[name]
    code = exact.round(value)
    with np.errstate(over="ignore"):
        through = float(np.float32(value))
    return {
        "input_repr": repr(value),
        "expected_hex": exact.hex(code),
        "expected_class": "undefined" if code is None else exact.kind(code),
        "expected_sat_hex": exact.hex(exact.round(value, saturate=math.isfinite(value) or name not in HIP)),
        "expected_via_f32_hex": "" if exact.bits >= 32 else exact.hex(exact.round(through)),
        "ml_dtypes_f64_hex": by_ml_dtypes(value, name),
        "gfloat_hex": by_gfloat(value, name),
        "torch_f64_hex": by_torch(value, name),
    }


def tricky(name: str) -> Iterator[tuple[str, float]]:
    """Numbers where rounding into a format goes wrong if it does: ends, ties, and the float64 just beside them."""
    exact = EXACT[name]
    yield from (("special", value) for value in (0.0, -0.0, math.inf, -math.inf, math.nan))
    yield from (("huge", value) for value in (1e30, -1e300))
    codes = [
        0,
        1,
        2,
        3,
        (1 << exact.fraction) - 1,
        1 << exact.fraction,
        exact.last // 2,
        exact.last - 2,
        exact.last - 1,
    ]
    for low in sorted({code for code in codes if 0 <= code < exact.last}):
        tie = float((exact.value(low) + exact.value(low + 1)) / 2)
        for sign in (1, -1):
            yield "exact", sign * float(exact.value(low))
            yield "tie", sign * tie
            yield "tie+", sign * math.nextafter(tie, math.inf)
            yield "tie-", sign * math.nextafter(tie, 0)
    largest = exact.value(exact.last)
    past = float(largest + (largest - exact.value(exact.last - 1)) / 2)
    for sign in (1, -1):
        yield from ((kind, sign * at) for kind, at in (("max", float(largest)), ("ovf_tie", past)))
        yield from (("ovf_tie", sign * math.nextafter(past, way)) for way in (0.0, math.inf))


def missing_encodes(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Questions for the formats that the table does not ask about."""
    known = {row["format"] for row in rows}
    return [
        {"format": name, "input_f64_bits": f"{int(np.float64(value).view(np.uint64)):016x}", "category": category}
        for name in DEFINED
        if name not in known
        for category, value in tricky(name)
    ]


def decoded(row: Mapping[str, str]) -> Row:
    """What a code stands for, by its definition; gfloat must say the same."""
    exact, code = EXACT[row["format"]], int(row["code_hex"], 16)
    kind, theirs = exact.kind(code), gfloat.decode_float(DEFINED[row["format"]], code).fval
    sign = -1.0 if code & exact.sign and not exact.integer else 1.0
    if kind == "nan":
        value = math.nan
    elif kind == "inf":
        value = sign * math.inf
    else:
        value = float(exact.value(code)) or math.copysign(0.0, sign)
    if repr(theirs) != repr(value):
        raise ValueError(f"{row['format']} {row['code_hex']}: {value} by its definition, {theirs} by gfloat")
    return {
        "bits": f"{code:0{exact.bits}b}",
        "value": repr(value),
        "value_hexfloat": value.hex() if math.isfinite(value) else "",
        "class": kind,
    }


def missing_decodes(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """Every code of the formats of up to 8 bits that the table does not have."""
    known = {row["format"] for row in rows}
    small = [name for name, exact in EXACT.items() if exact.bits <= 8 and name not in known]
    return [
        {"format": name, "code_hex": EXACT[name].hex(code)} for name in small for code in range(1 << EXACT[name].bits)
    ]


def power(value: Fraction) -> str:
    """A power of two as ``2^-6``, any other number as its factor in [1, 2) times one."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= value < Fraction(2) ** exponent
    factor = value / Fraction(2) ** exponent
    return f"2^{exponent}" if factor == 1 else f"{factor}*2^{exponent}"


def described(row: Mapping[str, str]) -> Row:
    """Extremes and counts of a format."""
    name = row["format"]
    exact, info = EXACT[name], DEFINED[name]
    largest = exact.value((1 << (exact.bits - 1)) - 1 if exact.integer else exact.last)
    top = math.frexp(float(largest))[1] - 1 if exact.bits < 64 else 1023
    signs = 2 if exact.sign else 1
    nans = signs * info.num_high_nans + (not info.num_high_nans and exact.nan is not None)
    finite = signs * (exact.last + 1) - (exact.zero and signs == 2)
    infinities = [exact.hex(exact.last + 1 | sign) for sign in (0, exact.sign)] if exact.infinite else []
    made = {
        "total_bits": exact.bits,
        "sign_bits": int(bool(exact.sign)),
        "exp_bits": 0 if exact.integer else info.expBits,
        "mantissa_bits": exact.bits - 1 if exact.integer else exact.fraction,
        "emax": top,
        "max_finite": float(largest),
        "max_finite_expr": str(largest) if exact.integer else power(largest),
        "max_code_hex": exact.hex((1 << (exact.bits - 1)) - 1 if exact.integer else exact.last),
        "eps": 2.0 ** -(exact.bits - 2 if exact.integer else exact.fraction),
        "has_inf": int(exact.infinite),
        "inf_codes": " ".join(infinities),
        "nan_code_count": nans,
        "signed_zero": "yes" if info.has_nz else "no",
        "has_zero": int(exact.zero),
        "distinct_finite_values": (1 << exact.bits) - 1 if exact.integer else finite,
        "overflow_default": "±inf" if exact.infinite else "saturate" if exact.nan is None else "NaN",
    }
    if not exact.integer:
        made |= {
            "bias": info.bias,
            "emin": exact.least,
            "min_normal_expr": power(Fraction(2) ** exact.least),
            "min_subnormal_expr": power(Fraction(2) ** (exact.least - exact.fraction)) if info.has_subnormals else "",
            "decimal_digits_guaranteed": max(0, math.floor(exact.fraction * math.log10(2))),
        }
    return {key: str(made.get(key, "")) for key in FORMATS.answers}


def missing_formats(rows: Sequence[Mapping[str, str]]) -> list[Row]:
    """The formats that the table does not have; their specification is to be named by hand."""
    known = {row["format"] for row in rows}
    return [{"format": name} for name in DEFINED if name not in known]


FORMATS = Table(
    "float_formats",
    ("format", "spec"),
    (
        "total_bits",
        "sign_bits",
        "exp_bits",
        "mantissa_bits",
        "bias",
        "emax",
        "emin",
        "max_finite",
        "max_finite_expr",
        "max_code_hex",
        "min_normal_expr",
        "min_subnormal_expr",
        "eps",
        "has_inf",
        "inf_codes",
        "nan_code_count",
        "signed_zero",
        "has_zero",
        "distinct_finite_values",
        "decimal_digits_guaranteed",
        "overflow_default",
    ),
    described,
    more=missing_formats,
)
ENCODE = Table(
    "float_encode",
    ("format", "input_f64_bits", "category"),
    (
        "input_repr",
        "expected_hex",
        "expected_class",
        "expected_sat_hex",
        "expected_via_f32_hex",
        "ml_dtypes_f64_hex",
        "gfloat_hex",
        "torch_f64_hex",
    ),
    encoded,
    more=missing_encodes,
)
DECODE = Table(
    "float_decode", ("format", "code_hex"), ("bits", "value", "value_hexfloat", "class"), decoded, more=missing_decodes
)
TABLES = (FORMATS, ENCODE, DECODE)
