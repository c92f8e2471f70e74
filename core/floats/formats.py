"""Float formats as data, rows of ``assets/data/float_formats.csv``: all else about a format follows from its row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from core.formula import Source
from core.rows import read_record, read_rows
from core.sources import OCP_MX

NanPolicy: TypeAlias = Literal["ieee", "all_ones", "negative_zero", "none"]
"""Which codes are NaN.

``ieee``: the top exponent is no number: fraction zero is infinity (NaN too where there is no infinity), the rest NaN.
``all_ones``: only the code with every bit after the sign set, as in E4M3FN and E8M0.
``negative_zero``: only the code that would be −0, as in the FNUZ and P3109 formats.
``none``: no code at all, as in FP6 and FP4.
"""

Overflow: TypeAlias = Literal["format", "saturate", "infinity", "nan"]
"""What a value that rounds beyond the largest finite one becomes.

``format``: what the format itself says: infinity where it has one, else NaN, else the largest finite value.
``saturate``: the largest finite value, also for infinity itself; NaN stays NaN. ``infinity`` and ``nan``: that, and
only for formats that have it.
"""

OVERFLOWS: tuple[Overflow, ...] = ("format", "saturate", "infinity", "nan")


class FormatError(ValueError):
    """Something a format cannot do or be; the message names the format and the reason."""


@dataclass(frozen=True)  # without slots, so that what follows from the fields can be kept once worked out
class FloatFormat:
    """A binary format: sign bit (if signed), biased exponent, fraction.

    name: key of `FORMATS`; the name ml_dtypes and the reference tables use, without "float".
    title: the name in prose.
    exponent_bits, fraction_bits: widths of the two fields; the sign bit, if any, comes before them.
    bias: what is subtracted from the exponent field of a normal number.
    used: where training meets it, in a few words.
    signed: whether there is a sign bit.
    infinity, nan: which codes are no numbers; outside ``ieee`` infinity is the last magnitude that is not NaN.
    negative_zero: whether the code of −0 is −0; it is NaN otherwise.
    subnormals: whether the exponent field 0 means no leading 1; otherwise it is an exponent like any other.
    zero: whether the code with no bit set is zero.
    twos_complement: fixed point in two's complement (MXINT8); there is no exponent field then.
    lost: whether infinity becomes NaN even where numbers are clipped, as AMD's HIP has it.
    """

    name: str
    title: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    used: str
    sources: tuple[Source, ...]
    signed: bool = True
    infinity: bool = True
    nan: NanPolicy = "ieee"
    negative_zero: bool = True
    subnormals: bool = True
    zero: bool = True
    twos_complement: bool = False
    lost: bool = False

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.signed + self.exponent_bits + self.fraction_bits

    @property
    def word_bits(self) -> int:
        """Bits of the memory word that holds one code: tf32 keeps its 19 bits at the top of 32."""
        return 32 if self.name == "tf32" else self.bits

    @property
    def hex_digits(self) -> int:
        """Hex digits of a code."""
        return -(-self.bits // 4)

    @property
    def sign_mask(self) -> int:
        """The sign bit, 0 if there is none. The bits below it are the magnitude."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def magnitude_mask(self) -> int:
        """All bits but the sign."""
        return (1 << (self.exponent_bits + self.fraction_bits)) - 1

    @property
    def fraction_mask(self) -> int:
        """All fraction bits set."""
        return (1 << self.fraction_bits) - 1

    @property
    def exponent_mask(self) -> int:
        """All exponent bits set, as the field's value."""
        return (1 << self.exponent_bits) - 1

    @property
    def gradual(self) -> bool:
        """Whether the exponent field 0 has no leading 1: subnormals, or zero only in a format without fraction bits."""
        return self.zero and (self.subnormals or self.fraction_bits == 0)

    @property
    def has_subnormals(self) -> bool:
        """Whether any code is subnormal."""
        return self.gradual and self.fraction_bits > 0 and not self.twos_complement

    @property
    def has_normals(self) -> bool:
        """Whether any code is normal. With one exponent bit, infinity and NaN can leave only subnormals."""
        return self.max_finite >= self.min_normal

    @property
    def has_negative_zero(self) -> bool:
        """Whether −0 has a separate code."""
        return self.signed and self.zero and self.negative_zero and not self.twos_complement

    @cached_property
    def max_code(self) -> int:
        """Magnitude code of the largest finite value; every magnitude above it is infinity or NaN."""
        if self.nan == "ieee":
            return (self.exponent_mask << self.fraction_bits) - 1
        return self.magnitude_mask - (self.nan == "all_ones") - self.infinity

    @property
    def inf_code(self) -> int | None:
        """Magnitude code of infinity, or None if the format has none."""
        return self.max_code + 1 if self.infinity else None

    @property
    def last_code(self) -> int:
        """The largest magnitude code that is not NaN: infinity, or the largest finite value."""
        return self.max_code + self.infinity

    @property
    def has_nan(self) -> bool:
        """Whether any code is NaN."""
        return self.nan_codes > 0

    @property
    def nan_code(self) -> int:
        """The NaN that `encode` gives: quiet (top fraction bit set), positive where there is a choice, no payload.

        Raises `FormatError` if the format has none.
        """
        if self.nan == "ieee":
            return self.exponent_mask << self.fraction_bits | (1 << self.fraction_bits) >> 1
        if self.nan == "all_ones":
            return self.magnitude_mask
        if self.nan == "negative_zero":
            return self.sign_mask
        raise FormatError(f"{self.title} has no code for NaN. For example bf16 has one.")

    @cached_property
    def nan_codes(self) -> int:
        """How many codes are NaN."""
        above = self.magnitude_mask - self.last_code
        at_zero = self.signed and not self.negative_zero and not self.twos_complement
        return above * (1 + self.signed) + at_zero

    @property
    def finite_values(self) -> int:
        """How many different finite values there are; +0 and −0 count once, MXINT8's unused −2 does not."""
        return (2 * self.max_code if self.signed else self.max_code) + 1

    @cached_property
    def overflows(self) -> tuple[Overflow, ...]:
        """The overflow policies that the format can follow."""
        missing: set[Overflow] = set()
        if not self.infinity:
            missing.add("infinity")
        if not self.has_nan:
            missing.add("nan")
        return tuple(policy for policy in OVERFLOWS if policy not in missing)

    @property
    def own_overflow(self) -> Overflow:
        """Overflow policy that ``format`` selects."""
        return "infinity" if self.infinity else "nan" if self.has_nan else "saturate"

    def outcome(self, overflow: Overflow) -> Overflow:
        """Return the effect of ``overflow`` in this format: ``saturate``, ``infinity``, or ``nan``.

        A policy that the format does not support gives the format's own policy.
        """
        return self.own_overflow if overflow == "format" or overflow not in self.overflows else overflow

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value, and of every subnormal's quantum before the fraction."""
        return int(self.gradual) - self.bias

    @property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        top = self.max_finite
        return top.numerator.bit_length() - top.denominator.bit_length()

    def lead(self, exponent: int) -> int:
        """Return the bit before the point: 0 if the exponent field says subnormal or zero, else 1."""
        return int(exponent > 0 or not self.gradual)

    def power(self, exponent: int) -> int:
        """Return the power of two of an exponent field."""
        return max(exponent, int(self.gradual)) - self.bias

    def magnitude(self, code: int) -> Fraction:
        """Return the exact value of a finite magnitude code."""
        exponent, fraction = code >> self.fraction_bits, code & self.fraction_mask
        if code == 0 and self.zero:
            return Fraction(0)
        significand = fraction + (self.lead(exponent) << self.fraction_bits)
        return significand * Fraction(2) ** (self.power(exponent) - self.fraction_bits)

    @cached_property
    def max_finite(self) -> Fraction:
        """The largest finite value, exact."""
        return self.magnitude(self.max_code)

    @cached_property
    def quantum_max(self) -> Fraction:
        """Spacing above the largest finite value."""
        return Fraction(2) ** (self.power(self.max_code >> self.fraction_bits) - self.fraction_bits)

    @cached_property
    def overflow_threshold(self) -> Fraction:
        """Half a step past the largest finite value. Round-to-nearest keeps what is below it; see `tie_overflows`."""
        return self.max_finite + self.quantum_max / 2

    @cached_property
    def tie_overflows(self) -> bool:
        """Whether the threshold itself overflows under round-to-nearest-even.

        It does when the largest significand is odd (every ``ieee`` format); E4M3FN's is even: 464 gives 448.
        """
        if self.even_codes:
            return bool(self.max_code % 2)
        return bool(self.max_finite / self.quantum_max % 2)

    @property
    def even_codes(self) -> bool:
        """Whether ties go to the even code, as in P3109 with one digit of precision.

        A single digit is never even. IEEE 754-2019 (4.3.1) then takes the larger magnitude, P3109 the even code.
        P3109 has NaN at the code of −0, and, where there is no sign, at the last code.
        """
        nan = "negative_zero" if self.signed else "all_ones"
        return self.fraction_bits == 0 and self.nan == nan and self.gradual

    @cached_property
    def min_normal(self) -> Fraction:
        """The smallest positive normal value, exact; in fixed point the quantum."""
        if self.twos_complement or (self.zero and not self.gradual):
            return self.min_subnormal
        return Fraction(2) ** self.emin

    @cached_property
    def min_subnormal(self) -> Fraction:
        """The smallest positive value, exact; also the spacing of all subnormals where there are any."""
        return self.magnitude(int(self.zero))

    @property
    def eps(self) -> Fraction:
        """Distance from 1 to the next larger value: the relative spacing just above a power of two."""
        if self.twos_complement:
            return self.min_subnormal
        return Fraction(1, 1 << self.fraction_bits)

    @property
    def decimal_digits(self) -> int:
        """Significant decimal digits that survive a round trip through the format, for every normal value."""
        return 0 if self.twos_complement else math.floor(self.fraction_bits * math.log10(2))


_SOURCES: Mapping[str, Source] = {
    "IEEE": Source("IEEE 754-2019", "3.4 Binary interchange formats", "https://standards.ieee.org/ieee/754/6210/"),
    "OFP8": Source(
        "OCP 8-bit Floating Point Specification (OFP8) 1.0",
        "table 1",
        "https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1",
    ),
    "FP8": Source(
        "Micikevicius et al. 2022, FP8 Formats for Deep Learning", "table 1", "https://arxiv.org/abs/2209.05433"
    ),
    "FNUZ": Source(
        "Noune et al. 2022, 8-bit Numerical Formats for Deep Neural Networks",
        "the 1.4.3 and 1.5.2 formats",
        "https://arxiv.org/abs/2206.02915",
    ),
    "HIP": Source(
        "AMD HIP, amd_hip_fp8.h",
        "cast_to_f8: infinity and NaN before clipping",
        "https://github.com/ROCm/clr/blob/develop/hipamd/include/hip/amd_detail/amd_hip_fp8.h",
    ),
    "LLVM": Source("LLVM, APFloat.h", "enum Semantics", "https://llvm.org/doxygen/structllvm_1_1APFloatBase.html"),
    "ml_dtypes": Source(
        "ml_dtypes", "README, specifications of the types", "https://github.com/jax-ml/ml_dtypes#readme"
    ),
    "P3109": Source(
        "IEEE P3109 working group, interim report on binary floating-point formats for machine learning",
        "draft",
        "https://github.com/P3109/Public",
    ),
    "TF32": Source(
        "NVIDIA, PTX ISA",
        "Alternate floating-point data formats: tf32",
        "https://docs.nvidia.com/cuda/parallel-thread-execution/#alternate-floating-point-data-formats",
    ),
    "BF16": Source(
        "Google Cloud, The bfloat16 numerical format", "bfloat16 format", "https://cloud.google.com/tpu/docs/bfloat16"
    ),
    "MX": OCP_MX,
}
"""What the column ``sources`` names."""


def _read(row: Mapping[str, str]) -> FloatFormat:
    nan = row["nan"]
    if nan not in get_args(NanPolicy):
        raise ValueError(
            f"{row['name']}: no rule for NaN is called {nan!r}; there are {', '.join(get_args(NanPolicy))}"
        )
    return read_record(FloatFormat, row, sources=tuple(_SOURCES[name] for name in row["sources"].split("; ")))


FORMATS: Mapping[str, FloatFormat] = {row["name"]: _read(row) for row in read_rows("float_formats")}
"""Every format by its name, wide to narrow, the block formats' scale and integers last."""
