"""The whole space of plans of a model on a cluster, searched: what is best, what is next, what none beats."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import get_args

from core.budget.errors import BudgetError
from core.budget.run import accelerator_hours, rent
from core.hardware.cluster import Cluster
from core.hardware.rates import Rates
from core.models.spec import TransformerSpec
from core.search.batches import BlockSearch
from core.search.constraints import FREE, Constraints, Objective
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.result import SearchResult
from core.search.space import groups_of
from core.step_time.parts import AS_USUAL, Running
from core.training.activations.tensors import FUSED, Implementation
from core.training.device.buffers import MEASURED, Runtime
from core.training.device.inputs import usual
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy

TOP = 2_000
"""Plans that are handed back as columns."""


def search_plans(
    spec: TransformerSpec,
    cluster: Cluster,
    global_batch_sequences: int,
    seq_len: int,
    *,
    policy: PrecisionPolicy | None = None,
    optimizer: Optimizer | None = None,
    implementation: Implementation = FUSED,
    running: Running = AS_USUAL,
    constraints: Constraints = FREE,
    objective: Objective = "time",
    price: float | None = None,
    runtime: Runtime = MEASURED,
    rates: Rates | None = None,
    top: int = TOP,
) -> SearchResult:
    """Every plan of ``spec`` on all of ``cluster`` whose step has exactly so many sequences, and the best of them.

    policy, optimizer: mixed bf16 with AdamW where they are None.  price: dollars of one accelerator for an hour.
    top: how many ``plans`` there are at most.  Raises `SpaceError` for a space too large, and `BudgetError` for less
    than one sequence or plan, an unknown objective, and where a peak or a bandwidth that plans need is not known.
    """
    for name, value in (("global_batch_sequences", global_batch_sequences), ("top", top)):
        if value < 1:
            raise BudgetError(name, f"{name} is {value}; there is at least one. For example: 1024.")
    if objective not in get_args(Objective):
        named = ", ".join(map(repr, get_args(Objective)))
        raise BudgetError("objective", f"objective is {objective!r}; it is one of {named}.")
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
        objective=objective,
    )
    return searched(request, price=price, top=top)


def searched(request: SearchRequest, *, price: float | None = None, top: int = TOP) -> SearchResult:
    """The same for a request; of plans that leave too little memory free where none leaves as much as it asks for, and
    of those that ask too much of the host where no other fits."""
    start = time.perf_counter()
    count, groups = groups_of(request)
    sweep = BlockSearch(request, top, most_free=request.objective == "memory headroom")
    with turn(count):
        for group in groups:
            sweep.walk(group)
    if request.keep_free and not sweep.fitting:
        return searched(replace(request, keep_free=0.0), price=price, top=top)
    if not (sweep.fitting or math.isnan(request.host_bytes)):
        return searched(replace(request, host_bytes=math.nan), price=price, top=top)
    pareto = sweep.pareto
    best = pareto[-1 if sweep.most_free else 0] if pareto else None
    hours = accelerator_hours(request.cluster.count, best.seconds) if best else math.nan
    return SearchResult(
        best=best,
        second=sweep.second(best.layout) if best else None,
        pareto=pareto,
        plans=sweep.plans,
        count=count,
        fitting=sweep.fitting,
        nearest=sweep.nearest,
        seconds=time.perf_counter() - start,
        dollars=math.nan if price is None else rent(hours, price),
        kept_free=request.keep_free,
    )
