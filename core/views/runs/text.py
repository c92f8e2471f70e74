"""The sentences about a published run beside 6ND, in small markup (``**bold**``)."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence

from core.budget.run import accelerator_hours, training_seconds
from core.hardware.accelerators import find
from core.models.catalog import CatalogModel
from core.models.flops import train_flop_6nd
from core.planning.evaluation import Answer
from core.planning.nearest_runs import SimilarRun
from core.runs.published import AS_PUBLISHED, Comparison, PublishedRun, models_with_runs, run_hours
from core.runs.scores import Prediction, Score
from core.runs.share import Shares
from core.runs.utilisation import Evidence, peak_16bit
from core.units import Kind, format_count, format_duration, format_quantity, significant
from core.wording import amount, interval, percent, signed


def no_run(model: CatalogModel) -> str:
    """That there is no published run of ``model`` to compare with."""
    return (
        f"**No published full run of {model.name}:** no source at hand gives its tokens, accelerator and hours "
        f"together. {len(models_with_runs())} models of the catalogue have one; the help of Model names them."
    )


def repeated_run(a: Answer, run: PublishedRun) -> str:
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


def reasons(c: Comparison) -> list[str]:
    """Why published hours and 6ND differ, as far as the figures of this run tell."""
    if c.utilisation > 1:
        return [
            f"**Not evidence: these hours are impossible.** They come to **{format_quantity(c.utilisation, 'ratio')}** "
            "of the peak; hours, tokens and accelerator cannot all be as published.",
            *([_remark(c)] if c.run.notes else []),
        ]
    if c.hours.basis == "more":
        return [
            "**Not evidence: these hours hold more than pre-training**, and their source does not separate it.",
            *([_remark(c)] if c.run.notes else []),
        ]
    if not c.evidence:
        return [
            "**Not evidence: hours derived from an assumed count.** They restate what was assumed, so their distance "
            "from 6ND says nothing about the run.",
            *([_remark(c)] if c.run.notes else []),
        ]
    lines = [_all_hours(c), _precision(c), _attention(c), _remainder(c), _remark(c)]
    return [line for line in lines if line]


def _all_hours(c: Comparison) -> str:
    share = format_quantity(c.utilisation, "ratio")
    if c.hours.basis == "steps":
        steady = f"; its steady steps are published at {interval(c.steady)} MFU" if c.steady else ""
        return (
            f"**These hours hold training steps only**, {c.hours.origin}: nothing else that was billed is in them. "
            f"They come to **{share}** of the peak by 6ND{steady}."
        )
    if not c.steady:
        rest = "no MFU of its steady steps is published, so how they split into steps and the rest is unknown"
    elif c.utilisation < c.steady[0]:
        rest = f"its steady steps are published at {interval(c.steady)} MFU, so not every hour was a steady step"
    else:
        rest = f"its steady steps are published at {interval(c.steady)} MFU"
    return f"**All hours of the run** come to **{share}** of the peak by 6ND; {rest}."


def _precision(c: Comparison) -> str:
    if not c.run.precision:
        return "**Its precision is not at hand**; it is held against the dense bf16 peak."
    if "fp8" not in c.run.precision:
        return ""
    fp8 = find(c.run.accelerator).peak("fp8")
    share = format_quantity(c.utilisation * c.peak / fp8, "ratio")
    against = f"; of the fp8 peak, {format_quantity(fp8, 'flop_per_s')}, these hours are {share}" if fp8 > 0 else ""
    return (
        "**It is held against the dense bf16 peak but trained mostly in fp8**, as its source says"
        f"{against}. An MFU means nothing without the dtype of its peak."
    )


def _attention(c: Comparison) -> str:
    where = "" if c.run.seq_len else ", the plan’s length, its own not being at hand"
    return (
        f"**6ND leaves attention’s products out.** At {c.seq_len:,} tokens{where}, causal, they add "
        f"{format_quantity(c.square_hours / c.rule_hours, 'ratio')} of 6ND, {_hours(c.square_hours)}; they belong "
        "to the work where the MFU counts them, and sources differ in that."
    )


def _remainder(c: Comparison) -> str:
    """What the published hours leave over 6ND at the user's MFU and attention: its sign and its size decide."""
    share = c.other_hours / c.hours.value
    rest = f"{_hours(abs(c.other_hours))} ({abs(share):.1%} of the published)".replace("%", " %")
    mfu, whole = format_quantity(c.mfu, "ratio"), format_quantity(c.utilisation, "ratio")
    if abs(share) < 0.02:
        return f"**6ND at your MFU with attention meets the published hours** to within {rest}."
    if share < 0:
        counted = "" if c.utilisation > c.mfu else ", once attention’s products count as work"
        return f"**The run did better than your MFU of {mfu}**{counted}: at that MFU it would have taken {rest} more."
    steady = " Your MFU is above any published for its steps." if c.steady and c.mfu > c.steady[-1] else ""
    if c.hours.basis == "steps":
        below = f"**Its steps ran below your MFU of {mfu}**: {rest} remain."
        return f"{below} 6ND alone meets the hours at {whole} MFU.{steady}"
    if share <= 0.2:
        return (
            f"**Beyond 6ND at your MFU and attention: {rest}.** Restarts and stalls, evaluation, ramp-up and stages at "
            "other lengths are billed like any other hour, and slower steps look the same; the published figures do "
            f"not separate them.{steady}"
        )
    return (
        f"**The published hours cover much more than steady steps at your MFU:** {rest} remain. What fills them is "
        f"unknown. 6ND alone meets the published hours at {whole} MFU.{steady}"
    )


def _hours(value: float) -> str:
    return f"{format_count(round(value)) if value >= 100 else amount(value)} hours"


def _remark(c: Comparison) -> str:
    return f"**About the published figures:** {c.run.notes}" if c.run.notes else ""


def other_runs(others: Sequence[Comparison]) -> list[str]:
    """Further published runs of the same model, in one sentence where there are any."""
    named = [
        f"{c.run.model} on {c.run.accelerator}, {format_count(round(c.hours.value))} hours for "
        f"{format_count(c.run.tokens)} tokens, "
        f"{format_quantity(c.utilisation, 'ratio') + ' of peak' if c.evidence else 'not evidence'}"
        for c in others
    ]
    return [f"Also published: {'; '.join(named)}."] if named else []


def nearest_runs_sentence(a: Answer, similar: Sequence[SimilarRun]) -> str:
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


def _yours(a: Answer) -> str:
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


def pointed(row: Evidence, measure: str) -> str:
    """What hovering over a run says: its size, its MFU or its hours, how that is known, and the source."""
    run = row.run
    value = percent(row.utilisation) if measure == "MFU" else f"{amount(hours_per_billion(row))} h per billion tokens"
    stands = f", median of {row.rows} rows" if row.rows > 1 else ""
    return (
        f"<b>{run.model}</b>, {run.accelerator}<br>{format_count(run.params)} active parameters<br>{value}, from "
        f"{row.how}{stands}<br>{_wrapped(run.source)}"
    )


def _wrapped(text: str, width: int = 70) -> str:
    return "<br>".join(textwrap.wrap(html.escape(text), width)[:3])


def hours_per_billion(row: Evidence) -> float:
    """Accelerator-hours per billion tokens at the row's utilisation, by 6ND."""
    flop = train_flop_6nd(row.run.params, 1e9)
    return accelerator_hours(1, training_seconds(flop, 1, peak_16bit(row.run.accelerator), row.utilisation))
