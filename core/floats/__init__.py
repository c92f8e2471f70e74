"""Float formats: what a number becomes in each, bit by bit and exactly.

>>> from core.floats import FORMATS, decode, encode
>>> decode(encode([0.1, 1e-8], FORMATS["fp16"]), FORMATS["fp16"])
array([0.09997559, 0.        ])
"""

from core.floats.codec import OVERFLOWS, Overflow, classify, decode, decode_exact, encode, encode_exact
from core.floats.formats import FORMATS, FloatFormat

__all__ = [
    "FORMATS",
    "OVERFLOWS",
    "FloatFormat",
    "Overflow",
    "classify",
    "decode",
    "decode_exact",
    "encode",
    "encode_exact",
]
