"""A running job against its plan: the pace it keeps, what it lost, and when it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.budget.equations import BudgetError, Interval
from core.formula import Explanation, Symbol, formula
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.actuals.logged_run import CSV, Array, LoggedRun
from core.planning.estimate import PlanEstimate, estimate
from core.planning.measured import OwnRun, parse_own_runs
from core.planning.plan import Plan
from core.planning.sensitivity import plan_as_answered
from core.sources import OWN_CONSTRUCTION
from core.units import format_count, significant

_RECENT = 0.25
"""Share of the logged time, the last of it, whose pace is the recent one."""
_SLOW, _SHORTEST, _BINS = 0.5, 1 / 24, 512
"""Stretches slower than so much of the steady pace that lose more days than this are gaps."""
_LONG_ENOUGH = 0.1
"""Share of its tokens from which on a job says as much as a run that ended."""
_DAYS = Symbol("D", "days since the job began", "days")
_TRAINED = Symbol("T", "tokens trained by then", "tokens")


@formula(
    r"\frac{\v{tokens}}{\v{days}}",
    result=Symbol("p", "tokens per day", "tokens"),
    symbols={"tokens": _TRAINED, "days": _DAYS},
    sources=(OWN_CONSTRUCTION,),
)
def mean_pace(tokens: float, days: float) -> float:
    """Tokens per day over all days, stops and repeated work included."""
    return tokens / days


@formula(
    r"\v{days} + \frac{\v{goal} - \v{tokens}}{\v{pace}}",
    result=Symbol("E", "days at which it ends", "days"),
    symbols={
        "days": _DAYS,
        "goal": Symbol("G", "tokens of the plan", "tokens"),
        "tokens": _TRAINED,
        "pace": Symbol("p", "tokens per day", "tokens"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def end_at_pace(days: float, goal: float, tokens: float, pace: float) -> float:
    """Day at which the remaining tokens are trained, at constant speed."""
    return days + (goal - tokens) / pace


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which a job hardly moved on. start: day; days: that its steady pace would not have taken."""

    start: float
    days: float


@dataclass(frozen=True, eq=False, slots=True)
class JobProgress:
    """Progress of a running job compared with its plan. Days count from the job's start, and speeds are tokens per day.

    planned: planned end-to-end days. steps_days: planned steady-state days. deadline: NaN without one. steady: speed at
    which half of all tokens were trained, or that of the median step. recent: speed in the last quarter, at most 0
    without progress. pace: speed used for the projection: ``steady`` if the log has step times, because their first
    steps are slow, else the overall speed. ends: first and last projected day of the end, at ``pace`` and at
    ``recent``; infinite without progress. repeated: tokens trained twice. lead: days before the first row. own: the job
    as a custom run, None if it is too short. why: the problem with that run.
    """

    log: LoggedRun
    plan: Plan
    days: Array
    tokens: Array
    goal: float
    planned: Interval
    steps_days: float
    deadline: float
    overall: float
    recent: float
    steady: float
    pace: float
    ends: tuple[float, float]
    gaps: tuple[Gap, ...]
    restarts: int
    repeated: float
    lead: float
    own: OwnRun | None
    why: str

    @property
    def day(self) -> float:
        """The last that was logged."""
        return float(self.days[-1])

    @property
    def trained(self) -> float:
        """Tokens by then."""
        return float(self.tokens[-1])

    @property
    def done(self) -> bool:
        """Whether all tokens are trained."""
        return self.trained >= self.goal

    @property
    def implied(self) -> float:
        """Days of the whole run at its pace."""
        return self.goal / self.pace

    @property
    def gap_days(self) -> float:
        """Days lost in gaps."""
        return sum(gap.days for gap in self.gaps)

    def explain(self) -> list[Explanation]:
        """Return the end at its pace and at the recent one, and the overall pace."""
        rest = {"days": self.day, "goal": self.goal, "tokens": self.trained}
        paces = [pace for pace in (self.pace, self.recent) if pace > 0 and not self.done]
        return [
            *(end_at_pace.explain(**rest, pace=pace) for pace in paces),
            mean_pace.explain(tokens=self.trained, days=self.day),
        ]


def tokens_each(log: LoggedRun, plan: Plan) -> float:
    """Return the tokens per counted unit of the log, a step or a sample, from the plan's sequence length and batch."""
    if log.measure == "tokens":
        return 1.0
    return float(plan.mean_length * (plan.sequences if log.measure == "steps" else 1))


def progress(log: LoggedRun, a: PlanEstimate) -> JobProgress:
    """Return the progress that a log shows, compared with the range of days of the plan of ``a``.

    Raises `BudgetError` if the steps of the log, at the plan's batch, are more tokens than the plan has.
    """
    plan = plan_as_answered(a)
    whole = a if a.find == "time" else estimate(plan)
    each, most = tokens_each(log, plan), limit("tokens")
    tokens = log.amounts * each
    if tokens.max() > most:
        amount = float(log.amounts.max())
        raise BudgetError(
            "tokens",
            message("actuals.error.tokens", amount=amount, measure=log.measure, each=each, most=float(most)),
        )
    day_each = (each / whole.count if log.clock == "rates" else 1.0) / 86400
    since = log.seconds * day_each
    # What was trained before the first row took as long as its like did later.
    pace = float((tokens[-1] - tokens[0]) / (since[-1] - since[0]))
    stepped = each * log.rates / day_each
    if log.format != CSV:
        pace = float(np.median(stepped)) if len(stepped) else _steady(since, tokens) or pace
    lead = float(tokens[0] / pace - since[0])
    lead = max(0.0, lead) if math.isfinite(log.began) or since[0] <= 0.01 * since[-1] else 0.0
    days = since + lead
    day, trained, goal = float(days[-1]), float(tokens[-1]), whole.middle.tokens
    overall = float(mean_pace(trained, day))
    window = day - _RECENT * (day - float(days[0]))
    recent = (trained - float(np.interp(window, days, tokens))) / (day - window)
    steady = _steady(days, tokens) or overall
    if len(stepped):
        steady, recent = pace, float(np.median(stepped[-math.ceil(_RECENT * len(stepped)) :]))
    elif log.format != CSV:
        at = days >= window
        recent = (_steady(days[at], tokens[at]) if at.sum() > 1 else 0.0) or steady
    pace = overall if log.format == CSV else steady
    back = np.minimum(np.diff(tokens), 0)
    deadline = a.plan.limits.days
    if math.isnan(deadline) and a.find != "time":
        deadline = a.plan.within.days
    own, why = _own_run(whole, trained, day) if log.clock == "wall" else (None, "")
    return JobProgress(
        log=log,
        plan=plan,
        days=days,
        tokens=tokens,
        goal=goal,
        planned=whole.range_of("days"),
        steps_days=whole.middle.steps_days,
        deadline=deadline,
        overall=overall,
        recent=recent,
        steady=steady,
        pace=pace,
        ends=_ends(days, tokens, goal, (pace, recent)),
        gaps=_gaps(days, tokens, steady),
        restarts=int(np.count_nonzero(back)),
        repeated=float(-back.sum()),
        lead=lead,
        own=own,
        why=why,
    )


def _ends(days: Array, tokens: Array, goal: float, paces: tuple[float, float]) -> tuple[float, float]:
    day, trained = float(days[-1]), float(tokens[-1])
    if trained >= goal:
        first = int(np.argmax(tokens >= goal))
        before = max(0, first - 1)
        reached = float(np.interp(goal, tokens[before : first + 1], days[before : first + 1]))
        return reached, reached
    ends = [float(end_at_pace(day, goal, trained, pace)) if pace > 0 else math.inf for pace in paces]
    return min(ends), max(ends)


def _steady(days: Array, tokens: Array) -> float:
    """Return the pace at which half of the tokens were trained faster, and half slower; 0 if nothing rises.

    Between the first rows of equal stretches of time, so that times rounded to seconds say nothing.
    """
    bins = np.floor((days - days[0]) / (days[-1] - days[0]) * _BINS)
    at = np.append(np.flatnonzero(np.diff(bins, prepend=-1)), len(days) - 1)
    time, gained = np.diff(days[at]), np.diff(tokens[at])
    good = (time > 0) & (gained > 0)
    if not good.any():
        return 0.0
    paces, weights = gained[good] / time[good], gained[good]
    order = np.argsort(paces)
    total = np.cumsum(weights[order])
    return float(paces[order][np.searchsorted(total, total[-1] / 2)])


def _gaps(days: Array, tokens: Array, steady: float) -> tuple[Gap, ...]:
    """Return the stretches of slow intervals that lost long enough, in the order of time."""
    time, gained = np.diff(days), np.maximum(np.diff(tokens), 0)
    lost = time - gained / steady
    slow = gained < _SLOW * steady * time
    edges = np.flatnonzero(np.diff(np.concatenate(([0], slow.astype(np.int8), [0]))))
    least = min(_SHORTEST, 0.01 * float(days[-1] - days[0]))
    found = [Gap(float(days[a]), float(lost[a:b].sum())) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return tuple(gap for gap in found if gap.days > least)


def own_run_text(own: OwnRun) -> str:
    """Return a run as a line that `parse_own_runs` reads."""
    days = significant(own.hours / own.accelerators / 24, 5)
    size, tokens, count = (format_count(value, 6) for value in (own.parameters, own.tokens, own.accelerators))
    return f"{size}, {tokens} tokens, {count} {own.accelerator}, {days} days"


def _own_run(a: PlanEstimate, trained: float, day: float) -> tuple[OwnRun | None, str]:
    """Return the job as a run of one's own, and why it cannot be one."""
    m = a.middle
    count = float(a.count)
    text = own_run_text(OwnRun(m.parameters, trained, a.device.name, count, 24 * day * count, False))
    try:
        (own,) = parse_own_runs(text)
    except QuantityError as problem:
        return None, str(problem).removeprefix("Line 1: ")
    return (own if trained >= _LONG_ENOUGH * m.tokens and day >= 1 else None), ""
