"""The limits of a plan in words: which it meets or misses, by how much, with what chance, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.budget.equations import BudgetError
from core.messages import Message, message, pick_message
from core.planning.estimate import PlanEstimate
from core.planning.plan import CERTAINTIES, Plan
from core.planning.plan_limits import SURE, Check, Limited, LimitReport, WayToMeet, all_checks, all_met, missed_limits
from core.training.layout import LayoutError
from core.wording import Amount, format_value

KINDS: dict[Limited, str] = {"deadline": "days", "money": "dollars", "power": "W", "host": "GiB", "memory": "GiB"}
"""What is limited → the format of its values."""


def limit_checks(a: PlanEstimate) -> tuple[Check, ...]:
    """Return the limits of a plan with an answer, that of memory where it has a layout; none where none was entered."""
    return all_checks(a) if a.plan.limits.has_limits else ()


def limit_name(limited: Limited) -> Message:
    """Return the name of a limit as a label."""
    return message(f"limits.name.{limited}")


def limit_in_sentence(limited: Limited) -> Message:
    """Return the name of a limit in a sentence."""
    return message(f"limits.the.{limited}")


def _the(checks: Sequence[Check]) -> list[Message]:
    return [limit_in_sentence(check.id) for check in checks]


def _amount(check: Check, value: float) -> Amount:
    return Amount(value, KINDS[check.id])


def _by(check: Check) -> Amount:
    return _amount(check, abs(check.over))


def difference(check: Check) -> str:
    """Return how far a plan is from a limit, on either side of it: ``21 days``."""
    return format_value(*_by(check))


# ------------------------------------------------------------------------------ the line of limits


def limits_line(a: PlanEstimate, report: LimitReport) -> str:
    """Return the line of limits under an answer, or whether the plan fits in memory if no limit was entered."""
    if report.entered:
        return " ".join([*limits_text(a, report.checks), *ways_text(report.ways)])
    return " ".join(in_memory(report.checks))


def limits_text(a: PlanEstimate, every: Sequence[Check]) -> list[Message]:
    """Return the limits of ``a``, or of several runs of which it is one: the verdict, then each, those missed first."""
    ordered = sorted(every, key=lambda check: check.met is not False)
    return [verdict(every), *(check_text(a, check) for check in ordered)]


def verdict(every: Sequence[Check]) -> Message:
    """Return how many limits are met, and the chance to meet all of them where more than one has a chance."""
    met, limits, chance = all_met(every), float(len(every)), together(every)
    if met is None:
        return message("limits.verdict.unknown")
    missed = float(sum(check.met is False for check in every))
    ranged = sum(not math.isnan(check.probability) for check in every)
    said = ranged > 1 and not math.isnan(chance)
    return pick_message(_VERDICTS[met, said], limits=limits, missed=missed, chance=chance)


_VERDICTS = {
    (True, False): "limits.verdict.met",
    (True, True): "limits.verdict.met_chance",
    (False, False): "limits.verdict.missed",
    (False, True): "limits.verdict.missed_chance",
}


def together(every: Sequence[Check]) -> float:
    """Return how likely all limits are met at once: deadline and cost grow with the days of the run, so the harder one
    decides. NaN if a limit is unknown, or is missed whatever the days are."""
    if any(math.isnan(check.probability) and not check.met for check in every):
        return math.nan
    return min((check.probability for check in every if not math.isnan(check.probability)), default=math.nan)


def check_text(a: PlanEstimate, check: Check) -> Message:
    """Return a sentence on one limit."""
    if check.id == "memory":
        return _memory_text(check)
    name, limit = limit_name(check.id), _amount(check, check.limit)
    if check.met is None:
        return message("limits.check.unknown", name=name, limit=limit)
    if math.isinf(check.value):
        return message("limits.check.impossible", name=name, limit=limit)
    certain = math.isnan(check.probability)
    certainty = a.plan.limits.certainty
    how = "" if certain else "chance" if certainty == "P50" else "confidence"
    return pick_message(
        _CHECKS[check.met, how],
        name=name,
        limit=limit,
        by=_by(check),
        chance=check.probability,
        confidence=certainty,
        value=_amount(check, check.value),
    )


_CHECKS = {
    (True, ""): "limits.check.left",
    (True, "chance"): "limits.check.left_chance",
    (True, "confidence"): "limits.check.left_confidence",
    (False, ""): "limits.check.over",
    (False, "chance"): "limits.check.over_chance",
    (False, "confidence"): "limits.check.over_confidence",
}


def _memory_text(check: Check) -> Message:
    if check.met is None:
        return message("limits.check.memory_unknown")
    free, reserved = check.capacity - check.value, check.capacity - check.limit
    if free < 0:
        return message("limits.check.memory_over", over=-free)
    if reserved:
        return message("limits.check.memory_reserved", free=free, reserved=reserved)
    return message("limits.check.memory_free", free=free)


def in_memory(every: Sequence[Check]) -> list[Message]:
    """Return whether a plan fits in memory, the only limit where none was entered."""
    lines: list[Message] = []
    for check in every:
        if check.id != "memory" or check.met is None:
            continue
        free, reserved = check.capacity - check.value, check.capacity - check.limit
        if free < 0:
            lines.append(message("limits.none.over", over=-free))
        elif check.met:
            lines.append(message("limits.none.fits", free=free))
        else:
            lines.append(message("limits.none.too_little", free=free, reserved=reserved))
    return lines


def ways_text(ways: Sequence[WayToMeet]) -> list[Message]:
    """Return, for each limit that is missed or doubtful, what would meet it, and which limits that would miss."""
    return [_way_text(way) for way in ways]


def _way_text(way: WayToMeet) -> Message:
    misses, risks, a = _the(way.misses), _the(way.risks), way.changed
    return pick_message(
        f"limits.way.{way.kind}{'_misses' * bool(misses)}{'_risks' * bool(risks)}",
        accelerators=float(a.count) if a else math.nan,
        device=way.accelerator,
        limit=limit_in_sentence(way.check.id),
        tokens=a.middle.tokens if a else math.nan,
        days=a.middle.days if a else math.nan,
        chance=CERTAINTIES[SURE],
        misses=misses,
        risks=risks,
    )


# ------------------------------------------------------------------------------ in tables and lists


def mark(check: Check) -> Message:
    """Return that a limit is met or missed, in a sign and a word."""
    return message(_MARKS[check.met])


_MARKS = {True: "limits.outcome.met_only", False: "limits.outcome.missed_only", None: "limits.outcome.unknown"}


def outcome(check: Check) -> Message:
    """Return whether a limit is met, and by how much."""
    if check.met is None:
        return message("limits.outcome.unknown")
    if math.isinf(check.value):
        return message("limits.outcome.impossible")
    if check.id == "memory" and not check.met:
        return message("limits.outcome.missed_only")
    return message("limits.outcome.met" if check.met else "limits.outcome.missed", by=_by(check))


def outcome_with_chance(check: Check) -> Message:
    """Return the outcome of a limit, with the chance of meeting it if that is uncertain."""
    if math.isnan(check.probability):
        return outcome(check)
    return message("limits.outcome.with_chance", outcome=outcome(check), chance=check.probability)


def but_misses(plan: Plan) -> list[Message]:
    """Return the limits that a suggested plan misses; empty if it misses none."""
    try:
        missed = missed_limits(plan)
    except (BudgetError, LayoutError) as problem:
        return [message("limits.misses.invalid", problem=str(problem))]
    return [message("limits.misses.but", misses=_the(missed))] if missed else []


def value_text(a: PlanEstimate, check: Check) -> Message | str:
    """Return the plan's value at its confidence, and the chance of meeting the limit; empty if unknown."""
    if not math.isfinite(check.value):
        return ""
    value = _amount(check, check.value)
    if math.isnan(check.probability):
        return message("limits.named.amount", limit=value)
    confidence = a.plan.limits.certainty
    return message("limits.outcome.at_confidence", confidence=confidence, value=value, chance=check.probability)


def free_memory(check: Check) -> Message:
    """Return what is free of an accelerator's memory, and how much of it is reserved."""
    free, reserved = check.capacity - check.value, check.capacity - check.limit
    if free < 0:
        return message("limits.memory.over", over=-free)
    if reserved:
        return message("limits.memory.reserved", free=free, reserved=reserved, share=reserved / check.capacity)
    return message("limits.memory.free", free=free)


def named(a: PlanEstimate, check: Check) -> Message:
    """Return a limit by its amount: ``120 days``, ``$12M``, ``8% memory headroom``."""
    if check.id == "memory":
        return message("limits.named.headroom", share=a.plan.limits.free)
    limit = _amount(check, check.limit)
    return message("limits.named.host" if check.id == "host" else "limits.named.amount", limit=limit)
