"""How well published runs are predicted with their lab left out, and how near a plan is to any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from core.budget.equations import Interval, accelerator_hours, training_seconds
from core.hardware.accelerators import find
from core.limits import cached
from core.models.flops import train_flop_6nd
from core.runs.published import Evidence, Width, evidence, peak_16bit, published_runs
from core.runs.run_efficiency import (
    RunShare,
    Shares,
    is_low_precision,
    like_runs,
    new_hardware_factor,
    run_shares,
    shares_of,
)
from core.units import Kind, format_quantity

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Levels at which what was said is held against what happened."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A whole run as predicted from those of other labs: MFU over all hours, P10 to P90.

    below: whether it stayed below each of `LEVELS`.
    """

    run: RunShare
    utilisation: Interval
    below: tuple[bool, ...]

    def _hours_at(self, mfu: float) -> float:
        run = self.run.evidence.run
        flop = train_flop_6nd(run.params, run.tokens)
        return accelerator_hours(1.0, training_seconds(flop, 1.0, peak_16bit(run.accelerator), mfu))

    @property
    def published_hours(self) -> float:
        """Accelerator-hours that it took."""
        return self._hours_at(self.run.evidence.utilisation)

    @property
    def hours(self) -> Interval:
        """Accelerator-hours as predicted."""
        return self.utilisation.through(self._hours_at)

    @property
    def error(self) -> float:
        """Hours expected over those published, minus 1."""
        return self.run.evidence.utilisation / self.utilisation.mid - 1

    @property
    def inside(self) -> bool:
        """Whether it lies between P10 and P90."""
        return self.utilisation.contains(self.run.evidence.utilisation)


def predictions_of(runs: Sequence[RunShare], known: Callable[[RunShare, RunShare], bool]) -> tuple[Prediction, ...]:
    """Each of ``runs`` predicted from those that are ``known(other, run)`` before it."""
    return tuple(
        _predicted(run, shares_of([o for o in runs if known(o, run)], new_hardware=run.new_hardware)) for run in runs
    )


@cached("tables_kept")
def predictions() -> tuple[Prediction, ...]:
    """Every whole run whose steps are timed, predicted with all of its lab left out; in the table's order."""
    return predictions_of(run_shares(has_step_estimate=True), lambda other, run: other.lab != run.lab)


def _predicted(run: RunShare, shares: Shares) -> Prediction:
    ends = [run.steps_mfu * run.goodput * shares.at(level) for level in LEVELS]
    below = tuple(run.evidence.utilisation <= end for end in ends)
    return Prediction(run, Interval(ends[0], ends[2], ends[-1]), below)


@cached("tables_kept")
def predictions_by_one_of_its_own() -> tuple[Prediction, ...]:
    """Every run whose lab has a like one, predicted from other labs and each of these by itself."""
    runs = run_shares(has_step_estimate=True)
    result: list[Prediction] = []
    for pair in like_runs(runs):
        others = [run for run in runs if run.lab != pair[0].lab]
        for run, known in (pair, pair[::-1]):
            by = new_hardware_factor(others) ** (run.new_hardware - known.new_hardware)
            result.append(
                _predicted(run, shares_of(others, new_hardware=run.new_hardware).given([known.without_failures * by]))
            )
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Score:
    """How well runs were predicted, each lab weighing the same.

    error: median of the absolute errors. bias: median error. inside: share of runs within P10 to P90; half: within P25
    to P75. ratio: P90 over P10. happened: share of runs below each of `LEVELS`.
    """

    runs: int
    labs: int
    error: float
    bias: float
    inside: float
    half: float
    ratio: float
    happened: tuple[float, ...]


def score_of(result: Sequence[Prediction]) -> Score:
    """The score of predictions."""
    labs = [item.run.lab for item in result]
    weights = np.array([1 / labs.count(lab) for lab in labs])
    weights /= weights.sum()
    errors = np.array([item.error for item in result])
    below = np.array([item.below for item in result], dtype=float)

    def median(values: np.ndarray) -> float:
        order = np.argsort(values)
        return float(np.interp(0.5, np.cumsum(weights[order]) - weights[order] / 2, values[order]))

    return Score(
        runs=len(result),
        labs=len(set(labs)),
        error=median(np.abs(errors)),
        bias=median(errors),
        inside=float(weights @ (below[:, -1] - below[:, 0])),
        half=float(weights @ (below[:, -2] - below[:, 1])),
        ratio=float(np.median([item.utilisation.high / item.utilisation.low for item in result])),
        happened=tuple(float(weights @ column) for column in below.T),
    )


@cached("tables_kept")
def score() -> Score:
    """The score of `predictions`."""
    return score_of(predictions())


_ALIKE = 1.05
"""Sizes within 5 % of each other are called equal."""


@dataclass(frozen=True, slots=True)
class RunFeatures:
    """What runs are compared by. params: active ones. width: the narrowest format of the matrix products."""

    params: float
    tokens: float
    accelerator: str
    accelerators: float
    mixture: bool = False
    width: Width = "16-bit"


@dataclass(frozen=True, slots=True)
class NearestRun:
    """A published run as a neighbour of a plan.

    distance: 1 for a factor of ten in parameters or in tokens per parameter, one generation or another family of
    accelerator, a mixture beside a dense model, or other widths. parts: the differences in words, the run beside the
    plan.
    """

    evidence: Evidence
    distance: float
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts of the distance as one phrase."""
        return ", ".join(self.parts)


def _times(factor: float, noun: str) -> str:
    if 1 / _ALIKE < factor < _ALIKE:
        return f"as many {noun}"
    return f"{format_quantity(factor, 'number', 2)} × the {noun}"


_STEPS = {1: "one generation", 2: "two generations", 3: "three generations"}


def _neighbour(row: Evidence, plan: RunFeatures) -> NearestRun:
    own, other = find(plan.accelerator), find(row.run.accelerator)
    work = "active parameters" if plan.mixture or row.experts else "parameters"
    size, ratio = row.run.params / plan.params, row.ratio / (plan.tokens / plan.params)
    generations = other.generation - own.generation
    narrow = is_low_precision(row.run.accelerator, row.width)
    differences = [
        f"{_STEPS[abs(generations)]} {'newer' if generations > 0 else 'older'}" if generations else "",
        f"another family of chip ({other.name})" if other.family != own.family else "",
        ("a mixture of experts" if row.experts else "dense") if row.experts != plan.mixture else "",
        f"{row.width} products" if narrow != is_low_precision(plan.accelerator, plan.width) else "",
    ]
    apart = [math.log10(size), math.log10(ratio), generations, *map(bool, differences[1:])]
    named = [text for text in differences if text] or ["same kind"]
    return NearestRun(row, math.hypot(*apart), (_times(size, work), _times(ratio, "tokens per parameter"), *named))


def nearest_runs(plan: RunFeatures, rows: Sequence[Evidence], most: int) -> tuple[NearestRun, ...]:
    """Those of published ``rows`` that are most like ``plan``, the nearest first."""
    return tuple(sorted((_neighbour(row, plan) for row in rows), key=attrgetter("distance"))[:most])


@cached("results_kept")
def _most(what: str) -> tuple[float, str]:
    """The most of something that a published whole run had, its hours known or not, and the run's model."""
    of = attrgetter(what)
    known = [run for run in published_runs() if run.kind == "full_run" and not math.isnan(of(run))]
    run = max(known, key=of)
    return of(run), run.model


def _past(value: float, noun: str, kind: Kind, what: str) -> tuple[str, ...]:
    most, model = _most(what)
    if value <= most:
        return ()
    return (
        f"{format_quantity(value, kind)} {noun} are more than any published run had: {model} had "
        f"{format_quantity(most, kind)}.",
    )


def unproven(accelerator: str) -> str:
    """That no published run used an accelerator; empty where one did."""
    device = find(accelerator)
    if any(find(row.run.accelerator) is device for row in evidence("whole")):
        return ""
    return f"No published run used {device.name}."


def _chip(plan: RunFeatures) -> tuple[str, ...]:
    text = unproven(plan.accelerator)
    return (f"{text} Its steps are timed by its rates, and the share of them is that of the others.",) if text else ()


def _links(plan: RunFeatures) -> tuple[str, ...]:
    device = find(plan.accelerator)
    if not device.form_factor.startswith("PCIe") or plan.accelerators <= 1:
        return ()
    return (
        f"{device.name} comes as a PCIe card, and every published run used accelerators with fast links between them: "
        "on many cards expect more hours than the range says.",
    )


def _width(plan: RunFeatures) -> tuple[str, ...]:
    if plan.width == "16-bit":
        return ()
    if not is_low_precision(plan.accelerator, plan.width):
        return (f"{plan.accelerator} has no rate for {plan.width} products; it is taken to multiply in 16 bits.",)
    if any(row.width == plan.width for row in evidence("whole")):
        return ()
    return (f"No published whole run used {plan.width} products; 8-bit ones stand for them.",)


def beyond_evidence(plan: RunFeatures) -> tuple[str, ...]:
    """What of ``plan`` lies beyond every published run, a sentence each; none where nothing does."""
    return (
        *_past(plan.accelerators, "accelerators", "count", "accelerators"),
        *_past(plan.params, "parameters (active)", "count", "params"),
        *_past(plan.tokens, "tokens", "count", "tokens"),
        *_chip(plan),
        *_links(plan),
        *_width(plan),
    )
