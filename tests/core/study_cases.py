"""Searches for studies, whose answers can be told in advance; workers of a cluster import them by name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from core.hardware.cluster import Cluster
from core.search.request import Columns, LayoutResult, SearchRequest, SearchResult
from core.step_time.running import StepTime
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout
from tests.patience import PATIENCE_S, until

TENSOR = np.array([1, 2, 4, 8])
"""Tensor-parallel degrees of the four plans at every point."""


def seconds_of(cluster: Cluster, batch: int, seq_len: int) -> np.ndarray[Any, Any]:
    """Of each plan, the fastest first."""
    return batch * seq_len / cluster.count * (1 + TENSOR / 10)


def found(at: int, seconds: float, memory: float, usable: float, tokens: int) -> LayoutResult:
    step = StepTime(0.75 * seconds, 0, 0, 0, 0, 0, 0, 0, 0, 0.25 * seconds, 0, 0, 0)
    content = DeviceMemory(memory, 0, 0, 0, 0, 0, 0, 0, 0)
    return LayoutResult(
        layout=Layout(tensor=int(TENSOR[at]), data=2),
        tokens=tokens,
        step=step,
        memory=content,
        usable=usable,
        mfu=0.5,
        low=0.9 * seconds,
        high=1.2 * seconds,
    )


def search(request: SearchRequest, **_: Any) -> SearchResult:
    """Four plans; those fit that hold a layer's width in the memory of an accelerator. Odd batches are refused."""
    batch, cluster = int(request.batch), request.cluster
    if batch % 2:
        raise ValueError(f"a batch of {batch} is odd")
    seconds = seconds_of(cluster, batch, request.seq_len)
    memory, usable = 3e7 * request.spec.hidden / TENSOR, cluster.accelerator.memory_bytes
    fits = np.flatnonzero(memory <= usable)
    tokens = batch * request.seq_len
    results = [found(at, float(seconds[at]), float(memory[at]), usable, tokens) for at in range(len(TENSOR))]
    size = np.ones(len(fits), dtype=int)
    columns = Layout(**{f.name: size * getattr(Layout(tensor=TENSOR[fits], data=2), f.name) for f in fields(Layout)})
    plans = Columns(
        layout=columns,
        tokens=np.full(len(fits), tokens),
        seconds=seconds[fits],
        memory=memory[fits],
        bound=np.full(len(fits), 9),
    )
    best = results[int(fits[0])] if len(fits) else None
    nearest = None if len(fits) else results[-1]
    return SearchResult(best, (), plans, len(TENSOR), len(fits), nearest)


@dataclass(frozen=True)
class KillingOnce:
    """`search`, on a worker that dies of the first question of batch 64. told: the file that says that it did."""

    told: Path

    def __call__(self, request: SearchRequest, **more: Any) -> SearchResult:
        if request.batch == 64 and not self.told.exists():
            self.told.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return search(request, **more)


def killing_always(request: SearchRequest, **more: Any) -> SearchResult:
    """`search`, on a worker that dies of every question of batch 64."""
    if request.batch == 64:
        os.kill(os.getpid(), signal.SIGKILL)
    return search(request, **more)


@dataclass(frozen=True)
class Elsewhere:
    """`search`, which fails in the process ``here``."""

    here: int

    def __call__(self, request: SearchRequest, **more: Any) -> SearchResult:
        if os.getpid() == self.here:
            raise ValueError("searched here")
        return search(request, **more)


@dataclass(frozen=True)
class StoppingOnce:
    """`search`, which sends Ctrl-C to everything that the terminal started, once, and then never answers.

    told: the file that says that it did.  out: where the study writes its chunks; it is stopped after the first.
    """

    told: Path
    out: Path

    def __call__(self, request: SearchRequest, **more: Any) -> SearchResult:
        if (request.batch, request.seq_len, request.cluster.count) == (128, 8192, 1024) and not self.told.exists():
            until(lambda: any(self.out.rglob("*.parquet")), "a chunk")
            self.told.write_text("")
            os.killpg(os.getpgid(0), signal.SIGINT)
            time.sleep(PATIENCE_S)
        return search(request, **more)
