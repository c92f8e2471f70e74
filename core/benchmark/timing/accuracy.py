"""What the timings share that compute in 16 bits: which format a device has, and how wrong a right result may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core.benchmark import device
from core.benchmark.timing.bench import Bench, RefusedError
from core.messages import pick_message

PICKED = 48
"""Rows of a result that are compared with float64, evenly spread, so that every block of a kernel is touched."""


@dataclass(frozen=True, slots=True)
class Format:
    """A float format as torch names it. tolerance: relative Frobenius error against float64 that is still right.

    Rounding a result to p bits costs at most 2⁻ᵖ; what is ten times as far off is another function.
    """

    name: str
    torch_name: str
    bytes: int
    tolerance: float


FP32 = Format("fp32", "float32", 4, 2e-5)
FP16 = Format("fp16", "float16", 2, 3e-3)
BF16 = Format("bf16", "bfloat16", 2, 2e-2)


def format_of(bench: Bench) -> Format:
    """Return what is computed in: bf16, fp16 on a GPU without it, fp32 on a processor without instructions for bf16."""
    if bench.kind == "cpu":
        return BF16 if device.cpu().bf16 else FP32
    if bench.kind == "cuda" and not bench.torch.cuda.is_bf16_supported(including_emulation=False):
        return FP16
    return BF16


def exact(torch: Any, tensor: Any) -> Any:
    """Return ``tensor`` in float64 on the CPU: not every device has the format."""
    return tensor.detach().to("cpu").to(torch.float64)


def picked(torch: Any, count: int) -> Any:
    """Return up to `PICKED` places of ``count``, evenly spread, first and last among them."""
    return torch.linspace(0, count - 1, min(count, PICKED), dtype=torch.float64).round().long()


def error_of(torch: Any, got: Any, right: Any) -> float:
    """Return Frobenius norm of (got − right) over that of right, in float64."""
    return float((exact(torch, got) - right).norm() / right.norm())


def checked(error: float, tolerance: float, what: str = "") -> float:
    """Return ``error``. Raises `RefusedError` if it is beyond ``tolerance``, or not finite. what: of which gradient it
    is, empty for the result."""
    if not (math.isfinite(error) and error <= tolerance):
        wrong = "measure.refused.gradient" if what else "measure.refused.result"
        raise RefusedError(pick_message(wrong, tensor=what, error=error, tolerance=tolerance))
    return error
