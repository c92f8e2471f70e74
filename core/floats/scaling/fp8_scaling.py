"""fp8 under one scale for a whole tensor: from its own largest value, or from those of the steps before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.decimals import raised
from core.floats.formats import FloatFormat
from core.floats.scaling.gradients import Course, DrawnGradients, Floats, draw
from core.floats.scaling.loss_scaling import borders, fits_below, flush_below, percent
from core.formula import Explanation, Source, Symbol, formula
from core.units import significant

Which: TypeAlias = Literal["max", "most_recent"]
"""What delayed scaling makes of its history: the largest of it, or the newest."""

ALGORITHMS: tuple[Which, ...] = ("max", "most_recent")

_ENGINE = Source(
    "NVIDIA Transformer Engine, recipes DelayedScaling and Float8CurrentScaling",
    "(FP8_MAX / amax) / (2 ^ margin)",
    "https://docs.nvidia.com/deeplearning/transformer-engine/user-guide/api/common.html",
)
_TORCHAO = Source("torchao", "amax_to_scale", "https://github.com/pytorch/ao/blob/main/torchao/float8/float8_utils.py")
_FP8 = Source("Micikevicius et al. 2022, FP8 Formats for Deep Learning", url="https://arxiv.org/abs/2209.05433")

_EPSILON = 1e-12
"""torchao takes no amax for smaller than this."""

_FP32_MAX = np.finfo(np.float32).max


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """How a tensor's scale follows from amax.

    title: for a choice. meaning: what it does, and who does it. delayed: whether amax is that of the steps before.
    floor: the smallest amax it reckons with. power_of_two: whether the scale is rounded down to a power of two.
    """

    title: str
    meaning: str
    delayed: bool = False
    floor: float = 0.0
    power_of_two: bool = False


RULES: Mapping[str, ScaleRule] = {
    "delayed": ScaleRule(
        "delayed (TE)",
        "Transformer Engine’s DelayedScaling: the scale of a step is known before it, from the amaxes of the steps "
        "before, so that a tensor is read once. The first step has a scale of 1. What does not fit is clamped.",
        delayed=True,
    ),
    "current": ScaleRule(
        "current (TE)",
        "Transformer Engine’s Float8CurrentScaling: a first pass finds amax, a second one scales and rounds. Scales "
        "are any float32.",
    ),
    "current2": ScaleRule(
        "current, 2ᵏ (TE)",
        "Transformer Engine’s Float8CurrentScaling with power-of-two scales, an option that is off by default: the "
        "fraction of the scale is cleared, so that scaling rounds nothing.",
        power_of_two=True,
    ),
    "ao": ScaleRule(
        "dynamic (torchao)",
        "torchao’s dynamic tensorwise scaling: as current scaling, divided in float64, with an amax of at least 1e-12: "
        "the scale of smaller tensors grows no further.",
        floor=_EPSILON,
    ),
    "ao2": ScaleRule(
        "dynamic, 2ᵏ (torchao)",
        "torchao’s dynamic scaling with round_scales_to_power_of_2, off by default: the scale is rounded down to a "
        "power of two. amax is at least 1e-12.",
        floor=_EPSILON,
        power_of_two=True,
    ),
}


@formula(
    r"\frac{\v{largest}}{\v{amax} \cdot 2^{\v{margin}}}",
    result=Symbol("s", "scale by which the tensor is multiplied", "number"),
    symbols={
        "largest": Symbol(r"x_\mathrm{max}", "largest finite value of the format", "number"),
        "amax": Symbol(r"a_\mathrm{max}", "largest magnitude of the tensor", "number"),
        "margin": Symbol("m", "margin, in powers of two", "number"),
    },
    sources=(_ENGINE, _TORCHAO, _FP8),
)
def tensor_scale(largest: float, amax: float, margin: float) -> float:
    """Scale of a tensor.

    It takes the largest magnitude to the largest value of the format, or as many powers of two below it as the margin
    says. Current scaling has no margin and takes the tensor’s own amax, delayed scaling one from its history.
    """
    return largest / (amax * 2.0**margin)


def current_scales(amax: npt.ArrayLike, fmt: FloatFormat, rule: ScaleRule) -> Floats:
    """The scales of tensors with these largest magnitudes, each from its own. They are float32 values.

    A tensor of zeros has a scale of 1, unless the rule has a smallest amax. Raises ``ValueError`` for an amax that is
    negative, infinite or NaN.
    """
    values = np.asarray(amax, dtype=np.float32).astype(np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("the largest magnitude of a tensor is a finite number from 0 up")
    floored = np.maximum(values, rule.floor)
    with np.errstate(over="ignore"):
        # float32 alone divides the same: a quotient of two of its values, rounded to float64 and then to float32.
        scales = (float(fmt.max_finite) / np.where(floored > 0, floored, 1)).astype(np.float32)
    scales = np.minimum(scales, _FP32_MAX).astype(np.float64)
    if rule.power_of_two:
        scales = np.exp2(np.frexp(scales)[1] - 1.0)
    return np.where(floored > 0, scales, 1.0)


def amaxes(amax: npt.ArrayLike, history: int, which: Which) -> Floats:
    """What delayed scaling knows before each step: newest or largest of its last ``history`` amaxes; 0 before any."""
    before = np.concatenate([[0.0], np.asarray(amax, dtype=np.float32)[:-1]])
    if which == "most_recent" or history == 1:
        return before
    window = min(history, before.size)
    padded = np.concatenate([np.zeros(window - 1), before])
    return np.lib.stride_tricks.sliding_window_view(padded, window).max(axis=1)


def delayed_scales(amax: npt.ArrayLike, fmt: FloatFormat, history: int, which: Which, margin: int) -> Floats:
    """The scale of each step from the amaxes of the steps before it, as float32 values.

    The first step has a scale of 1. Where the history gives nothing finite above zero, the scale stays as it was.
    Source: Transformer Engine, transformer_engine/common/recipe/delayed_scaling.cu.
    """
    known = amaxes(amax, history, which)
    usable = np.isfinite(known) & (known > 0)
    with np.errstate(over="ignore"):
        top = np.float32(float(fmt.max_finite) * 2.0**-margin)
        scales = np.minimum(top / np.where(usable, known, 1).astype(np.float32), _FP32_MAX)
    last = np.maximum.accumulate(np.where(usable, np.arange(known.size), -1))
    return np.where(last >= 0, scales[last], 1).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A rule with what it can be told. history, which, margin: of delayed scaling alone."""

    rule: str = "delayed"
    history: int = 16
    which: Which = "max"
    margin: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """The gradients of a run in fp8 under a recipe. Made by `fit`.

    scales: of each step. saturated: share of each step's values clamped at the largest value; what only rounds to it
    is not among them. zero: share that becomes zero. plain: the same without any scale, over all steps.
    """

    drawn: DrawnGradients
    fmt: FloatFormat
    recipe: Recipe
    scales: Floats
    saturated: Floats
    zero: Floats
    plain: float

    @property
    def reach(self) -> Floats:
        """log2 of the largest magnitude that fits under each scale."""
        return math.log2(self.fmt.max_finite) - np.log2(self.scales)


@lru_cache(maxsize=64)
def fit(course: Course, recipe: Recipe, fmt: FloatFormat) -> Fitted:
    """The gradients of a run in ``fmt``, scaled as ``recipe`` says."""
    drawn = draw(course)
    rule, amax = RULES[recipe.rule], np.exp2(drawn.largest)
    scales = (
        delayed_scales(amax, fmt, recipe.history, recipe.which, recipe.margin)
        if rule.delayed
        else current_scales(amax, fmt, rule)
    )
    flush, _, most = borders(fmt)
    logs = np.log2(scales)
    saturated, zero = drawn.share(most - logs, math.inf), drawn.share(-math.inf, flush - logs)
    return Fitted(drawn, fmt, recipe, scales, saturated, zero, float(drawn.share(-math.inf, flush).mean()))


def takeaway(run: Fitted) -> str:
    """Two sentences: what saturates and what becomes zero, and what current scaling would make of it."""
    steps, over = run.saturated.size, int(np.count_nonzero(run.saturated))
    clamped = (
        f"**{over:,} of {steps:,} steps** saturate, at worst {percent(float(run.saturated.max()))} of their gradients"
        if over
        else "**no step** saturates"
    )
    lost = f"and **{percent(float(run.zero.mean()))}** become zero in {run.fmt.title} on average"
    if not RULES[run.recipe.rule].delayed:
        return f"Scaled by its own largest value, {clamped}, {lost}; without a scale, {percent(run.plain)}."
    own = fit(run.drawn.course, Recipe("current"), run.fmt)
    other = f"Scaled by its own largest value none would saturate, and {percent(float(own.zero.mean()))} become zero."
    return f"Scaled by {_history(run.recipe)}, {clamped}, {lost}. {other}"


def _history(recipe: Recipe) -> str:
    before = (
        "the largest value of the step before"
        if recipe.which == "most_recent" or recipe.history == 1
        else f"the largest value of the {recipe.history:,} steps before"
    )
    return raised(f"{before} with a margin of 2^{recipe.margin}") if recipe.margin else before


def scale_line(run: Fitted) -> str:
    """Where the scale goes, and whose rule that is."""
    low, high = significant(float(run.scales.min())), significant(float(run.scales.max()))
    rule = RULES[run.recipe.rule]
    return f"Scales from {low} to {high}. **{rule.title}**: {rule.meaning}"


def explain(run: Fitted) -> tuple[Explanation, ...]:
    """How the scale of the last step is computed, and what it lets through."""
    rule, recipe = RULES[run.recipe.rule], run.recipe
    amax, scale, top = np.exp2(run.drawn.largest), float(run.scales[-1]), float(run.fmt.max_finite)
    used = float(amaxes(amax, recipe.history, recipe.which)[-1]) if rule.delayed else max(float(amax[-1]), rule.floor)
    explanation = (
        tensor_scale.explain(largest=top, amax=used, margin=recipe.margin if rule.delayed else 0) if used else None
    )
    return (
        *((explanation.about("the last step"),) if explanation else ()),
        flush_below.explain(smallest=float(run.fmt.min_subnormal), scale=scale),
        fits_below.explain(largest=top, scale=scale),
    )
