"""A series of terms added in one format in several orders: one by one, in pairs, in blocks, and as fp8 matrix units do.

The libraries' own types add where there are any: each sum of two of their numbers is rounded into the type. For tf32
and formats of one's own float64 adds, and `core.floats.arithmetic.rounded_sums` rounds.
"""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.arithmetic.rounded_sums import RoundedSums
from core.floats.codec import decode, encode
from core.floats.formats import FloatFormat
from core.formula import Source
from core.limits import cached, limit
from core.messages import message
from core.units import QuantityError

Terms: TypeAlias = npt.NDArray[np.float64]

DTYPES: Mapping[str, str] = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e4m3fnuz": "float8_e4m3fnuz",
    "fp8_e5m2fnuz": "float8_e5m2fnuz",
    "fp8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "fp8_e4m3_ieee": "float8_e4m3",
    "fp8_e3m4_ieee": "float8_e3m4",
}
"""Formats → the type of numpy, or of ml_dtypes, that adds in them."""

ACCUMULATOR_BITS = 14
"""Significant bits that the sums inside the H100's fp8 matrix units keep, as DeepSeek measured."""

DEEPSEEK = Source("DeepSeek-V3 technical report", "section 3.3.2", "https://arxiv.org/abs/2412.19437")

_DRAWN: Mapping[str, Callable[[np.random.Generator, int], Terms]] = {
    "normal": lambda draw, count: draw.standard_normal(count),
    "uniform": lambda draw, count: draw.random(count),
}
_CALLS: Mapping[str, Callable[[Any], Any]] = {"sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin}
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


def read_series(text: str) -> str:
    """The text, if `terms` can make a series of it; raises `QuantityError` with the reason."""
    terms(text, 2)
    return text.strip()


@cached("large_results_kept")
def terms(text: str, count: int) -> Terms:
    """The first ``count`` terms: of an expression of k = 1, 2, …, drawn (``normal``, ``uniform``), or a list repeated.

    Raises `QuantityError` for what cannot be read, and for terms that are not finite.
    """
    tidy = text.strip().lower().replace("−", "-").replace("·", "*").replace("^", "**")
    if len(tidy) > limit("series_chars"):
        most = float(limit("series_chars"))
        raise QuantityError(message("sums.error.long", length=float(len(tidy)), most=most))
    made = np.empty(count)
    try:
        if tidy in _DRAWN:
            made[:] = _DRAWN[tidy](np.random.default_rng(0), count)
        else:
            tree = ast.parse(tidy, mode="eval").body
            parts = tree.elts if isinstance(tree, ast.Tuple) and tree.elts else [tree]
            k = np.arange(1, count + 1, dtype=np.float64)
            with np.errstate(all="ignore"):
                for place, part in enumerate(parts[:count]):
                    made[place :: len(parts)] = _worked_out(part, k[place :: len(parts)])
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise QuantityError(message("sums.error.series", text=text.strip()[:40])) from None
    good = np.isfinite(made)
    if not good.all():
        term = float(np.argmin(good)) + 1
        raise QuantityError(message("sums.error.term", term=term, text=text.strip()[:40]))
    made.flags.writeable = False
    return made


def _worked_out(node: ast.expr, k: Terms) -> Any:
    """The value of one node, for all k at once; raises ``ValueError`` for whatever is not arithmetic."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id="k"):
            return k
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_worked_out(inner, k)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_worked_out(left, k), _worked_out(right, k))
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _CALLS:
            return _CALLS[name](_worked_out(inner, k))
        case _:
            raise ValueError(ast.dump(node))


@cached("large_results_kept")
def kept(text: str, count: int, fmt: FloatFormat) -> Any:
    """The terms as ``fmt`` holds them, each rounded once, in the type that adds in it, or float64."""
    name = DTYPES.get(fmt.name, "float64")
    dtype = np.dtype(name) if hasattr(np, name) else np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    return decode(encode(terms(text, count), fmt), fmt).astype(dtype)


def one_by_one(given: Any, rounding: RoundedSums | None = None) -> float:
    """Each term added to the sum of all before it, in the terms' own type, or as ``rounding`` adds."""
    if rounding:
        return rounding.one_by_one(given)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.add.accumulate(given)[-1])


def in_pairs(given: Any, rounding: RoundedSums | None = None) -> float:
    """Neighbors first, then the sums of neighbors, until one is left."""
    sums, plus = given, rounding.plus if rounding else np.add
    with np.errstate(over="ignore", invalid="ignore"):
        while sums.size > 1:
            even = sums.size // 2 * 2
            sums = np.concatenate([plus(sums[:even:2], sums[1:even:2]), sums[even:]])
    return float(sums[0])


def in_blocks(given: Any, size: int, rounding: RoundedSums | None = None) -> float:
    """Blocks of ``size``, each one by one, and then their sums one by one."""
    return one_by_one(_block_sums(given, size, rounding.plus if rounding else np.add), rounding)


def cut_off(given: Any, size: int) -> float:
    """Blocks of ``size`` in an accumulator that cuts each sum to `ACCUMULATOR_BITS`, whose sums are added in fp32."""
    mask = np.int64(-1) << np.int64(53 - ACCUMULATOR_BITS)

    def plus(sums: Terms, column: Terms) -> Terms:
        return ((sums + column).view(np.int64) & mask).view(np.float64)

    with np.errstate(over="ignore"):
        return one_by_one(_block_sums(given.astype(np.float64), size, plus).astype(np.float32))


def _block_sums(stored: Any, size: int, plus: Callable[[Any, Any], Any]) -> Any:
    """The sum of every block, all blocks at once, term after term; a short last one is filled with zeros."""
    blocks = np.pad(stored, (0, -stored.size % size)).reshape(-1, size)
    sums = np.zeros(len(blocks), stored.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for column in np.ascontiguousarray(blocks.T):
            sums = plus(sums, column)
    return sums


Order: TypeAlias = Literal["sequential", "pairwise", "blocks", "truncated", "fp32"]
"""One after the other, neighbors first, in blocks, in blocks whose accumulator truncates, or with sums in fp32."""


@dataclass(frozen=True, slots=True)
class Summed:
    """What one order of adding gives. error: relative to the exact sum, NaN where that is 0."""

    order: Order
    value: float
    error: float


@cached("results_kept")
def orders(text: str, count: int, fmt: FloatFormat, size: int) -> tuple[float, tuple[Summed, ...]]:
    """Return the correctly rounded sum of the terms as typed, and what each order makes of the stored terms.

    Raises `FormatError` for a format in which sums cannot be kept.
    """
    rounding = None if fmt.name in DTYPES else RoundedSums(fmt)
    given = kept(text, count, fmt)
    exact = math.fsum(terms(text, count).tolist())
    with np.errstate(over="ignore"):
        single = given.astype(np.float32)
    sums: dict[Order, float] = {
        "sequential": one_by_one(given, rounding),
        "pairwise": in_pairs(given, rounding),
        "blocks": in_blocks(given, size, rounding),
        "truncated": cut_off(given, size),
    }
    if fmt.name != "fp32":
        sums["fp32"] = one_by_one(single)
    return exact, tuple(
        Summed(order, value, (value - exact) / abs(exact) if exact else math.nan) for order, value in sums.items()
    )
