"""Which published runs are like a plan, and where a plan goes beyond all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from core.hardware.accelerators import find
from core.limits import cached
from core.runs.published import published_runs
from core.runs.share import is_low_precision
from core.runs.utilisation import Evidence, Width, evidence
from core.units import Kind, format_quantity

_ALIKE = 1.05
"""Sizes within 5 % of each other are called equal."""


@dataclass(frozen=True, slots=True)
class RunFeatures:
    """What runs are compared by. params: active ones. width: the narrowest format of the matrix products."""

    params: float
    tokens: float
    accelerator: str
    accelerators: float
    mixture: bool = False
    width: Width = "16-bit"


@dataclass(frozen=True, slots=True)
class NearestRun:
    """A published run as a neighbour of a plan.

    distance: 1 for a factor of ten in parameters or in tokens per parameter, one generation or another family of
    accelerator, a mixture beside a dense model, or other widths. parts: the differences in words, the run beside the
    plan.
    """

    evidence: Evidence
    distance: float
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts of the distance as one phrase."""
        return ", ".join(self.parts)


def _times(factor: float, noun: str) -> str:
    if 1 / _ALIKE < factor < _ALIKE:
        return f"as many {noun}"
    return f"{format_quantity(factor, 'number', 2)} × the {noun}"


_STEPS = {1: "one generation", 2: "two generations", 3: "three generations"}


def _neighbour(row: Evidence, plan: RunFeatures) -> NearestRun:
    own, other = find(plan.accelerator), find(row.run.accelerator)
    work = "active parameters" if plan.mixture or row.experts else "parameters"
    size, ratio = row.run.params / plan.params, row.ratio / (plan.tokens / plan.params)
    generations = other.generation - own.generation
    narrow = is_low_precision(row.run.accelerator, row.width)
    differences = [
        f"{_STEPS[abs(generations)]} {'newer' if generations > 0 else 'older'}" if generations else "",
        f"another family of chip ({other.name})" if other.family != own.family else "",
        ("a mixture of experts" if row.experts else "dense") if row.experts != plan.mixture else "",
        f"{row.width} products" if narrow != is_low_precision(plan.accelerator, plan.width) else "",
    ]
    apart = [math.log10(size), math.log10(ratio), generations, *map(bool, differences[1:])]
    named = [text for text in differences if text] or ["same kind"]
    return NearestRun(row, math.hypot(*apart), (_times(size, work), _times(ratio, "tokens per parameter"), *named))


def nearest_runs(plan: RunFeatures, rows: Sequence[Evidence], most: int) -> tuple[NearestRun, ...]:
    """Those of published ``rows`` that are most like ``plan``, the nearest first."""
    return tuple(sorted((_neighbour(row, plan) for row in rows), key=attrgetter("distance"))[:most])


@cached("results_kept")
def _most(what: str) -> tuple[float, str]:
    """The most of something that a published whole run had, its hours known or not, and the run's model."""
    of = attrgetter(what)
    known = [run for run in published_runs() if run.kind == "full_run" and not math.isnan(of(run))]
    run = max(known, key=of)
    return of(run), run.model


def _past(value: float, noun: str, kind: Kind, what: str) -> tuple[str, ...]:
    most, model = _most(what)
    if value <= most:
        return ()
    return (
        f"{format_quantity(value, kind)} {noun} are more than any published run had: {model} had "
        f"{format_quantity(most, kind)}.",
    )


def unproven(accelerator: str) -> str:
    """That no published run used an accelerator; empty where one did."""
    device = find(accelerator)
    if any(find(row.run.accelerator) is device for row in evidence("whole")):
        return ""
    return f"No published run used {device.name}."


def _chip(plan: RunFeatures) -> tuple[str, ...]:
    text = unproven(plan.accelerator)
    return (f"{text} Its steps are timed by its rates, and the share of them is that of the others.",) if text else ()


def _links(plan: RunFeatures) -> tuple[str, ...]:
    device = find(plan.accelerator)
    if not device.form_factor.startswith("PCIe") or plan.accelerators <= 1:
        return ()
    return (
        f"{device.name} comes as a PCIe card, and every published run used accelerators with fast links between them: "
        "on many cards expect more hours than the range says.",
    )


def _width(plan: RunFeatures) -> tuple[str, ...]:
    if plan.width == "16-bit":
        return ()
    if not is_low_precision(plan.accelerator, plan.width):
        return (f"{plan.accelerator} has no rate for {plan.width} products; it is taken to multiply in 16 bits.",)
    if any(row.width == plan.width for row in evidence("whole")):
        return ()
    return (f"No published whole run used {plan.width} products; 8-bit ones stand for them.",)


def beyond_evidence(plan: RunFeatures) -> tuple[str, ...]:
    """What of ``plan`` lies beyond every published run, a sentence each; none where nothing does."""
    return (
        *_past(plan.accelerators, "accelerators", "count", "accelerators"),
        *_past(plan.params, "parameters (active)", "count", "params"),
        *_past(plan.tokens, "tokens", "count", "tokens"),
        *_chip(plan),
        *_links(plan),
        *_width(plan),
    )
