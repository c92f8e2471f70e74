"""Plans beside each other by their limits: which meet all of them, how likely, and each limit of every plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.messages import message
from core.planning.comparison.comparison import ComparedPlan
from core.planning.plan_limits import Check, all_met
from core.views.plan import text_limits
from core.wording import listed, unmarked

_NUMBERS = ("none", "one", "two", "three", "four", "five", "six")

LimitRow = tuple[tuple[str, str], list[tuple[str, str]]]
"""What is limited, and for every plan whether it is kept, with a remark under it."""


def meeting_all(plans: Sequence[ComparedPlan]) -> str:
    """Which plans meet all their limits, and how likely their deadline is; empty where none has any."""
    limited = [plan for plan in plans if plan.limits]
    if not limited:
        return ""
    meeting = [plan for plan in limited if all_met(plan.limits)]
    if not meeting:
        best = min(limited, key=_missing)
        missed = [check for check in best.limits if check.met is False]
        if not missed:
            return f"Whether all limits are met is unknown of {_count(len(limited), len(limited))}."
        none = f"**None of {_NUMBERS[len(limited)]} meets all limits**"
        who = none if len(limited) > 1 else "Its limits are not all met"
        return f"{who}: {_named(best)} misses {listed([_off(best, check) for check in missed])}."
    which = listed([_named(plan) for plan in meeting])
    return f"Meets all limits: **{_count(len(meeting), len(limited))}**, {which}."


def _count(some: int, every: int) -> str:
    return f"{_NUMBERS[some]} of {_NUMBERS[every]}"


def _missing(plan: ComparedPlan) -> tuple[int, float]:
    """How many limits a plan misses, and by how large a share in all."""
    missed = [check for check in plan.limits if check.met is False]
    return (len(missed) or len(plan.limits), sum(check.over / check.limit for check in missed if check.limit))


def _named(plan: ComparedPlan) -> str:
    """A plan with the probability of its deadline."""
    chance = next((check.probability for check in plan.limits if check.id == "deadline"), math.nan)
    likely = "" if math.isnan(chance) else f" (deadline {text_limits.chance_text(chance)})"
    return f"**{unmarked(plan.short_name)}**{likely}"


def _off(plan: ComparedPlan, check: Check) -> str:
    if plan.answer is None:
        return ""
    if check.id == "memory":
        return f"its memory ({text_limits.free_memory(check)})"
    by = "" if math.isinf(check.over) else f" by {text_limits.difference(check)}"
    return f"{text_limits.named(plan.answer, check)}{by}"


def limit_rows(plans: Sequence[ComparedPlan]) -> list[LimitRow]:
    """Each limit that any plan has, kept or missed in every plan."""
    rows: list[LimitRow] = []
    for limited in text_limits.NAMES:
        found = [next((check for check in plan.limits if check.id == limited), None) for plan in plans]
        if any(found):
            cells = [_cell(plan, check) for plan, check in zip(plans, found, strict=True)]
            rows.append(((message("row.limit", limit=text_limits.limit_name(limited)), ""), cells))
    return rows


def _cell(plan: ComparedPlan, check: Check | None) -> tuple[str, str]:
    if check is None or plan.answer is None:
        return "–", ""
    if check.id == "memory" and check.met is not None:
        return text_limits.mark(check), text_limits.free_memory(check)
    remark = (text_limits.named(plan.answer, check), text_limits.value_text(plan.answer, check))
    return text_limits.outcome(check), " · ".join(filter(None, remark))
