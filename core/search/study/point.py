"""What a study finds at one point: a row of numbers and names, so that a worker sends back little."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeAlias

from core.budget.equations import days_of_steps
from core.limits import limit
from core.search.request import LayoutResult, SearchRequest, SearchResult, mfu_by_6n
from core.search.study.study import Study, StudyPoint, spec_named
from core.step_time.running import PARTS, running_on
from core.training.layout import Layout
from core.training.optimizers import find_optimizer
from core.training.precision import find_policy

pa: Any = importlib.import_module("pyarrow")  # which has no types

Search: TypeAlias = Callable[..., SearchResult]
"""A search: `searched`, or what answers alike."""

Row: TypeAlias = dict[str, Any]

_PLAN = [
    *((field.name, pa.int64()) for field in fields(Layout)),
    ("seconds", pa.float64()),
    ("memory", pa.float64()),
    ("bound", pa.string()),
]
"""Of one plan: its layout, seconds of a step, bytes of the fullest accelerator, and the part it is bound by."""

SCHEMA = pa.schema(
    [
        ("point", pa.int64()),
        ("model", pa.string()),
        ("accelerator", pa.string()),
        ("accelerators", pa.int64()),
        ("per_node", pa.int64()),
        ("global_batch_sequences", pa.int64()),
        ("seq_len", pa.int64()),
        ("policy", pa.string()),
        ("optimizer", pa.string()),
        ("problem", pa.string()),  # why it could not be searched; empty where it could
        ("plans", pa.int64()),  # that divide
        ("fitting", pa.int64()),  # those of them that fit
        *_PLAN,  # the best one; null where nothing fits
        ("low", pa.float64()),  # seconds between which eight of ten comparable readings lie
        ("high", pa.float64()),
        ("mfu", pa.float64()),  # by 6N
        ("days", pa.float64()),  # for the study's tokens
        ("usable", pa.float64()),  # bytes of one accelerator
        ("missing", pa.float64()),  # bytes by which the nearest plan does not fit, where none does
        ("top", pa.list_(pa.struct(_PLAN))),  # the fastest plans, the fastest first
    ]
)
"""Columns of a file of results: a row for each point."""


def search_chunk(study: Study, index: int, search: Search) -> list[Row]:
    """Search every point of a chunk."""
    return [search_point(study, point, search) for point in study.chunk(index)]


def search_point(study: Study, point: StudyPoint, search: Search) -> Row:
    """Search one point. An error is stored as the point's problem and does not affect other points."""
    row: Row = {
        "point": point.index,
        "model": point.model,
        "accelerator": point.cluster.accelerator.name,
        "accelerators": point.cluster.count,
        "per_node": point.cluster.per_node,
        "global_batch_sequences": point.batch,
        "seq_len": point.seq_len,
        "policy": point.policy,
        "optimizer": point.optimizer,
        "problem": "",
        "plans": 0,
        "fitting": 0,
        "top": [],
    }
    spec, policy = spec_named(point.model), find_policy(point.policy)
    try:
        request = SearchRequest(
            spec,
            point.cluster,
            point.batch,
            point.seq_len,
            policy,
            find_optimizer(point.optimizer),
            running=running_on(study.software, spec, point.cluster.accelerator, policy.multiplies.name),
            constraints=study.constraints.constraints,
        )
        result = search(request, top=study.top)
    except Exception as problem:
        text = str(problem) if isinstance(problem, ValueError) else f"{type(problem).__name__}: {problem}"
        return row | {"problem": text[: limit("study_problem_chars")] or type(problem).__name__}
    row |= {"plans": result.count, "fitting": result.fitting, "top": _top(result, study.top)}
    if result.best:
        row |= _best(result.best) | {"mfu": mfu_by_6n(spec, point.seq_len, result.best.mfu)}
        if study.tokens is not None:
            row["days"] = days_of_steps(study.tokens, result.best.seconds, result.best.tokens, 1)
    if result.nearest:
        row["missing"] = -result.nearest.spare
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _best(result: LayoutResult) -> Row:
    plan = _plan(result.layout, result.seconds, float(result.memory.total), result.step.largest_overhead)
    return plan | {"low": result.low, "high": result.high, "usable": result.usable}


def _top(result: SearchResult, most: int) -> list[Row]:
    plans = result.plans
    return [
        _plan(plans.at(at), plans.seconds[at], plans.memory[at], PARTS[int(plans.bound[at])])
        for at in range(min(most, len(plans.seconds)))
    ]


def _plan(layout: Layout, seconds: Any, memory: Any, bound: str) -> Row:
    """Return a plan's columns."""
    degrees = {field.name: int(getattr(layout, field.name)) for field in fields(Layout)}
    return degrees | {"seconds": float(seconds), "memory": float(memory), "bound": bound}
