"""The size of the outputs of x @ w against the width, for common initializations of w."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.experiments.found import Found
from core.formula import Source, Symbol, formula

WIDTHS = (16, 64, 256, 1024, 4096)
OUTPUTS = 256
_CUT = 3.0
"""Standard deviations beyond which the truncated normal draws again, as in the lecture."""

_XAVIER = Source(
    "Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural networks",
    "AISTATS, section 4.2",
    "https://proceedings.mlr.press/v9/glorot10a.html",
)
_KAIMING = Source("He et al. 2015, Delving Deep into Rectifiers", "section 2.2", "https://arxiv.org/abs/1502.01852")

Drawn: TypeAlias = npt.NDArray[np.float64]


@formula(
    r"\v{deviation} \cdot \sqrt{\v{width}}",
    result=Symbol("s", "size of the outputs: root of their mean square", "number"),
    symbols={
        "deviation": Symbol(r"\sigma", "standard deviation of a weight", "number"),
        "width": Symbol("n", "width: inputs that are summed", "count"),
    },
    sources=(_XAVIER, _KAIMING),
)
def output_scale(deviation: float, width: float) -> float:
    """Size of the outputs of x @ w for inputs of unit variance.

    Each output is the sum of n products, whose variances add up.
    """
    return deviation * math.sqrt(width)


def cut_deviation(cut: float = _CUT) -> float:
    """Return the standard deviation of a unit normal whose values beyond ``cut`` are drawn again."""
    density = math.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi)
    return math.sqrt(1 - 2 * cut * density / math.erf(cut / math.sqrt(2)))


DEVIATIONS: Mapping[str, Callable[[int], float]] = {
    "unit normal": lambda _: 1.0,
    "Xavier": lambda width: math.sqrt(2 / (width + OUTPUTS)),
    "Kaiming": lambda width: math.sqrt(2 / width),
    "truncated normal / √width": lambda width: cut_deviation() / math.sqrt(width),
}
"""Initializations → the standard deviation of a weight at a width, with `OUTPUTS` outputs."""


def predicted(way: str, width: int) -> float:
    """Return the expected size of the outputs."""
    return output_scale(DEVIATIONS[way](width), width)


def _weights(rng: Any, way: str, width: int) -> Drawn:
    weights = rng.standard_normal((width, OUTPUTS))
    if way.startswith("truncated"):
        while (far := np.abs(weights) > _CUT).any():
            weights[far] = rng.standard_normal(int(far.sum()))
        return weights / math.sqrt(width)
    return weights * DEVIATIONS[way](width)


def work() -> Found:
    """Draw weights and multiply at each width, with NumPy and seed 0."""
    rng = np.random.default_rng(0)
    series: dict[str, list[float]] = {"width": [float(width) for width in WIDTHS]}
    for way in DEVIATIONS:
        sizes: list[float] = []
        for width in WIDTHS:
            x = rng.standard_normal((64, width))
            sizes.append(float(np.sqrt(np.mean((x @ _weights(rng, way, width)) ** 2))))
        series[way] = sizes
    return Found(series=series)
