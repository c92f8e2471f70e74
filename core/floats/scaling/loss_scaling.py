"""Loss scaling: gradients too small for a format, multiplied until they fit, by a factor that follows the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.floats.formats import FloatFormat
from core.floats.range_and_precision import log2_exact
from core.floats.scaling.gradients import Course, DrawnGradients, Floats, draw, share
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached

_EQUAL = 1e-9
_REACH = 7
"""Standard deviations that the histogram covers on either side."""

_MIXED = Source("Micikevicius et al. 2018, Mixed Precision Training", "section 3.2", "https://arxiv.org/abs/1710.03740")
_SCALER = Source("PyTorch, torch.amp.GradScaler", url="https://docs.pytorch.org/docs/stable/amp.html")
_SCALE = Symbol("S", "loss scale", "number")


@formula(
    r"\frac{\v{smallest}}{2 \cdot \v{scale}}",
    result=Symbol(r"g_\mathrm{flush}", "largest gradient that becomes zero", "number"),
    symbols={"smallest": Symbol(r"x_\mathrm{min}", "smallest positive value of the format", "number"), "scale": _SCALE},
    sources=(_MIXED,),
)
def flush_below(smallest: float, scale: float) -> float:
    """Largest gradient that becomes zero.

    Half the smallest positive value and everything below rounds to zero. The loss scale multiplies every gradient.
    """
    return smallest / (2 * scale)


@formula(
    r"\frac{\v{largest}}{\v{scale}}",
    result=Symbol(r"g_\mathrm{max}", "largest gradient that does not overflow", "number"),
    symbols={"largest": Symbol(r"x_\mathrm{max}", "largest finite value of the format", "number"), "scale": _SCALE},
    sources=(_MIXED,),
)
def fits_below(largest: float, scale: float) -> float:
    """Largest gradient that does not overflow."""
    return largest / scale


@formula(
    r"\v{scale} \cdot \v{factor}",
    result=Symbol("S'", "loss scale of the next step", "number"),
    symbols={"scale": _SCALE, "factor": Symbol("f", "growth or backoff factor", "number")},
    sources=(_SCALER,),
)
def next_scale(scale: float, factor: float) -> float:
    """The next loss scale.

    The scale grows after one growth interval without infinity or NaN. It shrinks after a step that overflows, and that
    step changes no weight. With hysteresis, the first overflows since the last growth only skip their steps.
    """
    return scale * factor


@dataclass(frozen=True, slots=True)
class Scaled:
    """Gradients under a loss scale 2^power in a format.

    edges: log2 of the bins' edges, one bin a binade. shares: share of all gradients in each bin, after scaling.
    zero, subnormal, overflow: shares of all gradients that flush to zero, land among the subnormals, and overflow.
    """

    fmt: FloatFormat
    power: float
    edges: Floats
    shares: Floats
    zero: float
    subnormal: float
    overflow: float

    @property
    def kept(self) -> float:
        """Share of the gradients that stay normal numbers, with full precision."""
        return 1 - self.zero - self.subnormal - self.overflow


@cached("results_kept")
def scale_loss(
    median: float,
    spread: float,
    power: float,
    fmt: FloatFormat,
    largest: float = math.inf,
    count: float = math.inf,
) -> Scaled:
    """Return what becomes of gradients when the loss is multiplied by 2^power, rounded to nearest.

    Their magnitudes are log-normal: log2 has the mean ``median`` and the standard deviation ``spread``, in binades;
    ``largest`` is log2 of the largest of ``count``, where that is known. Every share is exact.
    Formats that clamp overflow all the same beyond the largest value.
    """
    mean = median + power
    flush, normal, most = borders(fmt)
    edges = np.arange(math.floor(mean - _REACH * spread), math.ceil(mean + _REACH * spread) + 1, dtype=np.float64)
    lows = np.concatenate([[-math.inf, flush, most], edges[:-1]])
    highs = np.concatenate([[flush, normal, math.inf], edges[1:]])
    zero, subnormal, overflow, *bins = share(lows, highs, mean, spread, largest + power, count).tolist()
    return Scaled(fmt, power, edges, np.array(bins), zero, subnormal, overflow)


def borders(fmt: FloatFormat) -> tuple[float, float, float]:
    """Return the log2 of where magnitudes stop flushing to zero, where normal numbers begin, and where overflow
    does."""
    least = fmt.min_subnormal
    flush = log2_exact(least / 2) if fmt.zero else -math.inf
    normal = log2_exact(fmt.min_normal - least / 2) if fmt.has_subnormals else flush
    return flush, normal, log2_exact(fmt.overflow_threshold)


@dataclass(frozen=True, slots=True)
class Scaler:
    """The settings of a dynamic loss scale, by default those of torch.

    initial: scale at the first step. growth, backoff: its factors. interval: good steps in a row before it grows.
    least: what it does not fall below. hysteresis: overflows before it falls; counted again only once it has grown.
    """

    initial: float = 65536.0
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000
    least: float = 0.0
    hysteresis: int = 1


@dataclass(frozen=True, slots=True)
class Followed:
    """A dynamic loss scale over a run. Made by `follow`.

    scales: in use at each step. skipped: steps that overflowed and changed no weight. zero: share of each step's
    gradients that becomes zero. unscaled: the same without any scale, over all steps.
    """

    drawn: DrawnGradients
    fmt: FloatFormat
    scaler: Scaler
    scales: Floats
    skipped: npt.NDArray[np.bool_]
    zero: Floats
    unscaled: float

    @property
    def powers(self) -> Floats:
        """log2 of the scales."""
        return np.log2(self.scales)

    @property
    def lost(self) -> float:
        """Mean share of the gradients that become zero, over the steps that were not skipped."""
        return float(self.zero[~self.skipped].mean()) if not self.skipped.all() else 1.0

    def at(self, step: int) -> Scaled:
        """Return the gradients of one step, counted from 0, under the scale of that step."""
        drawn, course = self.drawn, self.drawn.course
        median, largest = float(drawn.medians[step]), float(drawn.largest[step])
        return scale_loss(median, course.spread, float(self.powers[step]), self.fmt, largest, course.count)


def walk(overflows: Callable[[int, float], bool], steps: int, scaler: Scaler) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the scale at each step, and which steps overflow at it, as torch.amp.GradScaler does.

    The scale is a float32 and does not grow to infinity. Sources: torch, aten/src/ATen/native/cuda/AmpKernels.cu; for
    the minimum and hysteresis, Megatron-LM, megatron/core/optimizer/grad_scaler.py.
    """
    scales, skipped = np.empty(steps), np.zeros(steps, dtype=np.bool_)
    scale, good, left = float(np.float32(scaler.initial)), 0, scaler.hysteresis
    for step in range(steps):
        scales[step], skipped[step] = scale, overflows(step, scale)
        good = 0 if skipped[step] else good + 1
        left -= bool(skipped[step])
        if skipped[step] and left <= 0:
            scale = max(float(np.float32(scale * scaler.backoff)), scaler.least)
        elif good == scaler.interval:
            with np.errstate(over="ignore"):
                grown, good, left = float(np.float32(scale * scaler.growth)), 0, scaler.hysteresis
            scale = grown if math.isfinite(grown) else scale
    return scales, skipped


@cached("arrays_kept")
def follow(course: Course, scaler: Scaler, fmt: FloatFormat) -> Followed:
    """Return a dynamic loss scale over the gradients of a run, kept in ``fmt``: a step whose largest overflows is
    skipped."""
    drawn = draw(course)
    flush, _, most = borders(fmt)
    largest = np.exp2(most - drawn.largest).tolist()
    scales, skipped = walk(lambda step, scale: scale >= largest[step], course.steps, scaler)
    zero = drawn.share(-math.inf, flush - np.log2(scales))
    return Followed(drawn, fmt, scaler, scales, skipped, zero, float(drawn.share(-math.inf, flush).mean()))


@cached("results_kept")
def best_power(median: float, spread: float, fmt: FloatFormat, most: int = 40) -> int:
    """Return the smallest power up to ``most`` that loses least to zero and overflow, up to one gradient in a
    billion."""
    lost = [s.zero + s.overflow for s in (scale_loss(median, spread, power, fmt) for power in range(most + 1))]
    least = min(lost)
    return next(power for power, lost_here in enumerate(lost) if lost_here <= least + _EQUAL)


def explain(run: Followed, step: int) -> tuple[Explanation, ...]:
    """Return how the scale follows the run, and the two thresholds at a step, counted from 1."""
    scale = float(run.scales[step - 1])
    return (
        next_scale.explain(scale=scale, factor=run.scaler.growth).about("growth"),
        next_scale.explain(scale=scale, factor=run.scaler.backoff).about("backoff"),
        flush_below.explain(smallest=float(run.fmt.min_subnormal), scale=scale),
        fits_below.explain(largest=float(run.fmt.max_finite), scale=scale),
    )
