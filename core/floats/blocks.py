"""Block formats: a block of narrow elements under one shared scale, as MX and NVFP4 store tensors.

The arithmetic of the scales is that of the kernels people run (torchao, cuBLAS, NVIDIA's recipes): values are float32;
a power-of-two scale divides them exactly, and each element is rounded once, saturating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.codec import Codes, decode, encode
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.formula import Source
from core.sources import OCP_MX

Rule: TypeAlias = Literal["floor", "ceil", "even", "rceil", "level1", "level2"]

Kernel: TypeAlias = Literal["exact", "torchao"]
"""What divides by scales at the lower end of float32; other scales are the same in both.

``exact``: the scale itself. ``torchao``: what torchao 0.18 does. MX's scale code 0 is 2^−127, subnormal in float32:
elements are divided by the smallest normal, 2^−126, but read back with 2^−127, at half their size; under ``rceil``
they all become zero. An NVFP4 tensor scale below about 2^−120 has no float32 reciprocal: whatever is not zero
saturates.
"""

_MX = OCP_MX.at("sections 5 and 6.3")
_TORCHAO = Source(
    "torchao",
    "prototype/mx_formats: ScaleCalculationMode",
    "https://github.com/pytorch/ao/blob/main/torchao/prototype/mx_formats/config.py",
)
_CUBLAS = Source(
    "NVIDIA cuBLAS documentation",
    "1D block scaling for FP8 and FP4 data types",
    "https://docs.nvidia.com/cuda/cublas/#d-block-scaling-for-fp8-and-fp4-data-types",
)
_NVFP4 = Source(
    "NVIDIA, Introducing NVFP4 for efficient and accurate low-precision inference",
    "Two-level micro-block scaling",
    "https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/",
)
_NVFP4_TRAINING = Source(
    "NVIDIA 2025, Pretraining Large Language Models with NVFP4", "NVFP4 format", "https://arxiv.org/abs/2509.25149"
)
_ENGINE = Source(
    "NVIDIA Transformer Engine",
    "common/cast/nvfp4/core_nvfp4.cuh: the decoding scale of a block is cast to E4M3 with an upper bound alone",
    "https://github.com/NVIDIA/TransformerEngine",
)


_FLOAT32_RECIPROCAL = 2.0**-126
_FLOAT32_LEAST = 2.0**-149
_ROUNDINGS = 1 + 2.0**-21
"""NVFP4's scaled elements went through five float32 roundings; what these alone lift above the top is not clipped."""


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """How a block's scale follows from its largest magnitude.

    title, short: its name in prose and above a column. meaning: what it does. used_by: who rounds scales this way.
    """

    name: Rule
    title: str
    short: str
    meaning: str
    used_by: str
    sources: tuple[Source, ...]


_RULES = (
    ScaleRule(
        "floor",
        "floor",
        "floor",
        "the largest power of two up to amax, over the largest one of the element; what is still larger is clipped.",
        "The OCP MX specification; torchao's default; microxcaling",
        (_MX, _TORCHAO),
    ),
    ScaleRule(
        "ceil",
        "ceil",
        "ceil",
        "the smallest power of two from amax on, over the largest one of the element; nothing is clipped.",
        "torchao, as an option",
        (_TORCHAO,),
    ),
    ScaleRule(
        "even",
        "round to even exponent",
        "even exponent",
        "like floor, after amax is rounded to the element's fraction bits: a nearly full binade counts as the next.",
        "torchao, as an option; AMD Quark's “even” scales",
        (_TORCHAO,),
    ),
    ScaleRule(
        "rceil",
        "RCEIL",
        "RCEIL",
        "the smallest power of two of at least amax over the element's largest value; nothing is clipped.",
        "cuBLAS, NVIDIA Transformer Engine; torchao, as an option",
        (_CUBLAS, _TORCHAO),
    ),
    ScaleRule(
        "level1",
        "block scales alone",
        "block scale",
        "amax / 6 rounded to E4M3, nothing above it: tensors far from 1 leave E4M3's range.",
        "torchao's NVFP4 without a per-tensor scale",
        (_TORCHAO,),
    ),
    ScaleRule(
        "level2",
        "block and tensor scale",
        "block and tensor",
        "a float32 scale per tensor brings the largest block scale to 448; block scales are E4M3, from 2⁻⁶ on.",
        "torchao; NVIDIA's recipe but for block scales below 2⁻⁶, which torchao lifts and Transformer Engine rounds "
        "to E4M3's subnormals or zero",
        (_NVFP4, _NVFP4_TRAINING, _TORCHAO, _ENGINE),
    ),
)

SCALE_RULES: Mapping[str, ScaleRule] = {rule.name: rule for rule in _RULES}
"""Every scale rule by its name: four for MX's powers of two, two for NVFP4."""

_MX_RULES: tuple[Rule, ...] = ("floor", "ceil", "even", "rceil")
_NV_RULES: tuple[Rule, ...] = ("level2", "level1")


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A block of ``size`` elements under one scale.

    name: key of `BLOCK_FORMATS`. element, scale: formats of the elements and the block's scale.
    scale_rules: the rules its scale may follow, the usual one first.
    tensor_scale_bits: bits of the scale shared by the whole tensor, 0 where there is none.
    """

    name: str
    title: str
    element: FloatFormat
    size: int
    scale: FloatFormat
    scale_rules: tuple[Rule, ...]
    sources: tuple[Source, ...]
    tensor_scale_bits: int = 0

    @property
    def block_bits(self) -> int:
        """Bits of a block, its scale included."""
        return self.size * self.element.bits + self.scale.bits

    @property
    def bits_per_element(self) -> float:
        """Bits per element, the block's scale included; a tensor's one scale adds nothing in a large tensor."""
        return self.block_bits / self.size


def _mx(name: str, title: str, element: str) -> BlockFormat:
    return BlockFormat(name, title, FORMATS[element], 32, FORMATS["e8m0fnu"], _MX_RULES, (_MX,))


BLOCK_FORMATS: Mapping[str, BlockFormat] = {
    row.name: row
    for row in (
        _mx("mxfp8_e5m2", "MXFP8 E5M2", "fp8_e5m2"),
        _mx("mxfp8_e4m3", "MXFP8 E4M3", "fp8_e4m3fn"),
        _mx("mxfp6_e3m2", "MXFP6 E3M2", "fp6_e3m2fn"),
        _mx("mxfp6_e2m3", "MXFP6 E2M3", "fp6_e2m3fn"),
        _mx("mxfp4_e2m1", "MXFP4", "fp4_e2m1fn"),
        _mx("mxint8", "MXINT8", "mxint8"),
        BlockFormat("nvfp4", "NVFP4", FORMATS["fp4_e2m1fn"], 16, FORMATS["fp8_e4m3fn"], _NV_RULES, (_NVFP4,), 32),
    )
}
"""Every block format by its name."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedBlock:
    """Blocks after quantisation. Arrays of blocks have one row per block in ``scale_codes`` and ``scales`` only.

    scale_codes: the scales' codes, one per block. scales: what an element's value is multiplied by (block scale times
        tensor scale). codes: the elements' codes. values: what comes back, float64.
    clipped: which elements are beyond the element format's largest value, under this scale.
    mse: mean squared error. sqnr_db: signal over error in decibels; infinite without error, NaN for a zero signal.
    bits_per_element: the block's scale included. tensor_scale: 1 where there is none.
    """

    block_format: BlockFormat
    rule: Rule
    scale_codes: Codes
    scales: npt.NDArray[np.float64]
    codes: Codes
    values: npt.NDArray[np.float64]
    clipped: npt.NDArray[np.bool_]
    mse: float
    sqnr_db: float
    bits_per_element: float
    tensor_scale: float


def quantize_block(
    values: npt.ArrayLike, block_format: BlockFormat, rule: Rule | None = None, *, kernel: Kernel = "exact"
) -> QuantizedBlock:
    """Quantise one block, or several in a row.

    values: float64 or float32, one dimension, a multiple of the block size; they are first rounded to float32, which
        is what a block is made of. rule: one of ``block_format.scale_rules``; None is the first. kernel: `Kernel`.
    Raises `FormatError` for another rule, a wrong length, infinity or NaN.
    """
    rule = rule or block_format.scale_rules[0]
    if rule not in block_format.scale_rules:
        known = ", ".join(block_format.scale_rules)
        raise FormatError(f"{block_format.title} has no scale rule “{rule}”: it is one of {known}.")
    with np.errstate(over="ignore"):
        given = np.asarray(values, dtype=np.float64).astype(np.float32)
    if given.ndim != 1 or given.size == 0 or given.size % block_format.size:
        raise FormatError(
            f"{block_format.title} takes blocks of {block_format.size} values, not {given.size}. "
            f"For example {2 * block_format.size} values are two blocks."
        )
    if not np.isfinite(given).all():
        raise FormatError("A block holds finite float32 values, up to 3.4e38; infinity and NaN leave no scale.")
    blocks = given.reshape(-1, block_format.size)
    if block_format.tensor_scale_bits:
        return _nvfp4(blocks, block_format, rule, kernel)
    return _microscaled(blocks, block_format, rule, kernel)


def _microscaled(
    blocks: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule, kernel: Kernel
) -> QuantizedBlock:
    amax = np.abs(blocks).max(axis=1).astype(np.float64)
    exponents = np.clip(_exponents(amax, block_format.element, rule), -127, 127)
    scales = np.ldexp(1.0, exponents)
    inverse = 1 / scales
    if kernel == "torchao":
        inverse = np.where(exponents > -127, inverse, 0.0 if rule == "rceil" else 2.0**126)
    scaled = blocks.astype(np.float64) * inverse[:, None]
    scale_codes = (exponents + 127).astype(np.uint8)
    return _result(blocks, scaled, scales, scale_codes, block_format, rule, 1.0)


def _exponents(amax: npt.NDArray[np.float64], element: FloatFormat, rule: Rule) -> npt.NDArray[np.int32]:
    """The power of two of each block's scale, before E8M0's range; −127 for a block of zeros."""
    if rule == "rceil":
        mantissa, power = np.frexp(amax / float(element.max_finite))
        exponents = power - (mantissa == 0.5)  # frexp gives 0.5 ≤ mantissa < 1
    elif rule == "ceil":
        mantissa, power = np.frexp(amax)
        exponents = power - (mantissa == 0.5) - element.emax
    else:
        # Under even, half of the last kept place is added before the exponent is read: ties count as the next binade.
        bump = np.ldexp(0.5, np.frexp(amax)[1] - 1 - element.fraction_bits) * (rule == "even")
        exponents = np.frexp(amax + bump)[1] - 1 - element.emax
    return np.where(amax > 0, exponents, -127).astype(np.int32)


def _nvfp4(blocks: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule, kernel: Kernel) -> QuantizedBlock:
    """float32, in the order of NVIDIA's and torchao's kernels, as long as the scales have reciprocals in it."""
    element, scale = block_format.element, block_format.scale
    top, item = np.float32(element.max_finite), np.float32(1)
    amax = np.abs(blocks).max(axis=1)
    tensor = item
    if rule == "level2" and amax.any():
        tensor = np.float32(amax.max() / np.float32(scale.max_finite * element.max_finite))
        tensor = max(tensor, np.float32(_FLOAT32_LEAST))
    least, most = np.float32(scale.min_normal), np.float32(scale.max_finite)
    values = blocks
    if float(tensor) * float(least) < _FLOAT32_RECIPROCAL and kernel == "exact":
        values, amax = blocks.astype(np.float64), amax.astype(np.float64)
        item, tensor = np.float64(1), np.float64(tensor)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.clip(amax / top / tensor, least, most)
        scale_codes = encode(wanted, scale, overflow="saturate")
        block_scales = decode(scale_codes, scale).astype(values.dtype)
        scaled = np.where(values == 0, values, values * (item / tensor / block_scales)[:, None])
    scales = block_scales.astype(np.float64) * float(tensor)
    return _result(blocks, scaled.astype(np.float64), scales, scale_codes, block_format, rule, float(tensor))


def _result(
    blocks: npt.NDArray[np.float32],
    scaled: npt.NDArray[np.float64],
    scales: npt.NDArray[np.float64],
    scale_codes: Codes,
    block_format: BlockFormat,
    rule: Rule,
    tensor_scale: float,
) -> QuantizedBlock:
    element = block_format.element
    codes = encode(scaled, element, overflow="saturate")
    back = decode(codes, element) * scales[:, None]  # exact: at most 30 significant bits
    original = blocks.astype(np.float64)
    slack = _ROUNDINGS if block_format.tensor_scale_bits else 1.0
    noise, signal = float(np.mean((back - original) ** 2)), float(np.mean(original**2))
    ratio = math.inf if signal else math.nan
    if noise:
        ratio = 10 * math.log10(signal / noise)
    return QuantizedBlock(
        block_format,
        rule,
        scale_codes,
        scales,
        codes.reshape(-1),
        back.reshape(-1),
        (np.abs(scaled) > float(element.max_finite) * slack).reshape(-1),
        noise,
        ratio,
        block_format.bits_per_element,
        tensor_scale,
    )
