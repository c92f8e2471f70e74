"""The sentences about a published run beside 6ND, in small markup (``**bold**``)."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence

from core.models.catalog import CatalogModel
from core.planning.estimate import PlanEstimate
from core.planning.nearest_runs import SimilarRun
from core.runs.published import AS_PUBLISHED, Comparison, Evidence, PublishedRun, models_with_runs, run_hours
from core.runs.run_efficiency import Shares
from core.runs.scores import Prediction, Score
from core.units import Kind, format_count, format_duration, format_quantity, significant
from core.wording import interval, percent, signed


def no_run(model: CatalogModel) -> str:
    """That there is no published run of ``model`` to compare with."""
    return (
        f"**No published full run of {model.name}:** no source at hand gives its tokens, accelerator and hours "
        f"together. {len(models_with_runs())} models of the catalogue have one; the help of Model names them."
    )


def repeated_run(a: PlanEstimate, run: PublishedRun) -> str:
    """What a published run took that the plan repeats; days on the plan's accelerators where it does not name its own.

    Raises ``ValueError`` for a run without known hours.
    """
    hours = run_hours(run)
    if hours is None:
        raise ValueError(f"{run.model} has no published hours")
    hours_text = f"{format_count(hours.value, 3)} accelerator-hours"
    if run.accelerators > 0:
        days = run.days if run.days > 0 else hours.value / 24 / run.accelerators
        cluster = f"{format_count(run.accelerators)} {run.accelerator}"
        took = f"**{_days(days)}** on {cluster} ({hours_text}, {hours.origin})."
    else:
        took = (
            f"**{hours_text}** of {run.accelerator} ({hours.origin}). The source names no number of them. On the "
            f"{format_count(a.count)} of the plan these hours are {_days(hours.value / 24 / a.count)}."
        )
    own = " Napkin’s prediction is not fitted to this run." if a.plan.expects_mfu else ""
    return f"**{run.model}** was trained in {took}{own}"


def _days(days: float) -> str:
    return format_duration(86400 * days, 3)


def published_headings(c: Comparison, mfu: float, dtype: str) -> tuple[str, str, str, str]:
    """Headings of the table of `predicted_against_measured`. mfu: the plan's, of the peak of ``dtype``; the run is held
    against 16 bits."""
    text = f"{percent(c.mfu)} MFU"
    if percent(mfu) != percent(c.mfu):
        text = f"{percent(c.mfu)} MFU of {'fp16' if c.run.precision == 'fp16' else 'bf16'} ({percent(mfu)} of {dtype})"
    return "quantity", f"{c.run.model} by 6ND at {text}", "as published", "difference"


def published_rows(c: Comparison, accelerators: float, steps: float) -> list[tuple[str, str, str, str]]:
    """Rows of a published run beside 6ND for the same model, tokens and accelerator; differences from the published.

    steps: the plan's MFU of steady steps, of the peak that the run is held against.
    """
    flop, flop_off = ("unknown", "") if math.isnan(c.run.flop) else _against(c.rule_flop, c.run.flop, "flop")
    hours, hours_off = _against(c.rule_hours, c.hours.value, "accelerator_hours")
    share, share_off = _against(c.mfu, c.utilisation, "ratio")
    if not c.evidence:
        hours_off = share_off = "not evidence"
    mfu = format_quantity(c.mfu, "ratio")
    rule_time, time = (h / accelerators * 3600 for h in (c.rule_hours, c.hours.value))
    how = "" if c.hours.origin == AS_PUBLISHED else f", {c.hours.origin}"
    return [
        ("Training compute", format_quantity(c.rule_flop, "flop"), flop, flop_off),
        (f"Accelerator-hours{how}", format_quantity(c.rule_hours, "accelerator_hours"), hours, hours_off),
        (f"Time on {format_count(accelerators)} at once", format_duration(rule_time), format_duration(time), ""),
        ("MFU of steady steps", percent(steps), interval(c.steady) if c.steady else "unknown", ""),
        ("Utilisation over all these hours", mfu, share, share_off),
    ]


def _against(rule: float, published: float, kind: Kind) -> tuple[str, str]:
    return format_quantity(published, kind), signed(rule / published - 1)


def about_run(c: Comparison) -> str:
    """What the published run was and what the table's differences mean, for its caption."""
    return (
        f"{c.run.model}: {format_count(c.run.tokens)} tokens on {c.run.accelerator}. Model, tokens and accelerator are "
        "the published run’s, the MFU is the plan’s. Differences: 6ND relative to the published figure."
    )


def nearest_runs_sentence(a: PlanEstimate, similar: Sequence[SimilarRun]) -> str:
    """What the picture of the answer shows: the plan at the pace of the nearest runs, and what the model says."""
    nearest = similar[0].similarity
    text = (
        f"**Your run at the pace of the {len(similar)} published ones nearest to it**; the nearest is "
        f"{nearest.evidence.run.model}: {nearest.text}."
    )
    if a.plan.expects_mfu:
        return text
    seen = a.expected
    yours = f" Yours is found: {percent(a.middle.mfu)}." if a.find == "MFU" else f" Yours comes to {_yours(a)}."
    return (
        f"{text} Its steps and published runs lead one to expect {interval((seen.low, seen.high))} over all hours "
        f"(P10–P90), median {percent(seen.mid)}.{yours}"
    )


def _yours(a: PlanEstimate) -> str:
    used = a.range_of("mfu")
    return interval((used.low, used.high) if used.low < used.high else (used.mid,))


def scored(score: Score, own: Score) -> str:
    """How far the range is to be trusted: what happened to labs that it had not seen. own: with one like run of the
    lab's own known."""
    inside = round(10 * score.inside)
    bias = "neither way" if abs(score.bias) < 0.02 else "too slow" if score.bias > 0 else "too fast"
    return (
        f"**Of ten labs that it had not seen, {_TENTHS[inside]} ended inside the range.** Each of {score.runs} "
        f"published runs was predicted from those of the other {score.labs - 1} labs, every lab counting the same: its "
        f"hours were off by **{percent(score.error)}** in the middle ({bias}), P90 is {significant(score.ratio, 2)} "
        f"times P10, and {percent(score.half)} lay between P25 and P75. With one like run of the lab’s own it was off "
        f"by **{percent(own.error)}**, P90 {significant(own.ratio, 2)} times P10, and {percent(own.inside)} lay inside."
    )


_TENTHS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "all")


def share_of(shares: Shares, runs: int, *, has_step_estimate: bool, new_hardware: bool) -> str:
    """What published runs reach of their steps."""
    low, mid, high = shares.ends
    what = "its fastest layout’s steps come to" if has_step_estimate else "its accelerators’ best matmul comes to"
    where = " on an architecture out for two years at most" if new_hardware else " on a proven accelerator"
    return (
        f"**A run{where} reaches {percent(mid)} of what {what}** ({interval((low, high))}, P10–P90 of {runs} published "
        f"runs of {shares.labs} labs), failures and checkpoints apart."
    )


NEAREST = ("published run", "accelerator", "how it differs from your plan", "hours per peak", "share of its steps")
"""Headings of the table of `near_rows`."""


def near_rows(similar: Sequence[SimilarRun], shares: Mapping[Evidence, float]) -> list[tuple[str, ...]]:
    """The nearest runs, what sets them apart, their utilisation, and their share of what their steps would come to."""
    return [
        (
            p.run.model,
            p.run.accelerator,
            p.similarity.text,
            percent(p.similarity.evidence.utilisation),
            percent(shares[p.similarity.evidence]) if p.similarity.evidence in shares else "steps not timed",
        )
        for p in similar
    ]


PREDICTED = ("run", "lab", "accelerator", "published", "predicted P50", "P10–P90", "error", "inside")
"""Headings of the table of `predicted`."""


def predicted(rows: Sequence[Prediction]) -> list[tuple[str, ...]]:
    """Rows of the table of predictions: each run from those of other labs."""
    return [
        (
            row.run.evidence.run.model,
            row.run.lab,
            row.run.evidence.run.accelerator,
            format_quantity(row.published_hours, "accelerator_hours"),
            format_quantity(row.hours.mid, "accelerator_hours", 3),
            f"{format_count(row.hours.low, 3)}–{format_quantity(row.hours.high, 'accelerator_hours', 3)}",
            signed(row.error),
            "yes" if row.inside else "**no**",
        )
        for row in rows
    ]


def pointed(row: Evidence) -> str:
    """What hovering over a run says: its size, its MFU, how that is known, and the source."""
    run = row.run
    stands = f", median of {row.rows} rows" if row.rows > 1 else ""
    return (
        f"<b>{run.model}</b>, {run.accelerator}<br>{format_count(run.params)} active parameters<br>"
        f"{percent(row.utilisation)}, from {row.how}{stands}<br>{_wrapped(run.source)}"
    )


def _wrapped(text: str, width: int = 70) -> str:
    return "<br>".join(textwrap.wrap(html.escape(text), width)[:3])
