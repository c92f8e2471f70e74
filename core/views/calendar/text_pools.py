"""Pools over how many of them the runs of a calendar take, in words and table cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from core.dates import format_day
from core.hardware.accelerators import find
from core.hardware.offers import Offer, format_offer
from core.planning.calendar.pools import OWN_CLUSTER, Pool
from core.planning.cost.choose_pools import WEEK, PoolChoice, PoolLine, levels_of
from core.planning.plan import Plan
from core.units import format_duration, format_quantity
from core.views.plan.text import no_published_run, typed_elsewhere
from core.views.plan.text_limits import chance_text, not_met, together
from core.wording import apart_as_shown, dollars, listed, percent, price, rent, unmarked

_NOTE = (
    "All runs are on one pool here, one after the other, each on all of so many accelerators: no job mixes those of "
    "two. Accelerators come in whole nodes, single ones within a node; dollars are of those that the runs take, as "
    "their pool is held, in the middle of the range, which is P50."
)


def notes(lines: Sequence[PoolLine], plan: Plan) -> str:
    """How pools were chosen, and what holds for all of them."""
    typed = typed_elsewhere(plan, [line.pool.accelerator for line in lines])
    some = sum(line.pool.in_catalogue for line in lines)
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


def terms_of(pool: Pool, *, owned: bool = False) -> str:
    """How many of what a pool has, its contract and price: ``512 H200 SXM, rented, $2.80/h``."""
    count = f"{pool.usable:,}" if pool.is_ceiling else "any number of"
    contract = "owned" if owned else "spot" if pool.interruptions else pool.holding
    paid = f", {price(*pool.prices)}" if pool.prices else ""
    return f"{count} {pool.accelerator}, {contract}{paid}"


def read_as(offers: Sequence[Offer]) -> str:
    """How the lines of offers were read; empty where there are none."""
    lines = (f"**{unmarked(offer.name)}**: {_offered(offer)}" for offer in offers)
    return f"Read as {'; '.join(lines)}." if offers else ""


def _offered(offer: Offer) -> str:
    """An offer with the name of its accelerator, and where its price is from if the line has none."""
    contract = offer.contract or "rented"
    terms = unmarked(format_offer(replace(offer, name="", contract=contract)))
    if offer.price or offer.capital is not None:
        return terms
    catalogued = contract in ("rented", "spot") and not math.isnan(find(offer.accelerator).price_low)
    return f"{terms}, {'catalogue price' if catalogued else 'price unknown'}"


def name(choice: PoolChoice) -> str:
    """So many of a pool: ``512 B200 (cloud)``."""
    return f"{choice.accelerators:,} {pool_name(choice.pool)}"


def moved(choice: PoolChoice, plan: Plan) -> str:
    """What it changed to make a choice the plan instead of ``plan``, and how to go back."""
    before = f"{plan.accelerators:,.0f} {plan.accelerator}"
    return f"The plan now runs on **{name(choice)}** instead of **{before}**. **Undo** brings that back."


def rows(lines: Sequence[PoolLine], plan: Plan) -> list[tuple[tuple[str, str], ...]]:
    """Cells of the table, in the order of `headings`, each with a remark under it."""
    return [_row(line, plan) for line in lines]


def _row(line: PoolLine, plan: Plan) -> tuple[tuple[str, str], ...]:
    pool, limits = line.pool, plan.limits
    whole = next((choice for choice in line.choices if choice.accelerators == pool.usable), None)
    terms = "catalogue price" if pool.in_catalogue else terms_of(pool, owned=pool.name == OWN_CLUSTER and plan.owned)
    all_of_it = ("–", "") if whole is None or not pool.is_ceiling else (_days(whole), _cost(whole))
    return (
        (unmarked(pool.name), terms),
        all_of_it,
        *(_fewest(line, choice) for choice in (*line.in_time.values(), line.later)),
        *(() if math.isnan(limits.dollars) else (_up_to(line.affordable, pool),)),
        *(() if math.isnan(limits.watts) else (_up_to(line.powered, pool),)),
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
    if (more := choice.accelerators - line.pool.most) > 0:
        return "not enough", f"takes {choice.accelerators:,}, {more:,.0f} more than there are"
    return f"{choice.accelerators:,}", _cost(choice)


def _up_to(count: float, pool: Pool) -> tuple[str, str]:
    if math.isnan(count):
        return "unknown", ""
    if math.isinf(count) or (pool.is_ceiling and count >= pool.usable):
        return (f"all {pool.usable:,}" if pool.is_ceiling else "any"), ""
    return (f"up to {count:,.0f}", "") if count else ("none", "")


def _verdict(line: PoolLine) -> tuple[str, str]:
    best, nearest = line.best, line.nearest
    if best:
        return f"✓ {best.accelerators:,}", _chance(best)
    return "✗" if nearest.meets is False else f"? {nearest.accelerators:,}", "; ".join(lacks(nearest))


def _chance(best: PoolChoice) -> str:
    """How likely all limits are met at once; empty where that is unknown."""
    chance = together(best.limits)
    return "" if math.isnan(chance) else chance_text(chance)


def lacks(choice: PoolChoice) -> list[str]:
    """What so many of a pool miss; where they miss nothing, what of their limits is unknown."""
    if choice.problem:
        return [choice.problem]
    return [*not_met(choice.not_met)] or ["its pool ends before"]


def sentence(lines: Sequence[PoolLine], plan: Plan) -> str:
    """On which pools the runs meet every limit, and what the nearest lacks where on none."""
    good = sorted((line for line in lines if line.best), key=lambda line: _price(line.nearest))
    unknown = _unknown([line.nearest for line in lines if line.nearest.meets is None])
    if good:
        best = good[0].nearest
        cost = "" if math.isnan(best.dollars.mid) else f" for about **{rent(best.dollars.mid)}**"
        chance = _chance(best)
        verb = "meet" if len(good) > 1 else "meets"
        rented = ", to rent at the catalogue price" if best.pool.in_catalogue else ""
        return (
            f"**{len(good)} of {len(lines)}** pools {verb} every limit; the best is **{name(best)}**{rented}{cost}"
            f"{f', {chance}' if chance else ''}{_idle_beside(good[0], plan)}. {no_published_run(best.pool.accelerator)}"
        ).rstrip() + unknown
    if unknown:
        return f"No pool is known to meet every limit.{unknown}"
    nearest = min(
        (line.nearest for line in lines), key=lambda choice: (bool(choice.problem), len(lacks(choice)), _price(choice))
    )
    return f"No pool meets every limit. The nearest is **{name(nearest)}**: {listed(lacks(nearest))}."


def _unknown(choices: Sequence[PoolChoice]) -> str:
    """Of which choices it is unknown whether they meet every limit, and why."""
    reasons: dict[str, list[str]] = {}
    for choice in choices:
        reasons.setdefault(listed(lacks(choice)), []).append(f"**{name(choice)}**")
    return "".join(
        f" Whether {listed(names)} {'meets' if len(names) == 1 else 'meet'} every limit is unknown: {why}."
        for why, names in reasons.items()
    )


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
    if (beyond := other.accelerators - other.pool.most) > 0:
        return f"{terms}: takes {other.accelerators:,} {accelerator}, {beyond:,.0f} more than there are."
    more = other.dollars.mid - now.dollars.mid
    same = abs(more) < 1e-3 * now.dollars.mid
    apart = rent(apart_as_shown(other.dollars.mid, now.dollars.mid))
    cost = "" if math.isnan(more) else f", {apart} {'more' if more > 0 else 'less'}"
    cost = ", for the same money" if same else cost
    return f"{terms}: **{other.accelerators:,}** {accelerator} instead of {now.accelerators:,}{cost}."
