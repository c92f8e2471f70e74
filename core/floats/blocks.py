"""Block formats: a block of narrow elements under one shared scale, as MX, NVFP4, NF4, fp8 tiles and integers do.

The arithmetic of the scales is that of the kernels people run (torchao, cuBLAS, NVIDIA's recipes): values are float32;
a power-of-two scale divides them exactly, and each element is rounded once, saturating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.codec import Codes, decode, encode
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.integer_blocks import AWQ, GGML, INT8, Q4, QLORA_INT8, UINT4, WHOLE
from core.floats.rounding import Rounding, Seed
from core.floats.value_tables import BITSANDBYTES, VALUE_TABLES, ValueTable, dynamic_8bit
from core.formula import Source
from core.sources import OCP_MX

Rule: TypeAlias = Literal["floor", "ceil", "even", "rceil", "level1", "level2", "absmax", "ends"]

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
_QLORA = Source(
    "Dettmers et al. 2023, QLoRA",
    "section 3: 4-bit NormalFloat, double quantization",
    "https://arxiv.org/abs/2305.14314",
)
_DEEPSEEK = Source("DeepSeek-V3 technical report", "section 3.3.2", "https://arxiv.org/abs/2412.19437")


_FLOAT32_RECIPROCAL = 2.0**-126
_FLOAT32_LEAST = 2.0**-149
_ROUNDINGS = 1 + 2.0**-21
"""NVFP4's scaled elements went through five float32 roundings; what these alone lift above the top is not clipped."""


@dataclass(frozen=True, slots=True)
class BlockScaleRule:
    """How a block's scale follows from its largest magnitude. title: its name, also in links."""

    name: Rule
    title: str
    sources: tuple[Source, ...]


_RULES = (
    BlockScaleRule("floor", "floor", (_MX, _TORCHAO)),
    BlockScaleRule("ceil", "ceil", (_TORCHAO,)),
    BlockScaleRule("even", "round to even exponent", (_TORCHAO,)),
    BlockScaleRule("rceil", "RCEIL", (_CUBLAS, _TORCHAO)),
    BlockScaleRule("level1", "block scales alone", (_TORCHAO,)),
    BlockScaleRule("level2", "block and tensor scale", (_NVFP4, _NVFP4_TRAINING, _TORCHAO, _ENGINE)),
    BlockScaleRule("absmax", "largest magnitude", (_QLORA, BITSANDBYTES, _DEEPSEEK)),
    BlockScaleRule("ends", "ends of the integers", (GGML, AWQ)),
)

SCALE_RULES: Mapping[str, BlockScaleRule] = {rule.name: rule for rule in _RULES}
"""Every scale rule by its name: four for MX's powers of two, two for NVFP4, one of the largest, one of both ends."""

_MX_RULES: tuple[Rule, ...] = ("floor", "ceil", "even", "rceil")
_NV_RULES: tuple[Rule, ...] = ("level2", "level1")


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A block of ``size`` elements under one scale.

    name: key of `BLOCK_FORMATS`. element, scale: formats of the elements and the block's scale. scale_rules: the rules
    its scale may follow, the usual one first. tensor_scale_bits: bits of the scale shared by the whole tensor, 0 if
    there is none. scale_group: how many blocks' scales share a float32 scale of their own, 0 if none do. zero_bits: of
    the whole number that stands for 0 in a block, 0 if none does.
    """

    name: str
    title: str
    element: FloatFormat | ValueTable
    size: int
    scale: FloatFormat | ValueTable
    scale_rules: tuple[Rule, ...]
    sources: tuple[Source, ...]
    tensor_scale_bits: int = 0
    scale_group: int = 0
    zero_bits: int = 0

    @property
    def short(self) -> bool:
        """Whether the last block of a tensor may be short."""
        return isinstance(self.element, ValueTable) or self.scale is FORMATS["fp32"]

    @property
    def scale_bits(self) -> float:
        """Bits of a block's scale, its zero point and its share of the scale of scales included."""
        shared = FORMATS["fp32"].bits / self.scale_group if self.scale_group else 0
        return self.scale.bits + self.zero_bits + shared

    @property
    def block_bits(self) -> float:
        """Bits of a block, its scale included."""
        return self.size * self.element.bits + self.scale_bits

    @property
    def bits_per_element(self) -> float:
        """Bits per element, the block's scale included; a tensor's one scale adds nothing in a large tensor."""
        return self.block_bits / self.size


def _mx(name: str, title: str, element: str) -> BlockFormat:
    return BlockFormat(name, title, FORMATS[element], 32, FORMATS["e8m0fnu"], _MX_RULES, (_MX,))


def _nf4(name: str, title: str, scale: FloatFormat | ValueTable, group: int) -> BlockFormat:
    element = VALUE_TABLES["nf4"]
    return BlockFormat(name, title, element, 64, scale, ("absmax",), (*element.sources, _QLORA, BITSANDBYTES), 0, group)


def _tiles(name: str, title: str, size: int) -> BlockFormat:
    return BlockFormat(name, title, FORMATS["fp8_e4m3fn"], size, FORMATS["fp32"], ("absmax",), (_DEEPSEEK,))


def _ints(name: str, element: ValueTable, size: int, rule: Rule, source: Source, scale: str = "fp16") -> BlockFormat:
    zero = 4 if element is UINT4 else 0
    return BlockFormat(name, name, element, size, FORMATS[scale], (rule,), (source,), zero_bits=zero)


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
        _nf4("nf4", "NF4", FORMATS["fp32"], 0),
        _nf4("nf4_double", "NF4, double quantized", dynamic_8bit(), 256),
        _tiles("fp8_1x128", "fp8 tiles, 1 × 128", 128),
        _tiles("fp8_128x128", "fp8 tiles, 128 × 128", 128 * 128),
        _ints("int8", INT8, 64, "absmax", QLORA_INT8, "fp32"),
        _ints("int4", UINT4, 128, "ends", AWQ),
        _ints("q8_0", INT8, 32, "absmax", GGML),
        _ints("q4_0", Q4, 32, "ends", GGML),
    )
}
"""Every block format by its name."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedBlock:
    """Blocks after quantization. Arrays of blocks have one row per block in ``scale_codes`` and ``scales`` only.

    scale_codes: the scales' codes, one per block. scales: what an element's value is multiplied by (block scale times
        tensor scale). codes: the elements' codes. values: what comes back, float64.
    clipped: which elements are beyond the element format's largest value, under this scale.
    mse: mean squared error. sqnr_db: signal over error in decibels; infinite without error, NaN for a zero signal.
    bits_per_element: the block's scale included. tensor_scale: 1 if there is none.
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
    values: npt.ArrayLike,
    block_format: BlockFormat,
    rule: Rule | None = None,
    *,
    kernel: Kernel = "exact",
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> QuantizedBlock:
    """Quantize one block, or several in a row.

    values: float64 or float32, one dimension, a multiple of the block size (but for MX and NVFP4 the last block may be
        short); they are first rounded to float32, which is what a block is made of.
    rule: one of ``block_format.scale_rules``; None is the first. kernel: `Kernel`.
    rounding, seed: of the elements, as in `encode`; tables of values round to nearest.
    Raises `FormatError` for another rule, a wrong length, infinity or NaN.
    """
    rule = rule or block_format.scale_rules[0]
    if rule not in block_format.scale_rules:
        known = ", ".join(block_format.scale_rules)
        raise FormatError(f"{block_format.title} has no scale rule “{rule}”: it is one of {known}.")
    with np.errstate(over="ignore"):
        given = np.asarray(values, dtype=np.float64).astype(np.float32)
    if given.ndim != 1 or given.size == 0 or (given.size % block_format.size and not block_format.short):
        raise FormatError(
            f"{block_format.title} takes blocks of {block_format.size} values, not {given.size}. "
            f"For example {2 * block_format.size} values are two blocks."
        )
    if not np.isfinite(given).all():
        raise FormatError("A block holds finite float32 values, up to 3.4e38; infinity and NaN leave no scale.")
    if block_format.name in WHOLE:
        return _whole(given, block_format, rule)
    if isinstance(block_format.element, ValueTable):
        return _normal_float(given, block_format, rule)
    if block_format.short:
        blocks = _filled(given, block_format.size)
        return _result(blocks, _fp8_scales(blocks), block_format, rule, rounding, seed, given.size)
    blocks = given.reshape(-1, block_format.size)
    if block_format.tensor_scale_bits:
        scales = _nvfp4_scales(blocks, block_format, rule, kernel)
    else:
        scales = _mx_scales(blocks, block_format, rule, kernel)
    return _result(blocks, scales, block_format, rule, rounding, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Scales:
    """Scales of blocks, their codes and the tensor's, and the blocks' values under them."""

    scaled: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]
    codes: Codes
    tensor: float = 1.0


def _mx_scales(blocks: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule, kernel: Kernel) -> _Scales:
    amax = np.abs(blocks).max(axis=1).astype(np.float64)
    exponents = np.clip(_exponents(amax, float_element(block_format), rule), -127, 127)
    scales = np.ldexp(1.0, exponents)
    inverse = 1 / scales
    if kernel == "torchao":
        inverse = np.where(exponents > -127, inverse, 0.0 if rule == "rceil" else 2.0**126)
    return _Scales(blocks.astype(np.float64) * inverse[:, None], scales, (exponents + 127).astype(np.uint8))


def _exponents(amax: npt.NDArray[np.float64], element: FloatFormat, rule: Rule) -> npt.NDArray[np.int32]:
    """Return the power of two of each block's scale, before E8M0's range; −127 for a block of zeros."""
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


def _nvfp4_scales(blocks: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule, kernel: Kernel) -> _Scales:
    """Return float32, in the order of NVIDIA's and torchao's kernels, as long as the scales have reciprocals in it."""
    element, scale = float_element(block_format), FORMATS["fp8_e4m3fn"]
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
    return _Scales(scaled.astype(np.float64), scales, scale_codes, float(tensor))


def _filled(given: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
    """Return the blocks of ``size``, a row each; a short last one, or only one, repeats its last value."""
    size = min(size, given.size)
    return np.pad(given, (0, -given.size % size), mode="edge").reshape(-1, size)


def _fp8_scales(blocks: npt.NDArray[np.float32]) -> _Scales:
    """Return float32, as DeepSeek's kernels divide: by amax over the largest value of E4M3."""
    scale = FORMATS["fp32"]
    wanted = np.abs(blocks).max(axis=1) / np.float32(FORMATS["fp8_e4m3fn"].max_finite)
    scales = np.maximum(wanted, np.float32(_FLOAT32_LEAST))
    return _Scales(
        (blocks / scales[:, None]).astype(np.float64),
        scales.astype(np.float64),
        encode(scales.astype(np.float64), scale),
    )


def _whole(given: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule) -> QuantizedBlock:
    """Return the blocks of integers, whose codes are as their library stores them."""
    done = WHOLE[block_format.name](_filled(given, block_format.size))
    count = given.size
    back = done.values.reshape(-1)[:count]
    noise, ratio = noise_of(given, back)
    size = min(block_format.size, count)
    clipped = np.abs(back - given.astype(np.float64)) > np.repeat(np.abs(done.scales), size)[:count]
    scale_codes = encode(done.scales, float_scale(block_format))
    codes, bits = done.codes.reshape(-1)[:count], block_format.bits_per_element
    return QuantizedBlock(block_format, rule, scale_codes, done.scales, codes, back, clipped, noise, ratio, bits, 1.0)


def float_scale(block_format: BlockFormat) -> FloatFormat:
    """Return the format of the scale where it is a float; raises `FormatError` where it is a table of values."""
    if isinstance(block_format.scale, ValueTable):
        raise FormatError(f"The scales of {block_format.title} are a table of values, not floats.")
    return block_format.scale


def float_element(block_format: BlockFormat) -> FloatFormat:
    """Return the format of the elements where it is a float; raises `FormatError` where it is a table of values."""
    if isinstance(block_format.element, ValueTable):
        raise FormatError(f"The elements of {block_format.title} are a table of values, not floats.")
    return block_format.element


def _normal_float(given: npt.NDArray[np.float32], block_format: BlockFormat, rule: Rule) -> QuantizedBlock:
    """Return blocks over their largest magnitude, which bitsandbytes keeps in float32 or, doubly quantized, in 8
    bits."""
    element, scale = VALUE_TABLES["nf4"], block_format.scale
    blocks = _filled(given, block_format.size)
    amax: npt.NDArray[np.float32] = np.abs(blocks).max(axis=1)
    scaled = blocks / np.where(amax > 0, amax, 1).astype(np.float64)[:, None]
    if isinstance(scale, ValueTable):
        offset = amax.mean(dtype=np.float32)
        starts = list(range(0, amax.size, block_format.scale_group))
        tops = np.repeat(np.maximum.reduceat(np.abs(amax - offset), starts), block_format.scale_group)[: amax.size]
        scale_codes: Codes = scale.encode((amax - offset) / np.where(tops > 0, tops, 1))
        scales = scale.decode(scale_codes) * tops + float(offset)
    else:
        scale_codes, scales = encode(amax, scale), amax.astype(np.float64)
    codes = element.encode(scaled.reshape(-1))
    back = element.decode(codes) * np.repeat(scales, blocks.shape[1])
    count = given.size
    noise, ratio = noise_of(given, back[:count])
    clipped = np.zeros(count, dtype=np.bool_)
    bits = block_format.bits_per_element
    return QuantizedBlock(
        block_format, rule, scale_codes, scales, codes[:count], back[:count], clipped, noise, ratio, bits, 1.0
    )


def noise_of(values: npt.NDArray[Any], back: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return mean squared error, and signal over it in decibels: infinite without error, NaN for a zero signal."""
    original = values.astype(np.float64)
    noise, signal = float(np.mean((back - original) ** 2)), float(np.mean(original**2))
    if noise:
        return noise, 10 * math.log10(signal / noise)
    return noise, math.inf if signal else math.nan


def _result(
    blocks: npt.NDArray[np.float32],
    under: _Scales,
    block_format: BlockFormat,
    rule: Rule,
    rounding: Rounding,
    seed: Seed,
    count: int | None = None,
) -> QuantizedBlock:
    """Return what comes of blocks under scales; of the last one only what makes up ``count`` values."""
    element = float_element(block_format)
    codes = encode(under.scaled, element, rounding=rounding, overflow="saturate", seed=seed)
    back = decode(codes, element) * under.scales[:, None]  # exact: at most 30 significant bits
    slack = _ROUNDINGS if block_format.tensor_scale_bits or block_format.short else 1.0
    noise, ratio = noise_of(blocks.reshape(-1)[:count], back.reshape(-1)[:count])
    return QuantizedBlock(
        block_format,
        rule,
        under.codes,
        under.scales,
        codes.reshape(-1)[:count],
        back.reshape(-1)[:count],
        (np.abs(under.scaled) > float(element.max_finite) * slack).reshape(-1)[:count],
        noise,
        ratio,
        block_format.bits_per_element,
        under.tensor,
    )
