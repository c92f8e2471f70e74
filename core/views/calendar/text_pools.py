"""Pools over how many of them the runs of a calendar take, in words and table cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

from core.dates import format_day
from core.planning.calendar.pools import OWN_CLUSTER, Pool
from core.planning.cost.choose_pools import WEEK, PoolChoice, PoolLine, levels_of
from core.planning.plan import Plan
from core.runs.coverage import unproven
from core.units import format_duration, format_quantity
from core.views.common.markup import unmarked
from core.views.plan.text import typed_elsewhere
from core.views.plan.text_limits import missed, together
from core.wording import apart_as_shown, dollars, listed, percent, rent

_NOTE = (
    "All runs are on one pool here, one after the other, each on all of so many accelerators: no job mixes those of "
    "two. Accelerators come in whole nodes, single ones within a node; dollars are of those that the runs take, as "
    "their pool is held, in the middle of the range, which is P50."
)


def notes(lines: Sequence[PoolLine], plan: Plan) -> str:
    """How pools were chosen, and what holds for all of them."""
    typed = typed_elsewhere(plan, [line.pool.accelerator for line in lines])
    some = sum(line.pool.name == line.pool.accelerator for line in lines)
    catalogue = (
        f" Those to rent are the {some} of the catalogue that miss the fewest limits in time, for the least money: "
        "type a pool to rent to have yours instead."
    )
    return f"{typed} {_NOTE}".strip() + (catalogue if some else "")


def caption(due: date) -> str:
    """What the table holds."""
    return (
        f"The fewest accelerators of each pool that end by {format_day(due)}, at each probability, and the most that "
        "keep money and power"
    )


def headings(plan: Plan) -> tuple[str, ...]:
    """Of the table: a column for each limit, and for all."""
    first, *others = (f"P{round(100 * level)}" for level in levels_of(plan))
    week = f"up to {WEEK} days late" + ("" if plan.limits.certainty == first else f", {plan.limits.certainty}")
    money = () if math.isnan(plan.limits.dollars) else (f"≤ {dollars(plan.limits.dollars)}",)
    power = () if math.isnan(plan.limits.watts) else (f"≤ {format_quantity(plan.limits.watts, 'watts', 3)}",)
    return ("pool", "all of it", f"in time, {first}", *others, week, *money, *power, "meets all")


def pool_name(pool: Pool) -> str:
    """A pool by its accelerator: ``B200 (cloud)``."""
    return pool.accelerator + ("" if pool.name == pool.accelerator else f" ({unmarked(pool.name)})")


def name(choice: PoolChoice) -> str:
    """So many of a pool: ``512 B200 (cloud)``."""
    return f"{choice.accelerators:,} {pool_name(choice.pool)}"


def rows(lines: Sequence[PoolLine], plan: Plan) -> list[tuple[tuple[str, str], ...]]:
    """Cells of the table, in the order of `headings`, each with a remark under it."""
    return [_row(line, plan) for line in lines]


def _row(line: PoolLine, plan: Plan) -> tuple[tuple[str, str], ...]:
    pool, limits = line.pool, plan.limits
    whole = next((choice for choice in line.choices if choice.accelerators == pool.usable), None)
    catalogued = pool.name == pool.accelerator
    holding = "owned" if pool.name == OWN_CLUSTER and plan.owned else pool.holding
    all_of_it = ("–", "") if catalogued or whole is None else (_days(whole), _cost(whole))
    return (
        (unmarked(pool.name), "to rent" if catalogued else f"{pool.usable:,} {pool.accelerator}, {holding}"),
        all_of_it,
        *(_fewest(line, choice) for choice in (*line.in_time.values(), line.later)),
        *(() if math.isnan(limits.dollars) else (_up_to(line.affordable),)),
        *(() if math.isnan(limits.watts) else (_up_to(line.powered),)),
        _verdict(line),
    )


def _days(choice: PoolChoice) -> str:
    return format_duration(86400 * choice.days, 3) if choice.schedule else "–"


def _cost(choice: PoolChoice) -> str:
    if choice.problem:
        return choice.problem
    return "cost unknown" if math.isnan(choice.dollars.mid) else rent(choice.dollars.mid)


def _fewest(line: PoolLine, choice: PoolChoice | None) -> tuple[str, str]:
    if choice is None:
        return "none", ""
    more = choice.accelerators - line.most
    return f"{choice.accelerators:,}", f"{more:,.0f} too few" if more > 0 else _cost(choice)


def _up_to(count: float) -> tuple[str, str]:
    if math.isnan(count):
        return "unknown", ""
    return ("any", "") if math.isinf(count) else (f"up to {count:,.0f}", "") if count else ("none", "")


def _verdict(line: PoolLine) -> tuple[str, str]:
    best, nearest = line.best, line.nearest
    if best:
        return f"✓ {best.accelerators:,}", together(best.limits)
    return "✗", "; ".join(lacks(nearest))


def lacks(choice: PoolChoice) -> list[str]:
    """What so many of a pool miss."""
    if choice.problem:
        return [choice.problem]
    return missed(choice.missed) or ["its pool ends before"]


def sentence(lines: Sequence[PoolLine], plan: Plan) -> str:
    """On which pools the runs meet every limit, and what the nearest lacks where on none."""
    good = sorted((line for line in lines if line.best), key=lambda line: _price(line.nearest))
    if good:
        best = good[0].nearest
        cost = "" if math.isnan(best.dollars.mid) else f" for about **{rent(best.dollars.mid)}**"
        chance = together(best.limits)
        verb = "meet" if len(good) > 1 else "meets"
        return (
            f"**{len(good)} of {len(lines)}** pools {verb} every limit; the best is **{name(best)}**{cost}"
            f"{f', {chance}' if chance else ''}{_idle_beside(good[0], plan)}. {unproven(best.pool.accelerator)}"
        ).rstrip()
    nearest = min(
        (line.nearest for line in lines), key=lambda choice: (bool(choice.problem), len(lacks(choice)), _price(choice))
    )
    return f"No pool meets every limit. The nearest is **{name(nearest)}**: {listed(lacks(nearest))}."


def _idle_beside(line: PoolLine, plan: Plan) -> str:
    """What the rest of the fleet costs meanwhile, and whether that is too much."""
    if not line.idle.mid > 0:
        return ""
    together = line.nearest.dollars.mid + line.idle.mid
    much = f", together more than {dollars(plan.limits.dollars)}" if together > plan.limits.dollars else ""
    return f"; what else is held idles meanwhile for **{rent(line.idle.mid)}**{much}"


def _price(choice: PoolChoice) -> float:
    return math.inf if math.isnan(choice.dollars.mid) else choice.dollars.mid


def terms(lines: Sequence[PoolLine], plan: Plan) -> str:
    """What a week more spares on the best pool, and what being surer costs; empty where none is in time."""
    line = min((line for line in lines if line.best), key=lambda line: _price(line.nearest), default=None)
    now = line.in_time[plan.limits.level] if line else None
    if line is None or now is None:
        return ""
    surest = max(line.in_time)
    surer = _instead(now, line.in_time[surest], f"**In time with {percent(surest)}**")
    return f"{_instead(now, line.later, '**A week more**')} {surer}"


def _instead(now: PoolChoice, other: PoolChoice | None, terms: str) -> str:
    """What other terms take: how many more or fewer, for how much more or less."""
    accelerator = now.pool.accelerator
    if other is None:
        return f"{terms}: no number of {accelerator} does."
    if other.accelerators == now.accelerators:
        return f"{terms}: as many {accelerator}."
    more = other.dollars.mid - now.dollars.mid
    same = abs(more) < 1e-3 * now.dollars.mid
    apart = rent(apart_as_shown(other.dollars.mid, now.dollars.mid))
    cost = "" if math.isnan(more) else f", {apart} {'more' if more > 0 else 'less'}"
    cost = ", for the same money" if same else cost
    return f"{terms}: **{other.accelerators:,}** {accelerator} instead of {now.accelerators:,}{cost}."


def picture(lines: Sequence[PoolLine]) -> str:
    """What the picture shows, for whoever does not see it."""
    every = (
        f"{unmarked(line.pool.name)} from {_days(line.choices[0])} to {_days(line.choices[-1])}, "
        f"{_cost(line.choices[-1])}"
        for line in lines
    )
    return f"Dollars against days of {len(lines)} pools: {'; '.join(every)}."
