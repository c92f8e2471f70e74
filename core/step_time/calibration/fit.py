"""The constants of step time fitted to published steps: robust least squares of its logarithm, with priors.

A source with N rows weighs √N in all. Every constant is positive and fitted by its logarithm, with a normal prior on
that, so what no row decides stays where its prior has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import cached
from core.step_time.calibration.measured_steps import StepRun
from core.step_time.constants import BESIDE, Constant, Constants, family_of, resolved
from core.step_time.step import default_states, step_over
from core.training.precision import find_policy

Floats = npt.NDArray[np.float64]

SCALE = 0.08
"""Error, in logarithm, beyond which a row counts in proportion and not by its square."""

_STEP = 1e-4


def predicted(runs: Sequence[StepRun], constants: Sequence[Constant]) -> Floats:
    """Seconds of a step of every row."""
    return _predicted(runs, constants, np.array([constant.value for constant in constants]))


def _predicted(runs: Sequence[StepRun], constants: Sequence[Constant], values: Any) -> Floats:
    """The same with other values, an array of (constants, …): rows along a first axis."""
    table = [replace(constant, value=value) for constant, value in zip(constants, values, strict=True)]
    by_family = {family: resolved(table, family) for family in {family_of(run.cluster.accelerator) for run in runs}}
    return np.stack([_seconds(run, by_family[family_of(run.cluster.accelerator)]) for run in runs])


def _seconds(run: StepRun, constants: Constants) -> Any:
    return step_over(
        run.spec,
        run.cluster,
        run.layout,
        _states_of(run),
        seq_len=run.seq_len,
        running=run.running,
        implementation=run.implementation,
        constants=constants,
    ).total


@cached("small_results_kept")
def _states_of(run: StepRun) -> Any:
    return default_states(run.spec, find_policy(run.policy) if run.policy else None)


def weights_of(runs: Sequence[StepRun]) -> Floats:
    """Each row's weight: those of a source with N rows sum to √N."""
    rows: dict[str, int] = {}
    for run in runs:
        rows[run.group] = rows.get(run.group, 0) + 1
    return np.array([1 / math.sqrt(rows[run.group]) for run in runs])


def fit(runs: Sequence[StepRun], start: Sequence[Constant], *, most: int = 30) -> tuple[Constant, ...]:
    """The constants that fit ``runs`` best, from the values of ``start``; ``most`` evaluations.

    Those of a family that was measured less are fitted to its rows, which move no other, after all others.
    """
    result = tuple(start)
    for less in (False, True):
        some = [run for run in runs if (family_of(run.cluster.accelerator) in BESIDE) == less]
        free = [i for i, constant in enumerate(start) if (constant.family in BESIDE) == less]
        if some and free:
            result = _fitted(some, result, free, most)
    return result


def _fitted(runs: Sequence[StepRun], start: tuple[Constant, ...], free: list[int], most: int) -> tuple[Constant, ...]:
    """``start`` with the constants at the places ``free`` fitted."""
    least_squares: Any = import_module("scipy.optimize").least_squares
    measured = np.log([run.seconds for run in runs])
    root = np.sqrt(weights_of(runs))
    values = np.log([constant.value for constant in start])
    prior = np.log([start[i].prior for i in free])
    sd = np.array([start[i].prior_sd for i in free])
    steps = np.hstack([np.zeros((len(start), 1)), _STEP * np.eye(len(start))[:, free]])

    def both(theta: Floats) -> tuple[Floats, Floats]:
        """Residuals, and their slopes: of rows as soft-L1 has them, and of the priors."""
        values[free] = theta
        seconds = np.log(_predicted(runs, start, np.exp(values[:, None] + steps)))
        z = (seconds[:, 0] - measured) / SCALE
        slope = (seconds[:, 1:] - seconds[:, :1]) / _STEP / SCALE
        bent = np.sqrt(1 + z**2)
        soft = np.sign(z) * np.sqrt(2 * (bent - 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where(np.abs(z) > 1e-6, z / bent / soft, 1.0)
        rows = np.concatenate([root * soft, (theta - prior) / sd])
        return rows, np.vstack([(root * factor)[:, None] * slope, np.diag(1 / sd)])

    last: dict[bytes, tuple[Floats, Floats]] = {}

    def kept(theta: Floats) -> tuple[Floats, Floats]:
        key = theta.tobytes()
        if key not in last:
            last.clear()
            last[key] = both(theta)
        return last[key]

    def residuals(theta: Floats) -> Floats:
        return kept(theta)[0]

    def slopes_at(theta: Floats) -> Floats:
        return kept(theta)[1]

    best: Floats = least_squares(residuals, values[free], jac=slopes_at, max_nfev=most, ftol=1e-5, xtol=1e-4).x
    slopes = slopes_at(best)
    spread = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    result = list(start)
    for i, theta, wide in zip(free, best, spread, strict=True):
        result[i] = replace(start[i], value=float(math.exp(theta)), posterior_sd=float(wide))
    return tuple(result)
