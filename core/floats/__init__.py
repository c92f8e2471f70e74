"""Float formats: what a number becomes in each, bit by bit and exactly.

>>> from core.floats import FORMATS, decode, encode
>>> decode(encode([0.1, 1e-8], FORMATS["fp16"]), FORMATS["fp16"])
array([0.09997559, 0.        ])
"""

from core.floats.blocks import BLOCK_FORMATS, SCALE_RULES, BlockFormat, QuantizedBlock, quantize_block
from core.floats.codec import classify, decode, decode_exact, encode, encode_exact, nan_payload, neighbour
from core.floats.custom import custom_format, parse_custom
from core.floats.formats import FORMATS, OVERFLOWS, FloatFormat, FormatError, Overflow
from core.floats.rounding import ROUNDINGS, Rounding

__all__ = [
    "BLOCK_FORMATS",
    "FORMATS",
    "OVERFLOWS",
    "ROUNDINGS",
    "SCALE_RULES",
    "BlockFormat",
    "FloatFormat",
    "FormatError",
    "Overflow",
    "QuantizedBlock",
    "Rounding",
    "classify",
    "custom_format",
    "decode",
    "decode_exact",
    "encode",
    "encode_exact",
    "nan_payload",
    "neighbour",
    "parse_custom",
    "quantize_block",
]
