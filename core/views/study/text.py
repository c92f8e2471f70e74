"""A study as text to begin from, and its results as rows and sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence

from core.limits import limit
from core.models.spec_text import write_spec
from core.planning.plan import OWN, TYPED, Plan
from core.planning.plan_search import SearchRequest
from core.search.study.result import PointResult
from core.search.study.study import Study
from core.units import format_count, format_exact, significant
from core.views.plan.text_memory import gib
from core.views.plan.text_rates import by
from core.views.search.text import brief
from core.wording import percent, plural, seconds_text

ABOUT = (
    "The same search at every point of a grid. Each list is an axis; constraints and tokens hold for all. Larger "
    "studies run from a terminal, on every core or on a Dask cluster: `python -m core.search.study study.json --out "
    "results/`. Open its `study.parquet` here."
)


def without_rates(plan: Plan) -> str:
    """That a study does not take the rates that a plan is counted with; empty where there are none."""
    return "**A study takes the datasheets’ rates**, not those measured for this plan." if by(plan) else ""


def example(plan: Plan, request: SearchRequest) -> str:
    """A study around a plan: half, as many and twice its accelerators, its batch and twice as much."""
    named = plan.known is not None and plan.model not in (OWN, TYPED)
    count = request.cluster.count
    study = {
        "models": [plan.model if named else write_spec(request.spec)],
        "clusters": [
            {
                "accelerator": plan.accelerator,
                "accelerators": sorted({max(1, count // 2), count, 2 * count}),
            }
        ],
        "global_batch_sequences": [request.batch, 2 * request.batch],
        "seq_len": [request.seq_len],
        "software": plan.software,
        "tokens": plan.tokens,
    }
    return json.dumps(study, indent=2)


def too_many(study: Study) -> str:
    """That a study is too large for one visitor of many; empty where it is not."""
    if study.count <= limit("study_points_shared"):
        return ""
    return (
        f"**{study.count:,} points** are more than the {limit('study_points_shared'):,} that one visitor may search "
        "here. Shorten a list, or run it from a terminal."
    )


RESULTS = ("model", "accelerators", "batch", "length", "best plan", "a step", "MFU", "days", "on each", "fit")
"""Headings of the table of results; the first two and the fifth column are words."""


def rows(points: Sequence[PointResult]) -> list[tuple[str, ...]]:
    """One row a point."""
    return [_row(point) for point in points]


def _row(result: PointResult) -> tuple[str, ...]:
    where = f"{result.accelerators:,} × {result.accelerator}"
    point = (result.model, where, format_exact(result.global_batch_sequences), format_exact(result.seq_len))
    fit = f"{result.fitting:,} of {result.plans:,}"
    if result.best is None:
        short = f"none fits; {gib(result.missing)} over" if result.missing is not None else "none divides"
        return (*point, result.problem or short, "", "", "", "", fit)
    best = result.best
    return (
        *point,
        brief(best.plan.layout),
        seconds_text(best.plan.seconds),
        "" if best.mfu is None else percent(best.mfu),
        "" if best.days is None else significant(best.days, 3),
        gib(best.plan.memory),
        fit,
    )


def study_summary(points: Sequence[PointResult], of: int) -> str:
    """How much was searched, and the point whose accelerators work best."""
    count = len(points)
    part = f"{count:,} {plural(count, 'point')}" + (f" of {of:,}" if of > count else "")
    plans = sum(point.plans for point in points)
    result = [(point.best.mfu, point) for point in points if point.best and point.best.mfu is not None]
    head = f"**{part}, {format_count(plans, 3)} plans searched.**"
    if not result:
        return f"{head} None of them has a plan that fits."
    mfu, best = max(result, key=lambda pair: pair[0])
    where = f"{best.model} on {best.accelerators:,} × {best.accelerator}"
    text = f"{best.global_batch_sequences:,} sequences of {best.seq_len:,}"
    return f"{head} The highest MFU is **{percent(mfu)}**: {where} with {text}."
