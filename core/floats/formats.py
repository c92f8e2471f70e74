"""Float formats as data: a format is a few numbers, and everything else about it follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from core.formula import Source

Specials: TypeAlias = Literal["ieee", "all_ones_nan"]
"""Which codes are not numbers.

``ieee``: the top exponent holds infinity (fraction zero) and the NaNs (fraction not zero).
``all_ones_nan``: only the code with every bit after the sign set is NaN, and there is no infinity; the rest of the
top exponent holds ordinary numbers. This is the "FN" (finite, NaN) of E4M3FN.
"""


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary float format: sign bit, biased exponent, fraction.

    name: key of `FORMATS`; the name ml_dtypes and the reference tables use, without "float".
    title: the name in prose.
    exponent_bits, fraction_bits: widths of the two fields; one sign bit comes before them.
    bias: what is subtracted from the exponent field of a normal number.
    specials: which codes are infinity and NaN.
    used: where training meets it, in a few words.
    """

    name: str
    title: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials
    used: str
    sources: tuple[Source, ...]

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def hex_digits(self) -> int:
        """Hex digits of a code."""
        return -(-self.bits // 4)

    @property
    def sign_mask(self) -> int:
        """The sign bit alone; the bits below it are a code's magnitude."""
        return 1 << (self.bits - 1)

    @property
    def fraction_mask(self) -> int:
        """All fraction bits set."""
        return (1 << self.fraction_bits) - 1

    @property
    def exponent_mask(self) -> int:
        """All exponent bits set, as the field's value."""
        return (1 << self.exponent_bits) - 1

    @property
    def max_code(self) -> int:
        """Magnitude code of the largest finite value; every magnitude above it is infinity or NaN."""
        if self.specials == "ieee":
            return (self.exponent_mask << self.fraction_bits) - 1
        return self.sign_mask - 2

    @property
    def inf_code(self) -> int | None:
        """Magnitude code of infinity, or None where the format has none."""
        return self.max_code + 1 if self.specials == "ieee" else None

    @property
    def nan_code(self) -> int:
        """The NaN that `encode` gives: quiet (top fraction bit set), positive, no payload."""
        if self.specials == "ieee":
            return self.max_code + 1 | 1 << (self.fraction_bits - 1)
        return self.max_code + 1

    @property
    def nan_codes(self) -> int:
        """How many codes are NaN."""
        return 2 * (self.sign_mask - 1 - self.max_code - (self.inf_code is not None))

    @property
    def finite_values(self) -> int:
        """How many different finite values there are; +0 and −0 count once."""
        return 2 * self.max_code + 1

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value, and of every subnormal's quantum before the fraction."""
        return 1 - self.bias

    @property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        return (self.max_code >> self.fraction_bits) - self.bias

    @property
    def max_finite(self) -> Fraction:
        """The largest finite value, exact."""
        fraction = self.max_code & self.fraction_mask
        return (1 + Fraction(fraction, 1 << self.fraction_bits)) * Fraction(2) ** self.emax

    @property
    def overflow_threshold(self) -> Fraction:
        """Half a step past the largest finite value.

        Round-to-nearest-even keeps what is below it. The tie itself overflows when the largest code is odd (every
        ``ieee`` format) and stays when it is even (E4M3FN: 464 gives 448).
        """
        return self.max_finite + Fraction(2) ** (self.emax - self.fraction_bits - 1)

    @property
    def min_normal(self) -> Fraction:
        """The smallest positive normal value, exact."""
        return Fraction(2) ** self.emin

    @property
    def min_subnormal(self) -> Fraction:
        """The smallest positive value, exact; also the spacing of all subnormals."""
        return Fraction(2) ** (self.emin - self.fraction_bits)

    @property
    def eps(self) -> Fraction:
        """Distance from 1 to the next larger value."""
        return Fraction(1, 1 << self.fraction_bits)

    @property
    def decimal_digits(self) -> int:
        """Significant decimal digits that survive a round trip through the format, for every normal value."""
        return math.floor(self.fraction_bits * math.log10(2))


_IEEE = Source("IEEE 754-2019", "3.4 Binary interchange formats", "https://standards.ieee.org/ieee/754/6210/")
_OFP8 = Source(
    "OCP 8-bit Floating Point Specification (OFP8) 1.0",
    "table 1",
    "https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1",
)
_FP8 = Source("Micikevicius et al. 2022, FP8 Formats for Deep Learning", "table 1", "https://arxiv.org/abs/2209.05433")

_ROWS = (
    FloatFormat("fp64", "fp64", 11, 52, 1023, "ieee", "the reference; Python's float", (_IEEE,)),
    FloatFormat("fp32", "fp32", 8, 23, 127, "ieee", "master weights, optimizer state, sums", (_IEEE,)),
    FloatFormat(
        "tf32",
        "tf32",
        8,
        10,
        127,
        "ieee",
        "inputs of fp32 matmuls on tensor cores, kept in 32-bit words",
        (
            Source(
                "NVIDIA, PTX ISA",
                "Alternate floating-point data formats: tf32",
                "https://docs.nvidia.com/cuda/parallel-thread-execution/#alternate-floating-point-data-formats",
            ),
        ),
    ),
    FloatFormat("fp16", "fp16", 5, 10, 15, "ieee", "mixed precision with loss scaling", (_IEEE,)),
    FloatFormat(
        "bf16",
        "bf16",
        8,
        7,
        127,
        "ieee",
        "mixed precision without loss scaling",
        (
            Source(
                "Google Cloud, The bfloat16 numerical format",
                "bfloat16 format",
                "https://cloud.google.com/tpu/docs/bfloat16",
            ),
        ),
    ),
    FloatFormat(
        "fp8_e4m3fn", "fp8 E4M3", 4, 3, 7, "all_ones_nan", "weights and activations of fp8 matmuls", (_OFP8, _FP8)
    ),
    FloatFormat("fp8_e5m2", "fp8 E5M2", 5, 2, 15, "ieee", "gradients of fp8 training", (_OFP8, _FP8)),
)

FORMATS: Mapping[str, FloatFormat] = {row.name: row for row in _ROWS}
"""Every format by its name, wide to narrow."""
