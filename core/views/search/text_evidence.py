"""A search held against what was measured, in words: published layouts, and how far predicted steps are off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.search.neighbours import PublishedComparison
from core.step_time.calibration.fit import Calibration, ranking, score
from core.step_time.error_ranges import coverage_of
from core.step_time.running import TUNED_BY
from core.views.search.text import degrees, rest
from core.wording import percent, seconds_text, signed

PUBLISHED = ("published step", "layout", "measured", "MFU", "timed here", "off by", "the search’s best", "would take")
"""Headings of the table of published layouts."""


_Floats = npt.NDArray[np.float64]


def published_rows(comparisons: Sequence[PublishedComparison]) -> list[tuple[str, ...]]:
    """Each published step beside its time here and the best plan of the search."""
    return [
        (
            comparison.run.name,
            degrees(comparison.run.layout),
            seconds_text(comparison.run.seconds),
            percent(comparison.mfu),
            seconds_text(comparison.ours.seconds),
            signed(comparison.ours.seconds / comparison.run.seconds - 1),
            f"{degrees(comparison.best.layout)}, {rest(comparison.best.layout)}" if comparison.best else "none fits",
            seconds_text(comparison.best.seconds) if comparison.best else "",
        )
        for comparison in comparisons
    ]


def published(comparisons: Sequence[PublishedComparison]) -> str:
    """How near the published layouts come to the best of the search, by its own times."""
    gaps = sorted(comparison.ours.pace / comparison.best.pace - 1 for comparison in comparisons if comparison.best)
    if not gaps:
        return "**None of these has a plan that fits.**"
    off = sorted(abs(comparison.ours.seconds / comparison.run.seconds - 1) for comparison in comparisons)
    return (
        f"**These take {percent(max(gaps[0], 0.0))} to {percent(gaps[-1])} longer than the search’s best plans "
        f"would**, by its own times, which are off by {percent(off[0])} to {percent(off[-1])} here."
    )


def believed(calibration: Calibration) -> str:
    """How far predicted steps are off, beside those without their source and one MFU for all."""
    ours, left, plain = (score("", errors) for errors in (calibration.inside, calibration.left, calibration.plain))
    return (
        f"**Half of {ours.rows:,} published steps are predicted within {percent(ours.median)}, nine of ten within "
        f"{percent(ours.p90)}.** By constants that were fitted without a step’s own source: {percent(left.median)} and "
        f"{percent(left.p90)}. One MFU for all steps of the same accelerator and number format: "
        f"{percent(plain.median)} and {percent(plain.p90)}."
    )


def ordered(calibration: Calibration) -> str:
    """How well plans are put in order."""
    measured, predicted, _, _ = points(calibration)
    order = ranking(calibration.runs, predicted)
    if not order.pairs:
        return f"Of {len(measured):,} steps no two are plans of the same model, cluster and batch."
    median, most = (percent(float(np.quantile(order.regrets, share))) for share in (0.5, 0.9))
    return (
        f"**Of {order.pairs} pairs** of published plans for the same model, cluster and batch that differ by more than "
        f"5%, {percent(order.ordered / order.pairs)} are ordered right; choosing by these times costs {median} at the "
        f"median of {len(order.regrets)} choices, and up to {most} in nine of ten."
    )


def covered() -> str:
    """How often steps lie inside the range that other sources give, by who tuned them."""
    parts = [
        f"{who} **{percent(held.inside)}** of {held.sources} sources’, with a usual range from "
        f"{percent(1 - held.usual.low)} below to {percent(held.usual.high - 1)} above"
        for who, held in ((name, coverage_of(kind)) for name, kind in TUNED_BY.items())
    ]
    return (
        "A step’s range is to hold eight of ten. With a step’s own source left out of constants and range it holds, of "
        f"steps tuned {'; '.join(parts)}. Users’ own runs count for ranges alone: no constant is fitted to them."
    )


def points(calibration: Calibration) -> tuple[_Floats, _Floats, list[str], npt.NDArray[np.bool_]]:
    """Measured, predicted, names, and which are mixtures of experts, as a picture takes them."""
    measured = np.array([run.seconds for run in calibration.runs])
    mixture = np.array([run.mixture for run in calibration.runs])
    return measured, measured * np.exp(calibration.inside), [run.name for run in calibration.runs], mixture
