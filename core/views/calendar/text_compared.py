"""Calendars beside each other, in words and table cells: when each ends, what it costs, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.dates import format_day
from core.planning.calendar.dates import between
from core.planning.comparison.calendars import ComparedCalendar
from core.planning.cost.calendar_limits import calendar_checks
from core.planning.plan_limits import Check, all_met
from core.units import format_count
from core.views.calendar.text import against, beyond
from core.views.calendar.text_fit import fits
from core.views.plan import text_limits
from core.wording import apart_as_shown, listed, plural, rent

CALENDARS = ("calendar", "ends", "deadline", "cost", "runs", "accelerators", "limits")

HERE = "as shown here"


def row(name: str, item: ComparedCalendar, base: ComparedCalendar | None) -> tuple[tuple[str, str], ...]:
    """Cells of one calendar, in the order of `CALENDARS`, with a remark under each. base: what it is held against."""
    s = item.schedule
    if s is None:
        return ((name, item.problem), *(("–", ""),) * (len(CALENDARS) - 1))
    first, last = s.day(s.ends.low), s.day(s.ends.high)
    pools = ", ".join(f"{pool.accelerators:,} {pool.accelerator}" for pool in s.pools)
    wrong, every = _wrong(item), _limits(item)
    unknown = text_limits.not_met(every) if all_met(every) is None else []
    verdict = f"✗ {listed(wrong)}" if wrong else f"? {listed(unknown)}" if unknown else "✓"
    return (
        (name, ""),
        (format_day(s.day(s.ends.mid)), _apart(item, base) or (between(first, last) if first < last else "")),
        (f"{'✗' if s.late(s.ends.mid) > 0 else '✓'} {against(s.late(s.ends.mid))}" if s.due else "none", ""),
        ("unknown" if math.isnan(item.dollars) else rent(item.dollars), _dearer(item, base)),
        (str(len(s.runs)), ""),
        (format_count(sum(pool.accelerators for pool in s.pools), 15), pools),
        (verdict, text_limits.together(every)),
    )


def _wrong(item: ComparedCalendar) -> list[str]:
    """What a calendar does not keep."""
    s = item.schedule
    if s is None:
        return []
    unfit, late = sum(not fits(run) for run in s.runs), len(beyond(s)[0])
    parts = [text_limits.NAMES[check.id] for check in _limits(item) if check.met is False and check.id != "memory"]
    parts += [f"{late} {plural(late, 'run')} beyond {'its' if late == 1 else 'their'} pool"] if late else []
    return parts + ([f"{unfit} {plural(unfit, 'run')} too large"] if unfit else [])


def _limits(item: ComparedCalendar) -> tuple[Check, ...]:
    return calendar_checks(item.schedule, item.ways[0].total) if item.schedule else ()


def _apart(item: ComparedCalendar, base: ComparedCalendar | None) -> str:
    """How much earlier or later a calendar ends than another."""
    if base is None or item.schedule is None or base.schedule is None:
        return ""
    days = (item.schedule.day(item.schedule.ends.mid) - base.schedule.day(base.schedule.ends.mid)).days
    if days == 0:
        return "on the same day"
    return f"{abs(days):,} {plural(abs(days), 'day')} {'later' if days > 0 else 'earlier'}"


def _dearer(item: ComparedCalendar, base: ComparedCalendar | None) -> str:
    """How much more or less a calendar costs than another."""
    if base is None or math.isnan(more := item.dollars - base.dollars):
        return ""
    by = rent(apart_as_shown(item.dollars, base.dollars))
    return f"{by} {'more' if more > 0 else 'less'}" if more else "the same"


def sentence(items: Sequence[tuple[str, ComparedCalendar]]) -> str:
    """Which of several calendars ends first, and which costs least. items: with their names."""
    placed = [(name, item, s.day(s.ends.mid)) for name, item in items if (s := item.schedule)]
    if len(placed) < 2:
        return ""
    first = min(placed, key=lambda one: one[2])
    known = [one for one in placed if not math.isnan(one[1].dollars)]
    text = f"**{first[0]}** ends first"
    if len(known) == len(placed):
        least = min(known, key=lambda one: one[1].dollars)
        text += " and costs least" if least == first else f"; **{least[0]}** costs least, **{rent(least[1].dollars)}**"
    return f"{text}."
