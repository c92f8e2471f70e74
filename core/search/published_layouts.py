"""Published layouts, and where the search would have gone on the same cluster with the same batch."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from core.limits import cached
from core.search.request import SearchRequest
from core.search.result import LayoutResult
from core.search.search import searched
from core.step_time.calibration.measured_steps import StepRun, step_runs
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES

NAMES: tuple[str, ...] = (
    "Llama-3.1 405B stage (16384 GPUs, seq 8192)",
    "MegaScale 175B (12288 GPUs)",
    "Megatron 175B (Korthikanti 2022, selective recompute)",
    "Megatron 1T (Korthikanti 2022, selective recompute)",
    "Megatron-LM GPT 1008.0B (Narayanan 2021)",
    "DeepSeekV3 (dropless) FP8 on DGX-H100 (Megatron-Bridge 25.09)",
)
"""Published steps that are compared, by name."""


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """A published step.

    ours: its own layout as it is timed and counted here.  best: the fastest that fits on the same accelerators with
    about the same batch, and the same overlap; None where none does.  count: plans that were looked at.
    """

    run: StepRun
    ours: LayoutResult
    best: LayoutResult | None
    count: int

    @property
    def mfu(self) -> float:
        """MFU of the measured step, counted as ours is."""
        return self.ours.mfu * self.ours.seconds / self.run.seconds


@cached("tables_kept")
def compare_published() -> tuple[PublishedComparison, ...]:
    """Every published step of `NAMES`, in that order."""
    runs = {run.name: run for run in step_runs()}
    return tuple(_compare_published(runs[name]) for name in NAMES)


def _compare_published(run: StepRun) -> PublishedComparison:
    request = SearchRequest(
        spec=run.spec,
        cluster=run.cluster,
        batch=run.sequences,
        seq_len=run.seq_len,
        policy=POLICIES["mixed bf16, fp32 master, fp32 gradients"],
        optimizer=find_optimizer("AdamW"),
        implementation=run.implementation,
        running=run.running,
    )
    columns = Layout(*(np.array([getattr(run.layout, field.name)]) for field in fields(Layout)))
    result = searched(request)
    return PublishedComparison(run, request.found(columns)[0], result.best, result.count)
