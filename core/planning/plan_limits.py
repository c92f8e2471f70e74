"""Whether a plan keeps its limits: deadline, money, power, memory of host and accelerator, each with how much it is off
by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.budget.equations import BudgetError, Interval
from core.limits import cached, limit
from core.planning.estimate import PlanEstimate, estimate
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.planning.plan import Plan
from core.planning.solving import allocations, first_place
from core.training.layout import LayoutError

Limited: TypeAlias = Literal["deadline", "money", "power", "host", "memory"]
"""What is limited."""


@dataclass(frozen=True, slots=True)
class Check:
    """One limit of a plan, and the plan's value, in days, dollars, W, or bytes.

    value: at the required confidence. met: None if unknown. probability: chance of meeting the limit; NaN if the value
    has no range or is unknown. capacity: memory capacity of the accelerator, from which the limit reserves the
    headroom; NaN for other limits.
    """

    id: Limited
    limit: float
    value: float
    met: bool | None
    probability: float
    capacity: float = math.nan

    @property
    def over(self) -> float:
        """Amount by which the value exceeds the limit; negative if it stays below."""
        return self.value - self.limit


def checks(a: PlanEstimate, memory: MemoryEstimate | None) -> tuple[Check, ...]:
    """Return every limit of the plan of ``a``. memory: peak memory per accelerator; None without a layout."""
    limits, a = a.plan.limits, a.on_found_accelerators
    every = (
        _check(a, "deadline", limits.days, a.range_of("days")),
        _check(a, "money", limits.dollars, _UNKNOWN if a.plan.owned else a.dollars),
        _check(a, "power", limits.watts, a.range_of("peak_watts")),
    )
    typed = tuple(check for check in every if not math.isnan(check.limit))
    return (*typed, *_host_check(memory), _memory_check(limits.free, memory)) if memory else typed


MEMORY_UNKNOWN = Check("memory", math.nan, math.nan, None, math.nan)
"""The limit of memory of a plan without a layout."""


def all_checks(a: PlanEstimate) -> tuple[Check, ...]:
    """Return every limit of the plan of ``a``, including memory, which is unknown without a layout."""
    try:
        return checks(a, a.memory)
    except LayoutError:
        return (*checks(a, None), MEMORY_UNKNOWN)


@cached("results_kept")
def missed_limits(plan: Plan) -> tuple[Check, ...]:
    """Return the limits that a plan is known to miss. Raises `LayoutError` and `BudgetError` where it has no answer."""
    limits = plan.limits
    if all(map(math.isnan, (limits.days, limits.dollars, limits.watts))):  # which memory does not depend on
        memory = memory_estimate(plan)
        every = (*_host_check(memory), _memory_check(limits.free, memory))
    else:
        every = all_checks(estimate(plan))
    return tuple(check for check in every if check.met is False)


_UNKNOWN = Interval.point(math.nan)


def _check(a: PlanEstimate, id: Limited, limit: float, value: Interval) -> Check:
    if a.impossible and value.known and id != "power":
        return Check(id, limit, math.inf, False, 0.0)
    return check_of(id, limit, value, a.plan.limits.level)


def check_of(id: Limited, limit: float, value: Interval, level: float) -> Check:
    """Return whether a range meets a limit. level: the share of the range that has to meet it."""
    if not value.known:
        return Check(id, limit, math.nan, None, math.nan)
    reached = value.quantile(level)
    certain = value.low == value.high
    return Check(id, limit, reached, keeps_limit(reached, limit), math.nan if certain else value.below(limit))


def _host_check(memory: MemoryEstimate) -> tuple[Check, ...]:
    most = memory.plan.limits.host
    if math.isnan(most):
        return ()
    return (Check("host", most, memory.on_host, memory.host_holds, math.nan),)


def _memory_check(free: float, memory: MemoryEstimate) -> Check:
    most = memory.usable * (1 - free)
    met = None if math.isnan(most) else keeps_limit(memory.total, most)
    return Check("memory", most, memory.total, met, math.nan, memory.usable)


_ROUNDING = 1e-9


def keeps_limit(value: float, limit: float) -> bool:
    """Return whether a value meets a limit, beyond rounding."""
    return value <= limit * (1 + _ROUNDING)


def all_met(every: Sequence[Check]) -> bool | None:
    """Return whether all limits are met; None if one is unknown and none is missed."""
    if any(check.met is False for check in every):
        return False
    return None if any(check.met is None for check in every) else True


def changed_to_keep(a: PlanEstimate, check: Check) -> PlanEstimate | None:
    """Return the plan changed in one thing so that it meets a limit that it misses, nothing else looked at: in more
    accelerators for a deadline, in fewer for power, in fewer tokens for money. None if no such change does."""
    plan, most = _with_limit(a.plan, check), check.limit
    if check.met is not False or plan.find != "time" or not math.isfinite(check.value):
        return None
    with suppress(BudgetError):
        match check.id:
            case "deadline":
                return _in_time(plan, most, plan.accelerators * check.value / most)
            case "money":
                return estimate(replace(plan, tokens=float(math.floor(plan.tokens * most / check.value))))
            case "power":
                node = plan.device.node_size
                nodes = math.floor(plan.accelerators * most / check.value / node)
                return estimate(replace(plan, accelerators=float(nodes * node))) if nodes else None
            case _:
                pass
    return None


def _in_time(plan: Plan, days: float, guess: float) -> PlanEstimate | None:
    """Return the plan on the fewest accelerators that take so many days; None if none do."""
    size, place = allocations(plan)

    def excess(at: int) -> float:
        with suppress(BudgetError):
            taken = estimate(replace(plan, accelerators=size(at))).range_of("days").quantile(plan.limits.level)
            return taken / days / (1 + _ROUNDING)
        return math.inf

    found = first_place(excess, guess, limit("accelerators"), size, place)
    return estimate(replace(plan, accelerators=size(found))) if found else None


def _with_limit(plan: Plan, check: Check) -> Plan:
    """Return the plan with the limit of ``check``, which may be that of a whole calendar."""
    names = {"deadline": "days", "money": "dollars", "power": "watts"}
    return replace(plan, limits=replace(plan.limits, **{names[check.id]: check.limit})) if check.id in names else plan


SURE = "P90"
"""The certainty that most would call sure."""

_DOUBTFUL = 0.75
"""A deadline that is kept with a lower probability can well be missed."""


def doubtful(check: Check) -> bool:
    """Return whether a deadline is met, but with a low chance."""
    return check.id == "deadline" and check.met is True and check.probability < _DOUBTFUL


def surer_of_deadline(a: PlanEstimate, check: Check) -> tuple[PlanEstimate, PlanEstimate] | None:
    """Return the plan at confidence `SURE`, and the same on as many accelerators as its doubtful deadline then needs.

    None for other limits, and if no number of accelerators is enough.
    """
    if not doubtful(check):
        return None
    plan = _with_limit(a.on_found_accelerators.plan, check)
    sure = estimate(replace(plan, limits=replace(plan.limits, certainty=SURE)))
    found = next((changed_to_keep(sure, other) for other in checks(sure, None) if other.id == check.id), None)
    return (sure, found) if found else None


@dataclass(frozen=True, slots=True)
class WayToMeet:
    """What would meet a limit that a plan misses, or a deadline that it may well miss.

    changed: the plan with more accelerators, with the tokens that the budget pays for, or with the accelerators that
    the power limit allows; None if no number of accelerators meets a deadline. misses: other limits that it misses;
    risks: others that it is less likely to meet.
    """

    check: Check
    kind: Literal["accelerators", "tokens", "power", "surer", "none"]
    accelerator: str
    changed: PlanEstimate | None
    misses: tuple[Check, ...] = ()
    risks: tuple[Check, ...] = ()


def ways_to_meet(a: PlanEstimate, every: Sequence[Check]) -> tuple[WayToMeet, ...]:
    """Return, for each missed limit of ``every``, the plan nearest to ``a`` that meets it.

    For a deadline that is met with a low chance, return a plan that meets it with confidence.
    """
    found = (_way_to_meet(a, check) for check in every)
    return tuple(way for way in found if way)


@dataclass(frozen=True, slots=True)
class LimitReport:
    """Limits of a plan, and plans that meet the missed ones. entered: whether the user entered any limit besides
    memory."""

    checks: tuple[Check, ...]
    ways: tuple[WayToMeet, ...]
    entered: bool


def limit_report(a: PlanEstimate) -> LimitReport:
    """Check every limit of the plan of ``a``, and find plans that meet the missed ones."""
    every, entered = all_checks(a), a.plan.limits.has_limits
    return LimitReport(every, ways_to_meet(a, every) if entered else (), entered)


def _way_to_meet(a: PlanEstimate, check: Check) -> WayToMeet | None:
    if found := surer_of_deadline(a, check):
        now, sure = found
        before = {other.id for other in _missed_beside(now, check)}
        new = [other for other in _missed_beside(sure, check) if other.id not in before]
        misses = tuple(other for other in new if math.isnan(other.probability))
        risks = tuple(other for other in new if not math.isnan(other.probability))
        return WayToMeet(check, "surer", a.device.name, sure, misses, risks)
    changed = changed_to_keep(a, check)
    if changed is None:
        if check.met is False and check.id == "deadline" and a.find == "time":
            return WayToMeet(check, "none", a.device.name, None)
        return None
    kind: Literal["tokens", "power", "accelerators"] = "accelerators"
    kind = "tokens" if check.id == "money" else "power" if check.id == "power" else kind
    return WayToMeet(check, kind, a.device.name, changed, _missed_beside(changed, check))


def _missed_beside(a: PlanEstimate, check: Check) -> tuple[Check, ...]:
    """Return the limits that a plan misses, other than ``check``."""
    every = all_checks(a) if a.plan.limits.has_limits else ()
    return tuple(other for other in every if other.met is False and other.id != check.id)
