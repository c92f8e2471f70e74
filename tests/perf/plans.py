"""Laws of an answer over 100,000 random plans, and every preset, question, accelerator and panel.

Prints what was tried, what broke, and how long an answer takes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from core.budget.equations import BudgetError
from core.planning.estimate import estimate
from core.planning.plan import TYPED, Plan
from core.runs.goodput import Failures
from tests.core import plan_walk
from tests.core.plan_cases import INVERSES, asked, columns, random_plan
from tests.perf.options import FULL, Options

CLOSE = 1e-9
_SHAPES = 0.01
"""Share by which more parameters may be faster, as their layers divide better over stages, or leave a little memory."""


def more_work_takes_longer(plan: Plan, draw: random.Random) -> Iterator[str]:
    """More parameters or tokens never take less time, at either end or in the middle."""
    by = 1 + 10 ** draw.uniform(-6, 0.5)
    grown = [replace(plan, tokens=plan.tokens * by)]
    if plan.model == TYPED:
        grown.append(replace(plan, parameters=plan.parameters * by))
    for item in grown:
        for before, after in zip(columns(estimate(plan)), columns(estimate(item)), strict=True):
            close = 1e-12 if item.parameters == plan.parameters else _SHAPES
            if after.days < before.days * (1 - close):
                yield f"{before.days} days become {after.days} at {by} times the work"


def more_accelerators_are_no_slower(plan: Plan, draw: random.Random) -> Iterator[str]:
    """More accelerators never take more days, unless failures eat what they add to steps whose MFU is typed; where it
    is typed, nor fewer accelerator-hours."""
    by = 1 + 10 ** draw.uniform(-6, 0.5)
    steady = plan.mfu is not None and plan.mfu_kind == "steady steps"
    more = replace(plan, accelerators=plan.accelerators * by)
    for before, after in zip(columns(estimate(plan)), columns(estimate(more)), strict=True):
        if after.days > before.days * (1 + 1e-12) and not steady:
            yield f"{before.days} days become {after.days} on {by} times the accelerators"
        if plan.mfu and after.hours < before.hours * (1 - CLOSE):
            yield f"{before.hours} hours become {after.hours} on {by} times the accelerators"


def every_question_undoes_the_others(plan: Plan, draw: random.Random) -> Iterator[str]:
    """What is found within the days that a plan takes is the plan again, in each column; and what is found within any
    other days takes these days."""
    at = draw.randrange(3)
    here = columns(estimate(plan))[at]
    other = here.days * 10 ** draw.uniform(-0.5, 0.5)
    for find, name in INVERSES.items():
        if find == "parameters" and plan.model != TYPED:
            continue  # its layers are not those of another size
        for days in (here.days, other):
            try:
                there = columns(estimate(asked(plan, find, days)))[at]
            except BudgetError:  # beyond the caps at another end of the range, or at other days
                continue
            result = getattr(there, name)
            again = columns(estimate(replace(plan, **{name: result})))[at]
            if abs(again.days / there.days - 1) > CLOSE:
                yield f"{result} {find} take {again.days} days where they were found, {there.days}"
            if find == "accelerators":
                yield from _fewest_in_time(plan, at, days, again.days, result)
                continue
            off = result / getattr(plan, name) - 1
            if find == "parameters":  # found to four digits, as layers have no more
                if again.days > days * (1 + CLOSE) or (days == here.days and off < -3 * _SHAPES):
                    yield f"{result} parameters within {days} days take {again.days}"
                continue
            if abs(again.days / days - 1) > CLOSE:
                yield f"{find} within {days} days takes {again.days}"
            if days == here.days and abs(off) > CLOSE:
                yield f"{find}: {result} for {getattr(plan, name)}"
    needed = estimate(asked(plan, "MFU", here.days)).middle.mfu
    if abs(needed / here.mfu - 1) > CLOSE:
        yield f"MFU: {needed} for {here.mfu}"


def _fewest_in_time(plan: Plan, at: int, days: float, found: float, count: float) -> Iterator[str]:
    """Accelerators that were found keep the days, and one node of them less, or one less of a node, does not."""
    steady = plan.mfu is not None and plan.mfu_kind == "steady steps"
    if found > days * (1 + CLOSE) and not steady:
        yield f"{count} accelerators take {found} days, not {days}"
    node = plan.device.node_size
    fewer = count - (node if count > node else 1)
    if fewer >= 1:
        less = columns(estimate(replace(plan, accelerators=fewer)))[at].days
        if less <= days * (1 - CLOSE):
            yield f"{fewer} accelerators take {less} days where {count} were found for {days}"


def failures_cost_time(plan: Plan, draw: random.Random) -> Iterator[str]:
    """More failures never take fewer days, and change none where the MFU is typed and of all hours."""
    rate = plan.reliability.failures.per_1000_days or 0.01
    worse = replace(plan.reliability, failures=Failures(rate * (1 + 10 ** draw.uniform(-3, 0.5))))
    rough = replace(plan, reliability=worse)
    of_all = plan.mfu is not None and plan.mfu_kind == "all hours"
    for before, after in zip(columns(estimate(plan)), columns(estimate(rough)), strict=True):
        if after.days < before.days * (1 - 1e-12):
            yield f"{before.days} days become {after.days} with more failures"
        if of_all and after.days != before.days:
            yield f"{before.days} days become {after.days} though the MFU is of all hours"


def ends_are_in_order(plan: Plan, draw: random.Random) -> Iterator[str]:
    """The low end of the MFU takes longest, costs most and trains least."""
    days = estimate(plan).middle.days
    answers = [estimate(plan)]
    for find in ("tokens", "accelerators"):
        try:
            answers.append(estimate(asked(plan, find, days)))
        except BudgetError:
            continue
    for a in answers:
        low, middle, high = columns(a)
        if not low.mfu <= middle.mfu <= high.mfu <= 1 + CLOSE:
            yield f"MFU of {low.mfu}, {middle.mfu}, {high.mfu}"
        ranks = {"time": "days", "accelerators": "accelerators", "tokens": "tokens"}
        ends = [getattr(end, ranks[a.find]) for end in (low, middle, high)]
        if ends != sorted(ends, reverse=a.find != "tokens"):
            yield f"{a.find}: {ends}"
        if not a.dollars.low <= a.dollars.mid * (1 + CLOSE) <= a.dollars.high * (1 + CLOSE) ** 2:
            yield f"dollars: {a.dollars}"
        if not all(0 < end.goodput <= 1 for end in (low, middle, high)):
            yield f"goodput: {[end.goodput for end in (low, middle, high)]}"


Law = Callable[[Plan, random.Random], Iterator[str]]
LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        more_work_takes_longer,
        more_accelerators_are_no_slower,
        every_question_undoes_the_others,
        failures_cost_time,
        ends_are_in_order,
    )
}


@dataclass
class Held:
    """A law over random plans: how many were drawn, how many of them have an answer, and where it broke."""

    drawn: int = 0
    tried: int = 0
    broken: list[str] = field(default_factory=list[str])


def over_random_plans(law: str, count: int, seed: int) -> Held:
    """Try ``law`` on ``count`` plans; a plan without an answer, which failures can bring, is drawn in vain."""
    draw, content = random.Random(seed), Held(count)
    for _ in range(count):
        plan = random_plan(draw)
        try:
            content.broken += [f"{plan}: {text}" for text in LAWS[law](plan, draw)]
            content.tried += 1
        except BudgetError:
            continue
    return content


def main(options: Options = FULL) -> None:
    """Measure and print; fails where a law is broken or a panel is at fault."""
    count = options.plans
    broken = 0
    for law in LAWS:
        start = time.perf_counter()
        content = over_random_plans(law, count // len(LAWS), seed=1)
        broken += len(content.broken)
        took = time.perf_counter() - start
        print(f"{law:<36}{content.tried:>8,} plans, {len(content.broken)} broken, {took:.0f} s", flush=True)
        for fault in content.broken[:3]:
            print(f"  {fault}")
    start = time.perf_counter()
    walked = plan_walk.walk_all(costly_every=11)
    took = time.perf_counter() - start
    print(
        f"presets × questions × accelerators × panels: {walked.plans:,} plans, {walked.refused:,} refused, {took:.0f} s"
    )
    for fault in walked.faults[:10]:
        print(f"  {fault}")
    draw = random.Random(2)
    drawn = [random_plan(draw) for _ in range(500)]
    start = time.perf_counter()
    for plan in drawn:
        try:
            estimate.__wrapped__(plan)
        except BudgetError:
            continue
    print(f"one answer: {(time.perf_counter() - start) / len(drawn) * 1e3:.2f} ms")
    if broken or walked.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
