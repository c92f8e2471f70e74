"""The calibration as a whole: constants fitted, errors in sample and left out, as lines to print and rows to keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.limits import cached
from core.rows import read_rows, write_rows
from core.step_time.calibration.fit import Floats, fit
from core.step_time.calibration.measured_steps import StepRun, step_runs
from core.step_time.calibration.scores import ErrorScore, constant_mfu, errors_of, named, ranking, score, without
from core.step_time.calibration.user_steps import user_runs
from core.step_time.constants import TABLE, Constant, family_of, step_constants

ERRORS = "step_errors"
"""Table of errors with each source left out."""

_TABLE_5 = "arXiv:2205.05198 Table 3 + Table 5"


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
    """The errors by what they are of."""
    runs = calibration.runs
    mixed = np.array([run.mixture for run in runs])
    states = np.array([run.spec.mixer is not None for run in runs])
    table = np.array([run.source.startswith(_TABLE_5) for run in runs])
    llama = np.array([named("Llama-3.1 405B stage")(run) for run in runs])
    parts = [
        ("in sample", calibration.inside),
        ("source left out", calibration.left),
        ("constant MFU", calibration.plain),
    ]
    for how, errors in parts:
        yield score(f"all, {how}", errors)
        yield score(f"dense, {how}", errors[~mixed])
        yield score(f"mixtures, {how}", errors[mixed])
        yield score(f"with a state, {how}", errors[states])
    for how, errors in parts[:2]:
        yield score(f"Korthikanti Table 5, {how}", errors[table])
        yield score(f"Llama 3 405B, {how}", errors[llama])
        for name in ("Grok1", "Llama 4 Maverick"):
            yield score(f"{name}, {how}", errors[np.array([named(name)(run) for run in runs])])


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
