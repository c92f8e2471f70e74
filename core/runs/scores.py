"""How well published runs are predicted with their lab left out, and how near a plan is to any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, TypeAlias

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

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Levels at which what was said is held against what happened."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction of a whole run from those of other labs: end-to-end MFU, P10 to P90.

    below: whether the published MFU is below each of `LEVELS`.
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
        """Predicted hours divided by the published hours, minus 1."""
        return self.run.evidence.utilisation / self.utilisation.mid - 1

    @property
    def inside(self) -> bool:
        """Whether the run is between P10 and P90."""
        return self.utilisation.contains(self.run.evidence.utilisation)


def predictions_of(runs: Sequence[RunShare], known: Callable[[RunShare, RunShare], bool]) -> tuple[Prediction, ...]:
    """Return each of ``runs`` predicted from those that are ``known(other, run)`` before it."""
    return tuple(
        _predicted(run, shares_of([o for o in runs if known(o, run)], new_hardware=run.new_hardware)) for run in runs
    )


@cached("tables_kept")
def predictions() -> tuple[Prediction, ...]:
    """Return every whole run whose steps are timed, predicted with all of its lab left out; in the table's order."""
    return predictions_of(run_shares(has_step_estimate=True), lambda other, run: other.lab != run.lab)


def _predicted(run: RunShare, shares: Shares) -> Prediction:
    ends = [run.steps_mfu * run.goodput * shares.at(level) for level in LEVELS]
    below = tuple(run.evidence.utilisation <= end for end in ends)
    return Prediction(run, Interval(ends[0], ends[2], ends[-1]), below)


@cached("tables_kept")
def predictions_by_one_of_its_own() -> tuple[Prediction, ...]:
    """Return every run whose lab has a like one, predicted from other labs and each of these by itself."""
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
    """Return the score of predictions."""
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
    """Return the score of `predictions`."""
    return score_of(predictions())


_ALIKE = 1.05
"""Sizes within 5 % of each other are called equal."""


@dataclass(frozen=True, slots=True)
class RunFeatures:
    """What runs are compared by. params: active ones. width: the narrowest format of the matmuls."""

    params: float
    tokens: float
    accelerator: str
    accelerators: float
    mixture: bool = False
    width: Width = "16-bit"


DifferenceKind: TypeAlias = Literal["newer", "older", "family", "mixture", "dense", "width"]


@dataclass(frozen=True, slots=True)
class NearestRun:
    """Published run and its distance from a plan.

    distance: 1 for a factor of ten in parameters or tokens per parameter, for one generation or another family of
    accelerator, for a mixture of experts instead of a dense model, or for another width. size, ratio: the run's
    parameters, and its tokens per parameter, relative to the plan's. differences: other differences. generations:
    generations between the accelerators.
    """

    evidence: Evidence
    distance: float
    size: float
    ratio: float
    differences: tuple[DifferenceKind, ...]
    generations: int


def _alike(factor: float) -> float:
    return 1.0 if 1 / _ALIKE < factor < _ALIKE else factor


def _neighbor(row: Evidence, plan: RunFeatures) -> NearestRun:
    own, other = find(plan.accelerator), find(row.run.accelerator)
    size, ratio = row.run.params / plan.params, row.ratio / (plan.tokens / plan.params)
    generations = other.generation - own.generation
    kinds: dict[DifferenceKind, bool] = {
        "newer": generations > 0,
        "older": generations < 0,
        "family": other.family != own.family,
        "mixture": bool(row.experts) and not plan.mixture,
        "dense": plan.mixture and not row.experts,
        "width": is_low_precision(row.run.accelerator, row.width) != is_low_precision(plan.accelerator, plan.width),
    }
    differences: tuple[DifferenceKind, ...] = tuple(kind for kind, differs in kinds.items() if differs)
    apart = [kind for kind in differences if kind not in ("newer", "older")]
    distance = math.hypot(math.log10(size), math.log10(ratio), generations, *map(bool, apart))
    return NearestRun(row, distance, _alike(size), _alike(ratio), differences, abs(generations))


def nearest_runs(plan: RunFeatures, rows: Sequence[Evidence], most: int) -> tuple[NearestRun, ...]:
    """Return those of published ``rows`` that are most like ``plan``, the nearest first."""
    return tuple(sorted((_neighbor(row, plan) for row in rows), key=attrgetter("distance"))[:most])


@cached("results_kept")
def _most(what: str) -> tuple[float, str]:
    """Return the most of something that a published whole run had, its hours known or not, and the run's model."""
    of = attrgetter(what)
    known = [run for run in published_runs() if run.kind == "full_run" and not math.isnan(of(run))]
    run = max(known, key=of)
    return of(run), run.model


BeyondKind: TypeAlias = Literal["accelerators", "parameters", "tokens", "no run", "pcie", "no rate", "width"]


@dataclass(frozen=True, slots=True)
class Beyond:
    """Ways in which a plan exceeds every published run.

    More accelerators, parameters, or tokens than ``most``, which the run of ``model`` had; an accelerator that no run
    used, or that is a PCIe card; a matmul width without a rate, or that no run used.
    """

    kind: BeyondKind
    accelerator: str
    width: Width
    value: float = math.nan
    most: float = math.nan
    model: str = ""


def is_proven(accelerator: str) -> bool:
    """Return whether a published run used an accelerator."""
    device = find(accelerator)
    return any(find(row.run.accelerator) is device for row in evidence("whole"))


def beyond_evidence(plan: RunFeatures) -> tuple[Beyond, ...]:
    """Return the ways in which ``plan`` exceeds every published run; empty if it does not."""
    device, found = find(plan.accelerator), list[Beyond]()

    def add(kind: BeyondKind, value: float = math.nan, most: float = math.nan, model: str = "") -> None:
        found.append(Beyond(kind, device.name, plan.width, value, most, model))

    for kind, value, what in _LARGEST:
        most, model = _most(what)
        if value(plan) > most:
            add(kind, value(plan), most, model)
    if not is_proven(plan.accelerator):
        add("no run")
    if device.form_factor.startswith("PCIe") and plan.accelerators > 1:
        add("pcie")
    if plan.width != "16-bit":
        if not is_low_precision(plan.accelerator, plan.width):
            add("no rate")
        elif not any(row.width == plan.width for row in evidence("whole")):
            add("width")
    return tuple(found)


_LARGEST: tuple[tuple[BeyondKind, Callable[[RunFeatures], float], str], ...] = (
    ("accelerators", lambda plan: plan.accelerators, "accelerators"),
    ("parameters", lambda plan: plan.params, "params"),
    ("tokens", lambda plan: plan.tokens, "tokens"),
)
"""What a plan may have more of than any published run: how much it has, and the field of the run."""
