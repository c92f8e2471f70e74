"""What a whole run is expected to take, from the published runs: one smooth model, everything billed included.

The utilisation expected is a share of what the accelerator's best matmul reaches, at the level that near published
runs agree on; how far those runs lie from the level that other labs' runs put them at gives P10 and P90. More
parameters or tokens never take fewer hours, and nothing jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.budget.equations import days_of
from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.budget.run import accelerator_hours, training_seconds
from core.formula import Explanation, Source, Symbol, explain_run, formula, used_for
from core.models.flops import train_flop_6nd
from core.runs.nearest import (
    HUBER,
    RATIO_POWER,
    STRETCH,
    USUAL_RATIO,
    Array,
    Fit,
    Kind,
    best_16bit,
    best_share,
    gain_of,
    kind_of,
    published_fit,
    similarity,
    squared_distances,
)
from core.runs.utilisation import Width, base_peak
from core.sources import OWN

Value: TypeAlias = "float | npt.NDArray[np.float64]"

NO_RUN_NEAR = 0.4
"""What is added, in quadrature, to the logarithm of an end of the range over its middle where no published run on the
same family of chip is near; with n near, as of a mean, a share 1/(1 + n) of its square. So large that, with a whole
family left out, at least four fifths of its runs still lie inside."""

TENTHS = (0.1, 0.9)
"""The range holds all but a tenth on either side."""

_CHUNK = 4096
"""Plans worked out at once: their distances to all rows take a few megabytes."""

_LEHMANN = Source("Lehmann and Casella 1998, Theory of Point Estimation", "section 1.7")


@dataclass(frozen=True, slots=True)
class RunFeatures:
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

    cap: the most that any published run reached, see `most_reached`; no end lies above. capped: whether P90 is at it.
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


_MATMUL = Symbol("s", "best 16-bit matmul over the dense 16-bit peak", "ratio")
_GAIN = Symbol("g", "gain of narrower products, 1 in 16 bits", "number")
_LEVEL = Symbol("z", "level that near published runs agree on, a logarithm", "number")
_UTILISATION = Symbol("u", "utilisation over all billed hours", "ratio")


@formula(
    r"\v{matmul} \cdot \v{gain} \cdot (\frac{\v{ratio}}"
    rf"{{{USUAL_RATIO:g}}})^{{-{RATIO_POWER}}} \cdot \exp(\v{{level}})",
    result=_UTILISATION,
    symbols={
        "matmul": _MATMUL,
        "gain": _GAIN,
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
    r"\v{matmul} \cdot \v{gain} \cdot \v{most}",
    result=_UTILISATION,
    symbols={
        "matmul": _MATMUL,
        "gain": _GAIN,
        "most": Symbol("m", "largest share of that which any published run reached", "ratio"),
    },
    sources=(OWN,),
)
def most_reached(matmul: float, gain: float, most: float) -> float:
    """Utilisation that no end of the range passes.

    The accelerator’s best matmul would be more, but of no published run did the hours hold so much of it.
    """
    return matmul * gain * most


@formula(
    r"\sqrt{\v{quantile}^{2} + \frac{" + f"{NO_RUN_NEAR}" + r"^{2}}{1 + \v{near}}}",
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
    return np.sqrt(quantile**2 + NO_RUN_NEAR**2 / (1 + near))


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
    """An end of the range of utilisation, where no run was ever better than that."""
    with np.errstate(over="ignore"):
        return middle * np.exp(offset)


@dataclass(frozen=True, slots=True)
class _NearbyLevel:
    """What a fit says of plans: their level, quantiles of the residuals (low ≤ 0 ≤ high, in two rows), how many rows
    are near, and tokens per parameter, level outside the published range; and squared distances to the rows."""

    level: Array
    quantiles: Array
    near: Array
    ratio: Array
    squared: Array


_CIRCLES = np.array([1.0, STRETCH])[:, None, None]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedMfu:
    """A fit as one kind of plan sees it: all of an expectation that does not depend on size, worked out once.

    matmul, gain: see `utilisation_at`. apart, relatives: of each row, see `Fit`.
    """

    fit: Fit
    matmul: float
    gain: float
    apart: Array
    relatives: Array

    @property
    def cap(self) -> float:
        """See `Expectation`."""
        return most_reached(matmul=self.matmul, gain=self.gain, most=best_share())

    def read(self, ln_params: Array, ln_tokens: Array) -> _NearbyLevel:
        """What the fit says of plans of these sizes, one-dimensional."""
        fit = self.fit
        sizes = np.stack([ln_params, ln_tokens - ln_params])
        soft = fit.softened(sizes)
        # How near rows are is taken from sizes as they are: of what lies far outside the published range little is
        # known. What they say there is what they say at its end.
        squared, plainly = squared_distances(np.stack([soft, sizes]), np.stack([fit.soft, fit.sizes]), self.apart)
        at, around = fit.weights(squared, _CIRCLES)
        low, high = fit.residual.at(around, *TENTHS)
        return _NearbyLevel(
            level=fit.level.at(at, 0.5)[0],
            quantiles=np.stack([np.minimum(low, 0.0), np.maximum(high, 0.0)]),
            near=np.exp(-plainly / 2) @ self.relatives,
            ratio=np.exp(soft[1]),
            squared=squared,
        )

    def ends(self, ln_params: Array, ln_tokens: Array) -> Array:
        """P10, P50 and P90 of utilisation in three rows, for plans of these sizes, one-dimensional."""
        read = self.read(ln_params, ln_tokens)
        middle = utilisation_at.over(matmul=self.matmul, gain=self.gain, level=read.level, ratio=read.ratio)
        ends: list[Array] = []
        for name, side, quantile in (("P10", -1, read.quantiles[0]), ("P90", 1, read.quantiles[1])):
            with used_for(name):
                offset = side * widened.over(quantile=quantile, near=read.near)
                end = end_of_range.over(middle=middle, offset=offset)
                if np.any(end > self.cap):
                    end = np.minimum(end, most_reached.over(matmul=self.matmul, gain=self.gain, most=best_share()))
                ends.append(end)
        return np.minimum(np.stack([ends[0], middle, ends[1]]), self.cap)


def _published_mfu(fit: Fit, accelerator: str, mixture: bool, width: Width) -> PublishedMfu:
    kind = kind_of(accelerator, mixture=mixture, width=width)
    return PublishedMfu(
        fit=fit,
        matmul=best_16bit(accelerator),
        gain=gain_of(accelerator, narrow=kind.narrow),
        apart=fit.apart(kind),
        relatives=fit.relatives(kind),
    )


@lru_cache(maxsize=512)
def published_mfu(accelerator: str, *, mixture: bool, width: Width) -> PublishedMfu:
    """What all published runs say to plans of one kind."""
    return _published_mfu(published_fit(), accelerator, mixture, width)


def _checked(setting: RunFeatures) -> None:
    for name, value, example in (
        ("parameters", setting.params, "8e9"),
        ("tokens", setting.tokens, "15e12"),
        ("accelerators", setting.accelerators, "1,024"),
    ):
        if not np.all((np.asarray(value) >= 1) & np.isfinite(value)):
            raise BudgetError(name, f"A run has at least 1 of its {name}, and finitely many. For example: {example}.")


def expected_utilisation(setting: RunFeatures, fit: Fit | None = None) -> Expectation:
    """P10, P50 and P90 of the utilisation of a whole run, numbers or arrays as in ``setting``.

    fit: the published runs to go by, all of them by default. Raises `BudgetError` for less than one parameter, token or
    accelerator. The number of accelerators does not change it: half of the published runs do not name theirs, and among
    the others whether large clusters do worse or better than predicted hangs on one author's runs on eight.
    """
    _checked(setting)
    name, mixture, width = setting.accelerator, setting.mixture, setting.width
    gauge = _published_mfu(fit, name, mixture, width) if fit else published_mfu(name, mixture=mixture, width=width)
    params, tokens = np.broadcast_arrays(
        np.asarray(setting.params, dtype=float), np.asarray(setting.tokens, dtype=float)
    )
    ln_params, ln_tokens = np.log(params.ravel()), np.log(tokens.ravel())
    parts = [gauge.ends(ln_params[i : i + _CHUNK], ln_tokens[i : i + _CHUNK]) for i in range(0, len(ln_params), _CHUNK)]
    low, mid, high = np.concatenate(parts, axis=1).reshape(3, *params.shape)
    cap = gauge.cap
    if params.ndim == 0:
        return Expectation(float(low), float(mid), float(high), cap, bool(high >= cap))
    return Expectation(low, mid, high, cap, high >= cap)


def hours_at(setting: RunFeatures, utilisation: Value) -> Value:
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
    setting = RunFeatures(params, tokens, accelerator, accelerators, mixture, width)
    expectation = expected_utilisation(setting)
    used = Interval(float(expectation.low), float(expectation.mid), float(expectation.high))
    hours = used.through(lambda share: float(hours_at(setting, share)))
    return ExpectedRun(
        hours=hours,
        days=hours.through(lambda taken: days_of(taken, accelerators)),
        utilisation=used,
        cap=expectation.cap,
        capped=bool(expectation.capped),
    )


def explain_expectation(setting: RunFeatures) -> list[Explanation]:
    """The expectation of one plan with its formulas: the nearest run's weight, the middle, the spread and both ends."""
    gauge = published_mfu(setting.accelerator, mixture=setting.mixture, width=setting.width)
    sizes = np.log([float(setting.params)]), np.log([float(setting.tokens)])
    nearest = similarity.explain(distance=math.sqrt(float(gauge.read(*sizes).squared.min())))
    return [nearest, *explain_run(lambda: gauge.ends(*sizes))]
