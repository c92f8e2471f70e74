"""The errors of predicted step times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from core.messages import Message, message
from core.step_time.calibration.fit import Calibration, Ranking, score
from core.step_time.error_ranges import Coverage
from core.step_time.running import Tuning
from core.views.common.table import Table, table_of
from core.wording import percent

_Floats = npt.NDArray[np.float64]


def accuracy_text(calibration: Calibration) -> Message:
    """Return the errors of predicted steps: in sample, without their source, and of one MFU for all."""
    ours, left, plain = (score("", errors) for errors in (calibration.inside, calibration.left, calibration.plain))
    return message(
        "search.accuracy.takeaway",
        steps=float(ours.rows),
        median=ours.median,
        p90=ours.p90,
        held_out=left.median,
        held_out_p90=left.p90,
        mfu=plain.median,
        mfu_p90=plain.p90,
    )


def ranking_text(order: Ranking) -> Message:
    """Return how often the faster of two published layouts is predicted to be faster."""
    return message(
        "search.accuracy.ranking",
        pairs=float(order.pairs),
        right=order.ordered / order.pairs,
        median=float(np.quantile(order.regrets, 0.5)),
        p90=float(np.quantile(order.regrets, 0.9)),
    )


_TUNINGS: Mapping[Tuning, str] = {
    "writers": "search.coverage.vendor",
    "users": "search.coverage.user",
    "nobody": "search.coverage.default",
}


def coverage_table(coverages: Mapping[Tuning, Coverage]) -> Table:
    """Return how often the range of a step time contains the measurement, by tuning level."""
    held = coverages.values()
    ranges = [message("search.coverage.range", low=one.usual.low - 1, high=one.usual.high - 1) for one in held]
    return table_of(
        {
            message("search.coverage.tuning"): [message(_TUNINGS[tuning]) for tuning in coverages],
            message("search.coverage.sources"): [f"{one.sources:,}" for one in held],
            message("search.coverage.inside"): [percent(one.inside) for one in held],
            message("search.coverage.usual"): ranges,
        }
    )


def points(calibration: Calibration) -> tuple[_Floats, _Floats, list[str], npt.NDArray[np.bool_]]:
    """Return measured and predicted seconds, names, and which steps are of mixtures of experts."""
    measured = np.array([run.seconds for run in calibration.runs])
    mixture = np.array([run.mixture for run in calibration.runs])
    return measured, measured * np.exp(calibration.inside), [run.name for run in calibration.runs], mixture
