"""One outlier in a matrix that goes to fp4, and what training recipes for fp4 do about it.

Four ways to share a scale (1 × 16 values, 1 × 32, 16 × 16, a row), each plain and after a random Hadamard rotation; and
two roundings, to nearest and stochastic, over many steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.blocks import BLOCK_FORMATS, BlockFormat, noise_of, quantize_block
from core.floats.rounding import Rounding
from core.formula import Explanation, Source, Symbol, formula
from core.sources import OCP_MX

Values: TypeAlias = npt.NDArray[np.float64]

ROWS, COLUMNS = 16, 64
"""The matrix: four tiles of 16 × 16."""

WIDTHS = (16, 32, 64)
"""Values that one rotation mixes, from a block of NVFP4 up to the whole row."""

AT = (5, 20)
"""Row and column of the outlier."""

_SEED = 4

_NVFP4_TRAINING = "NVIDIA 2025, Pretraining Large Language Models with NVFP4"
_REPORT = "https://arxiv.org/abs/2509.25149"
_QUAROT = Source("Ashkboos et al. 2024, QuaRot", "section 3", "https://arxiv.org/abs/2404.00456")
_ROTATED = Source(_NVFP4_TRAINING, "Random Hadamard transforms", _REPORT)
_STOCHASTIC = Source(_NVFP4_TRAINING, "Stochastic rounding", _REPORT)
_CROCI = Source(
    "Croci et al. 2022, Stochastic rounding: implementation, error analysis and applications",
    "section 2",
    "https://doi.org/10.1098/rsos.211631",
)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How many values share a scale.

    name: short, for links. title: in prose. rows, columns: those of a block. who: where it is done.
    """

    name: str
    title: str
    rows: int
    columns: int
    block_format: BlockFormat
    who: str
    source: Source


def _sharing(name: str, title: str, rows: int, columns: int, like: str, who: str, source: Source) -> Sharing:
    return Sharing(name, title, rows, columns, replace(BLOCK_FORMATS[like], size=rows * columns), who, source)


SHARINGS: Mapping[str, Sharing] = {
    one.name: one
    for one in (
        _sharing(
            "1x16",
            "1 × 16, NVFP4",
            1,
            16,
            "nvfp4",
            "NVFP4’s own blocks",
            Source(_NVFP4_TRAINING, "NVFP4 format", _REPORT),
        ),
        _sharing("1x32", "1 × 32, MXFP4", 1, 32, "mxfp4_e2m1", "MX blocks under powers of two", OCP_MX),
        _sharing(
            "16x16",
            "16 × 16, NVFP4",
            16,
            16,
            "nvfp4",
            "weights in NVIDIA’s recipe",
            Source(_NVFP4_TRAINING, "2D scaling", _REPORT),
        ),
        _sharing("row", "one scale a row", 1, 64, "nvfp4", "activations in QuaRot", _QUAROT),
    )
}
"""Every way to share a scale, by its name."""


@formula(
    r"\frac{\v{outlier}}{\sqrt{\v{width}}}",
    result=Symbol("x'", "what an outlier adds to each value that it is mixed with", "number"),
    symbols={
        "outlier": Symbol("x", "the outlier", "number"),
        "width": Symbol("n", "values that a rotation mixes", "count"),
    },
    sources=(_QUAROT, _ROTATED),
)
def rotated_outlier(outlier: float, width: float) -> float:
    """An outlier after a Hadamard rotation.

    Every element of the matrix is ±1/√n, so each of n values gets as large a part; the mean square stays as it was.
    """
    return outlier / width**0.5


@formula(
    r"(\v{value} - \v{below}) \cdot (\v{above} - \v{value})",
    result=Symbol("V", "variance of stochastic rounding", "number"),
    symbols={
        "value": Symbol("x", "the value", "number"),
        "below": Symbol("a", "its neighbour below", "number"),
        "above": Symbol("b", "its neighbour above", "number"),
    },
    sources=(_CROCI, _STOCHASTIC),
)
def stochastic_variance(value: float, below: float, above: float) -> float:
    """Variance of a value that is rounded stochastically.

    Its mean is the value itself, so the mean of n steps has this variance over n; to nearest all n err alike.
    """
    return (value - below) * (above - value)


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """A matrix that went through fp4, rounded to nearest, and back.

    errors: rows × columns. own: the error of the outlier itself. rms: root mean square of all errors, and neighbours
    that of the values in the outlier's block. zeros: values that were not zero and are now. sqnr_db: of the matrix.
    """

    sharing: Sharing
    rotated: bool
    errors: Values
    own: float
    neighbours: float
    rms: float
    zeros: int
    sqnr_db: float


@lru_cache(maxsize=64)
def matrix(outlier: float) -> Values:
    """Normal values of standard deviation 1, and one outlier."""
    values = np.random.default_rng(_SEED).standard_normal((ROWS, COLUMNS))
    values[AT] = outlier
    values.flags.writeable = False
    return values


@lru_cache(maxsize=8)
def rotation(width: int) -> Values:
    """A random Hadamard matrix: Sylvester's over √width, with a random sign for each column. Its inverse is its
    transpose. ``width`` is a power of two."""
    hadamard = np.ones((1, 1))
    while len(hadamard) < width:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    signs = np.random.default_rng(_SEED + 1).choice((-1.0, 1.0), width)
    turned = hadamard * signs / math.sqrt(width)
    turned.flags.writeable = False
    return turned


def rotate(values: Values, width: int, *, back: bool = False) -> Values:
    """Rows of ``values`` rotated, ``width`` values at a time; or rotated back."""
    turned = rotation(width)
    groups = values.reshape(*values.shape[:-1], -1, width)
    return (groups @ (turned if back else turned.T)).reshape(values.shape)


def through_fp4(
    values: Values, sharing: Sharing, width: int = 0, rounding: Rounding = "nearest_even", seed: int | None = None
) -> Values:
    """What comes back of ``values``, of any number of matrices on top of each other (… × rows × columns).

    width: values that a rotation before, and its inverse after, mix; 0 for no rotation.
    """
    if width:
        return rotate(through_fp4(rotate(values, width), sharing, 0, rounding, seed), width, back=True)
    split = values.reshape(-1, ROWS // sharing.rows, sharing.rows, COLUMNS // sharing.columns, sharing.columns)
    blocks = split.swapaxes(2, 3)
    done = quantize_block(blocks.reshape(-1), sharing.block_format, rounding=rounding, seed=seed).values
    return done.reshape(blocks.shape).swapaxes(2, 3).reshape(values.shape)


@lru_cache(maxsize=128)
def treat(outlier: float, sharing: str, width: int) -> Treated:
    """The matrix under one way to share a scale, rotated ``width`` values at a time or, with 0, as it is."""
    values, how = matrix(outlier), SHARINGS[sharing]
    back = through_fp4(values, how, width)
    errors = back - values
    top, left = AT[0] - AT[0] % how.rows, AT[1] - AT[1] % how.columns
    block = np.zeros(errors.shape, dtype=np.bool_)
    block[top : top + how.rows, left : left + how.columns] = True
    block[AT] = False
    # A value that came back as zero is exactly that only where nothing was rotated.
    zeros = int(((back == 0) & (values != 0)).sum())
    _, ratio = noise_of(values, back)
    return Treated(how, width > 0, errors, float(errors[AT]), _rms(errors[block]), _rms(errors), zeros, ratio)


def _rms(errors: Values) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@lru_cache(maxsize=64)
def errors_of_means(outlier: float, sharing: str, width: int, steps: int) -> Values:
    """Root mean square error, over the matrix, of the mean of the first 1, 2, … ``steps`` stochastic roundings."""
    values = matrix(outlier)
    stacked = np.repeat(values[None], steps, axis=0)
    drawn = through_fp4(stacked, SHARINGS[sharing], width, "stochastic", _SEED)
    means = np.cumsum(drawn - values, axis=0) / np.arange(1, steps + 1)[:, None, None]
    return np.sqrt(np.mean(means**2, axis=(1, 2)))


def explain(outlier: float, width: int) -> tuple[Explanation, ...]:
    """What the rotation makes of the outlier, and how far stochastic rounding of one value strays."""
    return (
        rotated_outlier.explain(outlier=outlier, width=float(width)),
        stochastic_variance.explain(value=2.7, below=2.0, above=3.0),
    )
