"""Surfaces of two weights to walk down: a narrow valley, a saddle, and Rosenbrock's bent valley."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.formula import Formula, Source, Symbol, formula
from core.sources import OWN

_HEIGHT = Symbol("f", "the loss", "number")
_WEIGHTS = {"x": Symbol("x", "first weight", "number"), "y": Symbol("y", "second weight", "number")}
_ROSENBROCK = Source(
    "Rosenbrock 1960, An Automatic Method for Finding the Greatest or Least Value of a Function",
    "The Computer Journal 3",
    "https://doi.org/10.1093/comjnl/3.3.175",
)


@formula(
    r"\frac{13 \cdot \v{x}^{2} - 24 \cdot \v{x} \cdot \v{y} + 13 \cdot \v{y}^{2}}{2}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN,),
)
def valley(x: float, y: float) -> float:
    """A valley 25 times as steep across as along.

    Its curvatures are 1 along x = y and 25 across: from a rate of 2/25 on SGD diverges, and below it walks slowly
    along. As the valley lies askew, no rate of its own for each weight makes it round.
    """
    return (13 * x**2 - 24 * x * y + 13 * y**2) / 2


@formula(
    r"\frac{\v{x}^{2} - \v{y}^{2}}{2} + \frac{\v{y}^{4}}{4}",
    result=_HEIGHT,
    symbols=_WEIGHTS,
    sources=(OWN,),
)
def saddle(x: float, y: float) -> float:
    """A saddle between two valleys.

    The gradient vanishes at (0, 0), which is a minimum along x and a maximum along y; the minima are at y = ±1.
    """
    return (x**2 - y**2) / 2 + y**4 / 4


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

    height: its formula. slope: its gradient at x, y. start: where a walk begins unless told otherwise.
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


SURFACES: Mapping[str, Surface] = MappingProxyType(
    {
        "valley": Surface(
            "A narrow valley",
            valley,
            lambda x, y: (13 * x - 12 * y, 13 * y - 12 * x),
            (-1.8, -0.6),
            ((0.0, 0.0),),
            (-2.2, 1.2),
            (-2.0, 1.0),
            _rates(0.07, 0.01, 0.2, 0.02, 0.1),
        ),
        "saddle": Surface(
            "A saddle",
            saddle,
            lambda x, y: (x, y**3 - y),
            (-1.8, 0.01),
            ((0.0, 1.0), (0.0, -1.0)),
            (-2.2, 2.2),
            (-1.6, 1.6),
            _rates(0.1, 0.02, 0.2, 0.02, 0.05),
        ),
        "Rosenbrock": Surface(
            "Rosenbrock’s valley",
            rosenbrock,
            lambda x, y: (2 * (x - 1) - 400 * x * (y - x * x), 200 * (y - x * x)),
            (-1.2, 1.0),
            ((1.0, 1.0),),
            (-1.8, 1.8),
            (-0.8, 2.2),
            _rates(0.0015, 0.0005, 0.5, 0.02, 0.1),
        ),
    }
)
"""The surfaces by the names that stand in links."""
