"""A running job against its plan, in words: on time or not, when it ends at this pace, what changed, what was read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from core.dates import format_day
from core.planning.actuals.logged_run import CSV
from core.planning.actuals.progress import JobProgress, own_run_text, tokens_each
from core.planning.estimate import PlanEstimate
from core.units import format_count, format_duration, format_quantity
from core.views.common.chart import as_typed
from core.wording import percent, plural, signed, span

INVITATION = (
    "Paste what the job prints: the steps of nanoGPT, Megatron-LM, or torchtitan, or the dictionaries of the Hugging "
    "Face Trainer. A CSV of a logger, such as an export of W&B or TensorBoard, works too: tokens, samples, or steps "
    "against time. Napkin draws the job over the plan’s range."
)
KEPT_HERE = "The log is too long for a link: it stays in this browser session alone. Links carry the plan without it."
IN_LINK = "The log is short enough that links to this plan carry it."
HEADINGS = ("", "logged", "plan", "difference")
_LAST_DAY = 7.2e9
_MONTH, _LONGEST_EXAMPLE = 30.0, 5000.0
"""Days: a shorter example has no dates, and none is longer."""


def _days(days: float) -> str:
    return format_duration(86400 * days, 3)


def _tokens(tokens: float) -> str:
    return format_count(tokens, 3)


def _date(p: JobProgress, day: float) -> str:
    """The date of a day of the job; empty where no moments were logged."""
    seconds = p.log.began + 86400 * (day - p.lead)
    if not seconds < _LAST_DAY:  # unknown, or beyond any calendar
        return ""
    return format_day(datetime.fromtimestamp(seconds, UTC).date())


def _at(p: JobProgress, day: float) -> str:
    """``12 Mar 2027 (day 92)``, or the day alone."""
    date = _date(p, day)
    return f"**{date}** (day {day:,.3g})" if date else f"**day {day:,.3g}**"


def verdict(p: JobProgress) -> str:
    """How far it is, how that stands against the plan's range, when it ends, and whether within the deadline."""
    if p.log.clock != "wall":
        return " ".join(filter(None, (_of_steps(p), _ending(p), _late(p))))
    behind = p.day - p.planned.mid * p.trained / p.goal
    side = f"{_days(abs(behind))} {'behind' if behind > 0 else 'ahead of'} the middle of the plan"
    if p.implied > p.planned.high * (1 + 1e-9):
        place = "✗ slower than its P90"
    elif p.implied < p.planned.low * (1 - 1e-9):
        place = "✓ faster than its P10"
    else:
        place = "✓ within its P10–P90"
    sentence = f"{_share(p)} of {_tokens(p.goal)} tokens after {_days(p.day)}: **{side}**, {place}."
    return " ".join(filter(None, (sentence, _ending(p), _late(p))))


def _share(p: JobProgress) -> str:
    return "All" if p.done else f"**{percent(float(f'{p.trained / p.goal:.3g}'))}**"


def _of_steps(p: JobProgress) -> str:
    """How far it is by its steps alone, and how their pace compares with that of the plan's steps."""
    ratio = p.pace * p.steps_days / p.goal
    apart = f"{percent(abs(ratio - 1))} {'faster' if ratio > 1 else 'slower'} than"
    apart = "as fast as" if abs(ratio - 1) < 0.005 else apart
    return (
        f"{_share(p)} of {_tokens(p.goal)} tokens after {_days(p.day)} of steps. The median step trains "
        f"**{_pace(p.pace)}**, **{apart}** the steps of the plan alone."
    )


def _ending(p: JobProgress) -> str:
    first, last = p.ends
    if p.done:
        return f"It ended on {_at(p, first)}."
    if math.isinf(last):
        return f"At its overall pace it ends on {_at(p, first)}; at its recent one, never: it stands still."
    pace = "At this pace" if p.log.clock == "wall" else "At this pace, without stops between steps,"
    if f"{first:.3g}" == f"{last:.3g}":
        return f"{pace} it ends on {_at(p, first)}."
    return f"{pace} it ends between {_at(p, first)} and {_at(p, last)}."


def _late(p: JobProgress) -> str:
    """Whether the deadline holds."""
    if math.isnan(p.deadline):
        return ""
    early, late = (end - p.deadline for end in p.ends)
    named = f"the deadline of {_days(p.deadline)}"
    if late <= 0:
        return f"✓ {_apart(-late, -early)} before {named}."
    if early > 0:
        return f"✗ {_apart(early, late)} after {named}."
    return f"? From {_days(-early)} before {named} to {_days(late) + ' after it' if math.isfinite(late) else 'never'}."


def _apart(low: float, high: float) -> str:
    if math.isinf(high):
        return f"at least {_days(low)}"
    return _days(low) if _days(low) == _days(high) else span(_days(low), _days(high))


def changed(p: JobProgress) -> list[tuple[str, ...]]:
    """Paces against those of the plan, and days lost."""
    steps, whole = p.goal / p.steps_days, p.goal / p.planned.mid
    recent = _pace(p.recent) if p.recent > 0 else "none"
    gaps = f"Lost in {len(p.gaps)} {plural(len(p.gaps), 'gap')}"
    if p.gaps:
        worst = max(p.gaps, key=lambda gap: gap.days)
        gaps += f", the longest {_days(worst.days)} from day {worst.start:,.3g}"
    twice = f"Trained twice after {p.restarts} {plural(p.restarts, 'restart')}, {_tokens(p.repeated)} tokens"
    of_wall, by = p.log.clock == "wall", "Median step" if len(p.log.rates) else "Steady stretches"
    last, of = (whole, "whole run") if of_wall and not len(p.log.rates) else (steps, "steps alone")
    every = ("All days (plan: whole run)", _pace(p.overall), _pace(whole), signed(p.overall / whole - 1))
    return [
        (f"{by} (plan: steps alone)", _pace(p.steady), _pace(steps), signed(p.steady / steps - 1)),
        *([every] if of_wall else []),
        (f"The last quarter (plan: {of})", recent, _pace(last), signed(p.recent / last - 1) if p.recent > 0 else ""),
        (gaps, _days(p.gap_days), "", ""),
        (twice if p.restarts else "Trained twice", _days(p.repeated / p.steady), "", ""),
    ]


def _pace(pace: float) -> str:
    return f"{_tokens(pace)} tokens/day"


def read(p: JobProgress) -> list[str]:
    """What was read of the file, what was left out, and what was taken for granted."""
    log = p.log
    when, what = (as_typed(name) for name in log.columns)
    rows = log.rows - log.skipped - log.missing - log.unreadable
    read_as, skipped = "rows as a CSV", ""
    if log.format != CSV:
        read_as = f"lines as a log of {log.format}"
        skipped = f" It skipped {log.skipped:,} of something else." if log.skipped else ""
    lines = [f"Napkin read {rows:,} of {log.rows:,} {read_as}: “{what}” against “{when}”.{skipped}"]
    if log.measure != "tokens":
        each = tokens_each(log, p.plan)
        basis = "the plan’s sequence length" if log.measure == "samples" else "the plan’s batch"
        lines.append(f"It counts {log.measure}, of {format_count(each)} tokens each by {basis}.")
    if log.clock == "rates":
        lines.append(f"Its time follows from tps and from the plan’s {format_count(p.plan.accelerators)} accelerators.")
    if log.clock != "wall":
        lines.append("It times steps and no stops between them. Steps that it does not print count as the median.")
    if log.format != CSV:
        first = "so slow first steps do not count"
        lines.append(
            f"The pace is the median of its steps, {first}."
            if len(log.seconds) > 2
            else "Only its end has a time, so the pace is the mean of all of it, slow first steps included."
        )
    if log.earlier:
        lines.append(f"Napkin sorted the rows by time: {as_typed(log.earlier)}, is earlier than the row before it.")
    if log.missing:
        lines.append(f"{log.missing:,} {plural(log.missing, 'row')} without a time or a count left out.")
    if log.unreadable:
        bad = as_typed(log.bad)
        lines.append(f"{log.unreadable:,} {plural(log.unreadable, 'row')} that cannot be read left out: {bad}.")
    if log.resets:
        times = f"{log.resets} {plural(log.resets, 'time')}"
        lines.append(
            f"The time begins anew {times}: counted on, without the days between, which the file does not say."
        )
    if p.lead > 0.01 * p.day:
        lines.append(f"It begins at {_tokens(float(p.tokens[0]))} tokens: {_days(p.lead)} before it, at its own pace.")
    return lines


def own(p: JobProgress) -> str:
    """The job as a run of one's own, in words; else why it is none yet."""
    if p.log.clock != "wall":
        return "It cannot count among your own runs, because its log times steps and not all hours."
    if p.why:
        return f"It cannot count among your own runs. {as_typed(p.why)}"
    if p.own is None:
        return "From a tenth of its tokens on, its pace can count among your own runs and narrow the range."
    share = format_quantity(p.own.mfu, "ratio", 3)
    return f"It reached {share} MFU over all hours of {_days(p.day)}, which can narrow the plan’s range."


def with_own_run(p: JobProgress, before: str) -> str:
    """The text of one's own runs with the job among them; as it was where it is already, or is none."""
    line = own_run_text(p.own) if p.own else ""
    lines = [*before.splitlines(), line] if line and line not in before.splitlines() else before.splitlines()
    return "\n".join(filter(None, lines))


def chart_alt(p: JobProgress) -> str:
    """What the chart shows."""
    plan = f"{_days(p.planned.low)} to {_days(p.planned.high)}"
    return f"Tokens against days: {_tokens(p.trained)} tokens by day {p.day:,.3g}, over the plan’s {plan}."


def example(a: PlanEstimate) -> str:
    """A made-up log of a job on the plan of ``a``: 45 % done, one long gap, one restart, a slower end."""
    end = min(a.middle.days, _LONGEST_EXAMPLE)
    goal = a.middle.tokens * end / a.middle.days
    dated = end > _MONTH
    began = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    shape: Sequence[tuple[float, float]] = (
        (0, 0), (4, 4.6), (8, 9.2), (12, 13.8), (15, 17.2), (15.1, 16.9), (18, 20.2), (18.5, 20.8), (22.5, 20.8),
        (26, 24.8), (30, 29.4), (34, 34), (38, 38.2), (42, 42), (46, 45),
    )  # fmt: skip
    rows = [
        f"{f'{began + 864 * at * end:.0f}' if dated else f'{at * end / 100:.6g}'},{share * goal / 100:.4g}"
        for at, share in shape
    ]
    return "\n".join(["timestamp,consumed_tokens" if dated else "days,consumed_tokens", *rows])
