"""The steps of published whole runs under the best layout that a search finds; for a rival of the expectation."""

from __future__ import annotations

import math

from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.models.catalog import model_named
from core.models.flops import train_flop_6nd
from core.models.stand_in import stand_in
from core.planning.budget.errors import BudgetError
from core.planning.budget.rule import effective_utilisation
from core.planning.evidence.anchored import RunSteps
from core.planning.evidence.rows import Evidence, base_peak, evidence
from core.planning.search.search import search_plans

USUAL_BATCH = 4e6
"""Tokens of a step where a source prints none, as in LLaMA 1 and 2."""

USUAL_LENGTH = 4096
"""Tokens of a sequence where a source prints none."""

USUAL_DAYS = 30.0
"""Days of a run whose accelerators are not printed; their number is the power of two that makes it most nearly so."""


def steps_of_whole_runs() -> list[RunSteps]:
    """Of every whole run that is evidence, in table order."""
    return [_steps(row) for row in evidence("whole")]


def _steps(row: Evidence) -> RunSteps:
    run, peak = row.run, base_peak(row.run.accelerator)
    assumed: list[str] = []
    count, seq_len, tokens = run.accelerators, run.seq_len, run.batch_tokens
    if math.isnan(count):
        hours = train_flop_6nd(run.params, run.tokens) / (3600 * peak * row.utilisation)
        count = _power_of_two(max(8.0, hours / 24 / USUAL_DAYS))
        assumed.append("accelerators")
    if not seq_len:
        seq_len = USUAL_LENGTH
        assumed.append("seq_len")
    if math.isnan(tokens):
        tokens = USUAL_BATCH
        assumed.append("batch")
    ranks = int(count)
    batch = _batch(max(1.0, tokens / seq_len), ranks)
    spec = model_named(run.catalog).spec if run.catalog else stand_in(run.params, seq_len)
    made = RunSteps(run.model, ranks, batch, seq_len, tuple(assumed), math.nan)
    try:
        found = search_plans(
            spec,
            cluster(find(run.accelerator), ranks),
            batch,
            seq_len,
        )
    except BudgetError:
        return made
    if found.best is None:
        return made
    flop = train_flop_6nd(run.params, batch * seq_len)
    used = effective_utilisation(flop, found.best.seconds * ranks / 3600, peak)
    return RunSteps(run.model, ranks, batch, seq_len, tuple(assumed), used)


def _power_of_two(value: float) -> int:
    return 2 ** round(math.log2(value))


def _batch(sequences: float, ranks: int) -> int:
    """Whole sequences near as many as were trained on at a time, that divide over the accelerators."""
    if ranks & (ranks - 1) == 0:
        return _power_of_two(sequences)
    return max(1, round(sequences / ranks)) * ranks if sequences >= ranks else max(1, round(sequences))
