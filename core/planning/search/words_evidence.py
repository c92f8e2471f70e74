"""A search held against what was measured, in words: published layouts, and how far predicted steps are off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.planning.search.published import Compared
from core.planning.search.words import degrees, rest
from core.planning.step.evidence import Errors, Evidence, Ranking, by_utilisation, errors
from core.units import significant
from core.wording import percent, signed

PUBLISHED = ("published step", "layout", "measured", "MFU", "timed here", "off by", "the search’s best", "would take")
"""Headings of the table of published layouts."""


_Floats = npt.NDArray[np.float64]


def published_rows(found: Sequence[Compared]) -> list[tuple[str, ...]]:
    """Each published step beside its time here and the best plan of the search."""
    return [
        (
            one.run.name,
            degrees(one.run.layout),
            f"{significant(one.run.seconds, 3)} s",
            percent(one.mfu),
            f"{significant(one.ours.seconds, 3)} s",
            signed(one.ours.seconds / one.run.seconds - 1),
            f"{degrees(one.best.layout)}, {rest(one.best.layout)}" if one.best else "none fits",
            f"{significant(one.best.seconds, 3)} s" if one.best else "",
        )
        for one in found
    ]


def published(found: Sequence[Compared]) -> str:
    """How near the published layouts come to the best of the search, by its own times."""
    gaps = sorted(one.ours.seconds / one.best.seconds - 1 for one in found if one.best)
    if not gaps:
        return "**None of these has a plan that fits.**"
    off = sorted(abs(one.ours.seconds / one.run.seconds - 1) for one in found)
    return (
        f"**These take {percent(max(gaps[0], 0.0))} to {percent(gaps[-1])} longer than the search’s best plans "
        f"would**, by its own times, which are off by {percent(off[0])} to {percent(off[-1])} here."
    )


def believed(found: Evidence) -> str:
    """How far predicted steps are off, beside one utilisation for all."""
    ours, plain = errors("", found), errors("", by_utilisation(found))
    return (
        f"**Half of {ours.rows:,} published steps are predicted within {percent(ours.median)}, nine of ten within "
        f"{percent(ours.p90)}.** One utilisation for each kind of accelerator and format: {percent(plain.median)} and "
        f"{percent(plain.p90)}."
    )


ERRORS = ("source", "rows", "median error", "nine of ten within", "worst", "median ratio")
"""Headings of the table of errors by source."""


def error_rows(found: Sequence[Errors]) -> list[tuple[str, ...]]:
    """Each source with the errors of its rows."""
    return [
        (
            one.name,
            f"{one.rows:,}",
            percent(one.median),
            percent(one.p90),
            percent(one.worst),
            significant(one.bias, 3),
        )
        for one in found
    ]


RUNS = ("published step", "measured", "predicted", "off by", "read as", "source")
"""Headings of the table of published steps."""


def run_rows(found: Evidence, top: int) -> list[tuple[str, ...]]:
    """The rows that are furthest off, worst first."""
    order = sorted(range(len(found.runs)), key=lambda i: -abs(float(found.ratio[i]) - 1))
    return [
        (
            found.runs[i].name,
            f"{significant(float(found.measured[i]), 3)} s",
            f"{significant(float(found.predicted[i]), 3)} s",
            signed(float(found.ratio[i]) - 1),
            found.runs[i].how,
            found.runs[i].source,
        )
        for i in order[:top]
    ]


def ordered(found: Ranking) -> str:
    """How well plans are put in order."""
    return (
        f"**Of {found.pairs} pairs** of published plans for the same model, cluster and batch that differ by more than "
        f"5 %, {percent(found.right)} are ordered right; choosing by these times costs {percent(found.regret_median)} "
        f"at the median of {found.choices} choices, and up to {percent(found.regret_p90)} in nine of ten."
    )


def points(
    found: Evidence,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[str], npt.NDArray[np.bool_]]:
    """Measured, predicted, names, and which are mixtures of experts, as a picture takes them."""
    mixture = np.array([run.mixture for run in found.runs])
    return found.measured, found.predicted, [run.name for run in found.runs], mixture


def curves(found: Evidence) -> list[tuple[str, npt.NDArray[np.float64], str]]:
    """Errors of the rows: of these times, and of one utilisation for each kind of accelerator and format."""
    plain = by_utilisation(found)
    return [("part by part", found.ratio - 1, "fraction"), ("one utilisation", plain.ratio - 1, "buffers")]
