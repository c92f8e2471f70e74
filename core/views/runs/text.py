"""The sentences about published runs: that of the plan's model, the nearest ones, and how well they predict."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence

from core.messages import Message, message, pick_message
from core.models.catalog import CatalogModel
from core.planning.estimate import PlanEstimate
from core.planning.nearest_runs import SimilarRun
from core.runs.published import Comparison, Evidence, PublishedRun, run_hours
from core.runs.run_efficiency import Shares
from core.runs.scores import NearestRun, Prediction, Score
from core.units import Kind, format_duration, format_quantity
from core.views.common.table import Table, table_of
from core.wording import Amount, format_value, interval, percent, signed

_KINDS = {"time": "days", "tokens": "tokens", "parameters": "parameters", "accelerators": "count", "MFU": "percent"}
"""What is solved for → the format of its values."""


def no_run(model: CatalogModel) -> Message:
    """Return that there is no published run of ``model`` to compare with."""
    return message("runs.none", model=model.name)


def repeated_run(a: PlanEstimate, run: PublishedRun) -> Message:
    """Return what a published run took that the plan repeats; days on the plan's accelerators where it does not name
    its own. Raises ``ValueError`` for a run without known hours.
    """
    hours = run_hours(run)
    if hours is None:
        raise ValueError(f"{run.model} has no published hours")
    counted = run.accelerators > 0
    accelerators = run.accelerators if counted else float(a.count)
    days = run.days if counted and run.days > 0 else hours.value / 24 / accelerators
    return message(
        "runs.took" if counted else "runs.took_hours",
        model=run.model,
        days=days,
        accelerators=accelerators,
        device=run.accelerator,
        hours=hours.value,
        origin=hours.origin,
    )


# ------------------------------------------------------------------------------ the published run beside 6ND


def published_headings(c: Comparison) -> tuple[Message, ...]:
    """Return the headings of `published_rows`."""
    return (
        message("runs.table.quantity"),
        message("runs.table.rule", mfu=c.mfu),
        message("runs.table.published"),
        message("runs.table.difference"),
    )


def published_rows(c: Comparison, accelerators: float, steps: float) -> list[tuple[str, str, str, str]]:
    """Return the rows of a published run compared with 6ND for the same model, tokens, and accelerator.

    steps: the plan's steady-state MFU, relative to the peak that the run is compared with.
    """
    unknown, excluded = message("runs.table.unknown"), message("runs.table.excluded")
    flop, flop_off = (unknown, "") if math.isnan(c.run.flop) else _against(c.rule_flop, c.run.flop, "flop")
    hours, hours_off = _against(c.rule_hours, c.hours.value, "accelerator_hours")
    share, share_off = _against(c.mfu, c.utilisation, "ratio")
    if not c.evidence:
        hours_off = share_off = excluded
    rule_time, time = (h / accelerators * 3600 for h in (c.rule_hours, c.hours.value))
    label_hours = message("runs.table.hours", origin=c.hours.origin)
    label_time = message("runs.table.time", accelerators=accelerators)
    return [
        (message("runs.table.flop"), format_quantity(c.rule_flop, "flop"), flop, flop_off),
        (label_hours, format_quantity(c.rule_hours, "accelerator_hours"), hours, hours_off),
        (label_time, format_duration(rule_time), format_duration(time), ""),
        (message("runs.table.steady"), percent(steps), interval(c.steady) if c.steady else unknown, ""),
        (message("runs.table.end_to_end"), format_quantity(c.mfu, "ratio"), share, share_off),
    ]


def _against(rule: float, published: float, kind: Kind) -> tuple[str, str]:
    return format_quantity(published, kind), signed(rule / published - 1)


def about_run(c: Comparison) -> Message:
    """Return the caption of `published_rows`."""
    return message("runs.table.caption", model=c.run.model)


# ------------------------------------------------------------------------------ the nearest runs


def similar_runs_text(a: PlanEstimate, similar: Sequence[SimilarRun]) -> Message:
    """Return what the picture of the answer shows: the plan at the run efficiency of the nearest runs."""
    values, kind = [run.value for run in similar], _KINDS[a.find]
    result, here = Amount((min(values), max(values)), kind), Amount(a.result.mid, kind)
    return message("plan.picture.alt", runs=float(len(similar)), result=result, here=here)


def differences_text(near: NearestRun) -> str:
    """Return in what a published run differs from the plan, as a list."""
    size, ratio = near.size, near.ratio
    parts = [
        message("runs.differs.same_size") if size == 1 else message("runs.differs.size", factor=size),
        message("runs.differs.same_ratio") if ratio == 1 else message("runs.differs.ratio", factor=ratio),
    ]
    for kind in near.differences:
        width, generations = near.evidence.width, float(near.generations)
        parts.append(pick_message(f"runs.differs.{kind}", generations=generations, width=width))
    return ", ".join(parts)


def near_table(similar: Sequence[SimilarRun], shares: Mapping[Evidence, float]) -> Table:
    """Return the nearest runs, in what they differ, their MFU, and their run efficiency."""
    rows, untimed = [p.similarity.evidence for p in similar], message("runs.near.untimed")
    return table_of(
        {
            message("runs.near.run"): [p.run.model for p in similar],
            message("runs.near.accelerator"): [p.run.accelerator for p in similar],
            message("runs.near.difference"): [differences_text(p.similarity) for p in similar],
            message("runs.near.mfu"): [percent(row.utilisation) for row in rows],
            message("runs.near.efficiency"): [percent(shares[row]) if row in shares else untimed for row in rows],
        }
    )


# ------------------------------------------------------------------------------ how well they predict


def score_text(score: Score) -> Message:
    """Return how well held-out labs were predicted."""
    return message("runs.score", tenths=float(round(10 * score.inside)), runs=float(score.runs), error=score.error)


def score_detail(score: Score, own: Score) -> Message:
    """Return how the score was measured. own: the score if one similar run of the same lab is known."""
    return message(
        "runs.score.detail",
        runs=float(score.runs),
        labs=float(score.labs - 1),
        half=score.half,
        ratio=score.ratio,
        own_error=own.error,
        own_ratio=own.ratio,
    )


def efficiency_text(shares: Shares, runs: int, *, has_step_estimate: bool, new_hardware: bool) -> Message:
    """Return the run efficiency of published runs."""
    low, mid, high = shares.ends
    return message(
        _EFFICIENCIES[has_step_estimate, new_hardware],
        mid=float(mid),
        range=(float(low), float(high)),
        runs=float(runs),
        labs=float(shares.labs),
    )


_EFFICIENCIES = {
    (True, False): "runs.share.timed",
    (True, True): "runs.share.timed_new",
    (False, False): "runs.share.matmul",
    (False, True): "runs.share.matmul_new",
}
"""Whether steps are timed, and whether the accelerator is new → the message."""


def predicted_table(rows: Sequence[Prediction]) -> Table:
    """Return each run predicted from those of other labs."""
    runs, yes, no = [row.run for row in rows], message("runs.predicted.yes"), message("runs.predicted.no")
    kind: Kind = "accelerator_hours"
    return table_of(
        {
            message("runs.predicted.run"): [run.evidence.run.model for run in runs],
            message("runs.predicted.lab"): [run.lab for run in runs],
            message("runs.near.accelerator"): [run.accelerator for run in runs],
            message("runs.predicted.published"): [format_quantity(row.published_hours, kind) for row in rows],
            message("runs.predicted.median"): [format_quantity(row.hours.mid, kind, 3) for row in rows],
            message("runs.predicted.range"): [format_value((r.hours.low, r.hours.high), "count") for r in rows],
            message("runs.predicted.error"): [signed(row.error) for row in rows],
            message("runs.predicted.inside"): [yes if row.inside else no for row in rows],
        }
    )


def hover_text(row: Evidence) -> str:
    """Return what hovering over a run shows, in the small HTML of figures: its size, its MFU, how that is known, and
    the source."""
    run = row.run
    said = pick_message(
        "runs.scatter.hover_rows" if row.rows > 1 else "runs.scatter.hover",
        parameters=run.params,
        mfu=row.utilisation,
        origin=row.how,
        rows=float(row.rows),
    )
    lines = html.escape(said).replace("\n", "<br>")
    return f"<b>{run.model}</b>, {run.accelerator}<br>{lines}<br>{_wrapped(run.source)}"


def _wrapped(text: str, width: int = 70) -> str:
    return "<br>".join(textwrap.wrap(html.escape(text), width)[:3])
