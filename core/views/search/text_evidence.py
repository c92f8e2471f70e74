"""A search held against what was measured, in words: published layouts, and how far predicted steps are off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from core.search.published_layouts import PublishedComparison
from core.step_time.calibration.measured_steps import StepRun
from core.step_time.calibration.report import Calibration
from core.step_time.calibration.scores import Score, ranking, score
from core.step_time.parts import Software
from core.step_time.software import COMPILED, EAGER, MEGATRON, TUNED
from core.units import significant
from core.views.search.text import degrees, rest
from core.wording import percent, signed

PUBLISHED = ("published step", "layout", "measured", "MFU", "timed here", "off by", "the search’s best", "would take")
"""Headings of the table of published layouts."""


_Floats = npt.NDArray[np.float64]


def published_rows(found: Sequence[PublishedComparison]) -> list[tuple[str, ...]]:
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


def published(found: Sequence[PublishedComparison]) -> str:
    """How near the published layouts come to the best of the search, by its own times."""
    gaps = sorted(one.ours.seconds / one.best.seconds - 1 for one in found if one.best)
    if not gaps:
        return "**None of these has a plan that fits.**"
    off = sorted(abs(one.ours.seconds / one.run.seconds - 1) for one in found)
    return (
        f"**These take {percent(max(gaps[0], 0.0))} to {percent(gaps[-1])} longer than the search’s best plans "
        f"would**, by its own times, which are off by {percent(off[0])} to {percent(off[-1])} here."
    )


def of_source(found: Calibration, source: str) -> Calibration:
    """The rows of one source."""
    at = [i for i, run in enumerate(found.runs) if run.group == source]
    runs = tuple(found.runs[i] for i in at)
    return replace(found, runs=runs, inside=found.inside[at], left=found.left[at], plain=found.plain[at])


def believed(found: Calibration) -> str:
    """How far predicted steps are off, beside those without their source and one MFU for all."""
    ours, left, plain = (score("", errors) for errors in (found.inside, found.left, found.plain))
    return (
        f"**Half of {ours.rows:,} published steps are predicted within {percent(ours.median)}, nine of ten within "
        f"{percent(ours.p90)}.** By constants that were fitted without a step’s own source: {percent(left.median)} and "
        f"{percent(left.p90)}. One MFU for all steps of the same accelerator and number format: "
        f"{percent(plain.median)} and {percent(plain.p90)}."
    )


_MEGATRON_CORE = 2023
"""The year from which Megatron-LM is Megatron-Core."""

BY_SOFTWARE = ("training software", "rows", "median error", "nine of ten within", "mean", "worst")
"""Headings of the table of errors by training software."""

ERRORS = ("source", "rows", "median error", "nine of ten within", "mean", "worst")
"""Headings of the table of errors by source, each predicted without that source."""


def error_rows(found: Calibration) -> list[tuple[str, ...]]:
    """Each source with the errors of its rows, by constants that were fitted without them."""
    return _error_rows(found, [run.group for run in found.runs])


_TRAINED_WITH: Mapping[Software, str] = {
    "": MEGATRON.id,
    "mature": TUNED.id,
    "compiled": COMPILED.id,
    "eager": EAGER.id,
    "deepspeed 2021": "DeepSpeed, 2021",
}


def software_rows(found: Calibration) -> list[tuple[str, ...]]:
    """Training software, as a plan names it where it can be chosen, with the errors of its rows."""

    def name(run: StepRun) -> str:
        old = run.running.software == "" and run.year < _MEGATRON_CORE
        return "Megatron-LM, to 2022" if old else _TRAINED_WITH[run.running.software]

    return _error_rows(found, [name(run) for run in found.runs])


def _error_rows(found: Calibration, names: Sequence[str]) -> list[tuple[str, ...]]:
    scores = [score(one, found.left[[name == one for name in names]]) for one in dict.fromkeys(names)]
    return [(one.name, f"{one.rows:,}", *_errors(one)) for one in scores]


def _errors(one: Score) -> tuple[str, ...]:
    return tuple(percent(value) for value in (one.median, one.p90, one.mean, one.worst))


RUNS = ("published step", "measured", "predicted", "off by", "read as", "source")
"""Headings of the table of published steps."""


def run_rows(found: Calibration, top: int) -> list[tuple[str, ...]]:
    """The rows that are furthest off, worst first."""
    ratio = np.exp(found.inside)
    order: list[int] = np.argsort(-np.abs(ratio - 1), kind="stable")[:top].tolist()
    return [
        (
            found.runs[i].name,
            f"{significant(found.runs[i].seconds, 3)} s",
            f"{significant(float(ratio[i]) * found.runs[i].seconds, 3)} s",
            signed(float(ratio[i]) - 1),
            found.runs[i].how,
            found.runs[i].source,
        )
        for i in order
    ]


def ordered(found: Calibration) -> str:
    """How well plans are put in order."""
    measured, predicted, _, _ = points(found)
    order = ranking(found.runs, predicted)
    if not order.pairs:
        return f"Of {len(measured):,} steps no two are plans of the same model, cluster and batch."
    median, most = (percent(float(np.quantile(order.regrets, share))) for share in (0.5, 0.9))
    return (
        f"**Of {order.pairs} pairs** of published plans for the same model, cluster and batch that differ by more than "
        f"5 %, {percent(order.ordered / order.pairs)} are ordered right; choosing by these times costs {median} at the "
        f"median of {len(order.regrets)} choices, and up to {most} in nine of ten."
    )


def points(found: Calibration) -> tuple[_Floats, _Floats, list[str], npt.NDArray[np.bool_]]:
    """Measured, predicted, names, and which are mixtures of experts, as a picture takes them."""
    measured = np.array([run.seconds for run in found.runs])
    mixture = np.array([run.mixture for run in found.runs])
    return measured, measured * np.exp(found.inside), [run.name for run in found.runs], mixture


def curves(found: Calibration) -> list[tuple[str, _Floats, str]]:
    """Errors of the rows: of these times, of those without the row’s source, and of one MFU for all."""
    return [
        ("part by part", np.expm1(found.inside), "fraction"),
        ("fitted without its source", np.expm1(found.left), "master"),
        ("one MFU per accelerator", np.expm1(found.plain), "buffers"),
    ]
