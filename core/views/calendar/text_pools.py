"""Ways to run a plan on a fleet, in words and table cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.dates import format_day
from core.planning.calendar.dates import between
from core.planning.calendar.schedule import ScheduledRun
from core.planning.cost.choose_pools import OtherTerms, PoolChoice
from core.units import format_count, format_duration, format_quantity
from core.views.calendar.text import against
from core.views.common.markup import unmarked
from core.views.plan.text_limits import missed, together
from core.wording import dollars, listed, percent, rent

CHOICES = ("way", "accelerators", "ends", "deadline", "days", "cost", "power", "")

NOTE = (
    "A run uses one pool: no job mixes accelerators of two. Each way has the plan alone on its pool; what other pools "
    "cost while they idle is in the bill, not here. The fewest end in time at the probability that has to hold: at P50 "
    "half of such runs end later. Power is the average while it runs, cooling and supply included, and under it "
    "the most at once. A way that misses a limit of the plan meets not all."
)


def way(choice: PoolChoice) -> str:
    """What a way is: all of a pool, or the fewest of an accelerator to rent."""
    if choice.fewest:
        return f"rent {choice.accelerators:,} {choice.pool.accelerator}" if choice.accelerators else choice.pool.name
    return f"{unmarked(choice.pool.name)}, all of it"


def rows(choices: Sequence[PoolChoice]) -> list[tuple[tuple[str, str], ...]]:
    """Cells of the table, in the order of `CHOICES`, each with a remark under it."""
    return [_row(choice) for choice in choices]


def _row(choice: PoolChoice) -> tuple[tuple[str, str], ...]:
    s = choice.schedule
    if s is None:
        name = f"rent {choice.pool.accelerator}" if choice.fewest else way(choice)
        return ((name, choice.problem), *(("–", ""),) * (len(CHOICES) - 2), ("✗", ""))
    (run,) = s.runs
    first, last = s.day(s.ends.low), s.day(s.ends.high)
    likely = together(choice.limits)
    power = "unknown" if math.isnan(choice.watts) else format_quantity(choice.watts, "watts", 3)
    pool_ends = "" if choice.in_time or choice.late[0] > 0 else f"its pool ends {format_day(choice.pool.last or last)}"
    return (
        (way(choice), "the fewest in time" if choice.fewest else choice.pool.holding),
        (format_count(choice.accelerators, 15), choice.pool.accelerator),
        (format_day(s.day(s.ends.mid)), between(first, last) if first < last else ""),
        (f"{'✓' if choice.in_time else '✗'} {against(choice.late[0])}", pool_ends or _late_end(choice)),
        (format_duration(86400 * run.answer.middle.days, 3), ""),
        _cost(choice),
        (power, _most_at_once(run)),
        ("✓ meets all" if choice.meets else "✗", "; ".join(filter(None, (*missed(choice.limits), likely)))),
    )


def _most_at_once(run: ScheduledRun) -> str:
    watts = run.answer.middle.peak_watts
    return "" if math.isnan(watts) else f"at most {format_quantity(watts, 'watts', 3)}"


def _late_end(choice: PoolChoice) -> str:
    return f"late end: {against(choice.late[1])}" if choice.late[1] > 0 else "also at the late end"


def _cost(choice: PoolChoice) -> tuple[str, str]:
    if math.isnan(choice.dollars):
        return "unknown", "type its price, or capital"
    return rent(choice.dollars), f"✗ {dollars(choice.over)} over" if choice.over > 0 else ""


def sentence(choices: Sequence[PoolChoice], limits: str) -> str:
    """What is best of all ways, and what the nearest lacks where none keeps the limits. limits: as a phrase."""
    meeting = [choice for choice in choices if choice.meets]
    if meeting:
        best = meeting[0]
        cost = "" if math.isnan(best.dollars) else f" for about **{rent(best.dollars)}**"
        verb = "keep" if len(meeting) > 1 else "keeps"
        return f"**{len(meeting)} of {len(choices)}** ways {verb} {limits}; the best is **{way(best)}**{cost}."
    nearest = next((choice for choice in choices if choice.schedule), None)
    if nearest is None:
        return f"No way keeps {limits}."
    lacks = [against(nearest.late[0])] if nearest.late[0] > 0 else []
    lacks += [f"{dollars(nearest.over)} over"] if nearest.over > 0 else []
    lacks += missed(nearest.limits)
    return f"No way keeps {limits}. The nearest is **{way(nearest)}**: {listed(lacks) or 'its pool ends before'}."


def terms(found: OtherTerms) -> str:
    """What a week more spares, and what ten more points of probability cost."""
    week = _instead(found, found.later, "**A week more**")
    return f"{week} {_instead(found, found.surer, f'**In time with {percent(found.level)}**')}"


def _instead(found: OtherTerms, other: PoolChoice, terms: str) -> str:
    """What other terms take: how many more or fewer, for how much more or less."""
    now, name = found.way, found.way.pool.accelerator
    if other.schedule is None:
        return f"{terms}: no number of {name} does."
    more = other.dollars - now.dollars
    cost = "" if math.isnan(more) else f", {dollars(abs(more))} {'more' if more > 0 else 'less'}"
    return f"{terms}: **{other.accelerators:,}** {name} instead of {now.accelerators:,}{cost}."
