"""What operations on single elements cost per element: the counts behind every prediction and every measured point.

FLOPs are counted as written here, a function such as exp as one; another count moves them by a few, and no verdict.
Norms: mean, deviation, square, sum, scale, gain, bias. Softmax: maximum, difference, exp, sum, quotient; backward
y·(dy − Σ y·dy). Cross-entropy: maximum, difference, exp, sum; backward exp, quotient, difference. GELU by tanh.
SwiGLU: sigmoid in three, times its input, times the other half.
"""

from __future__ import annotations

from typing import NamedTuple


class ElementCost(NamedTuple):
    """FLOPs and elements moved per element, forward and backward."""

    ahead: float
    moved: float
    back: float
    moved_back: float


LAYERNORM = ElementCost(8.0, 2.0, 14.0, 3.0)
RMSNORM = ElementCost(4.0, 2.0, 8.0, 3.0)
SOFTMAX = ElementCost(5.0, 2.0, 4.0, 3.0)
CROSS_ENTROPY = ElementCost(4.0, 1.0, 3.0, 2.0)
GELU = ElementCost(8.0, 2.0, 12.0, 3.0)
SWIGLU = ElementCost(5.0, 3.0, 9.0, 5.0)
RESIDUAL = ElementCost(1.0, 3.0, 1.0, 3.0)

ADAMW_FLOP = 15.0
"""FLOPs of AdamW per parameter: two moments (3 and 4), corrections (2), root, quotient and step (4), decay (2)."""

ADAMW_BYTES = 28.0
"""Bytes of AdamW per parameter: weight and both moments in fp32 read and written (24), a 16-bit gradient read, a
16-bit copy of the weight written. An fp32 gradient read and no copy written are as many."""
