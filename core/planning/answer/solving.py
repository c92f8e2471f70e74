"""A plan's budget equation, solved for whichever quantity is asked for, at each end of its range at once.

Accelerator-hours H(N, D, n) = k · N · D / (3600 · P · u), with k training FLOPs per token and parameter (6 by the
rule), P the dense peak and u the MFU over all hours. u is typed; or what published runs lead one to expect, which
falls slowly with n and moves with N and D; or that of steady steps times the goodput, which falls with n and N. H rises
with N and D, so each of them is found from the hours there are by one root, and every question is the inverse of every
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.models.catalog import CatalogModel
from core.planning.answer.holding import saved
from core.planning.answer.plan import Plan
from core.planning.budget.errors import BudgetError
from core.planning.counting.lengths import Work, work_of
from core.planning.evidence.expectation import Gauge, Setting, Width, published_gauge
from core.planning.evidence.rows import base_peak
from core.planning.whole.goodput import LEAST_GOODPUT, Stops, no_progress, stops
from core.training import Saved
from core.units import format_quantity

Array = npt.NDArray[np.float64]

WIDTHS: dict[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}
_CLOSE = 1e-12
_ROUNDS = 80
_LEAST_SHARE, _TRIALS = math.exp(-3), 32
"""Published runs' MFU is hardly ever less than this share of the best matmul: a search begins with so many trials,
which take hardly longer at once than three do."""


@dataclass(frozen=True)
class Terms:
    """All that a plan's hours follow from, beside parameters, tokens and accelerators. Arrays have three columns: the
    low end, the middle and the high end of the MFU."""

    plan: Plan
    model: CatalogModel | None

    @cached_property
    def dtype(self) -> str:
        """The dtype whose dense peak counts."""
        return self.plan.peak_dtype

    @cached_property
    def peak(self) -> float:
        """Dense FLOP/s of one accelerator in the plan's dtype."""
        return self.plan.device.peak(self.dtype)

    @cached_property
    def scale(self) -> float:
        """An MFU of this peak over the same of the dense 16-bit one. Narrow formats are held against their own, higher
        peak; wide ones are taken to reach the same share of their lower one."""
        narrow = self.dtype in WIDTHS
        return min(1.0, base_peak(self.plan.accelerator) / self.peak) if narrow else 1.0

    @cached_property
    def work(self) -> Work:
        """What a token costs at the plan's sequence length."""
        return work_of(self.model, self.plan.seq_len)

    @cached_property
    def saved(self) -> Saved:
        """Bytes of a checkpoint per parameter."""
        return saved(self.plan)

    @property
    def steady(self) -> bool:
        """Whether the MFU is typed, and of the steps alone."""
        return self.plan.mfu is not None and self.plan.pace == "steady steps"

    def total(self, params: Array | float) -> Array | float:
        """Parameters that are stored, all experts included, where ``params`` work on each token."""
        return params * (self.model.parameters / self.model.active) if self.model else params

    def stops(self, params: Array | float, accelerators: Array | float) -> Stops:
        """What checkpoints, failures and restarts leave of the time."""
        return stops(accelerators, self.saved.of(self.total(params)), self.plan.reliability)

    def setting(self, params: float, tokens: float, accelerators: float) -> Setting:
        """What published runs are compared by; less than one of anything is taken as one."""
        return Setting(
            params=max(params, 1.0),
            tokens=max(tokens, 1.0),
            accelerator=self.plan.accelerator,
            accelerators=max(accelerators, 1.0),
            mixture=bool(self.model and self.model.mixture),
            width=WIDTHS.get(self.dtype, "16-bit"),
        )

    @cached_property
    def gauge(self) -> Gauge:
        """What published runs say to plans of this kind."""
        one = self.setting(1.0, 1.0, 1.0)
        return published_gauge(one.accelerator, mixture=one.mixture, width=one.width)

    @cached_property
    def _expected(self) -> dict[bytes, Array]:
        return {}

    def expected(self, params: Array, tokens: Array) -> Array:
        """P10, P50 and P90 (first axis) of the MFU over all hours that published runs lead one to expect, of the plan's
        peak; less than one parameter or token, which a search may pass, is taken as one.

        What was found is kept: a root ends where its equation was last worked out.
        """
        params, tokens = params + 0 * tokens, tokens + 0 * params
        key = params.tobytes() + tokens.tobytes()
        if key not in self._expected:
            ends = self.gauge.ends(np.log(np.maximum(params, 1.0)).ravel(), np.log(np.maximum(tokens, 1.0)).ravel())
            self._expected[key] = self.scale * ends.reshape(3, *params.shape)
        return self._expected[key]

    def mfu(self, params: Array, tokens: Array, accelerators: Array) -> Array:
        """MFU over all hours in each column (last axis); the arguments have a value for each, or one for all."""
        typed = self.plan.mfu
        if typed is None:
            ends = self.expected(params, tokens)
            return np.stack([end[..., i if ends.shape[-1] == 3 else 0] for i, end in enumerate(ends)], axis=-1)
        share = np.array([typed.low, typed.mid, typed.high])
        return share * self.stops(params, accelerators).goodput if self.steady else share + 0 * params

    def hours(self, params: Array, tokens: Array, accelerators: Array) -> Array:
        """Accelerator-hours in each column."""
        flop = self.work.per_parameter(params) * params * tokens
        with np.errstate(divide="ignore", over="ignore"):
            return flop / (3600 * self.peak * self.mfu(params, tokens, accelerators))


@dataclass(frozen=True, slots=True)
class Solved:
    """The budget in each column, what was found among it. mfu: over all hours."""

    parameters: Array
    tokens: Array
    accelerators: Array
    days: Array
    mfu: Array
    price: Array


def solve(terms: Terms) -> Solved:
    """What the plan asks for, filled in. Raises `BudgetError` naming the field at fault where there is no answer."""
    plan, model = terms.plan, terms.model
    given = Solved(
        parameters=np.full(3, float(model.active) if model else plan.parameters),
        tokens=np.full(3, plan.tokens),
        accelerators=np.full(3, plan.accelerators),
        days=np.full(3, math.nan),
        mfu=np.full(3, math.nan),
        price=np.array(prices_of(plan)),
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if plan.find == "time":
            found = given
        elif plan.find == "accelerators":
            found = replace(given, accelerators=_accelerators(terms, given))
        elif plan.find == "MFU":
            found = given
        elif plan.find == "tokens":
            found = replace(given, tokens=_root(terms, given, "tokens"))
        else:
            found = replace(given, parameters=_root(terms, given, "parameters"))
        return _checked(terms, finished(terms, found))


def prices_of(plan: Plan) -> tuple[float, float, float]:
    """Dollars per accelerator-hour in each column: the middle of the range, and at its ends the price that goes with
    them, since money buys least at the highest."""
    low, high = plan.price_range
    return high, (low + high) / 2, low


def _hours(plan: Plan, given: Solved) -> Array:
    """The accelerator-hours that there are: days of all accelerators, or what the money pays for."""
    if not plan.limits.in_money:
        return 24 * plan.limits.days * given.accelerators
    if math.isnan(given.price[1]):
        raise BudgetError("price", "Money buys nothing without a price per accelerator-hour: type one. Example: 2.50.")
    if given.price[2] == 0:
        raise BudgetError("price", "At no price any number of hours can be had: give a time, or a price.")
    return plan.limits.dollars / given.price


def finished(terms: Terms, found: Solved) -> Solved:
    """Days and MFU of parameters, tokens and accelerators, of many plans at once along a first axis where all share
    ``terms``. Days are those of the limit to the last digit where there is one, so that rounding makes no range."""
    asked_for_time = terms.plan.find == "time"
    run = (found.parameters, found.tokens, found.accelerators)
    hours = terms.hours(*run) if asked_for_time else _hours(terms.plan, found)
    if terms.plan.find == "MFU":
        flop = terms.work.per_parameter(found.parameters) * found.parameters * found.tokens
        mfu = flop / (3600 * terms.peak * hours)
    else:
        mfu = terms.mfu(*run)
    in_days = not (asked_for_time or terms.plan.limits.in_money)
    return replace(
        found, days=np.full(3, terms.plan.limits.days) if in_days else hours / 24 / found.accelerators, mfu=mfu
    )


def _root(terms: Terms, given: Solved, name: Literal["parameters", "tokens"]) -> Array:
    """The parameters or tokens at which the hours, which rise with them, are those there are, in each column."""
    available, other = _hours(terms.plan, given), given.tokens if name == "parameters" else given.parameters

    def gap(at: Array) -> Array:
        x = np.exp(at)
        params, tokens = (x, other[:1]) if name == "parameters" else (other[:1], x)
        return np.log(terms.hours(params, tokens, given.accelerators[:1])) - np.log(available)

    if terms.plan.mfu is not None:
        return np.exp(_zero(gap, np.zeros(3), np.ones(3)))
    most = np.log(3600 * available * terms.peak * terms.scale * terms.gauge.cap / (6 * other))
    return np.exp(_zero(gap, *_near(gap, float(most.min()) + math.log(_LEAST_SHARE), float(most.max()))))


def _near(gap: Callable[[Array], Array], least: float, most: float) -> tuple[Array, Array]:
    """About where ``gap`` is zero, and its slope there, from trials between ``least`` and ``most``."""
    trials = np.linspace(least, most, _TRIALS)
    values = gap(trials[:, None])
    after = np.minimum(np.maximum((values < 0).sum(axis=0), 1), _TRIALS - 1)
    each = np.arange(3)
    before, behind = values[after - 1, each], values[after, each]
    slope = (behind - before) / (trials[1] - trials[0])
    return trials[after] - behind / slope, slope


def _accelerators(terms: Terms, given: Solved) -> Array:
    """The fewest accelerators that keep the days."""
    plan = terms.plan
    if plan.limits.in_money:
        raise BudgetError(
            "within",
            "Twice the accelerators for half the time cost the same, so money alone does not say how many: give a "
            "time. For example: 90 days.",
        )

    def gap(at: Array) -> Array:
        count = np.exp(at)
        return np.log(terms.hours(given.parameters, given.tokens, count)) - np.log(24 * plan.limits.days) - at

    start = np.log(terms.hours(given.parameters, given.tokens, np.ones(3)) / (24 * plan.limits.days))
    if terms.steady:  # failures grow with the cluster: from below, so that the smaller of two answers is found
        share = np.array([plan.mfu.low, plan.mfu.mid, plan.mfu.high]) if plan.mfu else np.ones(3)
        flop = terms.work.per_parameter(given.parameters) * given.parameters * given.tokens
        start = np.log(flop / (3600 * terms.peak * share) / (24 * plan.limits.days))
    count = np.exp(_zero(gap, start, -np.ones(3), steep=0.02 if terms.steady else 0.3))
    if not np.all(count <= limit("accelerators")):
        most = format_quantity(limit("accelerators"), "count")
        few = f"{format_quantity(float(count[1]), 'count')} accelerators" if math.isfinite(count[1]) else "more"
        why = " Failures grow with the cluster, and eat what more of it adds." if terms.steady else ""
        raise BudgetError(
            "within", f"Cannot be met: it would take {few}, and {most} are the most here.{why} Allow more days."
        )
    return count


def _zero(gap: Callable[[Array], Array], start: Array, slope: Array, *, steep: float = 0.3) -> Array:
    """Where ``gap`` of a logarithm is zero: secants, whose slope keeps its sign and is kept between ``steep`` and 3;
    infinite where there is none."""
    sign = np.sign(slope)
    at, value = start, gap(start)
    for _ in range(_ROUNDS):
        if np.all(np.abs(value) < _CLOSE) or not np.all(np.isfinite(value)):
            break
        there = at - value / slope
        found = gap(there)
        moved = there - at
        measured = np.where(np.abs(moved) > 1e-12, (found - value) / np.where(moved == 0, 1.0, moved), slope)
        slope = sign * np.clip(sign * measured, steep, 3.0)
        at, value = there, found
    return np.where(np.abs(value) < 1e-9, at, math.inf)


_LABELS = {"parameters": ("n", "parameters"), "tokens": ("tokens", "tokens")}


def _checked(terms: Terms, found: Solved) -> Solved:
    plan = terms.plan
    if terms.steady and not np.all(terms.stops(found.parameters, found.accelerators).goodput > LEAST_GOODPUT):
        raise no_progress(terms.stops(float(found.parameters[0]), float(found.accelerators[0])))
    for name, (field, cap) in _LABELS.items():
        value = getattr(found, name)
        if not np.all(np.isfinite(value)) or value.max() > limit(cap):
            most = format_quantity(limit(cap), "count")
            raise BudgetError(field, f"The answer is beyond the {most} {name} that are the most here.")
        if value.min() < 1:
            raise BudgetError("within", f"So little is enough for less than one of the {name}. Allow more.")
    if not np.all(np.isfinite(found.days)) or found.days.min() <= 0:
        raise BudgetError(plan.find, "These numbers go beyond what can be counted.")
    if plan.find == "MFU":
        needed = float(found.mfu.min())
        if needed > 1:
            raise BudgetError(
                "within",
                f"Cannot be met: it would take an MFU of {format_quantity(needed, 'ratio')}, more than the whole peak. "
                "Allow more days or accelerators, or fewer tokens or parameters.",
            )
    return found
