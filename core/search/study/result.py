"""What a study finds at one point: numbers and names only, so that a worker sends back little."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from core.budget.equations import days_of_steps
from core.limits import limit
from core.search.request import mfu_by_6n
from core.search.result import LayoutResult, SearchResult
from core.search.study.study import Study, StudyPoint
from core.step_time.parts import StepTime
from core.step_time.software import running_on
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy

_COMPUTING = frozenset({"matmul", "attention", "elementwise"})
"""Parts of a step that no plan is said to be bound by."""


Search: TypeAlias = Callable[..., SearchResult]
"""What a point is given to: `search_plans`, or whatever answers alike."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One plan: its layout, seconds of a step, bytes of the fullest accelerator, and the part it is bound by."""

    tensor: int
    pipeline: int
    interleave: int
    context: int
    expert: int
    expert_tensor: int
    data: int
    micro_batch: int
    micro_batches: int
    zero: int
    shard_group: int
    sequence_parallel: int
    recompute: int
    offload: int
    overlap: int
    seconds: float
    memory: float
    bound: str

    @property
    def layout(self) -> Layout:
        """The layout, to go on with."""
        return Layout(**{field.name: getattr(self, field.name) for field in fields(Layout)})


@dataclass(frozen=True, slots=True)
class Best:
    """The best plan of a point. low, high: seconds between which eight of ten comparable readings lie.

    days: for the study's tokens; None where it has none.  usable: bytes that one accelerator has.  low, high and mfu
    are None where they are not known.
    """

    plan: PlanRow
    low: float | None
    high: float | None
    mfu: float | None
    days: float | None
    usable: float


@dataclass(frozen=True, slots=True)
class PointResult:
    """One point and what the search found there.

    problem: why it could not be searched; empty where it could.  plans: that divide.  fitting: those of them that fit.
    best: None where nothing fits.  missing: bytes by which the nearest plan does not fit, where nothing does.
    top: the fastest plans, the fastest first.
    """

    point: int
    model: str
    accelerator: str
    accelerators: int
    per_node: int
    global_batch_sequences: int
    seq_len: int
    policy: str
    optimizer: str
    problem: str
    plans: int
    fitting: int
    best: Best | None
    missing: float | None
    top: tuple[PlanRow, ...]


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What came of a chunk."""

    index: int
    points: tuple[PointResult, ...]

    @property
    def plans(self) -> int:
        """Plans that were counted."""
        return sum(point.plans for point in self.points)


def search_chunk(study: Study, index: int, search: Search) -> ChunkResult:
    """Search every point of a chunk."""
    return ChunkResult(index, tuple(search_point(study, point, search) for point in study.chunk(index)))


def search_point(study: Study, point: StudyPoint, search: Search) -> PointResult:
    """Search one point. What goes wrong becomes the point's problem, so that it costs no other point."""
    policy = find_policy(point.policy)
    try:
        result = search(
            point.spec,
            point.cluster,
            point.batch,
            point.seq_len,
            policy=policy,
            optimizer=find_optimizer(point.optimizer),
            running=running_on(study.software, point.spec, point.cluster.accelerator, policy.multiplies.name),
            constraints=study.constraints,
            top=study.top,
        )
    except Exception as problem:
        text = str(problem) if isinstance(problem, ValueError) else f"{type(problem).__name__}: {problem}"
        return _with_message(point, problem=text[: limit("study_problem_chars")] or type(problem).__name__)
    return _with_message(
        point,
        plans=result.count,
        fitting=result.fitting,
        best=_best(result.best, point, study.tokens) if result.best else None,
        missing=-result.nearest.spare if result.nearest else None,
        top=_top(result, study.top),
    )


def _with_message(point: StudyPoint, **values: Any) -> PointResult:
    """A point by its names, and what was found."""
    nothing: dict[str, Any] = {"problem": "", "plans": 0, "fitting": 0, "best": None, "missing": None, "top": ()}
    return PointResult(
        point=point.index,
        model=point.model,
        accelerator=point.cluster.accelerator.name,
        accelerators=point.cluster.count,
        per_node=point.cluster.per_node,
        global_batch_sequences=point.batch,
        seq_len=point.seq_len,
        policy=point.policy,
        optimizer=point.optimizer,
        **{**nothing, **values},
    )


def _best(result: LayoutResult, point: StudyPoint, tokens: float | None) -> Best:
    days = None if tokens is None else days_of_steps(tokens, result.seconds, point.batch, point.seq_len)
    parts = [field.name for field in fields(StepTime)]
    bound = max((name for name in parts if name not in _COMPUTING), key=lambda name: float(getattr(result.step, name)))
    overlap = int(np.asarray(result.running.overlap))
    plan = _row(result.layout, 0, overlap, result.seconds, float(result.memory.total), bound)
    values = (result.low, result.high, mfu_by_6n(point.spec, point.seq_len, result.mfu))
    low, high, mfu = (None if math.isnan(value) else float(value) for value in values)
    return Best(plan, low, high, mfu, days, result.usable)


def _top(result: SearchResult, most: int) -> tuple[PlanRow, ...]:
    plans, parts = result.plans, [field.name for field in fields(StepTime)]
    return tuple(
        _row(plans.layout, at, plans.overlap[at], plans.seconds[at], plans.memory[at], parts[int(plans.bound[at])])
        for at in range(min(most, len(plans.seconds)))
    )


def _row(layout: Layout, at: int, overlap: Any, seconds: Any, memory: Any, bound: str) -> PlanRow:
    """The plan at one place of a layout, whose fields may be arrays or numbers."""
    of = {field.name: np.ravel(getattr(layout, field.name)) for field in fields(Layout)}
    laid = {name: int(values[at if len(values) > 1 else 0]) for name, values in of.items()}
    return PlanRow(**laid, overlap=int(overlap), seconds=float(seconds), memory=float(memory), bound=bound)
