"""Blocks of integers under a scale, as weights are kept to be served: absmax int8, int4 with a zero point, GGUF.

Each function takes rows of float32 values, one block a row, and follows its library's reference code step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.floats.codec import Codes
from core.floats.value_tables import ValueTable
from core.formula import Source

QLORA_INT8 = Source("Dettmers et al. 2023, QLoRA", "section 2, equation 1", "https://arxiv.org/abs/2305.14314")
AWQ = Source(
    "AWQ", "quantize/quantizer.py: pseudo_quantize_tensor", "https://github.com/mit-han-lab/llm-awq/tree/main/awq"
)
GGML = Source(
    "ggml",
    "src/ggml-quants.c: quantize_row_q8_0_ref and quantize_row_q4_0_ref",
    "https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c",
)

_FP16_MOST = np.float32(65504)
_LEAST_RANGE = np.float32(1e-5)
"""What AWQ takes for the range of a block that is narrower."""


def _whole(name: str, low: int, high: int, used: str, source: Source) -> ValueTable:
    return ValueTable(name, name, tuple(map(float, range(low, high + 1))), used, (source,))


INT8 = _whole("int8", -127, 127, "weights and activations under a scale", QLORA_INT8)
UINT4 = _whole("uint4", 0, 15, "weights under a scale, with a zero point", AWQ)
Q4 = _whole("int4", -8, 7, "weights in GGUF files", GGML)


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Blocks as integers. scales: of each block. codes: as they are stored. values: what comes back, float64."""

    scales: npt.NDArray[np.float64]
    codes: Codes
    values: npt.NDArray[np.float64]


Rows = npt.NDArray[np.float32]


def _result(scales: Rows, whole: npt.NDArray[np.float32], codes: npt.NDArray[np.float32]) -> Whole:
    values = whole.astype(np.float64) * scales.astype(np.float64)[:, None] + 0.0  # of whole numbers none is −0
    return Whole(scales.astype(np.float64), codes.astype(np.int64).astype(np.uint8), values)


def _half(scales: Rows) -> Rows:
    """Return as fp16 keeps them; beyond it ggml and torch keep infinity, and every value of the block with it."""
    return np.clip(scales, -_FP16_MOST, _FP16_MOST).astype(np.float16).astype(np.float32)


def _over(rows: Rows, scales: Rows) -> Rows:
    """Return rows over scales, zeros where the scale is; ggml multiplies by the reciprocal, rounded to float32."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(scales != 0, np.float32(1) / scales, np.float32(0))
    inverse = np.where(np.isfinite(inverse), inverse, np.float32(0))
    return (rows * inverse[:, None]).astype(np.float32)


def absmax_int8(rows: Rows) -> Whole:
    """Return the largest magnitude falls on 127, ties go to even, and the scale is float32: QLoRA’s equation 1."""
    scales = (np.abs(rows).max(axis=1) / np.float32(127)).astype(np.float32)
    whole = np.rint(rows / np.where(scales > 0, scales, np.float32(1))[:, None])
    whole = np.clip(whole, -127, 127)
    return _result(scales, whole, whole)


def zero_point_int4(rows: Rows) -> Whole:
    """Return AWQ’s int4 blocks: smallest and largest value map to 0 and 15, a whole number is the code of 0, and the
    scale is stored in fp16."""
    low, high = rows.min(axis=1), rows.max(axis=1)
    with np.errstate(over="ignore"):
        scales = _half(np.maximum(high - low, _LEAST_RANGE) / np.float32(15))
    zeros = np.clip(-np.rint(low / scales), 0, 15)[:, None]
    codes = np.clip(np.rint(rows / scales[:, None]) + zeros, 0, 15)
    return _result(scales, codes - zeros, codes)


def q8_0(rows: Rows) -> Whole:
    """Return ggml’s q8_0 blocks: the fp16 scale is the largest magnitude divided by 127, and ties round away from
    zero."""
    scales = (np.abs(rows).max(axis=1) / np.float32(127)).astype(np.float32)
    over = _over(rows, scales).astype(np.float64)
    whole = np.clip(np.trunc(over + np.copysign(0.5, over)), -127, 127).astype(np.float32)
    return _result(_half(scales), whole, whole)


def q4_0(rows: Rows) -> Whole:
    """Return ggml’s q4_0 blocks: the value of the largest magnitude maps to −8, so the fp16 scale has its sign."""
    most = rows[np.arange(rows.shape[0]), np.abs(rows).argmax(axis=1)]
    scales = (most / np.float32(-8)).astype(np.float32)
    codes = np.minimum(15, np.trunc(_over(rows, scales) + np.float32(8.5)))
    return _result(_half(scales), codes - np.float32(8), codes)


WHOLE: Mapping[str, Callable[[Rows], Whole]] = {
    "int8": absmax_int8,
    "int4": zero_point_int4,
    "q8_0": q8_0,
    "q4_0": q4_0,
}
"""Name of a block format → how it is made."""
