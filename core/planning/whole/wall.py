"""The hours of the answer, and what they hold: steps, checkpoints, failures, and what neither explains; their energy.

One plan has one set of hours. Where they are those of comparable published runs, everything billed is in them, and
they are taken apart; a typed MFU is taken for all hours by the answer, and what stops would add is said beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from core.formula import Explanation, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.planning.answer.outlook import Outlook, Published
from core.planning.budget.interval import Interval
from core.planning.evidence.comparable import Comparables, Profile, comparable
from core.planning.evidence.rows import Width
from core.planning.whole.energy import US_GRID, USUAL_PUE, footprint
from core.planning.whole.goodput import Reliability, WholeRun, whole_run
from core.sources import OWN, PALM

_SHARE = Symbol("g", "share of the time on the wall that trains", "ratio")
_ALL = Symbol("u", "MFU over all hours", "ratio")


@formula(
    r"\frac{\v{mfu}}{\v{goodput}}",
    result=Symbol("u_s", "MFU that the steps themselves run at", "ratio"),
    symbols={"mfu": _ALL, "goodput": _SHARE},
    sources=(OWN.at("from MFU as PaLM defines it"), PALM.at("section 4.1")),
)
def pace_of_steps(mfu: float, goodput: float) -> float:
    """MFU of the steps themselves.

    All the work falls into the part of the time that trains, so the steps are faster than all hours together.
    """
    return mfu / goodput


@formula(
    r"\v{goodput} - \frac{\v{mfu}}{\v{steady}}",
    result=Symbol("z", "share of the time that neither steps nor failures explain", "ratio"),
    symbols={
        "goodput": _SHARE,
        "mfu": _ALL,
        "steady": Symbol("u_0", "MFU of comparable steady measurements", "ratio"),
    },
    sources=(OWN.at("from MFU as PaLM defines it"), PALM.at("section 4.1")),
)
def unexplained_share(goodput: float, mfu: float, steady: float) -> float:
    """Share of the time that nothing here explains.

    What trains, less what steps at the pace of steady measurements would need. Below 0 the hours are fewer than such
    steps and the stops together.
    """
    return goodput - mfu / steady


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the whole run depends on beyond the plan. draw: share of the power limit. grid: kg of CO₂ per kWh."""

    reliability: Reliability = field(default_factory=Reliability)
    draw: float = 1.0
    pue: float = USUAL_PUE
    grid: float = US_GRID


@dataclass(frozen=True, slots=True)
class Wall:
    """The answer's hours taken apart.

    run: with the answer's time on the wall; with a typed MFU, the longer run whose steady steps have that MFU.
    steps: share of the wall time that steps take, at ``pace``; with `run.writing` and so on, and ``unexplained``, the
    shares sum to 1. pace: the MFU of the steps. steady: that of comparable steady measurements; None unless the MFU
    is that of published runs. energy in Wh, carbon in kg: of the answer's hours, over their range.
    """

    run: WholeRun
    typed: bool
    pace: float
    steps: float
    unexplained: float
    steady: Comparables | None
    benchmark: float
    energy: Interval
    carbon: Interval
    explanations: tuple[Explanation, ...]


def steady_peers(o: Outlook, seen: Published) -> Comparables:
    """Steady measurements comparable with the plan, in the width that most of its comparable whole runs have."""
    profile = seen.peers.profile
    width: Width = profile.width
    if "precision" in seen.peers.dropped:
        width = Counter[Width](row.width for row in seen.peers.rows).most_common(1)[0][0]
    return comparable(Profile(o.plan.params, math.nan, profile.accelerator, profile.experts, width), "steady")


def wall_of(
    o: Outlook,
    seen: Published,
    device: Accelerator,
    around: Circumstances,
    *,
    published: bool,
    params_total: float,
) -> Wall:
    """The hours of ``o`` and what they hold. published: whether its MFU is that of ``seen``.

    Raises `BudgetError` for impossible circumstances, and where failures leave no progress.
    """
    plan, typed = o.plan, not published and o.find != "MFU"

    def at(mfu: float) -> WholeRun:
        return whole_run(
            flop=float(o.middle.flop),
            accelerators=plan.accelerators,
            peak=plan.peak,
            mfu=mfu,
            params_total=params_total,
            reliability=around.reliability,
        )

    run = at(plan.mfu)
    steps: list[Explanation] = []
    steady, benchmark, unexplained = None, math.nan, 0.0
    pace = plan.mfu
    if not typed:
        faster = pace_of_steps.explain(mfu=plan.mfu, goodput=run.goodput)
        steps, pace = [faster], faster.value
        run = at(pace)
    if published:
        steady = steady_peers(o, seen)
        benchmark = min(steady.utilisation.mid * seen.scale, 1.0)
        rest = unexplained_share.explain(goodput=run.goodput, mfu=plan.mfu, steady=benchmark)
        steps.append(rest)
        if rest.value > 0:
            unexplained, pace = rest.value, benchmark
    used = [
        footprint(hours, device.tdp_watts, share=around.draw, pue=around.pue, intensity=around.grid)
        for hours in (o.over("hours").low, o.over("hours").mid, o.over("hours").high)
    ]
    return Wall(
        run=run,
        typed=typed,
        pace=pace,
        steps=run.training - unexplained,
        unexplained=unexplained,
        steady=steady,
        benchmark=benchmark,
        energy=Interval(*(foot.energy for foot in used)),
        carbon=Interval(*(foot.carbon for foot in used)),
        explanations=(*run.explanations, *steps, *used[1].explanations),
    )
