"""The search compared with measurements: published layouts, and the errors of predicted step times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from core.messages import Message, message
from core.search.neighbours import PublishedComparison
from core.step_time.calibration.fit import Calibration, Ranking, score
from core.step_time.error_ranges import Coverage
from core.step_time.running import Tuning
from core.views.search.names import layout_label
from core.wording import percent, seconds_text, signed

_Floats = npt.NDArray[np.float64]


def published_headings() -> tuple[Message, ...]:
    """Return the headings of `published_rows`."""
    return (
        message("search.published.step"),
        message("search.published.layout"),
        message("search.published.measured"),
        message("search.published.mfu"),
        message("search.published.predicted"),
        message("search.published.error"),
        message("search.published.fastest"),
        message("search.published.fastest_time"),
    )


def published_rows(comparisons: Sequence[PublishedComparison]) -> list[tuple[str, ...]]:
    """Return each published step with its predicted time, and the fastest layout of the search."""
    return [
        (
            comparison.run.name,
            layout_label(comparison.run.layout),
            seconds_text(comparison.run.seconds),
            percent(comparison.mfu),
            seconds_text(comparison.ours.seconds),
            signed(comparison.ours.seconds / comparison.run.seconds - 1),
            layout_label(comparison.best.layout) if comparison.best else "",
            seconds_text(comparison.best.seconds) if comparison.best else "",
        )
        for comparison in comparisons
    ]


def published_text(comparisons: Sequence[PublishedComparison]) -> Message:
    """Return how much slower published layouts are than the fastest of the search, and how far its times are off."""
    gaps = [max(0.0, one.ours.pace / one.best.pace - 1) for one in comparisons if one.best]
    off = [abs(one.ours.seconds / one.run.seconds - 1) for one in comparisons]
    return message("search.published.takeaway", slower=(min(gaps), max(gaps)), error=(min(off), max(off)))


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
    return (
        message("search.coverage.tuning"),
        message("search.coverage.sources"),
        message("search.coverage.inside"),
        message("search.coverage.usual"),
    )


def points(calibration: Calibration) -> tuple[_Floats, _Floats, list[str], npt.NDArray[np.bool_]]:
    """Return measured and predicted seconds, names, and which steps are of mixtures of experts."""
    measured = np.array([run.seconds for run in calibration.runs])
    mixture = np.array([run.mixture for run in calibration.runs])
    return measured, measured * np.exp(calibration.inside), [run.name for run in calibration.runs], mixture
