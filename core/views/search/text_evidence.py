"""The errors of predicted step times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from core.messages import Message, message, messages
from core.step_time.calibration.fit import Calibration, Ranking, score
from core.step_time.error_ranges import Coverage
from core.step_time.running import Tuning
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


def coverage_rows(coverages: Mapping[Tuning, Coverage]) -> list[tuple[str, ...]]:
    """Return how often the range of a step time contains the measurement, by tuning level."""
    return [
        (
            message(_TUNINGS[tuning]),
            f"{held.sources:,}",
            percent(held.inside),
            message("search.coverage.range", low=held.usual.low - 1, high=held.usual.high - 1),
        )
        for tuning, held in coverages.items()
    ]


def coverage_headings() -> tuple[Message, ...]:
    """Return the headings of `coverage_rows`."""
    return messages("search.coverage", "tuning sources inside usual")


def points(calibration: Calibration) -> tuple[_Floats, _Floats, list[str], npt.NDArray[np.bool_]]:
    """Return measured and predicted seconds, names, and which steps are of mixtures of experts."""
    measured = np.array([run.seconds for run in calibration.runs])
    mixture = np.array([run.mixture for run in calibration.runs])
    return measured, measured * np.exp(calibration.inside), [run.name for run in calibration.runs], mixture
