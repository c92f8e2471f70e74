"""Published rows under one convention: model FLOPs by 6 N (active), over the dense 16-bit peak.

Sources count MFU in different ways, so a printed MFU is the last resort. In order: accelerator-hours or tokens per
second, which need no convention; the time of a step and its tokens; hardware FLOPs by a formula that the source names;
an MFU whose convention is named, with the shape to convert it. What cannot be converted is left out, by name and with
its reason. 8-bit runs are held against the 16-bit peak too, so they can pass 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.budget.run import effective_utilisation
from core.hardware.accelerators import find
from core.limits import cached
from core.models.flop_formulas import hardware_flop_narayanan, palm_flop
from core.models.flops import train_flop_6nd
from core.runs.published import PublishedRun, published_runs, run_hours

Basis: TypeAlias = Literal["whole", "steady"]
"""Whole runs, everything billed included; or steady steps alone."""

Width: TypeAlias = Literal["16-bit", "8-bit", "4-bit"]
"""The narrowest format of the matrix products."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A published row with its utilisation: 6 N (active) D over time, accelerators and their dense 16-bit peak.

    how: what it was worked out from. rows: how many published rows it stands for (the median of a sweep).
    """

    run: PublishedRun
    basis: Basis
    utilisation: float
    how: str
    rows: int = 1

    @property
    def family(self) -> str:
        """Family of the accelerator."""
        return find(self.run.accelerator).family

    @property
    def experts(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.run.architecture == "moe"

    @property
    def width(self) -> Width:
        """Format of the matrix products; 16-bit where the source names none."""
        return width_of(self.run.precision)

    @property
    def ratio(self) -> float:
        """Tokens per active parameter; NaN for a benchmark."""
        return self.run.tokens / self.run.params


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A published row that is no evidence, and why."""

    run: PublishedRun
    reason: str


_LONG = 0.5
"""Attention over 6 N, whole square, beyond which 6 N is no measure of a step’s work."""

_SLIGHT = 0.1
"""The same, up to which it hardly matters which attention convention an MFU followed."""


def width_of(precision: str) -> Width:
    """The class of a row's precision column."""
    if "fp4" in precision:
        return "4-bit"
    return "8-bit" if "fp8" in precision and "storage" not in precision else "16-bit"


def peak_16bit(accelerator: str) -> float:
    """Dense 16-bit peak: bf16, or fp16 where there is no bf16."""
    device = find(accelerator)
    bf16 = device.peak("bf16")
    return device.peak("fp16") if math.isnan(bf16) else bf16


def _nothing_to_convert(run: PublishedRun) -> str:
    if not run.accelerator:
        return "its accelerator is unknown, or more than one"
    if math.isnan(run.params):
        return "its parameters are not given"
    if run.architecture == "moe" and run.params == run.params_total:
        return "its active parameters are not given"
    return ""


def _whole(run: PublishedRun) -> Evidence | LeftOut:
    if reason := _nothing_to_convert(run):
        return LeftOut(run, reason)
    if math.isnan(run.tokens):
        return LeftOut(run, "its tokens are not given")
    hours = run_hours(run)
    if hours is None:
        return LeftOut(run, "neither its accelerator-hours nor days and accelerators are given")
    if hours.basis == "assumed":
        return LeftOut(run, "its hours follow from a number of accelerators that the source assumes")
    if hours.basis == "more":
        return LeftOut(run, "its hours hold post-training and evaluation too, and the source does not separate them")
    used = effective_utilisation(train_flop_6nd(run.params, run.tokens), hours.value, peak_16bit(run.accelerator))
    if used > 1:
        return LeftOut(run, f"its hours are impossible: they come to {used:.0%} of the peak")
    return Evidence(run, "whole", used, f"accelerator-hours {hours.origin}")


def _steady_flop_rate(run: PublishedRun) -> tuple[float, str] | str:
    """FLOP/s per accelerator by 6 N and where from, or the reason why it cannot be known."""
    six = train_flop_6nd(run.params, 1)
    attention = palm_flop(0, run.layers, 1, run.hidden, run.seq_len)  # heads together as wide as h
    if attention > _LONG * six:
        return "its sequences are so long that 6N leaves most of attention’s work out"
    if not math.isnan(run.tokens_per_s):
        return six * run.tokens_per_s, "tokens per second"
    step_rate = run.batch_tokens / (run.step_seconds * run.accelerators)
    if not math.isnan(step_rate):
        return six * step_rate, "time of a step"
    kind = run.flop_convention
    shaped = run.layers and run.hidden and run.seq_len
    if kind.startswith("hardware"):
        if "?" in kind or not shaped or not run.vocab or "full" not in run.recompute or math.isnan(run.flop_per_s):
            return "only hardware FLOPs are given, by a formula that is not named"
        hardware = hardware_flop_narayanan(run.layers, run.hidden, run.seq_len, run.vocab)
        return six * run.flop_per_s / hardware, "hardware FLOPs by the source’s formula"
    achieved = run.flop_per_s if not math.isnan(run.flop_per_s) else run.mfu * peak_16bit(run.accelerator)
    if math.isnan(achieved):
        return "no rate, MFU or time of a step is given"
    if not shaped:
        return "its MFU’s attention convention is not named and its shape is not given"
    if attention > _SLIGHT * six:
        return "its MFU’s attention convention is not named, and attention is more than a tenth of 6N"
    # Full and causal attention differ by half of at most a tenth: the middle is off by 2.5 % at most.
    return achieved * six / (six + 0.75 * attention), "MFU, attention taken between causal and full"


def _steady(run: PublishedRun) -> Evidence | LeftOut:
    if reason := _nothing_to_convert(run):
        return LeftOut(run, reason)
    result = _steady_flop_rate(run)
    if isinstance(result, str):
        return LeftOut(run, result)
    rate, how = result
    return Evidence(run, "steady", rate / peak_16bit(run.accelerator), how)


def _one_per_sweep(rows: Iterable[Evidence]) -> list[Evidence]:
    """The median row of each sweep: one shape on one accelerator in one precision, from one source."""
    sweeps: dict[tuple[object, ...], list[Evidence]] = {}
    for row in rows:
        run = row.run
        shape = (run.layers, run.hidden) if run.layers else (run.params_total, run.params)
        key = (run.source.split()[0].rstrip(",;"), shape, row.experts, run.accelerator, row.width)
        sweeps.setdefault(key, []).append(row)
    evidence_rows: list[Evidence] = []
    for sweep in sweeps.values():
        middle = statistics.median_low([row.utilisation for row in sweep])
        row = next(row for row in sweep if row.utilisation == middle)
        evidence_rows.append(Evidence(row.run, row.basis, row.utilisation, row.how, len(sweep)))
    return evidence_rows


@cached("results_kept")
def evidence(basis: Basis) -> tuple[Evidence, ...]:
    """Every published row that says something about whole runs, or about steady steps, under the one convention.

    Benchmarks come in sweeps over batch and sequence; of each, the median row stands for all.
    """
    return _sorted_out(basis)[0]


@cached("results_kept")
def left_out(basis: Basis) -> tuple[LeftOut, ...]:
    """The rows of the same kinds that are no evidence, each with its reason."""
    return _sorted_out(basis)[1]


@cached("results_kept")
def _sorted_out(basis: Basis) -> tuple[tuple[Evidence, ...], tuple[LeftOut, ...]]:
    if basis == "whole":
        judged = [_whole(run) for run in published_runs() if run.kind == "full_run"]
    else:
        judged = [_steady(run) for run in published_runs() if run.kind in ("benchmark", "full_run_stage")]
    evidence_rows = [row for row in judged if isinstance(row, Evidence)]
    return (
        tuple(evidence_rows if basis == "whole" else _one_per_sweep(evidence_rows)),
        tuple(row for row in judged if isinstance(row, LeftOut)),
    )
