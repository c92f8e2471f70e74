"""A running job against its plan, in words: on time or not, when it ends at this speed, what changed, what was read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from core.dates import format_day
from core.messages import Message, message, pick_message
from core.planning.actuals.logged_run import CSV
from core.planning.actuals.progress import JobProgress, own_run_text, tokens_each
from core.planning.estimate import PlanEstimate
from core.wording import format_value, plain, signed

_LAST_DAY = 7.2e9
_MONTH, _LONGEST_EXAMPLE = 30.0, 5000.0
"""Days: a shorter example has no dates, and none is longer."""

# ------------------------------------------------------------------------------ the verdict


def verdict(p: JobProgress) -> list[Message]:
    """Return the progress of the job, compared with the plan's range, its projected end, and whether it meets the
    deadline."""
    said = [
        message("actuals.all", goal=p.goal, day=p.day)
        if p.done
        else message("actuals.progress", share=float(f"{p.trained / p.goal:.3g}"), goal=p.goal, day=p.day)
    ]
    said.append(_against_plan(p) if p.log.clock == "wall" else _steps_against_plan(p))
    return [*said, _ending(p), *_against_deadline(p)]


def _against_plan(p: JobProgress) -> Message:
    behind = p.day - p.planned.mid * p.trained / p.goal
    way = "behind" if behind > 0 else "ahead"
    if p.implied > p.planned.high * (1 + 1e-9):
        way = "slower"
    elif p.implied < p.planned.low * (1 - 1e-9):
        way = "faster"
    return message(f"actuals.plan.{way}", by=abs(behind))


def _steps_against_plan(p: JobProgress) -> Message:
    off = p.pace * p.steps_days / p.goal - 1
    way = "equal" if abs(off) < 0.005 else "faster" if off > 0 else "slower"
    return pick_message(f"actuals.steps.{way}", pace=p.pace, by=abs(off))


def _on(p: JobProgress, day: float) -> Message:
    """Return a day of the job, with its date where moments were logged."""
    seconds = p.log.began + 86400 * (day - p.lead)
    if not seconds < _LAST_DAY:  # unknown, or beyond any calendar
        return message("actuals.day", day=day)
    return message("actuals.dated", date=format_day(datetime.fromtimestamp(seconds, UTC).date()), day=day)


def _ending(p: JobProgress) -> Message:
    first, last = p.ends
    if p.done:
        return message("actuals.ended", end=_on(p, first))
    if math.isinf(last):
        return message("actuals.stands_still", end=_on(p, first))
    same = f"{first:.3g}" == f"{last:.3g}"
    ends = _on(p, first), _on(p, last)
    return pick_message(_ENDINGS[p.log.clock == "wall", same], end=ends[0], first=ends[0], last=ends[1])


_ENDINGS = {
    (True, True): "actuals.ends",
    (True, False): "actuals.ends_between",
    (False, True): "actuals.ends_steps",
    (False, False): "actuals.ends_steps_between",
}
"""Whether all time was logged, and whether both speeds end on one day → the message."""


def _against_deadline(p: JobProgress) -> list[Message]:
    """Return whether the deadline is met; nothing if there is none."""
    if math.isnan(p.deadline):
        return []
    early, late = (end - p.deadline for end in p.ends)
    never = math.isinf(late)
    way = "before" if late <= 0 else "after" if early > 0 else "around"
    return [
        pick_message(
            _DEADLINES[way, never],
            by=early if never else tuple(sorted((abs(early), abs(late)))),
            before=-early,
            after=late,
            deadline=p.deadline,
        )
    ]


_DEADLINES = {
    ("before", False): "actuals.before_deadline",
    ("after", False): "actuals.after_deadline",
    ("after", True): "actuals.after_deadline_least",
    ("around", False): "actuals.around_deadline",
    ("around", True): "actuals.around_deadline_never",
}


# ------------------------------------------------------------------------------ tables


def headings() -> tuple[Message, ...]:
    """Return the headings of `changed`."""
    return (
        message("actuals.table.quantity"),
        message("actuals.table.logged"),
        message("actuals.table.plan"),
        message("actuals.table.difference"),
    )


def changed(p: JobProgress) -> list[tuple[str, ...]]:
    """Return the table of speeds compared with the plan, and of days lost."""
    steps, whole = p.goal / p.steps_days, p.goal / p.planned.mid
    of_wall, by_steps = p.log.clock == "wall", len(p.log.rates) > 0
    planned = whole if of_wall and not by_steps else steps
    median = message("actuals.row.median_step" if by_steps else "actuals.row.steady")
    recent = _pace(p.recent) if p.recent > 0 else message("actuals.no_pace")
    off = signed(p.recent / planned - 1) if p.recent > 0 else ""
    overall = (message("actuals.row.overall"), _pace(p.overall), _pace(whole), signed(p.overall / whole - 1))
    return [
        (median, _pace(p.steady), _pace(steps), signed(p.steady / steps - 1)),
        *([overall] if of_wall else []),
        (message("actuals.row.recent"), recent, _pace(planned), off),
        (_gaps(p), format_value(p.gap_days, "days"), "", ""),
        (_repeated(p), format_value(p.repeated / p.steady, "days"), "", ""),
    ]


def _gaps(p: JobProgress) -> Message:
    if not p.gaps:
        return message("actuals.row.no_gaps")
    longest = max(p.gaps, key=lambda gap: gap.days)
    return message("actuals.row.gaps", gaps=float(len(p.gaps)), longest=longest.days, start=longest.start)


def _repeated(p: JobProgress) -> Message:
    if not p.restarts:
        return message("actuals.row.repeated")
    return message("actuals.row.repeated_after", restarts=float(p.restarts), tokens=p.repeated)


def _pace(pace: float) -> Message:
    return message("actuals.pace", pace=pace)


# ------------------------------------------------------------------------------ what was read


def read(p: JobProgress) -> list[Message]:
    """Return what was read of the file, what was left out, and what was assumed."""
    log, said = p.log, list[Message]()
    when, what = log.columns
    rows, every = float(log.rows - log.skipped - log.missing - log.unreadable), float(log.rows)
    if log.format == CSV:
        said.append(message("actuals.read.csv", rows=rows, all=every, what=what, when=when))
    else:
        said.append(message("actuals.read.log", rows=rows, all=every, what=what, when=when, format=log.format))
        if log.skipped:
            said.append(message("actuals.read.skipped", skipped=float(log.skipped)))
    if log.measure != "tokens":
        each = float(tokens_each(log, p.plan))
        said.append(
            message("actuals.read.samples", each=each)
            if log.measure == "samples"
            else message("actuals.read.steps", each=each)
        )
    if log.clock == "rates":
        said.append(message("actuals.read.rates", accelerators=float(p.plan.accelerators)))
    if log.clock != "wall":
        said.append(message("actuals.read.no_stops"))
    if log.format != CSV:
        said.append(message("actuals.read.median" if len(log.seconds) > 2 else "actuals.read.mean"))
    if log.missing:
        said.append(message("actuals.read.missing", rows=float(log.missing)))
    if log.unreadable:
        said.append(message("actuals.read.unreadable", rows=float(log.unreadable), bad=log.bad))
    if log.resets:
        said.append(message("actuals.read.resets", times=float(log.resets)))
    if p.lead > 0.01 * p.day:
        said.append(message("actuals.read.lead", tokens=float(p.tokens[0]), days=p.lead))
    return said


def own(p: JobProgress) -> Message:
    """Return the job as a custom run, in words, or the reason why it is not one yet."""
    if p.log.clock != "wall":
        return message("actuals.custom.no_stops")
    if p.why:
        return message("actuals.custom.invalid", reason=p.why)
    if p.own is None:
        return message("actuals.custom.too_short")
    return message("actuals.custom.counts", mfu=p.own.mfu, day=p.day)


def with_own_run(p: JobProgress, before: str) -> str:
    """Return the text of the custom runs with the job added; unchanged if it is already there or is not a valid run."""
    line = own_run_text(p.own) if p.own else ""
    lines = [*before.splitlines(), line] if line and line not in before.splitlines() else before.splitlines()
    return "\n".join(filter(None, lines))


def chart_alt(p: JobProgress) -> str:
    """Return what the chart shows."""
    planned = (p.planned.low, p.planned.high)
    said = message("actuals.alt", trained=p.trained, day=p.day, range=planned, verdict=verdict(p)[1])
    return plain(said)


def example(a: PlanEstimate) -> str:
    """Return a made-up log of a job on the plan of ``a``: 45% done, one long gap, one restart, a slower end."""
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
