"""The sentences about a published run beside 6ND, in the page's small markup."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence

from core.hardware.accelerators import find
from core.models.catalog import CatalogModel
from core.models.flops import train_flop_6nd
from core.planning.answer.outlook import Outlook, Published
from core.planning.answer.words import amount, interval, percent, signed
from core.planning.budget.rule import accelerator_hours, training_seconds
from core.planning.evidence.comparable import FEWEST, Prediction, Score, Trait
from core.planning.evidence.rows import Evidence, base_peak
from core.planning.evidence.runs import AS_PUBLISHED, Comparison, models_with_runs
from core.units import Kind, format_count, format_duration, format_quantity


def runs_to_compare() -> str:
    """Which models have a published whole run, for the help of the choice."""
    return f"With a published full run to compare with: {', '.join(models_with_runs())}."


def no_run(model: CatalogModel) -> str:
    """That there is no published run of ``model`` to compare with."""
    return (
        f"**No published full run of {model.name}:** no source at hand gives its tokens, accelerator and hours "
        f"together. {len(models_with_runs())} models of the catalogue have one; the help of Model names them."
    )


def beside_headings(c: Comparison, mfu: float, dtype: str) -> tuple[str, str, str, str]:
    """Headings of the table of `beside`. mfu: the plan's, of the peak of ``dtype``; the run is held against 16 bits."""
    said = f"{percent(c.mfu)} MFU"
    if percent(mfu) != percent(c.mfu):
        said = f"{percent(c.mfu)} MFU of {'fp16' if c.run.precision == 'fp16' else 'bf16'} ({percent(mfu)} of {dtype})"
    return "quantity", f"this run by 6ND at {said}", "as published", "difference"


def beside(c: Comparison, accelerators: float) -> list[tuple[str, str, str, str]]:
    """Rows of a published run beside 6ND for the same model, tokens and accelerator; differences from the published."""
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
        ("MFU of steady steps", mfu, interval(c.steady) if c.steady else "unknown", ""),
        ("Utilisation over all these hours", mfu, share, share_off),
    ]


def _against(rule: float, published: float, kind: Kind) -> tuple[str, str]:
    return format_quantity(published, kind), signed(rule / published - 1)


def about_run(c: Comparison) -> str:
    """What the published run was and what the table's differences mean, for its caption."""
    return (
        f"{c.run.model}: {format_count(c.run.tokens)} tokens on {c.run.accelerator}. Model, tokens and accelerator are "
        "the published run’s, the MFU is yours. Differences: 6ND relative to the published figure."
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
    where = "" if c.run.seq_len else ", the length set above, its own not being at hand"
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


def comparables(o: Outlook, seen: Published, *, published: bool) -> str:
    """What the picture of the answer shows, and which runs count as comparable."""
    peers = seen.peers
    shared = _listed([_SHARED[trait] for trait in peers.kept])
    alike = f"with {shared}" if shared else "of any kind"
    said = f"**Your run at the pace of {len(peers.rows)} published ones** {alike}."
    if published:
        return said  # the line above it has their MFU
    span = interval((seen.mfu.low, seen.mfu.high))
    return f"{said} Their hours come to {span} of the peak (P10–P90), median {percent(seen.mfu.mid)}.{_yours(o)}"


def _yours(o: Outlook) -> str:
    """The plan's own MFU where it is not that of published runs: found, or typed, and then a range maybe."""
    if o.find == "MFU":
        return f" Yours is found: {percent(o.plan.mfu)}."
    ends = (o.mfu.low, o.mfu.high) if o.mfu.low < o.mfu.high else (o.plan.mfu,)
    return f" Yours is typed: {interval(ends)}."


def given_up(seen: Published) -> str:
    """Which traits the comparable runs do not share with the plan, for want of runs; empty where they share all."""
    dropped = seen.peers.dropped
    if not dropped:
        return ""
    return (
        f"**Comparable runs:** only {seen.peers.found} published runs share every trait with the plan, and "
        f"{FEWEST} are wanted at least, so {_listed([_TRAITS[trait] for trait in dropped[::-1]])} may differ."
    )


_TRAITS: Mapping[Trait, str] = {
    "tokens per parameter": "tokens per parameter",
    "family": "accelerator",
    "experts": "kind (dense or mixture)",
    "size": "size",
    "precision": "precision",
}
_SHARED: Mapping[Trait, str] = {
    "tokens per parameter": "like tokens per parameter",
    "family": "the same accelerator family",
    "experts": "the same kind of model (dense or mixture)",
    "size": "a like size",
    "precision": "the same precision",
}


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1] if words else "")))


def scored(s: Score, lab: Score) -> str:
    """How well the method predicts the published runs. lab: its score with everything of a run's lab left out."""
    return (
        f"**How far to trust it:** predicted from all other models, the median of the comparable runs was off by "
        f"**{percent(s.error)}** (median of {s.runs} runs), and **{percent(s.inside)}** of them took between P10 and "
        f"P90. With everything of the same lab left out, as for a lab that has published nothing, it is "
        f"{percent(lab.error)}, and {percent(lab.inside)} inside. Tokens per parameter as the first trait was chosen "
        "knowing these runs, so both figures flatter the method somewhat."
    )


PREDICTED = ("run", "accelerator", "published", "predicted P50", "P10–P90", "error", "inside")
"""Headings of the table of `predicted`."""


def predicted(rows: Sequence[Prediction]) -> list[tuple[str, ...]]:
    """Rows of the table of predictions: each run from the others, its own model left out."""
    return [
        (
            row.run.model,
            row.run.accelerator,
            format_quantity(row.published, "accelerator_hours"),
            format_quantity(row.hours.mid, "accelerator_hours", 3),
            f"{format_count(row.hours.low, 3)}–{format_quantity(row.hours.high, 'accelerator_hours', 3)}",
            signed(row.error),
            "yes" if row.inside else "**no**",
        )
        for row in rows
    ]


def pointed(row: Evidence, value: str) -> str:
    """What hovering over a run says: its size, its value, how that is known, and the source."""
    run = row.run
    stands = f", median of {row.rows} rows" if row.rows > 1 else ""
    return (
        f"<b>{run.model}</b>, {run.accelerator}<br>{format_count(run.params)} active parameters<br>{value}, from "
        f"{row.how}{stands}<br>{_wrapped(run.source)}"
    )


def _wrapped(text: str, width: int = 70) -> str:
    return "<br>".join(textwrap.wrap(html.escape(text), width)[:3])


def hours_per_billion(row: Evidence) -> float:
    """Accelerator-hours per billion tokens at the row's utilisation."""
    return hours_per_billion_tokens(row.run.params, base_peak(row.run.accelerator), row.utilisation)


def hours_per_billion_tokens(params: float, peak: float, mfu: float) -> float:
    """Accelerator-hours of a billion tokens by 6ND."""
    return accelerator_hours(1, training_seconds(train_flop_6nd(params, 1e9), 1, peak, mfu))
