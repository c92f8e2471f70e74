"""The calendar in words and table cells: when all ends, before or after the deadline, and who waits for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.dates import format_day
from core.planning.calendar.dates import between, lasting
from core.planning.calendar.form import described, not_before
from core.planning.calendar.schedule import RunPeriod, Schedule, ScheduledRun
from core.planning.cost.bill import CostOption
from core.planning.memory_fixes import fixes
from core.planning.plan_limits import Check, ways_to_meet
from core.training.layout import LayoutError
from core.units import format_count, format_duration
from core.views.calendar.text_fit import fit, unfit_count
from core.views.cost.text import missing, unknown
from core.views.plan import text, text_limits
from core.wording import amount, listed, plural, rent, rent_or_none, span, unmarked

TABLE = ("run", "waits for", "accelerators", "memory", "begins", "ends", "quarter", "trains", "paused", "rent")


METHOD = (
    "The days of a run are the answer of its plan, as for one plan alone. The range takes every run at its early end, "
    "or every run at its late end: they share model, cluster and people, so they are early or late together. A run "
    "that does not fit beside the rows before it waits for them, whichever happens to end first; so no delay brings "
    "another run forward. Maintenance stops whatever runs, and training goes on where it stopped. A run uses one pool: "
    "no job mixes accelerators of two. While a part of a pool is out, spares stand in; where too few are left, runs of "
    "later rows pause. Interruptions of spot capacity stop the run as failures do."
)


def _whole_days(count: int) -> str:
    return f"{count:,} {plural(count, 'day')}"


def against(late: float) -> str:
    """How far an end is from the deadline, on which side of it."""
    return f"{format_duration(86400 * abs(late), 3)} {'after' if late > 0 else 'before'} the deadline"


def _subject(s: Schedule) -> str:
    count = len(s.runs)
    return {1: "The run ends", 2: "Both runs end"}.get(count, f"All {count} runs end")


def ranged(s: Schedule) -> str:
    """The days between which the last end lies, named as what they are; empty where they are one."""
    first, last = s.day(s.ends.low), s.day(s.ends.high)
    if first == last:
        return ""
    named = "P10–P90: " if all(run.answer.plan.expects_mfu for run in s.runs) else ""
    return f" ({named}{between(first, last)})"


def sentence(s: Schedule, rented: CostOption) -> str:
    """The answer: when all runs have ended, the deadline, and the rent."""
    message = f"{_subject(s)} on **{format_day(s.day(s.ends.mid))}**{ranged(s)}"
    if s.due:
        message += f", **{against(s.late(s.ends.mid))}**"
    if rented.total.known:
        message += f", for about **{rent(rented.total.mid)}**{'' if s.fleet.pools else ' rented'}"
    return f"{message}."


def detail(s: Schedule, rented: CostOption, fleet: str) -> str:
    """The quieter line: the days of a single run, what the deadline looks like late, the hours, and what the rent
    leaves out."""
    parts = [*(text.times_text(run.answer) for run in s.runs if len(s.runs) == 1), fleet]
    if wrong := unfit_count(s):
        parts.insert(0, wrong)
    if s.due and s.late(s.ends.low) <= 0 < s.late(s.ends.high):
        worst = "at P90" if all(run.answer.plan.expects_mfu for run in s.runs) else "at the late end"
        parts.insert(0, f"{worst} **{against(s.late(s.ends.high))}**")
    if rented.total.known and (message := missing(rented)):
        parts.append(f"{'cost' if s.fleet.pools else 'rent'} {message}")
    if not rented.total.known and s.fleet.pools:
        parts.append(f"**cost unknown**: {unknown(rented)}")
    elif not rented.total.known:
        owned = s.runs[0].answer.plan.owned
        parts.append(text.OWNED if owned else "**rent unknown**: type a price")
    return " · ".join(parts)


def _name(run: ScheduledRun) -> str:
    return unmarked(run.run.name)


def missed(s: Schedule) -> str:
    """That the deadline is missed, and by whom; empty where it is kept in the middle."""
    if not s.due or s.late(s.ends.mid) <= 0:
        return ""
    late = [_name(run) for run in s.runs if s.late(run.middle.end) > 0]
    earliest = s.late(s.ends.low)
    even = (
        f" Even at the early end it is {against(earliest)}."
        if earliest > 0
        else f" At the early end it is {against(earliest)}."
        if s.ends.low < s.ends.mid
        else ""
    )
    names = listed([f"“{name}”" for name in late])
    verb = "ends" if len(late) == 1 else "end"
    return f"**The deadline, {format_day(s.due)}, is missed**: {names} {verb} after it.{even}"


def limits(s: Schedule, every: Sequence[Check]) -> str:
    """The plan's limits for all runs together, stages and pools included; of a run that is the whole plan, also what
    its limits would take. every: what is checked of the calendar."""
    run, first = s.runs[0], s.runs[0].answer
    if not (first.plan.limits.has_limits or s.due):
        return " ".join(text_limits.in_memory(every))
    counted = " ".join(text_limits.limits_text(first, every))
    own = first.plan.limits.days
    if s.due and math.ceil(own if own > 0 else 0) not in (0, (s.due - s.start).days + 1):
        counted += f" {format_day(s.due)} stands here for the plan’s deadline, {format_duration(86400 * own, 3)}."
    # What idles beside it is in the dollars as well; days in which it waits or rests are none of its plan's.
    if s.runs != (run,) or s.fleet.pools or s.ends != first.range_of("days"):
        return counted
    return " ".join([counted, *text_limits.ways_text(ways_to_meet(first, every))])


def queued(s: Schedule) -> list[str]:
    """Of each run that waits for want of accelerators, for whom."""
    return [
        f"“{_name(run)}” waits for {_named(s, run.queued)}: {_whose(run)} {s.pool_of(run).usable:,} accelerators are "
        "too few for them beside each other."
        for run in s.runs
        if run.queued
    ]


def _whose(run: ScheduledRun) -> str:
    return f"the pool “{unmarked(run.run.pool.name)}”’s" if run.run.pool else "the fleet’s"


def beyond(s: Schedule) -> tuple[list[str], list[str]]:
    """Of each run that does not end before its pool does: those that do not in the middle of the range, and those that
    only do not at its late end."""
    late: list[str] = []
    perhaps: list[str] = []
    for run in s.runs:
        pool = s.pool_of(run)
        days, worst = s.days_beyond(run, run.middle.end), s.days_beyond(run, run.high.end)
        if pool.last is None or not worst:
            continue
        place = f"“{_name(run)}” on “{unmarked(pool.name)}”, which ends on {format_day(pool.last)}"
        if days:
            early = s.days_beyond(run, run.low.end)
            even = f", and even at the early end {_whole_days(early)}" if early else ""
            late.append(
                f"**It does not fit before its pool ends:** {place}, would need {_whole_days(days)} more{even}."
            )
        else:
            perhaps.append(f"{place}: at the late end it would need {_whole_days(worst)} more.")
    return late, perhaps


def _named(s: Schedule, places: tuple[int, ...]) -> str:
    return listed([f"“{_name(s.runs[j])}”" for j in places])


def rows(s: Schedule) -> list[tuple[str, ...]]:
    """Cells of the table of runs, in the order of `TABLE`."""
    return [
        (
            _name(run),
            _waits(s, run),
            format_count(run.accelerators, 15),
            fit(run)[0],
            str(s.day(run.middle.begin)),
            str(s.day(run.middle.end)),
            s.quarter(run.middle.end),
            format_duration(86400 * run.answer.middle.days, 3),
            paused(run.middle),
            rent_or_none(run.answer.dollars.mid),
        )
        for run in s.runs
    ]


def remarks(s: Schedule) -> list[tuple[str, ...]]:
    """What stands under the cells of each row: what the run trains, the ranges of its end and days, what decides these,
    and the days of its steps."""
    result: list[tuple[str, ...]] = []
    for run in s.runs:
        first, last, days = s.day(run.low.end), s.day(run.high.end), run.answer.range_of("days")
        took = span(format_duration(86400 * days.low, 3), format_duration(86400 * days.high, 3))
        ends = between(first, last) if first < last else ""
        of = run.run.pool or s.fleet.source
        pool = f"{unmarked(of.name)}, {of.accelerator}" if of else ""
        decides = text.days_basis(run.answer)
        trains = " · ".join(filter(None, (took if days.low < days.high else "", decides, text.steps_time(run.answer))))
        result.append((described(run.run), "", pool, fit(run)[1], "", ends, "", trains, "", ""))
    return result


def _waits(s: Schedule, run: ScheduledRun) -> str:
    sentences = [_name(s.runs[j]) for j in run.waits]
    if day := not_before(run.run):
        sentences.append(day)
    return listed(sentences) if sentences else "–"


def paused(period: RunPeriod) -> str:
    """How long maintenance stops a run."""
    return format_duration(86400 * period.paused, 3) if period.paused > 0 else "none"


def about(run: ScheduledRun) -> str:
    """What a run trains, on which pool where it names one, and how long it takes."""
    pool = f", on {unmarked(run.run.pool.name)}" if run.run.pool else ""
    return f"{described(run.run)}{pool}: {format_duration(86400 * run.answer.middle.days, 3)}"


def unfit(run: ScheduledRun) -> str:
    """That an accelerator does not hold a run as it is laid out, and the cheapest change; empty where it does."""
    return text.does_not_fit(run.answer)


def unfitting(s: Schedule) -> tuple[list[str], list[str]]:
    """The same of each run that is not held, by its name: where no small change of its layout helps, and where one
    does."""
    every = [(run, wrong) for run in s.runs if (wrong := unfit(run))]
    lost, saved = ([(run, wrong) for run, wrong in every if _rescued(run) == rescued] for rescued in (False, True))
    return _by_run(lost), _by_run(saved)


def _by_run(every: Sequence[tuple[ScheduledRun, str]]) -> list[str]:
    """What is wrong with runs, each message once, by the names of its runs."""
    names: dict[str, list[str]] = {}
    for run, wrong in every:
        names.setdefault(wrong, []).append(f"“{_name(run)}”")
    return [f"{listed(some)}: {wrong}" for wrong, some in names.items()]


def _rescued(run: ScheduledRun) -> bool:
    try:
        return bool(fixes(run.answer.memory))
    except LayoutError:
        return False


def impossible(s: Schedule) -> list[str]:
    """Of each run whose steps would have to be faster than the accelerator multiplies, that they would."""
    return _by_run([(run, wrong) for run in s.runs if (wrong := text.impossible(run.answer))])


def picture(s: Schedule) -> str:
    """What the picture shows, for whoever does not see it."""
    parts = [
        f"{run.run.name} {lasting(s.day(run.middle.begin), s.day(run.middle.end))}, "
        f"{amount(run.accelerators)} accelerators"
        for run in s.runs
    ]
    pools = " and ".join(f"{pool.accelerators:,} {pool.accelerator} ({unmarked(pool.name)})" for pool in s.pools)
    where = pools if s.fleet.pools else f"{s.fleet.accelerators:,} accelerators"
    return f"Calendar of {len(s.runs)} {plural(len(s.runs), 'run')} on {where}: {'; '.join(parts)}."
