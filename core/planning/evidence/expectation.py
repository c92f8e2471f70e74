"""What a whole run is expected to take, from the published runs: one smooth model, everything billed included.

The utilisation expected is a share of what the accelerator's best matmul reaches, at the level that near published
runs agree on; how far those runs lie from the level that other labs' runs put them at gives P10 and P90. More
parameters or tokens never take fewer hours, and nothing jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Source, Symbol, formula
from core.models.flops import train_flop_6nd
from core.planning.budget.equations import days_of
from core.planning.budget.errors import BudgetError
from core.planning.budget.interval import Interval
from core.planning.budget.rule import accelerator_hours, training_seconds
from core.planning.evidence.neighbours import (
    HUBER,
    RATIO_POWER,
    STRETCH,
    USUAL_RATIO,
    Array,
    Fit,
    Kind,
    best_8bit,
    best_16bit,
    closeness,
    gain_of,
    kind_of,
    published_fit,
)
from core.planning.evidence.rows import Width, base_peak
from core.sources import OWN

Value: TypeAlias = "float | npt.NDArray[np.float64]"

ALONE = 0.4
"""What is added, in quadrature, to the logarithm of an end of the range over its middle where no published run on the
same family of chip is near; with n near, as of a mean, a share 1/(1 + n) of its square. So large that, with a whole
family left out, at least four fifths of its runs still lie inside."""

TENTHS = (0.1, 0.9)
"""The range holds all but a tenth on either side."""

_CHUNK = 4096
"""Plans worked out at once: their distances to all rows take a few megabytes."""

_LEHMANN = Source("Lehmann and Casella 1998, Theory of Point Estimation", "section 1.7")


@dataclass(frozen=True, slots=True)
class Setting:
    """A whole run that something is expected of. params: active ones. Numbers or arrays that broadcast.

    width: the narrowest format of the matrix products.
    """

    params: Value
    tokens: Value
    accelerator: str
    accelerators: Value
    mixture: bool = False
    width: Width = "16-bit"

    @property
    def kind(self) -> Kind:
        """All of it that is not size."""
        return kind_of(self.accelerator, mixture=self.mixture, width=self.width)


@dataclass(frozen=True, slots=True)
class Expectation:
    """P10, P50 and P90 of utilisation: 6 N D over all billed hours at the dense 16-bit peak.

    cap: the accelerator's best matmul in the same measure, which no run passes. capped: whether P90 is at it.
    """

    low: Value
    mid: Value
    high: Value
    cap: float
    capped: bool | npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """What one run is expected to take; each P10, P50, P90. cap, capped: see `Expectation`."""

    hours: Interval
    days: Interval
    utilisation: Interval
    cap: float
    capped: bool


_LEVEL = Symbol("z", "level that near published runs agree on, a logarithm", "number")
_UTILISATION = Symbol("u", "utilisation over all billed hours", "ratio")


@formula(
    r"\v{matmul} \cdot \v{gain} \cdot (\frac{\v{ratio}}"
    rf"{{{USUAL_RATIO:g}}})^{{-{RATIO_POWER}}} \cdot \exp(\v{{level}})",
    result=_UTILISATION,
    symbols={
        "matmul": Symbol("s", "best 16-bit matmul over the dense 16-bit peak", "ratio"),
        "gain": Symbol("g", "gain of narrower products, 1 in 16 bits", "number"),
        "level": _LEVEL,
        "ratio": Symbol("r", "tokens per parameter, within the published range", "number"),
    },
    sources=(HUBER, OWN),
)
def utilisation_at(matmul: float, gain: float, level: float, ratio: float) -> float:
    """Utilisation to expect of a whole run, the middle of the range.

    The level is the Huber location of the published runs' own levels, by their weights: it is pulled by each in
    proportion to the distance, but no harder than from a quarter away.
    """
    with np.errstate(over="ignore"):
        return matmul * gain * (ratio / USUAL_RATIO) ** -RATIO_POWER * np.exp(level)


@formula(
    r"\sqrt{\v{quantile}^{2} + \frac{" + f"{ALONE}" + r"^{2}}{1 + \v{near}}}",
    result=Symbol("q'", "logarithm of an end of the range over its middle, as a size", "number"),
    symbols={
        "quantile": Symbol("q", "a tenth of the published residuals lie beyond it", "number"),
        "near": Symbol("n", "published runs near on the same family of chip, 1 for one at no distance", "number"),
    },
    sources=(_LEHMANN, OWN),
)
def widened(quantile: float, near: float) -> float:
    """Half the range, wider where few published runs on the same chips are near.

    Residuals are of each run against the level that other labs’ runs put it at, weighted with distances half as long.
    """
    return np.sqrt(quantile**2 + ALONE**2 / (1 + near))


@formula(
    r"\v{middle} \cdot \exp(\v{offset})",
    result=_UTILISATION,
    symbols={
        "middle": Symbol(r"u_{50}", "utilisation in the middle of the range", "ratio"),
        "offset": Symbol("q'", "logarithm of the end over the middle", "number"),
    },
    sources=(OWN,),
)
def end_of_range(middle: float, offset: float) -> float:
    """An end of the range of utilisation, at most the accelerator’s best matmul."""
    with np.errstate(over="ignore"):
        return middle * np.exp(offset)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a fit says of plans: their level, quantiles of the residuals (low ≤ 0 ≤ high), how many rows are near, and
    tokens per parameter, level outside the published range; and squared distances to the rows."""

    level: Array
    low: Array
    high: Array
    near: Array
    ratio: Array
    squared: Array


def _read(fit: Fit, params: Array, ratio: Array, kind: Kind) -> _Read:
    apart, softened = fit.apart(kind), fit.softened(params, ratio)
    squared = fit.squared(*softened, apart, fit.soft)
    (level,) = fit.level.at(fit.weights(squared), 0.5)
    low, high = fit.residual.at(fit.weights(squared, STRETCH), *TENTHS)
    return _Read(
        level=level,
        low=np.minimum(low, 0.0),
        high=np.maximum(high, 0.0),
        near=fit.near(params, ratio, kind, apart),
        ratio=np.exp(softened[1]),
        squared=squared,
    )


@lru_cache(maxsize=512)
def cap_of(accelerator: str, *, narrow: bool) -> float:
    """The best matmul over the dense 16-bit peak: of 8-bit products where they are used and faster."""
    matmul = best_16bit(accelerator)
    return max(matmul, best_8bit(accelerator)) if narrow else matmul


def _ends(fit: Fit, setting: Setting, params: Array, ratio: Array) -> tuple[Array, Array, Array]:
    kind, name = setting.kind, setting.accelerator
    read = _read(fit, params, ratio, kind)
    cap = cap_of(name, narrow=kind.narrow)
    gain = gain_of(name, narrow=kind.narrow)
    middle = utilisation_at.over(matmul=best_16bit(name), gain=gain, level=read.level, ratio=read.ratio)
    low = end_of_range.over(middle=middle, offset=-widened.over(quantile=read.low, near=read.near))
    high = end_of_range.over(middle=middle, offset=widened.over(quantile=read.high, near=read.near))
    return np.minimum(low, cap), np.minimum(middle, cap), np.minimum(high, cap)


def _checked(setting: Setting) -> None:
    for name, value, example in (
        ("parameters", setting.params, "8e9"),
        ("tokens", setting.tokens, "15e12"),
        ("accelerators", setting.accelerators, "1024"),
    ):
        if not np.all((np.asarray(value) >= 1) & np.isfinite(value)):
            raise BudgetError(name, f"A run has at least 1 of its {name}, and finitely many. For example: {example}.")


def expected_utilisation(setting: Setting, fit: Fit | None = None) -> Expectation:
    """P10, P50 and P90 of the utilisation of a whole run, numbers or arrays as in ``setting``.

    fit: the published runs to go by, all of them by default. Raises `BudgetError` for less than one parameter, token or
    accelerator. The number of accelerators does not change it: half of the published runs do not name theirs, and among
    the others whether large clusters do worse or better than predicted hangs on one author's runs on eight.
    """
    _checked(setting)
    fit = fit or published_fit()
    params, tokens = np.broadcast_arrays(
        np.asarray(setting.params, dtype=float), np.asarray(setting.tokens, dtype=float)
    )
    ln_params = np.log(params.ravel())
    ln_ratio = np.log(tokens.ravel()) - ln_params
    parts = [
        _ends(fit, setting, ln_params[i : i + _CHUNK], ln_ratio[i : i + _CHUNK])
        for i in range(0, len(ln_params), _CHUNK)
    ]
    low, mid, high = (np.concatenate(part).reshape(params.shape) for part in zip(*parts, strict=True))
    cap = cap_of(setting.accelerator, narrow=setting.kind.narrow)
    if params.ndim == 0:
        return Expectation(float(low), float(mid), float(high), cap, bool(high >= cap))
    return Expectation(low, mid, high, cap, high >= cap)


def hours_at(setting: Setting, utilisation: Value) -> Value:
    """Accelerator-hours of the run by 6 N D at ``utilisation`` of the dense 16-bit peak."""
    flop = np.asarray(train_flop_6nd.over(params=setting.params, tokens=setting.tokens))
    seconds = training_seconds.over(flop=flop, accelerators=1.0, peak=base_peak(setting.accelerator), mfu=utilisation)
    hours = accelerator_hours.over(accelerators=1.0, seconds=seconds)
    return float(hours) if hours.ndim == 0 else hours


def expected_run(
    *,
    params: float,
    tokens: float,
    accelerator: str,
    accelerators: float,
    mixture: bool = False,
    width: Width = "16-bit",
) -> ExpectedRun:
    """Accelerator-hours and days of a whole run, as published runs lead one to expect: P10, P50 and P90 of each.

    params: active ones. Raises `BudgetError` for less than one of anything, ``KeyError`` for an unknown accelerator.
    """
    setting = Setting(params, tokens, accelerator, accelerators, mixture, width)
    found = expected_utilisation(setting)
    used = Interval(float(found.low), float(found.mid), float(found.high))
    hours = used.through(lambda share: float(hours_at(setting, share)))
    return ExpectedRun(
        hours=hours,
        days=hours.through(lambda taken: days_of(taken, accelerators)),
        utilisation=used,
        cap=found.cap,
        capped=bool(found.capped),
    )


def explain(setting: Setting) -> list[Explanation]:
    """The expectation of one plan with its formulas: the nearest run's weight, the middle, the spread and both ends."""
    fit, kind, name = published_fit(), setting.kind, setting.accelerator
    params = np.array([math.log(float(setting.params))])
    ratio = np.array([math.log(float(setting.tokens))]) - params
    read = _read(fit, params, ratio, kind)
    shown = utilisation_at.explain(
        matmul=best_16bit(name),
        gain=gain_of(name, narrow=kind.narrow),
        level=float(read.level[0]),
        ratio=float(read.ratio[0]),
    )
    low, high = (widened.explain(quantile=float(end[0]), near=float(read.near[0])) for end in (read.low, read.high))
    return [
        closeness.explain(distance=math.sqrt(float(read.squared.min()))),
        shown,
        high,
        _named(end_of_range.explain(middle=shown.value, offset=high.value), "P90"),
        _named(end_of_range.explain(middle=shown.value, offset=-low.value), "P10"),
    ]


def _named(step: Explanation, what: str) -> Explanation:
    return replace(step, title=f"{step.title}: {what}")
