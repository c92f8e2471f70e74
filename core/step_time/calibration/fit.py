"""Constants of step time fitted to measured steps, and how well they predict steps of sources left out.

A source with N rows weighs √N in all. Every constant is positive and fitted by its logarithm, with a normal prior on
that, so what no row decides stays where its prior has it.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import cached
from core.models.flops import flops_per_token, train_flop_by_layer
from core.rows import read_rows, write_rows
from core.step_time.calibration.measured_steps import StepRun, step_runs, user_runs
from core.step_time.formulas import BESIDE, TABLE, Constant, Constants, family_of, resolved, step_constants
from core.step_time.running import BITS, wide_peak
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
        *map(float, (np.median(size), np.quantile(size, 0.9), size.mean(), size.max())),
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


ERRORS = "step_errors"
"""Table of errors with each source left out."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Rows, the constants fitted to them, and errors: logarithms of predicted over measured. `kept` has no `users`.

    inside: by those constants. left: by constants fitted without the row's source. plain: by a constant MFU. users: of
    users' own runs, by constants to which they were not fitted.
    """

    runs: tuple[StepRun, ...]
    constants: tuple[Constant, ...]
    inside: Floats
    left: Floats
    plain: Floats
    users: Floats | None = None


def calibrated() -> Calibration:
    """The constants fitted to every published step, from their priors, and all errors."""
    runs = step_runs()
    constants = fit(runs, step_constants())
    inside, left = errors_of(runs, constants), without(runs, constants)
    return Calibration(runs, constants, inside, left, constant_mfu(runs), errors_of(user_runs(), constants))


@cached("tables_kept")
def kept() -> Calibration:
    """The same as it was last written: nothing is fitted."""
    runs, constants = step_runs(), step_constants()
    left = np.array([float(row["error"]) for row in read_rows(ERRORS)[: len(runs)]])
    return Calibration(runs, constants, errors_of(runs, constants), left, constant_mfu(runs))


def scores_of(calibration: Calibration) -> Iterator[ErrorScore]:
    """The errors of all steps, of dense models, mixtures, and models with a state, and of some sources."""
    runs = calibration.runs
    parts: Mapping[str, Callable[[StepRun], bool]] = {
        "all": lambda _: True,
        "dense": lambda run: not run.mixture,
        "mixtures": lambda run: run.mixture,
        "with a state": lambda run: run.spec.mixer is not None,
        "Korthikanti Table 5": lambda run: run.source.startswith("arXiv:2205.05198 Table 3 + Table 5"),
        "Llama 3 405B": lambda run: run.name.startswith("Llama-3.1 405B stage"),
        "Llama 4 Maverick": lambda run: run.name.startswith("Llama 4 Maverick"),
    }
    ways = {"in sample": calibration.inside, "source left out": calibration.left, "constant MFU": calibration.plain}
    for (how, errors), (name, among) in itertools.product(ways.items(), parts.items()):
        yield score(f"{name}, {how}", errors[np.array([among(run) for run in runs])])


def lines_of(calibration: Calibration) -> Iterator[str]:
    """The table as text."""
    yield f"{len(calibration.runs)} published steps of {len({run.group for run in calibration.runs})} sources"
    yield f"{'constant':18s}{'family':11s}{'value':>10s}{'prior':>10s}{'sd':>6s}{'after':>7s}"
    for constant in calibration.constants:
        values = f"{constant.value:10.4g}{constant.prior:10.4g}{constant.prior_sd:6.2f}{constant.posterior_sd:7.2f}"
        yield f"{constant.name:18s}{constant.family:11s}{values}"
    yield f"{'error of step time':42s}{'rows':>5s}{'median':>8s}{'p90':>8s}{'mean':>8s}{'worst':>8s}"
    for row in scores_of(calibration):
        values = "".join(f"{value:8.1%}" for value in (row.median, row.p90, row.mean, row.worst))
        yield f"{row.name:42s}{row.rows:5d}{values}"
    measured = np.array([run.seconds for run in calibration.runs])
    for how, errors in (("in sample", calibration.inside), ("source left out", calibration.left)):
        order = ranking(calibration.runs, measured * np.exp(errors))
        regret = f"median {np.median(order.regrets):.1%}, p90 {np.quantile(order.regrets, 0.9):.1%}"
        yield (
            f"pairs of plans ordered right, {how}: {order.ordered} of {order.pairs}, "
            f"{order.ordered / order.pairs:.0%}; regret of the predicted best of {len(order.regrets)} sets: {regret}"
        )


def write(calibration: Calibration) -> None:
    """Keep constants and left-out errors in ``assets/data``."""
    head = ("name", "family", "value", "prior", "prior_sd", "posterior_sd", "meaning", "source")
    rows = (
        (
            *(constant.name, constant.family, f"{constant.value:.4g}", f"{constant.prior:g}", f"{constant.prior_sd:g}"),
            *(f"{constant.posterior_sd:.2f}", constant.meaning, constant.source),
        )
        for constant in calibration.constants
    )
    write_rows(TABLE, head, rows)
    of_users = [] if calibration.users is None else [*zip(user_runs(), calibration.users, strict=True)]
    errors = (
        (
            *(run.name, run.group, family_of(run.cluster.accelerator), run.running.dtype),
            *(int(run.mixture), run.running.software, run.running.tuned_by, f"{error:.4f}"),
        )
        for run, error in [*zip(calibration.runs, calibration.left, strict=True), *of_users]
    )
    write_rows(ERRORS, ("name", "group", "family", "dtype", "mixture", "software", "tuned", "error"), errors)
