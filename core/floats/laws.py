"""The formulas of a binary float, each of which can explain itself."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.sources import OCP_MX

IEEE_3_4 = Source(
    "IEEE 754-2019", "3.4 Binary interchange format encodings", "https://standards.ieee.org/ieee/754/6210/"
)
_GOLDBERG = Source(
    "Goldberg 1991, What every computer scientist should know about floating-point arithmetic",
    "Relative error and ulps",
    "https://docs.oracle.com/cd/E19957-01/806-3568/ncg_goldberg.html",
)
_MX = OCP_MX.at("sections 5.3 and 5.4")

_SIGN = Symbol("S", "sign bit", "number")
_EXPONENT = Symbol("E", "exponent field", "number")
_FRACTION = Symbol("M", "fraction field", "number")
_FRACTION_BITS = Symbol("m", "fraction bits", "number")
_BIAS = Symbol(r"\mathrm{bias}", "exponent bias", "number")
_ERROR = Symbol(r"\Delta", "stored value minus the number you entered", "number")


@formula(
    r"(-1)^{\v{sign}} \cdot \left(1 + \frac{\v{fraction}}{2^{\v{fraction_bits}}}\right)"
    r" \cdot 2^{\v{exponent} - \v{bias}}",
    result=Symbol("x", "value", "number"),
    symbols={
        "sign": _SIGN,
        "fraction": _FRACTION,
        "fraction_bits": _FRACTION_BITS,
        "exponent": _EXPONENT,
        "bias": _BIAS,
    },
    sources=(IEEE_3_4,),
)
def normal_value(sign: float, fraction: float, fraction_bits: float, exponent: float, bias: float) -> float:
    """Value of a normal number.

    Often written (−1)^S × 1.M × 2^(E − bias). The leading 1 is not stored, and the fraction field M contains the bits
    after the point. In IEEE formats, exponent fields of all zeros and all ones have other meanings.
    """
    return (-1.0) ** sign * (1 + fraction / 2.0**fraction_bits) * 2.0 ** (exponent - bias)


@formula(
    r"(-1)^{\v{sign}} \cdot \frac{\v{fraction}}{2^{\v{fraction_bits}}} \cdot 2^{1 - \v{bias}}",
    result=Symbol("x", "value", "number"),
    symbols={"sign": _SIGN, "fraction": _FRACTION, "fraction_bits": _FRACTION_BITS, "bias": _BIAS},
    sources=(IEEE_3_4,),
)
def subnormal_value(sign: float, fraction: float, fraction_bits: float, bias: float) -> float:
    """Value of a subnormal number or zero.

    Often written (−1)^S × 0.M × 2^(1 − bias). The exponent field is 0, there is no leading 1, and the exponent is that
    of the smallest normal number. The values are evenly spaced down to zero.
    """
    return (-1.0) ** sign * (fraction / 2.0**fraction_bits) * 2.0 ** (1 - bias)


@formula(
    r"2^{\v{exponent} - \v{bias}}",
    result=Symbol("x", "value", "number"),
    symbols={"exponent": _EXPONENT, "bias": _BIAS},
    sources=(_MX,),
)
def power_value(exponent: float, bias: float) -> float:
    """Value of a format without sign and fraction.

    All eight bits of E8M0 are exponent bits, so every value is a power of two, and there is no zero.
    """
    return 2.0 ** (exponent - bias)


@formula(
    r"\frac{\v{fraction} - \v{sign} \cdot 2^{\v{fraction_bits}}}{2^{\v{places}}}",
    result=Symbol("x", "value", "number"),
    symbols={
        "sign": _SIGN,
        "fraction": Symbol("M", "bits after the sign", "number"),
        "fraction_bits": Symbol("m", "bits after the sign bit", "number"),
        "places": Symbol("k", "binary places", "number"),
    },
    sources=(_MX,),
)
def fixed_value(sign: float, fraction: float, fraction_bits: float, places: float) -> float:
    """Value of a fixed-point number in two's complement.

    The sign bit has the weight −2, and MXINT8 has six binary places. The code 0x80 (−2) is unused, which makes the
    range symmetric.
    """
    return (fraction - sign * 2.0**fraction_bits) / 2.0**places


@formula(
    r"2^{\v{exponent} - \v{bias} - \v{fraction_bits}}",
    result=Symbol(r"\mathrm{ulp}", "unit in the last place", "number"),
    symbols={
        "exponent": Symbol("E", "exponent field (1 for subnormals)", "number"),
        "bias": _BIAS,
        "fraction_bits": _FRACTION_BITS,
    },
    sources=(_GOLDBERG,),
)
def unit_in_last_place(exponent: float, bias: float, fraction_bits: float) -> float:
    """Unit in the last place.

    Distance to the next larger magnitude. From a power of two, the next smaller magnitude is half as far, except where
    subnormals begin.
    """
    return 2.0 ** (exponent - bias - fraction_bits)


@formula(
    r"\frac{\v{error}}{\v{asked}}",
    result=Symbol(r"\delta", "relative error", "number"),
    symbols={"error": _ERROR, "asked": Symbol("x", "the number you entered", "number")},
    sources=(_GOLDBERG,),
)
def relative_error(error: float, asked: float) -> float:
    """Relative rounding error.

    With round-to-nearest it is at most eps / 2 for normal results, where eps is the ULP of 1.
    """
    return error / asked


@formula(
    r"\frac{\v{error}}{\v{ulp}}",
    result=Symbol(r"\Delta_\mathrm{ulp}", "error in ULP", "number"),
    symbols={"error": _ERROR, "ulp": Symbol(r"\mathrm{ulp}", "unit in the last place of the stored value", "number")},
    sources=(_GOLDBERG,),
)
def error_in_ulp(error: float, ulp: float) -> float:
    """Rounding error in ULP.

    With round-to-nearest it is at most 0.5.
    """
    return error / ulp
