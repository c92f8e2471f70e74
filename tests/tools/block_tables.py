"""What torchao makes of a block of numbers in the MX formats and NVFP4, and whether one exact rounding agrees."""

from __future__ import annotations

import math
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import torch

from tests.tools.float_tables import EXACT
from tests.tools.tables import Row, Table

ELEMENTS = {
    "mxfp8_e5m2": "fp8_e5m2",
    "mxfp8_e4m3": "fp8_e4m3fn",
    "mxfp6_e3m2": "fp6_e3m2fn",
    "mxfp6_e2m3": "fp6_e2m3fn",
    "mxfp4_e2m1": "fp4_e2m1fn",
    "mxint8": "mxint8",
    "nvfp4": "fp4_e2m1fn",
}
"""Block format → the format of its elements."""


def floats(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32).view(np.float32)


def words(values: np.ndarray) -> str:
    return " ".join(f"{code:08x}" for code in np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).tolist())


def unpacked(elements: torch.Tensor, bits: int) -> list[int]:
    """Codes of elements; those of four bits lie two to a byte, the first one low."""
    raw = elements.view(torch.uint8).flatten().tolist()
    return [code for byte in raw for code in (byte & 15, byte >> 4)] if bits == 4 else raw


def mx(values: torch.Tensor, name: str, rule: str) -> tuple[list[int], list[int], list[float]]:
    """Scale codes, element codes and values by torchao."""
    from torchao.prototype.mx_formats import mx_tensor

    exact = EXACT[ELEMENTS[name]]
    dtypes = {
        "mxfp8_e5m2": torch.float8_e5m2,
        "mxfp8_e4m3": torch.float8_e4m3fn,
        "mxfp6_e3m2": "fp6_e3m2",
        "mxfp6_e2m3": "fp6_e2m3",
        "mxfp4_e2m1": torch.float4_e2m1fn_x2,
    }
    scale, elements = mx_tensor.to_mx(values[None], dtypes[name], 32, mx_tensor.ScaleCalculationMode(rule))
    codes = unpacked(elements, exact.bits)
    scales = scale.view(torch.uint8).flatten().tolist()
    return scales, codes, [math.ldexp(float(exact.value(code)), scales[0] - 127) for code in codes]


def answer(row: Mapping[str, str]) -> Row:
    """Scale, elements, values and mean square error of a block; empty where torchao refuses it."""
    from torchao.prototype.mx_formats import nvfp4_tensor

    name, given = row["block_format"], floats(row["input_f32_hex"])
    values, exact = torch.from_numpy(given.copy()), EXACT[ELEMENTS[name]]
    digits = (exact.bits + 3) // 4
    tensor = None
    if name == "nvfp4":
        if row["scale_mode"] == "level2":
            if not given.any():  # there is no tensor scale for zeros: torchao divides by it
                return dict.fromkeys(TABLE.answers, "")
            tensor = nvfp4_tensor.per_tensor_amax_to_scale(values.abs().max())
        scale, elements = nvfp4_tensor.nvfp4_quantize(values[None], 16, tensor)
        codes, scales = unpacked(elements, 4), scale.view(torch.uint8).flatten().tolist()
        factors = np.array(scales, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        factors = np.repeat(factors, 16) * (1.0 if tensor is None else float(tensor))
        made = np.array([float(exact.value(code)) for code in codes]) * factors
        agrees = ""
    else:
        scales, codes, wide = mx(values, name, row["scale_mode"])
        made = np.array(wide)
        scaled = [math.ldexp(float(value), 127 - scales[0]) for value in given]
        agrees = str(int([exact.round(value, saturate=True) for value in scaled] == codes))
    error = np.mean((given.astype(np.float64) - made) ** 2)
    said = " ".join(f"{code:02x}" for code in scales)
    return {
        "scale_hex": said if tensor is None else f"{said} tensor={float(tensor)!r}",
        "elem_hex": " ".join(f"{code:0{digits}x}" for code in codes),
        "dequant_f32_hex": words(made),
        "mse": f"{error:.6g}",
        "agree_exact_ref": agrees,
    }


TABLE = Table(
    "float_block_encode",
    ("case", "block_format", "scale_mode", "input_f32_hex"),
    ("scale_hex", "elem_hex", "dequant_f32_hex", "mse", "agree_exact_ref"),
    answer,
    needs="--no-deps torchao==0.18.0",
)


TABLED = {"nf4": (4, 1), "int8": (8, 127), "uint4": (4, 15), "int4": (4, 7)}
"""Elements that are no floats: bits of each, and the largest."""


def described(row: Mapping[str, str]) -> Row:
    """Bytes of a block with its scale, and the reach of its elements."""
    size = int(row["block_size"])
    if row["element"] in TABLED:
        each, largest = TABLED[row["element"]]
        bits = size * each + float(row["scale_bits"])
        return {
            "bytes_per_block": f"{bits / 8:g}",
            "bits_per_element": f"{bits / size:g}",
            "elem_emax": "0",
            "elem_max": f"{largest}",
        }
    exact = EXACT[row["element"]]
    bits = size * exact.bits + int(row["scale_bits"])
    largest = float(exact.value((1 << (exact.bits - 1)) - 1 if exact.integer else exact.last))
    return {
        "bytes_per_block": f"{bits / 8:g}",
        "bits_per_element": f"{bits / size:g}",
        "elem_emax": str(math.frexp(largest)[1] - 1),
        "elem_max": f"{largest!r}".removesuffix(".0"),
    }


FORMATS = Table(
    "float_block_formats",
    ("format", "element", "block_size", "scale_format", "scale_bits", "tensor_scale", "source"),
    ("bytes_per_block", "bits_per_element", "elem_emax", "elem_max"),
    described,
)
TABLES = (FORMATS, TABLE)
