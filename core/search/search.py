"""The space of layouts of a model on a cluster, searched: what is best, what is next, what none beats."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.budget.errors import BudgetError
from core.hardware.cluster import Cluster
from core.hardware.rates import Rates
from core.models.spec import TransformerSpec
from core.search.constraints import FREE, Constraints
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.result import Columns, LayoutResult, SearchResult
from core.search.space import Ints, columns_of, count_layouts, laid, layouts_at, too_many_layouts
from core.step_time.parts import AS_USUAL, Running, StepTime
from core.training.activations.tensors import FUSED, Implementation
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.inputs import usual
from core.training.layout import Layout
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy

TOP = 2_000
"""Plans that are handed back as columns."""

_COMPUTING = ("matmul", "attention", "elementwise")
"""Parts of a step that no plan is bound by."""


def search_plans(
    spec: TransformerSpec,
    cluster: Cluster,
    global_batch_sequences: float,
    seq_len: int,
    *,
    policy: PrecisionPolicy | None = None,
    optimizer: Optimizer | None = None,
    implementation: Implementation = FUSED,
    running: Running = AS_USUAL,
    constraints: Constraints = FREE,
    runtime: Runtime = MEASURED,
    rates: Rates | None = None,
    top: int = TOP,
) -> SearchResult:
    """Every plan of ``spec`` on ``cluster`` whose step has about so many sequences, and the best of them.

    policy, optimizer: mixed bf16 with AdamW where they are None.  top: how many ``plans`` there are at most.  Raises
    `SpaceError` for a space too large, and `BudgetError` for less than one sequence or plan, and where a peak or a
    bandwidth that plans need is not known.
    """
    for name, value in (("global_batch_sequences", global_batch_sequences), ("top", top)):
        if value < 1:
            raise BudgetError(name, f"{name} is {value}; there is at least one. For example: 1024.")
    policy, optimizer = usual(policy, optimizer)
    request = SearchRequest(
        spec,
        cluster,
        global_batch_sequences,
        seq_len,
        policy,
        optimizer,
        implementation,
        running,
        constraints,
        runtime,
        rates,
    )
    return searched(request, top=top)


def searched(request: SearchRequest, *, top: int = TOP) -> SearchResult:
    """The same for a request; of plans that leave too little memory free where none leaves as much as it asks for, and
    of those that ask too much of the host where no other fits."""
    if problem := too_many_layouts(request):
        raise problem
    with turn(count_layouts(request)):
        space, possible = laid(request, request.cluster.count)
        places = np.flatnonzero(possible)
        plans = layouts_at(request, space, possible.shape, places)
        seconds = _over(possible, places, request.step(space).total)
        memory = _over(possible, places, request.bytes_of(space))
    kept_free, fits = request.keep_free, memory <= request.budget
    if not fits.any():
        kept_free, fits = 0.0, memory <= request.usable
    if not (fits.any() or math.isnan(request.host_bytes)):
        return searched(replace(request, host_bytes=math.nan), top=top)
    _check_known(request, plans, seconds, fits)
    order = _fastest_first(plans, seconds, memory, fits)
    front = order[_beats_all_before(memory[order])]

    def results(some: Ints) -> tuple[LayoutResult, ...]:
        return request.found(_rows(plans, some)) if len(some) else ()

    pareto = results(front)
    return SearchResult(
        best=pareto[0] if pareto else None,
        pareto=pareto,
        plans=_columns(request, _rows(plans, order[:top]), memory[order[:top]]),
        count=len(places),
        fitting=int(fits.sum()),
        nearest=next(iter(results(np.array([memory.argmin()]))), None) if len(places) and not fits.any() else None,
        kept_free=kept_free,
    )


def _over(possible: npt.NDArray[np.bool_], places: Ints, values: Any) -> npt.NDArray[np.float64]:
    """Values of the whole space, at some of its places."""
    return np.asarray(np.broadcast_to(values, possible.shape).reshape(-1)[places], dtype=np.float64)


def _rows(plans: Layout, some: Ints) -> Layout:
    return Layout(**{name: values[some] for name, values in columns_of(plans).items()})


def _sequences(plans: Layout) -> Any:
    return plans.data * plans.micro_batch * plans.micro_batches


def _check_known(request: SearchRequest, plans: Layout, seconds: Any, fits: Any) -> None:
    """Raise `BudgetError` where a peak or a bandwidth that a plan needs is not known."""
    unknown = np.flatnonzero(fits & np.isnan(seconds))
    for place in (*unknown[:1], *np.flatnonzero(fits)[:1]):
        request.known(_rows(plans, np.array([place])))


def _fastest_first(plans: Layout, seconds: Any, memory: Any, fits: Any) -> Ints:
    """The plans that fit, by tokens per second; equally fast ones by memory."""
    some = np.flatnonzero(fits)
    each = np.float32(seconds[some] / _sequences(plans)[some])
    return some[np.lexsort((some, memory[some], each))]


def _beats_all_before(memory: Any) -> npt.NDArray[np.bool_]:
    """Which of plans, the fastest first, take less memory than every faster one."""
    least = np.minimum.accumulate(memory)
    return np.concatenate([[True], memory[1:] < least[:-1]]) if len(memory) else np.zeros(0, bool)


def _columns(request: SearchRequest, plans: Layout, memory: Any) -> Columns:
    shape, step = memory.shape, request.step(plans)
    names = [field.name for field in fields(StepTime)]
    parts = np.stack([np.broadcast_to(0.0 if n in _COMPUTING else getattr(step, n), shape) for n in names])
    return Columns(
        layout=plans,
        tokens=np.broadcast_to(_sequences(plans) * request.timed_length, shape),
        seconds=np.broadcast_to(step.total, shape),
        memory=memory,
        bound=np.argmax(parts, axis=0) if len(memory) else np.zeros(0, int),
    )
