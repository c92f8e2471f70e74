"""The work of a matrix product and of an elementwise operation, which every topic counts by."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.sources import CS336

_CUBLAS = Source(
    "NVIDIA, Matrix Multiplication Background User's Guide",
    "Math and memory bounds: an M×N×K product takes M·N·K fused multiply-adds, 2·M·N·K FLOP",
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
)
_COUNTER = Source(
    "PyTorch, FLOP counter",
    "mm_flop and bmm_flop",
    "https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py",
)

FLOP = Symbol("W", "work", "flop")

PRODUCT = {
    "m": Symbol("M", "rows of the first operand", "count"),
    "n": Symbol("N", "columns of the second operand", "count"),
    "k": Symbol("K", "inner dimension, which is summed", "count"),
    "groups": Symbol("B", "products of this size: the batch", "count"),
}


@formula(
    r"2 \cdot \v{groups} \cdot \v{m} \cdot \v{n} \cdot \v{k}",
    result=FLOP,
    symbols=PRODUCT,
    sources=(_CUBLAS, _COUNTER),
)
def matmul_flop(m: float, n: float, k: float, groups: float = 1) -> float:
    """Work of a matrix product.

    Each output is a sum of K products, one multiplication and one addition each; the first addition of a sum is
    counted although there is nothing yet to add to, as everybody does.
    """
    return 2 * groups * m * n * k


@formula(
    r"\v{elements} \cdot \v{per_element}",
    result=FLOP,
    symbols={
        "elements": Symbol("n", "elements", "count"),
        "per_element": Symbol("c", "operations per element", "number"),
    },
    sources=(CS336,),
)
def elementwise_flop(elements: float, per_element: float) -> float:
    """FLOPs of an operation that treats each element alike; a function such as exp counts as one."""
    return elements * per_element
