"""The published rows that a plan can be compared with, and the utilisation that they lead one to expect.

Rows count as comparable by tokens per parameter, accelerator family, dense or mixture of experts, size and precision.
Where all of these leave too few rows, one is given up, then the next, and so on; the result says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from core.hardware.accelerators import find
from core.models.flops import train_flop_6nd
from core.planning.budget.equations import days_of
from core.planning.budget.interval import Interval, product
from core.planning.budget.rule import accelerator_hours, training_seconds
from core.planning.budget.solver import BudgetError
from core.planning.evidence.rows import Basis, Evidence, Width, base_peak, evidence
from core.planning.evidence.runs import PublishedRun

Trait: TypeAlias = Literal["tokens per parameter", "family", "experts", "size", "precision"]
"""What makes a row comparable."""

KEEP_LONGEST: Mapping[Basis, tuple[Trait, ...]] = {
    "whole": ("tokens per parameter", "family", "experts", "size", "precision"),
    "steady": ("family", "precision", "experts", "size"),
}
"""The order in which traits are held on to: the last is given up first. Hardly any whole run was narrower than 16 bits,
while benchmarks come in all widths, and train on no corpus."""

SIZE_FACTOR = 4.0
"""Active parameters at most this many times as many or as few."""

RATIO_FACTOR = 10.0
"""Tokens per active parameter at most this many times as many or as few."""

FEWEST = 9
"""Rows wanted at least: of nine draws the extremes are P10 and P90 of the tenth, with fewer they lie outside."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a plan is compared by. params: active ones. tokens: NaN where unknown."""

    params: float
    tokens: float
    accelerator: str
    experts: bool = False
    width: Width = "16-bit"

    @property
    def family(self) -> str:
        """Family of the accelerator."""
        return find(self.accelerator).family


@dataclass(frozen=True, slots=True)
class Comparables:
    """The rows comparable with a plan, and the P10, P50 and P90 of utilisation that they lead one to expect.

    utilisation: by 6 N (active) over the dense 16-bit peak, whole-run or steady according to ``basis``.
    kept, dropped: traits that the rows share with the plan, and those given up for want of rows (last one first).
    found: how many rows shared all traits before any was given up.
    """

    profile: Profile
    basis: Basis
    rows: tuple[Evidence, ...]
    utilisation: Interval
    kept: tuple[Trait, ...]
    dropped: tuple[Trait, ...]
    found: int

    def mfu(self, flop_over_rule: float = 1.0, peak: float | None = None) -> Interval:
        """The same utilisation in the plan's own convention.

        flop_over_rule: the plan's training FLOPs per token over 6 N. peak: the plan's peak in FLOP/s where it is not
        the dense 16-bit one.
        """
        scale = flop_over_rule * (1.0 if peak is None else base_peak(self.profile.accelerator) / peak)
        return self.utilisation.through(lambda used: used * scale)


def _within(factor: float, left: float, right: float) -> bool:
    return abs(math.log(left / right)) <= math.log(factor) * (1 + 1e-12)


_MATCHES: Mapping[Trait, Callable[[Evidence, Profile], bool]] = {
    "tokens per parameter": lambda row, plan: _within(RATIO_FACTOR, row.ratio, plan.tokens / plan.params),
    "family": lambda row, plan: row.family == plan.family,
    "experts": lambda row, plan: row.experts == plan.experts,
    "size": lambda row, plan: _within(SIZE_FACTOR, row.run.params, plan.params),
    "precision": lambda row, plan: row.width == plan.width,
}


def _traits(plan: Profile, basis: Basis) -> list[Trait]:
    """Traits to begin with; a plan without tokens has no tokens per parameter."""
    ratio = not math.isnan(plan.tokens)
    return [trait for trait in KEEP_LONGEST[basis] if ratio or trait != "tokens per parameter"]


Without: TypeAlias = Literal["model", "lab"]
"""What is left out with a run that the method is judged on: its model, or everything its lab trained."""


def same_lab(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether one lab trained both, as far as the table says."""
    return bool(run.lab) and run.lab == other.lab


def same_model(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether two rows train the same model: one name, or one architecture under two names (equal parameters)."""
    if run.model == other.model or (run.catalog and run.catalog == other.catalog):
        return True
    return abs(run.params / other.params - 1) < 5e-3 and abs(run.params_total / other.params_total - 1) < 5e-3


@lru_cache(maxsize=512)
def comparable(
    plan: Profile, basis: Basis = "whole", without: PublishedRun | None = None, by: Without = "model"
) -> Comparables:
    """The published rows comparable with ``plan`` and their P10, P50 and P90 of utilisation.

    without: a row whose model is to be left out altogether, for judging the method on it; with ``by`` all that its
    lab trained.
    P10 and P90 are those of the next run, not of the sample: position p (n + 1) among n rows.
    """
    pool = [
        row
        for row in evidence(basis)
        if without is None or not (same_model(row.run, without) or (by == "lab" and same_lab(row.run, without)))
    ]
    kept, dropped = _traits(plan, basis), list[Trait]()
    rows = [row for row in pool if all(_MATCHES[trait](row, plan) for trait in kept)]
    found = len(rows)
    while len(rows) < FEWEST and kept:
        dropped.append(kept.pop())
        rows = [row for row in pool if all(_MATCHES[trait](row, plan) for trait in kept)]
    used = np.array([row.utilisation for row in rows])
    low, middle, high = np.quantile(used, [0.1, 0.5, 0.9], method="weibull").tolist()
    return Comparables(plan, basis, tuple(rows), Interval(low, middle, high), tuple(kept), tuple(dropped), found)


def expected_hours(plan: Profile, comparables: Comparables) -> Interval:
    """Accelerator-hours of ``plan`` by 6 N D at the utilisation of its comparables: P10, P50, P90."""
    flop, peak = train_flop_6nd(plan.params, plan.tokens), base_peak(plan.accelerator)
    return comparables.utilisation.through(lambda used: accelerator_hours(1, training_seconds(flop, 1, peak, used)))


@dataclass(frozen=True, slots=True)
class Expected:
    """What comparable runs lead one to expect of a plan: P10, P50 and P90; dollars NaN without a price."""

    hours: Interval
    days: Interval
    dollars: Interval


def expected(plan: Profile, comparables: Comparables, accelerators: float, price: Interval) -> Expected:
    """Accelerator-hours, days on ``accelerators`` and dollars over a range of prices per accelerator-hour.

    Of whole runs everything billed is in these days; of steady steps nothing but the steps. Raises `BudgetError`
    for less than one accelerator.
    """
    if not accelerators >= 1:
        raise BudgetError("accelerators", f"{accelerators:g} accelerators train nothing. For example: 1024.")
    hours = expected_hours(plan, comparables)
    days = hours.through(lambda taken: days_of(taken, accelerators))
    return Expected(hours, days, product(hours, price))


def profile_of(run: PublishedRun) -> Profile:
    """The plan that a published row carried out."""
    row = Evidence(run, "whole", math.nan, "")
    return Profile(run.params, run.tokens, run.accelerator, row.experts, row.width)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A whole run as predicted from all others, beside what it took. error: predicted P50 over published, minus 1."""

    run: PublishedRun
    published: float
    hours: Interval
    error: float
    inside: bool
    comparables: Comparables


@lru_cache(maxsize=2)
def predictions(by: Without = "model") -> tuple[Prediction, ...]:
    """Every whole run in `evidence`, predicted with its own model, or its whole lab, left out; in the table's order."""
    found: list[Prediction] = []
    for row in evidence("whole"):
        plan = profile_of(row.run)
        peers = comparable(plan, "whole", row.run, by)
        hours = expected_hours(plan, peers)
        published = hours.mid * peers.utilisation.mid / row.utilisation
        found.append(Prediction(row.run, published, hours, hours.mid / published - 1, hours.contains(published), peers))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Score:
    """How well the predictions did. error: median of the absolute errors of P50. inside: share inside P10 to P90."""

    runs: int
    error: float
    inside: float


def score(by: Without = "model") -> Score:
    """The score of `predictions`."""
    made = predictions(by)
    errors = np.array([abs(one.error) for one in made])
    return Score(len(made), float(np.median(errors)), float(np.mean([one.inside for one in made])))
