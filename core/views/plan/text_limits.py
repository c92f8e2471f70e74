"""The limits of a plan in words: which it keeps or misses, by how much, how surely, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.budget.equations import BudgetError
from core.planning.estimate import PlanEstimate
from core.planning.plan import CERTAINTIES, Plan
from core.planning.plan_limits import (
    SURE,
    Check,
    Limited,
    all_checks,
    all_met,
    changed_to_keep,
    missed_limits,
    surer_of_deadline,
)
from core.training.layout import LayoutError
from core.units import format_count, format_duration, format_quantity
from core.views.plan.text_memory import gib
from core.wording import listed, percent, plural, rent

NAMES: dict[Limited, str] = {
    "deadline": "deadline",
    "money": "budget",
    "power": "power limit",
    "host": "host memory",
    "memory": "memory headroom",
}
"""What is limited, as tables name it."""

_UNKNOWN: dict[Limited, str] = {
    "deadline": "how long it takes is unknown",
    "money": "no rent is known",
    "power": "the node’s power is unknown",
    "host": "the host’s memory is unknown",
    "memory": "its memory is unknown",
}

_AS_GOOD_AS_SURE = 0.995


def limit_checks(a: PlanEstimate) -> tuple[Check, ...]:
    """The limits of an answered plan, that of memory where it can be laid out; none where nobody typed any."""
    return all_checks(a) if a.plan.limits.has_limits else ()


def amount_of(check: Check, value: float) -> str:
    """A value of a limit with its unit."""
    match check.id:
        case "deadline":
            return format_duration(86400 * value, 3)
        case "money":
            return rent(value)
        case "power":
            return format_quantity(value, "watts", 3)
        case "host" | "memory":
            return gib(value)


def days_apart(days: float) -> str:
    """How far an end is from a deadline, before or after it."""
    return format_duration(86400 * abs(days), 3)


def difference(check: Check) -> str:
    """How far a plan is from a limit, on either side of it: ``21 days``, ``4.19 kW``."""
    return days_apart(check.over) if check.id == "deadline" else amount_of(check, abs(check.over))


def mark(check: Check) -> str:
    """That a limit is kept or missed, in a sign and a word."""
    return "? unknown" if check.met is None else "✓ kept" if check.met else "✗ missed"


def outcome(check: Check) -> str:
    """Whether a limit is kept, and by how much: ``✗ missed by 21 days``."""
    if check.met is None:
        return f"{mark(check)}: {_UNKNOWN[check.id]}"
    if math.isinf(check.value):
        return f"{mark(check)}: no steps are that fast"
    if check.id == "memory":
        return f"{mark(check)}: {free_memory(check)}"
    by = difference(check)
    return f"{mark(check)} with {by} to spare" if check.met else f"{mark(check)} by {by}"


def not_met(every: Sequence[Check]) -> list[str]:
    """By how much each limit is missed that is: ``power missed by 4.19 kW``; if none is, what is unknown."""
    missed = [f"{NAMES[check.id]} {outcome(check).removeprefix('✗ ')}" for check in every if check.met is False]
    return missed or [_UNKNOWN[check.id] for check in every if check.met is None]


def but_misses(plan: Plan) -> str:
    """Which limits a plan misses that is offered: ``, but misses the deadline``; empty where it misses none."""
    try:
        names = [f"the {NAMES[check.id]}" for check in missed_limits(plan)]
    except (BudgetError, LayoutError) as problem:
        return f", but cannot be planned: {problem}"
    return f", but misses {listed(names)}" if names else ""


def value_text(a: PlanEstimate, check: Check) -> str:
    """What the plan comes to, at which probability, and how likely the limit holds; empty where that is unknown."""
    if not math.isfinite(check.value):
        return ""
    text = amount_of(check, check.value)
    if math.isnan(check.probability):
        return text
    return f"{a.plan.limits.certainty}: {text}, {likely(check.probability)} to hold"


def free_memory(check: Check) -> str:
    """What is free of an accelerator's memory, once, and how much of it is to stay so."""
    free, reserved = check.capacity - check.value, check.capacity - check.limit
    if free < 0:
        return f"{gib(-free)} too much"
    share = percent(reserved / check.capacity)
    return f"{gib(free)} free" + (f" (the plan reserves {gib(reserved)}, {share})" if reserved else "")


def _in_words(a: PlanEstimate, check: Check, shown: str = "") -> str:
    """A limit in a sentence: ``120 days: ✗ 21 days over (P75: 141 days, 38 % likely to hold)``. shown: the chance that
    the sentence before it has told, which is not repeated."""
    if check.met is None or math.isinf(check.value):
        return f"{named(a, check)}: {outcome(check)}"
    if check.id == "memory":
        return f"memory {'✓' if check.met else '✗'} {free_memory(check)}"
    by = difference(check)
    details: list[str] = []
    if not math.isnan(check.probability):
        details = (
            [] if a.plan.limits.certainty == "P50" else [f"{a.plan.limits.certainty}: {amount_of(check, check.value)}"]
        )
        details += [f"{likely(check.probability)} to hold"] if likely(check.probability) != shown else []
    how = f"✓ {by} to spare" if check.met else f"✗ {by} over"
    return f"{named(a, check)}: {how}" + (f" ({', '.join(details)})" if details else "")


def likely(probability: float) -> str:
    """``38 % likely``; what is nearly certain not as if it were."""
    if probability > _AS_GOOD_AS_SURE:
        return "nearly certain"
    return "hardly likely" if probability < 1 - _AS_GOOD_AS_SURE else f"{percent(float(f'{probability:.2g}'))} likely"


def named(a: PlanEstimate, check: Check) -> str:
    """A limit by its amount: ``120 days``, ``$12 M``, ``8 % of memory free``."""
    if check.id == "memory":
        return f"{percent(a.plan.limits.free)} of memory free"
    return amount_of(check, check.limit) + (" of host memory" if check.id == "host" else "")


def verdict(every: Sequence[Check]) -> str:
    """How many limits are kept: ``✓ Meets all 3 limits``, ``✗ Misses 1 of 3 limits``."""
    count = f"{len(every)} {plural(len(every), 'limit')}"
    match all_met(every):
        case True:
            return f"✓ Meets all {count}" if len(every) > 1 else "✓ Meets its limit"
        case False:
            count_missed = sum(check.met is False for check in every)
            return f"✗ Misses {count_missed} of {count}" if len(every) > 1 else "✗ Misses its limit"
        case None:
            return f"? Misses none of {count} that is known"


def sentence(a: PlanEstimate) -> str:
    """Every limit, kept or missed, those that are missed first; empty where nobody typed any."""
    every = limit_checks(a)
    return " ".join(filter(None, (limits_sentence(a, every), what_it_takes(a, every)))) if every else ""


def limits_sentence(a: PlanEstimate, every: Sequence[Check]) -> str:
    """Limits of ``a``, or of a calendar of which it is a run, those that are missed first, and how likely all hold."""
    ranged = [check for check in every if not math.isnan(check.probability)]
    met = bool(all_met(every) and ranged)
    chance = together(every)
    at_once = f"; **{chance}** all at once" if chance and len(ranged) > 1 and not met else ""
    ordered = sorted(every, key=lambda check: check.met is not False)
    parts = "; ".join(_in_words(a, check, chance if met else "") for check in ordered)
    return f"**{verdict(every)}{f', {chance}' if met else ''}**: {parts}{at_once}."


def line(a: PlanEstimate, *, asked: bool = False) -> str:
    """The limits in a line under an answer: `sentence`, or whether it fits in memory where nobody typed any. asked:
    whether the question has a deadline of its own."""
    return sentence(a) or in_memory(a, all_checks(a), asked=asked)


def in_memory(a: PlanEstimate, every: Sequence[Check], *, asked: bool = False) -> str:
    """The only limit where nobody typed any."""
    known = (check for check in every if check.id == "memory" and check.met is not None)
    fits = [_in_words(a, check).replace("memory", "**Memory**", 1) for check in known]
    sentences = (*fits, *(() if asked or a.find != "time" else ("no deadline and no budget set",)))
    return f"{'; '.join(sentences)}." if sentences else ""


def together(every: Sequence[Check]) -> str:
    """How likely all limits hold at once: deadline and money grow with the days of the run, so the harder one decides.
    Empty where a limit is unknown, or is missed whatever the days are."""
    if any(math.isnan(check.probability) and not check.met for check in every):
        return ""
    chances = [check.probability for check in every if not math.isnan(check.probability)]
    return likely(min(chances)) if chances else ""


def what_it_takes(a: PlanEstimate, every: Sequence[Check]) -> str:
    """For each limit that is missed the plan nearest to this one that keeps it, and what else that one misses; for a
    deadline that can well be missed, the plan that is sure of it."""
    sentences: list[str] = []
    for check in every:
        if sure := surer_of_deadline(a, check):
            sentences.append(_surely(a, check, *sure))
            continue
        result = changed_to_keep(a, check)
        if result is None:
            if check.met is False and check.id == "deadline" and a.find == "time":
                sentences.append(f"No number of {a.device.name} keeps {named(a, check)}.")
            continue
        others = _others(result, check)
        still = f", which misses {listed(others)}" if others else ""
        count = f"**{format_count(result.count)}** {a.device.name}"
        match check.id:
            case "money":
                sentences.append(
                    f"{named(a, check)} pays for **{format_count(result.middle.tokens, 3)}** tokens{still}."
                )
            case "power":
                days = format_duration(86400 * result.middle.days, 3)
                sentences.append(f"{named(a, check)} is enough for {count}, in {days}{still}.")
            case _:
                sentences.append(f"{named(a, check)} would take {count}{still}.")
    return " ".join(sentences)


def _others(a: PlanEstimate, check: Check, certain: bool | None = None) -> list[str]:
    """What a plan misses in addition to ``check``. certain: of these what it misses whatever its days are, or what it
    may meet."""
    missed = [other for other in limit_checks(a) if other.met is False and other.id != check.id]
    return [named(a, other) for other in missed if certain in (None, math.isnan(other.probability))]


def _surely(a: PlanEstimate, check: Check, now: PlanEstimate, sure: PlanEstimate) -> str:
    """How many accelerators are sure of a deadline, and what they would miss that these do not."""
    before = _others(now, check)
    missed, doubted = ([name for name in _others(sure, check, some) if name not in before] for some in (True, False))
    still = f", but miss {listed(missed)}" if missed else ""
    still += f", and keep {listed(doubted)} less surely" if doubted else ""
    how = likely(CERTAINTIES[SURE])
    return f"**{format_count(sure.count)}** {a.device.name} would make {named(a, check)} {how}{still}."
