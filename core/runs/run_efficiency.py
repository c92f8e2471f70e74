"""Run efficiency: end-to-end MFU over steady-state MFU, of published runs and the steps of their fastest layouts.

``python -m core.runs.run_efficiency`` prints it for every run; ``--write`` puts it into ``assets/data/run_steps.csv``.

A run's share is its utilisation over all billed hours, by what the steps of its fastest layout and its goodput would
come to. Size, tokens, year, generation of accelerator, mixture or dense: none of them predicts the share of a lab that
is left out better than one number does, because steps and goodput carry them already. Only how long the accelerator
had been out does. So there is one middle, a factor for new accelerators, and a range as wide as labs differ.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.budget.equations import BudgetError
from core.formula import Source, Symbol, formula
from core.hardware.accelerators import accelerators, best_matmul, find
from core.hardware.cluster import cluster
from core.limits import cached
from core.models.catalog import CatalogModel, catalog, model_named
from core.models.spec import TransformerSpec
from core.models.stand_in import stand_in
from core.rows import read_record, read_rows, write_rows
from core.runs.goodput import ClusterGoodput, Reliability, interruptions
from core.runs.published import Evidence, PublishedRun, Width, evidence, peak_16bit
from core.search.fastest import fastest
from core.search.request import SearchRequest
from core.sources import OWN_CONSTRUCTION
from core.step_time.running import USUAL_SOFTWARE, running_on
from core.training.device.inputs import usual
from core.training.memory import checkpoint_size

TABLE = "run_steps"
_HEAD = ("model", "accelerator", "accelerators", "sequences", "seq_len", "dtype", "shape", "mfu", "goodput")

_UNGATED = ("gpt",)
"""Architectures whose feed-forward networks have two matrices; those of others have three."""

_BATCH_TOKENS = 4e6
"""Tokens of a step where the source does not say."""

_DAYS, _FEWEST, _MOST = 45.0, 8.0, 2048.0
"""A run whose accelerators are not published is taken to have had as many, of powers of two, as make about so many
days; within these, because more than so many hardly train with the usual batch."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """Inputs of a run's step time, and its steady-state MFU: 6 N (active) relative to the dense 16-bit peak.

    sequences: sequences per step that the layout uses. shape: catalog model whose layers are counted; “its own layers”
    if the run's row has their sizes; or the proxy. mfu: NaN if the step time is unknown, or nothing fits. goodput:
    share of time left after checkpoints and failures at their default rates.
    """

    accelerators: int
    sequences: int
    seq_len: int
    dtype: str
    shape: str
    mfu: float
    goodput: float


def _shape(row: Evidence) -> tuple[TransformerSpec, float, str]:
    """Return layers to count for a run, the parameters of theirs that work on each token, and whose they are."""
    run = row.run
    own = model_named(run.catalog) if run.catalog else None
    if own and own.laid_out:
        return own.spec, own.active, own.name
    if row.experts:
        mixtures = (m for m in catalog() if m.mixture and m.laid_out and not m.spec.mixer)
        near = min(mixtures, key=lambda model: _apart(model, row))
        return near.spec, near.active, near.name
    if run.layers:
        gated, width = run.architecture not in _UNGATED, run.hidden // run.heads
        sizes = run.layers, run.hidden, run.heads, run.kv_heads, width, run.ffn, run.vocab
        return TransformerSpec(*sizes, glu=gated, tied_head=not gated), run.params, "its own layers"
    return stand_in(run.params_total if run.params_total > 0 else run.params), run.params, "dense stand-in"


def _apart(model: CatalogModel, row: Evidence) -> float:
    """Return how unlike a mixture is, in active parameters and in all for each of them."""
    stored = model.parameters / model.active / (row.run.params_total / row.run.params)
    return math.hypot(math.log(model.active / row.run.params), math.log(stored))


def _usual_count(hours: float) -> int:
    return 2 ** round(math.log2(min(max(_FEWEST, hours / (24 * _DAYS)), _MOST)))


def step_of_run(row: Evidence) -> RunStep:
    """Return a whole run's fastest step, with the usual value for what its source leaves out."""
    run, device = row.run, find(row.run.accelerator)
    seq_len = run.seq_len or (2048 if run.year < 2023 else 4096)
    tokens = run.batch_tokens if run.batch_tokens > 0 else _BATCH_TOKENS
    batch = max(1.0, tokens / seq_len)
    hours = 6 * run.params * run.tokens / (3600 * row.utilisation * peak_16bit(device.name))
    count = int(run.accelerators) if run.accelerators > 0 else _usual_count(hours)
    dtype = device.usable("fp8" if row.width != "16-bit" else "bf16")
    spec, active, shape = _shape(row)
    policy, optimizer = usual(None, None)
    stored = run.params_total if run.params_total > 0 else run.params
    checkpoint, reliability = float(checkpoint_size(optimizer, policy, spec).of(stored)), Reliability()
    found = None
    with suppress(BudgetError):
        running = running_on(USUAL_SOFTWARE, spec, device, dtype)
        request = SearchRequest(spec, cluster(device, 1), batch, seq_len, policy, optimizer, running=running)
        found = fastest(request, count, ClusterGoodput(checkpoint, reliability))
    if found is None or not found.fits:
        goodput = float(interruptions(count, checkpoint, reliability).goodput)
        return RunStep(count, round(batch), seq_len, dtype, shape, math.nan, goodput)
    mfu = 6 * active * found.tokens_per_second / (count * peak_16bit(device.name))
    goodput = float(interruptions(found.busy, checkpoint, reliability).goodput)
    return RunStep(count, found.sequences, seq_len, dtype, shape, mfu, goodput)


@cached("tables_kept")
def run_steps() -> dict[tuple[str, str], RunStep]:
    """Return the steps of every whole run that is evidence, by model and accelerator, as they were last written."""
    return {(row["model"], row["accelerator"]): read_record(RunStep, row) for row in read_rows(TABLE)}


def main(arguments: list[str]) -> None:
    """Print every run's step; with ``--write`` keep them."""
    rows: list[tuple[object, ...]] = []
    for row in evidence("whole"):
        s = step_of_run(row)
        mfu = "" if math.isnan(s.mfu) else f"{s.mfu:.5g}"
        setting = (s.accelerators, s.sequences, s.seq_len, s.dtype, s.shape)
        rows.append((row.run.model, row.run.accelerator, *setting, mfu, f"{s.goodput:.5g}"))
        share = row.utilisation / s.mfu
        sys.stdout.write(
            f"{row.run.model:28} {s.shape:20} steps {s.mfu:.3f} goodput {s.goodput:.3f} share {share:.2f}\n"
        )
    if "--write" in arguments:
        write_rows(TABLE, _HEAD, rows)


Array = npt.NDArray[np.float64]

_VOVK = Source("Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World", "section 2.2")

_SHARE = Symbol("s", "share of the steps that whole runs reach", "ratio")
_UTILISATION = Symbol("u", "MFU over all billed hours", "ratio")

YEARS_AS_NEW = 2
"""Years after an accelerator came out in which its software is still made ready, and runs reach less of their steps."""

RANGE_LEVELS = (0.1, 0.5, 0.9)
"""Levels of the low end, the middle and the high end of a range: it holds all but a tenth on either side."""


@formula(
    r"\v{steps} \cdot \v{share}",
    result=_UTILISATION,
    symbols={"steps": Symbol(r"u_\text{steps}", "MFU of the steps alone", "ratio"), "share": _SHARE},
    sources=(OWN_CONSTRUCTION,),
)
def whole_run_mfu(steps: float, share: float) -> float:
    """End-to-end MFU: steady-state MFU times run efficiency."""
    return steps * share


@formula(
    r"\v{goodput} \cdot \v{without_failures}",
    result=_SHARE,
    symbols={
        "goodput": Symbol("G", "goodput: what failures, restarts and checkpoints leave", "ratio"),
        "without_failures": Symbol("r", "what published runs reach beside that", "ratio"),
    },
    sources=(_VOVK, OWN_CONSTRUCTION),
)
def share_of_steps(goodput: float, without_failures: float) -> float:
    """Share of the steps that a whole run reaches.

    Without failures it is the middle of the published runs' own: slower layouts and software than the fastest,
    evaluation, ramp-up, and whatever else was billed.
    """
    return goodput * without_failures


@cached("results_kept")
def best_16bit(accelerator: str) -> float:
    """Return the best 16-bit matmul as a share of the dense 16-bit peak."""
    return best_matmul(accelerator, find(accelerator).usable("bf16")).rate / peak_16bit(accelerator)


@cached("results_kept")
def best_8bit(accelerator: str) -> float:
    """Return the best 8-bit matmul as a share of the dense 16-bit peak; NaN if the accelerator has no fp8 rate."""
    return best_matmul(accelerator, "fp8").rate / peak_16bit(accelerator)


@cached("tables_kept")
def low_precision_gain() -> float:
    """Return how much faster steps are with 8-bit products: the median of what sources measured of one model in both
    widths.

    Not twice, as the peaks say: only the matmuls are faster.
    """
    measured: dict[tuple[str, float, bool, str], dict[Width, list[float]]] = {}
    for row in evidence("steady"):
        key = (row.run.source.split()[0], float(f"{row.run.params:.2g}"), row.experts, row.run.accelerator)
        measured.setdefault(key, {}).setdefault(row.width, []).append(row.utilisation)
    pairs = [widths for widths in measured.values() if {"16-bit", "8-bit"} <= widths.keys()]
    return statistics.median(statistics.median(pair["8-bit"]) / statistics.median(pair["16-bit"]) for pair in pairs)


def is_low_precision(accelerator: str, width: Width) -> bool:
    """Return whether products run faster than in 16 bits: 8 bits or fewer, on an accelerator that has a rate for them.

    4-bit products count as 8-bit ones: no published whole run used them.
    """
    return width != "16-bit" and not math.isnan(best_8bit(accelerator))


@cached("small_results_kept")
def usable_matmul(accelerator: str, width: Width) -> float:
    """Return the rate that replaces an unknown step time: the best 16-bit matmul rate divided by the dense 16-bit peak.

    For narrower matmuls it includes their gain, at most the gain that the accelerator's own matmuls have.
    """
    best = best_16bit(accelerator)
    if not is_low_precision(accelerator, width):
        return best
    return best * min(low_precision_gain(), max(1.0, best_8bit(accelerator) / best))


@dataclass(frozen=True, slots=True)
class RunShare:
    """Published whole run with its estimated steady-state MFU.

    steps_mfu: 6 N relative to the dense 16-bit peak; that of the best matmul if no step time can be estimated.
    has_step_estimate: whether one can. goodput: share of time left after checkpoints and failures at their default
    rates.
    """

    evidence: Evidence
    steps_mfu: float
    goodput: float
    has_step_estimate: bool

    @property
    def share(self) -> float:
        """MFU over all billed hours, over that of the steps."""
        return self.evidence.utilisation / self.steps_mfu

    @property
    def without_failures(self) -> float:
        """The share of the steps that it would have reached with a goodput of 1."""
        return self.share / self.goodput

    @property
    def accelerator(self) -> str:
        """Accelerator type of the run."""
        return self.evidence.run.accelerator

    @property
    def new_hardware(self) -> bool:
        """Whether its accelerator was new, its software with it."""
        return self.evidence.run.year - _out_since(self.accelerator) <= YEARS_AS_NEW

    @property
    def lab(self) -> str:
        """Lab that trained the run; its model if the lab is unknown."""
        return lab_of(self.evidence.run)


def lab_of(run: PublishedRun) -> str:
    """Return the lab that trained a run; its model if the lab is unknown."""
    return run.lab or run.model


@dataclass(frozen=True, eq=False, slots=True)
class Shares:
    """Shares of the steps that runs reach without failures, as logarithms, sorted, with weights that add up to 1."""

    values: Array
    weights: Array
    labs: int

    @staticmethod
    def of(runs: Sequence[RunShare]) -> Shares:
        """Return those of ``runs``, of two labs at least. A lab weighs as the root of its runs: more than one with
        fewer, but not in proportion."""
        labs = [run.lab for run in runs]
        values = np.log([run.without_failures for run in runs])
        weights = np.array([1 / math.sqrt(labs.count(lab)) for lab in labs])
        order = np.argsort(values, kind="stable")
        return Shares(values[order], weights[order] / weights.sum(), len(set(labs)))

    def at(self, level: float) -> float:
        """Return the share that a run of another lab stays below with probability ``level``.

        Levels are moved away from the middle by one lab in all: the lab that comes next may is outside of all.
        """
        wanted = 0.5 + (level - 0.5) * (1 + 1 / self.labs)
        middles = np.cumsum(self.weights) - self.weights / 2
        return float(np.exp(np.interp(wanted, middles, self.values)))

    @property
    def ends(self) -> Array:
        """The shares that a tenth, half and nine tenths of runs stay below."""
        return np.array([self.at(level) for level in RANGE_LEVELS])

    def given(self, own: Sequence[float]) -> Shares:
        """Return the distribution for a lab with known runs: shifted toward their efficiencies, and narrower.

        Labs differ, and so do the runs of one lab. Both are taken as normal distributions, so the other labs count less
        the more runs of this lab are known.
        """
        if not own:
            return self
        middle, within = math.log(self.at(0.5)), spread_of_like_runs() ** 2
        between = max(float(np.average((self.values - middle) ** 2, weights=self.weights)) - within, 0.0)
        trust = between / (between + within / len(own))
        narrower = math.sqrt((within + between * (1 - trust)) / (within + between))
        moved = middle + trust * (float(np.mean(np.log(own))) - middle)
        return Shares(moved + narrower * (self.values - middle), self.weights, self.labs)


@cached("results_kept")
def run_shares(has_step_estimate: bool) -> tuple[RunShare, ...]:
    """Return every whole run that is evidence: those with an estimated step time, or all with their best matmul
    rate."""
    steps = run_steps()
    runs: list[RunShare] = []
    for row in evidence("whole"):
        step = steps[row.run.model, row.run.accelerator]
        steps_mfu = step.mfu if has_step_estimate else usable_matmul(row.run.accelerator, row.width)
        if not math.isnan(steps_mfu):
            runs.append(RunShare(row, steps_mfu, step.goodput, has_step_estimate))
    return tuple(runs)


def factor_of(runs: Sequence[RunShare], holds: Callable[[RunShare], bool]) -> float:
    """Return the median run efficiency of runs for which ``holds`` is true, divided by that of the others.

    1 if fewer than two labs have runs of either kind.
    """
    parts = [[run for run in runs if holds(run) == which] for which in (True, False)]
    if min(len({run.lab for run in part}) for part in parts) < 2:
        return 1.0
    having, others = (Shares.of(part).at(0.5) for part in parts)
    return having / others


def new_hardware_factor(runs: Sequence[RunShare]) -> float:
    """Return the share of runs on new accelerators over that of the others."""
    return factor_of(runs, lambda run: run.new_hardware)


def shares_of(runs: Sequence[RunShare], *, new_hardware: bool) -> Shares:
    """Return the run efficiencies that ``runs`` give for a new or a proven accelerator.

    All runs count; those on new accelerators are scaled by their factor.
    """
    by = new_hardware_factor(runs)
    shares = Shares.of([replace(run, steps_mfu=run.steps_mfu * by) if run.new_hardware else run for run in runs])
    return replace(shares, values=shares.values + math.log(by)) if new_hardware else shares


@cached("results_kept")
def published_shares(has_step_estimate: bool, new_hardware: bool = False) -> Shares:
    """Return what all published runs say of a plan whose steps are timed, or of one that only its best matmul is known
    of."""
    return shares_of(run_shares(has_step_estimate), new_hardware=new_hardware)


@cached("results_kept")
def is_new(accelerator: str) -> bool:
    """Return whether an accelerator was new to the latest published runs."""
    return max(row.run.year for row in evidence("whole")) - _out_since(accelerator) <= YEARS_AS_NEW


def _out_since(accelerator: str) -> int:
    """Return the year of the first accelerator of its architecture, whose software it runs: of an H200 that of the
    H100."""
    own = find(accelerator)
    return min(a.year for a in accelerators() if (a.family, a.generation) == (own.family, own.generation))


def like_runs(runs: Sequence[RunShare]) -> list[tuple[RunShare, RunShare]]:
    """Return the pairs of runs of one lab on one family of accelerator, both dense or both mixtures."""
    kinds = [(run.lab, run.evidence.family, run.evidence.experts) for run in runs]
    return [(runs[i], runs[j]) for i, j in itertools.combinations(range(len(runs)), 2) if kinds[i] == kinds[j]]


@cached("tables_kept")
def spread_of_like_runs() -> float:
    """Return the standard deviation of the logarithm of run efficiency among similar runs of one lab, with labs
    weighted equally."""
    apart: dict[str, list[float]] = {}
    for one, other in like_runs(run_shares(has_step_estimate=True)):
        apart.setdefault(one.lab, []).append(math.log(one.without_failures / other.without_failures) ** 2 / 2)
    return math.sqrt(statistics.mean(map(statistics.mean, apart.values())))


if __name__ == "__main__":
    main(sys.argv[1:])
