"""Surfaces of two weights to walk down: four on which state pays, among them a saddle, and two valleys.

A minimum lies away from (0, 0) wherever that is not the point of the surface, as weight decay pulls there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from core.formula import Formula, Source, Symbol, formula
from core.sources import OWN_CONSTRUCTION

_HEIGHT = Symbol("f", "the loss", "number")
_WEIGHTS = {"x": Symbol("x", "first weight", "number"), "y": Symbol("y", "second weight", "number")}
_ROSENBROCK = Source(
    "Rosenbrock 1960, An Automatic Method for Finding the Greatest or Least Value of a Function",
    "The Computer Journal 3",
    "https://doi.org/10.1093/comjnl/3.3.175",
)


NOISE, RARE = 5.0, 10
"""Standard deviation of the first weight's gradient where it is noisy; steps from one gradient of the second weight to
the next where it is rare."""

_SEED, _DRAWN = 34, 1024
"""Of many seeds one whose walks end about where those of all end on average."""


@formula(
    r"\frac{400 \cdot (\v{x} - 0.5)^{2} + (\v{y} - 1)^{2}}{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN_CONSTRUCTION,),
)
def two_scales(x: float, y: float) -> float:
    """Curvatures 400 and 1.

    One rate for both weights may be at most 2/400, and at that the flat one comes 0.5 % closer a step.
    """
    return (400 * (x - 0.5) ** 2 + (y - 1) ** 2) / 2


@formula(
    r"\frac{(\v{x} - 0.5)^{2} + (\v{y} - 1)^{2}}{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN_CONSTRUCTION,),
)
def bowl(x: float, y: float) -> float:
    """A round bowl, of which each step sees one gradient with noise.

    A normal number is added to the first weight’s gradient, with a standard deviation of 5, as a small batch would.
    """
    return ((x - 0.5) ** 2 + (y - 1) ** 2) / 2


@formula(
    r"\frac{20 \cdot (\v{x} - 0.5)^{2} + 0.05 \cdot (\v{y} - 1)^{2}}{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN_CONSTRUCTION,),
)
def rare_feature(x: float, y: float) -> float:
    """A weight in every example, and one that few use, as the embedding of a rare word.

    The second weight’s gradient comes in every tenth step only, ten times as large, and is zero in the others.
    """
    return (20 * (x - 0.5) ** 2 + 0.05 * (y - 1) ** 2) / 2


@formula(
    r"\frac{13 \cdot (\v{x} - 0.5)^{2} - 24 \cdot (\v{x} - 0.5) \cdot (\v{y} - 0.5) + 13 \cdot (\v{y} - 0.5)^{2}}{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN_CONSTRUCTION,),
)
def valley(x: float, y: float) -> float:
    """A valley 25 times as steep across as along.

    Its curvatures are 1 along x = y and 25 across: from a rate of 2/25 on SGD diverges, and below it walks slowly
    along. As the valley lies askew, no rate of its own for each weight makes it round.
    """
    return (13 * (x - 0.5) ** 2 - 24 * (x - 0.5) * (y - 0.5) + 13 * (y - 0.5) ** 2) / 2


@formula(
    r"15 \cdot (\v{x} + \v{y})^{2} - \frac{(\v{x} - \v{y})^{2}}{2} + \frac{(\v{x} - \v{y})^{4}}{16}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN_CONSTRUCTION,),
)
def saddle(x: float, y: float) -> float:
    """A saddle between two valleys, askew.

    The gradient vanishes at (0, 0): a minimum along x = y, with a curvature of 60, and a maximum along x = −y, with one
    of −2. The minima are at (1, −1) and (−1, 1).
    """
    return 15 * (x + y) ** 2 - (x - y) ** 2 / 2 + (x - y) ** 4 / 16


def _saddle_slope(x: float, y: float) -> tuple[float, float]:
    across, along = 30 * (x + y), (x - y) ** 3 / 4 - (x - y)
    return across + along, across - along


@formula(
    r"(1 - \v{x})^{2} + 100 \cdot (\v{y} - \v{x}^{2})^{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(_ROSENBROCK,),
)
def rosenbrock(x: float, y: float) -> float:
    """Rosenbrock’s valley: steep walls around a floor that bends and hardly falls."""
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


@dataclass(frozen=True, slots=True)
class Surface:
    """One surface.

    height: its formula. slope: its gradient at x, y. seen: the gradient that a step sees there, by x, y and the number
    of the step; None where it is the slope. start: where a walk begins unless told otherwise.
    minima: its lowest points. across, along: the range of x and of y that is looked at.
    rates: the learning rate that suits each optimizer there, found by trying.
    """

    title: str
    height: Formula[...]
    slope: Callable[[float, float], tuple[float, float]]
    start: tuple[float, float]
    minima: tuple[tuple[float, float], ...]
    across: tuple[float, float]
    along: tuple[float, float]
    rates: Mapping[str, float]
    seen: Callable[[float, float, int], tuple[float, float]] | None = None

    def gradient(self, x: float, y: float, step: int) -> tuple[float, float]:
        """The gradient that step number ``step`` sees."""
        return self.seen(x, y, step) if self.seen else self.slope(x, y)

    @property
    def lowest(self) -> float:
        """The height of its lowest points."""
        return self.height(*self.minima[0])


def _rates(sgd: float, momentum: float, adagrad: float, rmsprop: float, adam: float) -> Mapping[str, float]:
    rates = {
        "SGD": sgd,
        "SGD momentum": momentum,
        "AdaGrad": adagrad,
        "RMSProp": rmsprop,
        "Adam": adam,
        "AdamW": adam,
    }
    return MappingProxyType(rates)


def _drawn() -> tuple[float, ...]:
    return tuple((NOISE * np.random.default_rng(_SEED).standard_normal(_DRAWN)).tolist())


_NOISE = _drawn()


SURFACES: Mapping[str, Surface] = MappingProxyType(
    {
        "scales": Surface(
            "Steep in one weight, flat in the other",
            two_scales,
            lambda x, y: (400 * (x - 0.5), y - 1),
            (0.4, -1.2),
            ((0.5, 1.0),),
            (0.1, 0.9),
            (-1.6, 1.6),
            _rates(0.003, 0.005, 0.5, 0.05, 0.15),
        ),
        "noise": Surface(
            "A gradient that is mostly noise",
            bowl,
            lambda x, y: (x - 0.5, y - 1),
            (0.4, -1.2),
            ((0.5, 1.0),),
            (-0.6, 1.6),
            (-1.6, 1.6),
            _rates(0.02, 0.002, 0.2, 0.02, 0.03),
            lambda x, y, step: (x - 0.5 + _NOISE[step % _DRAWN], y - 1),
        ),
        "rare": Surface(
            "A weight whose gradient is rare",
            rare_feature,
            lambda x, y: (20 * (x - 0.5), 0.05 * (y - 1)),
            (0.4, -1.2),
            ((0.5, 1.0),),
            (-0.5, 1.5),
            (-1.6, 1.6),
            _rates(0.07, 0.1, 1.0, 0.1, 0.2),
            lambda x, y, step: (20 * (x - 0.5), 0.0 if step % RARE else 0.05 * RARE * (y - 1)),
        ),
        "valley": Surface(
            "A narrow valley",
            valley,
            lambda x, y: (13 * (x - 0.5) - 12 * (y - 0.5), 13 * (y - 0.5) - 12 * (x - 0.5)),
            (-1.3, -0.1),
            ((0.5, 0.5),),
            (-1.7, 1.7),
            (-1.5, 1.5),
            _rates(0.07, 0.005, 1.0, 0.07, 0.3),
        ),
        "saddle": Surface(
            "A saddle",
            saddle,
            _saddle_slope,
            (-0.2, -0.21),
            ((1.0, -1.0), (-1.0, 1.0)),
            (-1.6, 1.6),
            (-1.6, 1.6),
            _rates(0.03, 0.03, 0.5, 0.15, 0.5),
        ),
        "Rosenbrock": Surface(
            "Rosenbrock’s valley",
            rosenbrock,
            lambda x, y: (2 * (x - 1) - 400 * x * (y - x * x), 200 * (y - x * x)),
            (-1.2, 1.0),
            ((1.0, 1.0),),
            (-1.8, 1.8),
            (-0.8, 2.2),
            _rates(0.005, 0.002, 1.0, 0.1, 0.5),
        ),
    }
)
"""The surfaces by the names that stand in links."""
