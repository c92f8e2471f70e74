"""The steps of published whole runs: what MFU the fastest layout of each would have, by the account of step time.

``python -m core.runs.run_steps`` prints it for every run; ``--write`` puts it into ``assets/data/run_steps.csv``.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass

from core.budget.errors import BudgetError
from core.hardware.accelerators import find
from core.hardware.cluster import cluster
from core.limits import cached
from core.models.catalog import CatalogModel, catalog, model_named
from core.models.spec import TransformerSpec
from core.models.stand_in import stand_in
from core.rows import number, read_rows, write_rows
from core.runs.goodput import ClusterGoodput, Reliability, interruptions
from core.runs.utilisation import Evidence, evidence, peak_16bit
from core.search.fastest import fastest
from core.search.request import SearchRequest
from core.step_time.software import USUAL_SOFTWARE, running_on
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
    """What a run's steps are worked out from, and their MFU: 6 N (active) over the dense 16-bit peak.

    sequences: of the step that the layout takes. shape: the catalogue's model whose layers are counted; “its own
    layers” where the run's row has their sizes; or the stand-in. mfu: NaN where step time is not known, or nothing
    fits. goodput: what checkpoints and failures at their usual rates leave of the time.
    """

    accelerators: int
    sequences: int
    seq_len: int
    dtype: str
    shape: str
    mfu: float
    goodput: float


def _shape(row: Evidence) -> tuple[TransformerSpec, float, str]:
    """Layers to count for a run, the parameters of theirs that work on each token, and whose they are."""
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
    return stand_in(run.params_total if run.params_total > 0 else run.params, 4096), run.params, "dense stand-in"


def _apart(model: CatalogModel, row: Evidence) -> float:
    """How unlike a mixture is, in active parameters and in all for each of them."""
    stored = model.parameters / model.active / (row.run.params_total / row.run.params)
    return math.hypot(math.log(model.active / row.run.params), math.log(stored))


def _usual_count(hours: float) -> int:
    return 2 ** round(math.log2(min(max(_FEWEST, hours / (24 * _DAYS)), _MOST)))


def step_of_run(row: Evidence) -> RunStep:
    """A whole run's fastest step, with the usual value for what its source leaves out."""
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
    """The steps of every whole run that is evidence, by model and accelerator, as they were last written."""
    return {
        (row["model"], row["accelerator"]): RunStep(
            int(row["accelerators"]),
            int(row["sequences"]),
            int(row["seq_len"]),
            row["dtype"],
            row["shape"],
            number(row["mfu"]),
            float(row["goodput"]),
        )
        for row in read_rows(TABLE)
    }


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


if __name__ == "__main__":
    main(sys.argv[1:])
