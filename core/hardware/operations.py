"""Operations under the roofline: their FLOPs, bytes, and least time.

FLOPs are counted as written here, a function such as exp as one; another count moves them by a few, and no verdict.
Norms: mean, deviation, square, sum, scale, gain, bias. Softmax: maximum, difference, exp, sum, quotient; backward
y·(dy − Σ y·dy). Cross-entropy: maximum, difference, exp, sum; backward exp, quotient, difference. GELU by tanh.
SwiGLU: sigmoid in three, times its input, times the other half.

Bytes follow one convention: an operation reads each operand from memory once and writes its result once, as one
kernel that keeps everything else on the chip. Caches make real traffic smaller, tiles that do not fit make it larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Formula, Source, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.products import FLOP, PRODUCT, elementwise_flop, matmul_flop
from core.sources import CS336, ML_ENGINEERING


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


Value: TypeAlias = "float | npt.NDArray[np.float64]"
Bound: TypeAlias = Literal["compute", "memory"]

_ROOFLINE = Source(
    "Williams, Waterman and Patterson 2009, Roofline",
    "Communications of the ACM 52(4)",
    "https://doi.org/10.1145/1498765.1498785",
)
_BYTES = Symbol("Q", "bytes moved to and from memory", "bytes")
_ELEMENT = Symbol("e", "bytes per element", "number")
_RESULT = Symbol("r", "bytes per element of the result", "number")


@formula(
    r"\v{groups} \cdot (\v{element} \cdot (\v{m} \cdot \v{k} + \v{k} \cdot \v{n})"
    r" + \v{result} \cdot \v{m} \cdot \v{n})",
    result=_BYTES,
    symbols={**PRODUCT, "element": Symbol("e", "bytes per element of the factors", "number"), "result": _RESULT},
    sources=(CS336,),
)
def product_bytes(m: float, n: float, k: float, groups: float, element: float, result: float) -> float:
    """Bytes of matrix products: both factors read, the product written, which may be of a wider dtype than they."""
    return groups * (element * (m * k + k * n) + result * m * n)


@formula(
    r"\v{element} \cdot \v{groups} \cdot \v{m} \cdot (2 \cdot \v{k} + \v{n})",
    result=_BYTES,
    symbols={
        "m": Symbol("M", "tokens, each a row of either narrow matrix", "count"),
        "n": Symbol("N", "tokens that each of them looks at: a window, or all M", "count"),
        "k": Symbol("K", "head width", "count"),
        "groups": PRODUCT["groups"],
        "element": _ELEMENT,
    },
    sources=(CS336,),
)
def band_bytes(m: float, n: float, k: float, groups: float, element: float) -> float:
    """Bytes of a product of attention: two matrices of the head width and one of scores, N for each token.

    Which of the three is written differs between scores, values and their gradients, and the sum does not.
    """
    return element * groups * m * (2 * k + n)


def fused_attention_bytes(tokens: Value, heads: int, kv_heads: int, widths: int, element: float) -> Value:
    """Return the bytes of fused attention: queries, keys and values read once, the result written once, scores never.

    widths: of a head in the product of queries and keys, plus that in the product with values.
    """
    return np.multiply(tokens, (heads + kv_heads) * widths * element)


@formula(
    r"\v{elements} \cdot \v{bytes_per_element}",
    result=_BYTES,
    symbols={
        "elements": Symbol("N", "elements", "count"),
        "bytes_per_element": Symbol("b", "bytes read and written per element", "number"),
    },
    sources=(CS336,),
)
def elementwise_bytes(elements: float, bytes_per_element: float) -> float:
    """Bytes of an operation that treats each element alike."""
    return elements * bytes_per_element


@formula(
    r"\frac{\v{flop}}{\v{bytes}}",
    result=Symbol("I", "arithmetic intensity", "flop_per_byte"),
    symbols={"flop": FLOP, "bytes": _BYTES},
    sources=(_ROOFLINE,),
)
def intensity(flop: float, bytes: float) -> float:
    """Arithmetic intensity: FLOPs for each byte of memory traffic."""
    return flop / bytes


@formula(
    r"\frac{\v{flop}}{\v{peak}}",
    result=Symbol(r"t_\text{c}", "time of the arithmetic at peak", "seconds"),
    symbols={"flop": FLOP, "peak": Symbol("P", "dense peak", "flop_per_s")},
    sources=(_ROOFLINE,),
)
def compute_seconds(flop: float, peak: float) -> float:
    """Time of the arithmetic at peak."""
    return flop / peak


@formula(
    r"\frac{\v{bytes}}{\v{bandwidth}}",
    result=Symbol(r"t_\text{m}", "time of the memory traffic at full bandwidth", "seconds"),
    symbols={"bytes": _BYTES, "bandwidth": Symbol(r"\beta", "memory bandwidth", "bytes_per_s")},
    sources=(_ROOFLINE,),
)
def memory_seconds(bytes: float, bandwidth: float) -> float:
    """Time of the memory traffic at full bandwidth."""
    return bytes / bandwidth


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and bytes of an operation, as numbers or arrays.

    parts: the formulas of both, with their values; a sum has those of all its terms.
    """

    flop: Value
    bytes: Value
    parts: tuple[tuple[Formula[...], Mapping[str, Value]], ...] = ()

    def __add__(self, other: Work) -> Work:
        return Work(np.add(self.flop, other.flop), np.add(self.bytes, other.bytes), self.parts + other.parts)


def _use(rule: Formula[...], **values: Value) -> Value:
    return rule.over(**values) if any(isinstance(v, np.ndarray) for v in values.values()) else float(rule(**values))


def product(
    groups: Value, rows: Value, inner: Value, columns: Value, element: float, result: float | None = None
) -> Work:
    """Return ``groups`` matmuls (rows × inner) @ (inner × columns) of ``element`` bytes per entry.

    result: bytes per entry of the product where they differ from those of the factors.
    """
    size = {"m": rows, "n": columns, "k": inner, "groups": groups}
    written = element if result is None else result
    return _work((matmul_flop, size), (product_bytes, {**size, "element": element, "result": written}))


def band(groups: Value, rows: Value, inner: Value, span: Value, element: float) -> Work:
    """Return ``groups`` products of attention, scores or values, in which each of ``rows`` tokens meets ``span`` of
    them."""
    size = {"m": rows, "n": span, "k": inner, "groups": groups}
    return _work((matmul_flop, size), (band_bytes, {**size, "element": element}))


def elementwise(elements: Value, flop_per_element: float, bytes_per_element: float) -> Work:
    """Return an elementwise operation on ``elements`` elements."""
    return _work(
        (elementwise_flop, {"elements": elements, "per_element": flop_per_element}),
        (elementwise_bytes, {"elements": elements, "bytes_per_element": bytes_per_element}),
    )


def _work(*parts: tuple[Formula[...], Mapping[str, Value]]) -> Work:
    flop, moved = (_use(rule, **values) for rule, values in parts)
    return Work(flop, moved, parts)


@dataclass(frozen=True, slots=True)
class Placed:
    """An operation on the roofline of a device.

    attainable: FLOP/s that peak and bandwidth allow. seconds: the longer of arithmetic and traffic, as if the other
    hid behind it. share: FLOP/s attainable over the peak.
    """

    work: Work
    peak: float
    bandwidth: float
    intensity: Value
    seconds: Value
    attainable: Value
    compute_bound: bool | npt.NDArray[np.bool_]

    @property
    def bound(self) -> Bound:
        """The limit, compute or memory; for arrays, at the last entry."""
        return "compute" if bool(np.asarray(self.compute_bound).flat[-1]) else "memory"

    @property
    def share(self) -> Value:
        """Attainable rate divided by the peak."""
        return np.divide(self.attainable, self.peak)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """FLOPs, bytes, intensity and both times of plain numbers; raises ``TypeError`` for arrays."""
        flop, moved = float(self.work.flop), float(self.work.bytes)
        return (
            *(rule.explain(**{name: float(v) for name, v in values.items()}) for rule, values in self.work.parts),
            intensity.explain(flop=flop, bytes=moved),
            compute_seconds.explain(flop=flop, peak=self.peak),
            memory_seconds.explain(bytes=moved, bandwidth=self.bandwidth),
        )


def place(work: Work, peak: float, bandwidth: float) -> Placed:
    """Return ``work`` on the roofline of ``peak`` FLOP/s and ``bandwidth`` bytes per second."""
    arithmetic = _use(compute_seconds, flop=work.flop, peak=peak)
    traffic = _use(memory_seconds, bytes=work.bytes, bandwidth=bandwidth)
    seconds = np.maximum(arithmetic, traffic)
    compute = np.greater_equal(arithmetic, traffic)
    plain = not isinstance(work.flop, np.ndarray)
    return Placed(
        work=work,
        peak=peak,
        bandwidth=bandwidth,
        intensity=_use(intensity, flop=work.flop, bytes=work.bytes),
        seconds=float(seconds) if plain else seconds,
        attainable=np.divide(work.flop, seconds) if not plain else float(work.flop) / float(seconds),
        compute_bound=bool(compute) if plain else compute,
    )


_ML_ENGINEERING = ML_ENGINEERING.at("how theoretical peaks are calculated")


@formula(
    r"2 \cdot \v{clock} \cdot \v{fma_per_clock} \cdot \v{units}",
    result=Symbol("P", "dense peak rate", "flop_per_s"),
    symbols={
        "clock": Symbol("f", "boost clock in hertz", "number"),
        "fma_per_clock": Symbol("w", "multiply-adds per clock and unit", "count"),
        "units": Symbol("u", "matrix units on the chip", "count"),
    },
    sources=(_ML_ENGINEERING,),
)
def peak_from_clock(clock: float, fma_per_clock: float, units: float) -> float:
    """Dense peak rate from the clock.

    A multiply-add counts as two FLOPs. A sparse figure, where a datasheet prints one, skips multiplications
    by zero and is never a peak of dense training.
    """
    return 2 * clock * fma_per_clock * units


@formula(
    r"\frac{\v{peak}}{\v{bandwidth}}",
    result=Symbol("I", "ridge point", "flop_per_byte"),
    symbols={
        "peak": Symbol("P", "dense peak rate", "flop_per_s"),
        "bandwidth": Symbol(r"\beta", "memory bandwidth", "bytes_per_s"),
    },
    sources=(_ROOFLINE,),
)
def ridge_point(peak: float, bandwidth: float) -> float:
    """Ridge point.

    The FLOPs per byte of memory traffic above which compute, not memory, is the limit.
    """
    return peak / bandwidth


def explain_device(device: Accelerator, dtype: str) -> list[Explanation]:
    """Return the ridge point of ``device`` in ``dtype``, and the derivation of its peak from the clock if that is
    known."""
    peak = device.peak(dtype)
    explanations: list[Explanation] = []
    if (clock := device.clock) and clock.dtype == dtype:
        explanations.append(
            peak_from_clock.explain(clock=clock.hertz, fma_per_clock=clock.fma_per_clock, units=clock.units)
        )
    if not math.isnan(peak / device.bandwidth):
        explanations.append(ridge_point.explain(peak=peak, bandwidth=device.bandwidth))
    return explanations
