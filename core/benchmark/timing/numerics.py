"""What a dtype stores of a matrix: rounded values, their scales, and the layout that kernels take them in.

Every operand is (rows, k), the second one transposed as a linear layer keeps its weight, and is drawn wide before it
is rounded. Blocks run along k. Sources: OCP Microscaling Formats 1.0 for the element formats; the cuBLAS guide, "1D
Block Scaling Factors Layout", for where scales lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from core.benchmark.timing.bench import SkippedError
from core.messages import message

E4M3_MAX = 448.0
E2M1_MAX = 6.0
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Magnitudes of the codes 0 to 7; the fourth bit is the sign."""

_TILE_ROWS, _TILE_COLUMNS, _TILE_PART = 128, 4, 32

Scaling: TypeAlias = Literal["none", "integer", "TensorWise", "BlockWise1x16"]
"""No scales and a plain product; one scale and a product of integers; or a recipe of torch's ``ScalingType``."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """How torch spells a dtype, and what a right product in it is.

    drawn: dtype of the values before rounding. result: what the product comes in. tolerance: largest relative
    Frobenius error of a right kernel against the float64 product of the values as rounded: rounding the result to p
    bits costs at most 2⁻ᵖ, fp32 gets room for √n growth over the sum, still far below what TF32's 11-bit inputs cost;
    integers are exact but for their float32 scales. fast: with fast accumulation,
    whose sums have fewer bits. scale_bytes: of one operand, by its rows and k.
    """

    stored: str
    result: str
    tolerance: float
    element_bytes: float
    result_bytes: float
    scaling: Scaling = "none"
    fp32_precision: str = "ieee"
    drawn: str = "float32"
    fast: bool = False
    scale_bytes: Callable[[int, int], float] = lambda rows, k: 0.0


NUMERICS: Mapping[str, Numeric] = {
    "fp64": Numeric("float64", "float64", 1e-12, 8, 8, drawn="float64"),
    "fp32": Numeric("float32", "float32", 2e-5, 4, 4),
    "tf32": Numeric("float32", "float32", 2e-3, 4, 4, fp32_precision="tf32"),
    "bf16": Numeric("bfloat16", "bfloat16", 2e-2, 2, 2),
    "fp16": Numeric("float16", "float16", 2e-3, 2, 2),
    "fp8": Numeric(*("float8_e4m3fn", "bfloat16", 2e-2, 1, 2), "TensorWise", scale_bytes=lambda rows, k: 4.0),
    "fp8 fast": Numeric(
        *("float8_e4m3fn", "bfloat16", 5e-2, 1, 2), "TensorWise", fast=True, scale_bytes=lambda rows, k: 4.0
    ),
    "int8": Numeric(*("int8", "int32", 1e-6, 1, 4), "integer", scale_bytes=lambda rows, k: 4.0),
    "nvfp4": Numeric(
        *("float4_e2m1fn_x2", "bfloat16", 2e-2, 0.5, 2), "BlockWise1x16", scale_bytes=lambda rows, k: rows * k / 16
    ),
}


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """Operand of a matmul in the form that a kernel accepts.

    scales: None if it has none. restored: float32 values of some of its rows.
    """

    data: Any
    scales: Any
    restored: Callable[[Any], Any]


def rounded(torch: Any, numeric: Numeric, values: Any) -> KernelOperand:
    """Return ``values`` in the dtype, unscaled or with scales that let the largest magnitude of their range just fit.

    Raises `SkippedError` if blocks do not divide k.
    """
    match numeric.scaling:
        case "none":
            data = values.to(getattr(torch, numeric.stored))
            return KernelOperand(data, None, lambda rows: data[rows])
        case "integer":
            return _by_range(torch, values, 127.0, lambda x: x.round().to(torch.int8))
        case "TensorWise":
            return _by_range(torch, values, E4M3_MAX, lambda x: x.to(torch.float8_e4m3fn))
        case "BlockWise1x16":
            return _nvfp4(torch, values)


def _by_range(torch: Any, values: Any, most: float, narrow: Callable[[Any], Any]) -> KernelOperand:
    """Return one float32 scale for all: the largest magnitude over ``most``."""
    scale = (values.abs().amax() / most).float()
    data = narrow((values / scale).clamp_(-most, most))
    # Rows are taken as bytes: not every device can index narrow floats.
    return KernelOperand(data, scale, lambda rows: data.view(torch.uint8)[rows].view(data.dtype).float() * scale)


def _nvfp4(torch: Any, values: Any) -> KernelOperand:
    rows, k = values.shape
    if k % 16:
        raise SkippedError(message("measure.skipped.blocks", k=float(k)))
    blocks = values.view(rows, k // 16, 16)
    stored = (blocks.abs().amax(dim=2) / E2M1_MAX).clamp_(max=E4M3_MAX).to(torch.float8_e4m3fn)
    scale = stored.float()
    # A block whose scale has rounded to zero holds nothing but zeros.
    codes = e2m1_codes(torch, blocks / torch.where(scale > 0, scale, torch.inf)[..., None]).flatten(1)
    packed = codes[:, ::2] | codes[:, 1::2] << 4

    def restored(rows: Any) -> Any:
        some = packed[rows]
        both = torch.stack((some & 15, some >> 4), dim=2).flatten(1)
        return (e2m1_values(torch, both).view(len(some), -1, 16) * scale[rows][..., None]).flatten(1)

    scales = swizzled(torch, stored.view(torch.uint8)).view(torch.float8_e4m3fn)
    return KernelOperand(packed.view(torch.float4_e2m1fn_x2), scales, restored)


def e2m1_codes(torch: Any, values: Any) -> Any:
    """Return the four-bit codes nearest to ``values`` as uint8, ties to the even code, magnitudes beyond 6 as 6."""
    middles = torch.tensor([(low + high) / 2 for low, high in pairwise(E2M1)], device=values.device)
    # A tie above an odd code goes up: its threshold is the float just below the middle.
    odd = torch.arange(len(E2M1) - 1, device=values.device) % 2 == 1
    thresholds = torch.where(odd, torch.nextafter(middles, torch.zeros_like(middles)), middles)
    magnitude = torch.bucketize(values.abs(), thresholds, out_int32=True).to(torch.uint8)
    return magnitude | (values < 0).to(torch.uint8) << 3


def e2m1_values(torch: Any, codes: Any) -> Any:
    """Return the float32 values of four-bit codes."""
    table = torch.tensor([*E2M1, *(-value for value in E2M1)], device=codes.device)
    return table[codes.long()]


def swizzled(torch: Any, scales: Any) -> Any:
    """Return scales (rows, blocks) as tensor cores read them, flat: tiles of 128 × 4, in each 32 rows of 4 × 4,
    zero-padded.

    Scale (r, c) of a tile lies at 16·(r mod 32) + 4·⌊r/32⌋ + c of it; tiles lie row by row.
    """
    rows, blocks = scales.shape
    down, across = -(-rows // _TILE_ROWS), -(-blocks // _TILE_COLUMNS)
    padded = torch.zeros(down * _TILE_ROWS, across * _TILE_COLUMNS, dtype=scales.dtype, device=scales.device)
    padded[:rows, :blocks] = scales
    parts = _TILE_ROWS // _TILE_PART
    tiles = padded.view(down, parts, _TILE_PART, across, _TILE_COLUMNS)
    return tiles.permute(0, 3, 2, 1, 4).reshape(-1)
