"""Published runs, and the utilisation that their hours come to.

One row of ``assets/data/training_runs.csv`` each: whole runs, stages of runs, and benchmarks, with what their
sources print. MFU figures of different sources follow different attention conventions; ``flop_convention`` says
which, where it is known. ``notes`` of the catalogue's whole runs are sentences for the
reader.

Sources count MFU in different ways, so a printed MFU is the last resort. In order: accelerator-hours or tokens per
second, which need no convention; the time of a step and its tokens; hardware FLOPs by a formula that the source names;
an MFU whose convention is named, with the shape to convert it. What cannot be converted is left out, by name and with
its reason. 8-bit runs are held against the 16-bit peak too, so they can pass 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.budget.equations import accelerator_hours, effective_utilisation, training_seconds
from core.formula import Explanation
from core.hardware.accelerators import find
from core.limits import cached
from core.messages import Message, message
from core.models.catalog import CatalogModel, catalog
from core.models.flop_formulas import hardware_flop_narayanan, palm_flop
from core.models.flops import rule_gap, train_flop_6nd
from core.rows import number, read_record, read_rows

HoursBasis: TypeAlias = Literal["published", "derived", "steps", "assumed", "more"]
"""How accelerator-hours are known: printed; computed from printed days or rates; the time of training steps only,
without whatever else was billed; computed from a number of accelerators that the source itself assumes; or of more than
pre-training, which the source does not separate."""


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One published row. Numbers the source does not give are NaN (0 for shape columns).

    catalog: the catalog's name of the model, empty when it is not there. accelerator: likewise. kind: ``full_run``,
    ``full_run_stage``, ``benchmark``, ``estimate`` and a few more. params: parameters that work on each token (the
    active ones of a mixture of experts). hours_basis: how ``gpu_hours``, or ``days`` times ``accelerators``, are known.
    lab: who trained it, of whole runs. year: when it was published, by the arXiv number, release or card of the source;
    0 if that bears no date.
    """

    model: str
    catalog: str
    accelerator: str
    gpu: str
    kind: str
    params_total: float
    params: float
    tokens: float
    accelerators: float
    gpu_hours: float
    days: float
    flop: float
    mfu: float
    hfu: float
    flop_per_s: float
    tokens_per_s: float
    step_seconds: float
    batch_tokens: float
    flop_convention: str
    seq_len: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    architecture: str
    precision: str
    recompute: str
    source: str
    confidence: str
    notes: str
    hours_basis: HoursBasis
    lab: str
    year: int


_COLUMNS: Mapping[str, str] = {
    "accelerators": "n_gpus", "flop": "total_flops_reported", "mfu": "mfu_reported", "hfu": "hfu_reported",
    "tokens_per_s": "tokens_per_s_per_gpu", "step_seconds": "step_time_s", "batch_tokens": "global_batch_tokens",
    "flop_convention": "tflops_kind",
}  # fmt: skip
"""Field → its column, where that has another name."""


def _run(row: Mapping[str, str]) -> PublishedRun:
    return read_record(
        PublishedRun,
        row,
        _COLUMNS,
        params=number(row["params_active"] or row["params_total"]),
        flop_per_s=number(row["tflops_per_gpu"]) * 1e12,
        hours_basis=row["hours_basis"] or "published",
    )


@cached("tables_kept")
def published_runs() -> tuple[PublishedRun, ...]:
    """Return every published row, in the table's order."""
    return tuple(_run(row) for row in read_rows("training_runs"))


@dataclass(frozen=True, slots=True)
class PrintedMfu:
    """How the MFUs of the table are spread, as their sources print them: quantiles, the highest, and how many."""

    count: int
    p10: float
    median: float
    p90: float
    highest: float

    @property
    def text(self) -> Message:
        """The spread as a sentence."""
        low, mid, high, top = self.p10, self.median, self.p90, self.highest
        return message("runs.printed", runs=float(self.count), low=low, mid=mid, high=high, top=top)


@cached("tables_kept")
def printed_mfu() -> PrintedMfu:
    """Return the spread of all MFUs that the published rows print."""
    values = np.array([run.mfu for run in published_runs() if run.mfu > 0])
    p10, median, p90 = np.quantile(values, [0.1, 0.5, 0.9])
    return PrintedMfu(len(values), float(p10), float(median), float(p90), float(values.max()))


AS_PUBLISHED = "as published"


@dataclass(frozen=True, slots=True)
class Hours:
    """Accelerator-hours of a run and how they are known; ``origin`` says it in words."""

    value: float
    origin: str
    basis: HoursBasis


_ORIGINS: Mapping[HoursBasis, str] = {
    "published": AS_PUBLISHED,
    "derived": "derived from the source",
    "steps": "from the logged time of its steps",
    "assumed": "derived from an assumed count",
    "more": "post-training and evaluation included",
}


def run_hours(run: PublishedRun) -> Hours | None:
    """Return the run's accelerator-hours: as printed, else from days and accelerators, else from the token rate."""
    if not math.isnan(run.gpu_hours):
        return Hours(run.gpu_hours, _ORIGINS[run.hours_basis], run.hours_basis)
    if not math.isnan(run.days * run.accelerators):
        hours = run.days * 24 * run.accelerators
        if run.hours_basis in ("assumed", "more"):
            return Hours(hours, _ORIGINS[run.hours_basis], run.hours_basis)
        return Hours(hours, "from the published days and accelerators", "derived")
    if not math.isnan(run.tokens / run.tokens_per_s):
        return Hours(run.tokens / run.tokens_per_s / 3600, "from the published tokens per second", "steps")
    return None


@cached("results_kept")
def full_runs(catalog_name: str) -> tuple[PublishedRun, ...]:
    """Return the whole runs of the catalog's model whose accelerator, tokens and hours are known."""
    return tuple(
        run
        for run in published_runs()
        if run.catalog == catalog_name
        and run.kind == "full_run"
        and run.accelerator
        and not math.isnan(run.tokens)
        and run_hours(run)
    )


@cached("tables_kept")
def models_with_runs() -> tuple[str, ...]:
    """Return the names of the catalog's models that have a whole run in `full_runs`, in the catalog's order."""
    return tuple(model.name for model in catalog() if full_runs(model.name))


@cached("results_kept")
def steady_mfus(catalog_name: str) -> tuple[float, ...]:
    """Return the steady-state MFUs published for the catalog's model, lowest first."""
    rows = (run for run in published_runs() if run.catalog == catalog_name and run.kind.startswith("full_run"))
    return tuple(sorted(run.mfu for run in rows if not math.isnan(run.mfu)))


def datasheet_peak(run: PublishedRun) -> float:
    """Return the dense peak in FLOP/s with which the run is compared: bf16, or fp16 if it trained in that; NaN if
    unknown."""
    return find(run.accelerator).peak("fp16" if run.precision == "fp16" else "bf16")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Published run compared with the same run by 6ND: its own parameters, tokens, and accelerator.

    seq_len: length at which attention is counted. rule_flop: 6 N D. rule_hours: its accelerator-hours at the assumed
    MFU. square_hours: hours that causal attention matmuls add. other_hours: published hours beyond both; negative if
    the assumed MFU is too low. utilization: 6 N D divided by the FLOPs that the published hours allow at peak.
    """

    run: PublishedRun
    hours: Hours
    peak: float
    seq_len: int
    rule_flop: float
    rule_hours: float
    square_hours: float
    other_hours: float
    utilisation: float
    mfu: float
    steady: tuple[float, ...]

    @property
    def evidence(self) -> bool:
        """Return every published row that is evidence about whole runs, or about steady-state steps, under the same
        convention.

        Benchmarks are sweeps over batch and sequence; only their median rows are returned.
        """
        return self.hours.basis not in ("assumed", "more") and self.utilisation <= 1


def compare(run: PublishedRun, model: CatalogModel, mfu: float, seq_len: int) -> Comparison:
    """Compare ``run`` of ``model`` with 6ND at ``mfu``; ``seq_len`` applies if the run's own is not published.

    Raises ``ValueError`` for a run without known hours.
    """
    hours = run_hours(run)
    if hours is None:
        raise ValueError(f"{run.model} has no published hours")
    peak = datasheet_peak(run)
    length = run.seq_len or seq_len
    gap = rule_gap(model.spec, length, "causal")
    flop = train_flop_6nd(model.active, run.tokens)
    rule_hours = accelerator_hours(1, training_seconds(flop, 1, peak, mfu))
    square_hours = rule_hours * gap.square / gap.rule
    return Comparison(
        run=run,
        hours=hours,
        peak=peak,
        seq_len=length,
        rule_flop=flop,
        rule_hours=rule_hours,
        square_hours=square_hours,
        other_hours=hours.value - rule_hours - square_hours,
        utilisation=effective_utilisation(flop, hours.value, peak),
        mfu=mfu,
        steady=steady_mfus(run.catalog),
    )


def compare_all(model: CatalogModel, mfu: float, seq_len: int, accelerator: str) -> list[Comparison]:
    """Return every published whole run of ``model`` compared with 6ND, those on ``accelerator`` first."""
    runs = sorted(full_runs(model.name), key=lambda run: run.accelerator != accelerator)
    return [compare(run, model, mfu, seq_len) for run in runs]


def explain_comparison(c: Comparison) -> Explanation:
    """Return the run's effective utilization with its formula."""
    return effective_utilisation.explain(flop=c.rule_flop, hours=c.hours.value, peak=c.peak)


Basis: TypeAlias = Literal["whole", "steady"]
"""Whole runs, everything billed included; or steady steps alone."""

Width: TypeAlias = Literal["16-bit", "8-bit", "4-bit"]
"""The narrowest format of the matrix products."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Published row with its MFU: 6 N (active) D divided by time, accelerators, and their dense 16-bit peak.

    how: what it was computed from. rows: number of published rows of which it is the median.
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
        """Whether the model is a mixture of experts."""
        return self.run.architecture == "moe"

    @property
    def width(self) -> Width:
        """Width of the matmuls; 16-bit if the source names none."""
        return width_of(self.run.precision)

    @property
    def ratio(self) -> float:
        """Tokens per active parameter; NaN for a benchmark."""
        return self.run.tokens / self.run.params


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Published row that is excluded as evidence, with the reason."""

    run: PublishedRun
    reason: str


_LONG = 0.5
"""Attention over 6 N, whole square, beyond which 6 N is no measure of a step’s work."""

_SLIGHT = 0.1
"""The same, up to which it hardly matters which attention convention an MFU followed."""


def width_of(precision: str) -> Width:
    """Return the matmul width of a row's precision column."""
    if "fp4" in precision:
        return "4-bit"
    return "8-bit" if "fp8" in precision and "storage" not in precision else "16-bit"


def peak_16bit(accelerator: str) -> float:
    """Return the dense 16-bit peak in FLOP/s: bf16, or fp16 without bf16."""
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
    """Return FLOP/s per accelerator by 6 N and where from, or the reason why it cannot be known."""
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
    """Return the median row of each sweep: one shape on one accelerator in one precision, from one source."""
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
    """Return every published row that is evidence about whole runs, or about steady-state steps, under the same
    convention.

    Benchmarks are sweeps over batch and sequence; only their median rows are returned.
    """
    return _sorted_out(basis)[0]


@cached("results_kept")
def left_out(basis: Basis) -> tuple[LeftOut, ...]:
    """Return the rows that are excluded as evidence, each with its reason."""
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
