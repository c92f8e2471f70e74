"""How well step times are predicted: errors in sample and with each source left out, and which plan is faster."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.models.flops import flops_per_token, train_flop_by_layer
from core.step_time.calibration.fit import Floats, fit, predicted
from core.step_time.calibration.measured_steps import StepRun
from core.step_time.constants import Constant
from core.step_time.links import BITS, wide_peak

APART = 0.05
"""Difference of two plans' times from which it matters which is faster."""


@dataclass(frozen=True, slots=True)
class ErrorScore:
    """Errors of some rows, |predicted / measured − 1|."""

    name: str
    rows: int
    median: float
    p90: float
    mean: float
    worst: float


def score(name: str, errors: Floats) -> ErrorScore:
    """The errors summed up, of logarithms of predicted over measured."""
    size = np.abs(np.expm1(errors))
    return ErrorScore(
        name,
        len(size),
        *(float(incomplete) for incomplete in (np.median(size), np.quantile(size, 0.9), size.mean(), size.max())),
    )


def errors_of(runs: Sequence[StepRun], constants: Sequence[Constant]) -> Floats:
    """Logarithm of predicted over measured."""
    return np.log(predicted(runs, constants) / np.array([run.seconds for run in runs]))


def without(runs: Sequence[StepRun], constants: Sequence[Constant], groups: Iterable[str] = ()) -> Floats:
    """The same, each source's rows by constants fitted to all others; NaN for other sources where ``groups`` are given.

    constants: those fitted to all, to start from.
    """
    result = np.full(len(runs), np.nan)
    for group in sorted({*groups} or {run.group for run in runs}):
        rest = fit([run for run in runs if run.group != group], constants)
        own = [i for i, run in enumerate(runs) if run.group == group]
        result[own] = errors_of([runs[i] for i in own], rest)
    return result


def constant_mfu(runs: Sequence[StepRun]) -> Floats:
    """Errors of one utilisation per family and format, the median of its rows: what one does without a model."""
    rates: list[float] = []
    for run in runs:
        flop = train_flop_by_layer(
            flops_per_token(run.spec, run.seq_len, "causal").forward, run.sequences * run.seq_len
        )
        device = run.cluster.accelerator
        peak = device.peak(run.running.dtype) if below_16bit(run) else wide_peak(device)
        rates.append(flop / (run.seconds * run.cluster.count * peak))
    kinds = [(run.cluster.accelerator.family, BITS[run.running.dtype]) for run in runs]
    usual = {
        kind: statistics.median(rate for rate, other in zip(rates, kinds, strict=True) if other == kind)
        for kind in set(kinds)
    }
    return np.log(np.array(rates) / np.array([usual[kind] for kind in kinds]))


def below_16bit(run: StepRun) -> bool:
    """Whether its products run in fewer than 16 bits."""
    return BITS[run.running.dtype] < 16


@dataclass(frozen=True, slots=True)
class Ranking:
    """Plans for the same model, cluster and batch, predicted against measured.

    pairs: whose times differ by more than `APART`; ordered: those of them in the right order. regrets: of each set of
    plans, time of the one predicted fastest over the fastest, minus one.
    """

    pairs: int
    ordered: int
    regrets: npt.NDArray[np.float64]


def ranking(runs: Sequence[StepRun], seconds: Floats) -> Ranking:
    """How well ``seconds`` order the plans of ``runs``. Readings of one plan count as one, their median.

    Formats are told apart as their sources name them: blocks with scales of their own cost what one scale does not.
    """
    sets: dict[object, dict[object, list[tuple[float, float]]]] = {}
    for run, guess in zip(runs, seconds, strict=True):
        work = (
            run.spec,
            run.cluster.accelerator.name,
            run.cluster.count,
            run.sequences,
            run.seq_len,
            run.format,
        )
        plan = (run.layout, run.running, run.implementation)
        sets.setdefault(work, {}).setdefault(plan, []).append((run.seconds, float(guess)))
    pairs = ordered = 0
    regrets: list[float] = []
    for plans in sets.values():
        middle = [tuple(statistics.median(column) for column in zip(*seen, strict=True)) for seen in plans.values()]
        if len(middle) < 2:
            continue
        best = min(middle, key=lambda both: both[1])
        regrets.append(best[0] / min(measured for measured, _ in middle) - 1)
        for (item, guess), (other, second) in itertools.combinations(middle, 2):
            if max(item, other) / min(item, other) > 1 + APART:
                pairs += 1
                ordered += (item < other) == (guess < second)
    return Ranking(pairs, ordered, np.array(regrets))


def named(*names: str) -> Callable[[StepRun], bool]:
    """Whether a row's name begins so."""
    return lambda run: run.name.startswith(names)
