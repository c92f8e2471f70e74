"""Which published runs an expectation comes from, and where a plan goes beyond all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

import numpy as np

from core.hardware.accelerators import find
from core.runs.expectation import RunFeatures
from core.runs.nearest import kind_of, published_fit, squared_distances
from core.runs.published import published_runs
from core.runs.utilisation import Evidence, evidence
from core.units import Kind, format_quantity

_ALIKE = 1.05
"""Sizes within 5 % of each other are called equal."""


@dataclass(frozen=True, slots=True)
class NearestRun:
    """A published run as a neighbour of a plan.

    share: of all weight. distance: in steps, see `similarity`. parts: what it is made of, in words, the run
    beside the plan.
    """

    evidence: Evidence
    share: float
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


def _generations(steps: int) -> tuple[str, ...]:
    if not steps:
        return ()
    count = {1: "one chip generation", 2: "two chip generations", 3: "three chip generations"}[abs(steps)]
    return (f"{count} {'newer' if steps > 0 else 'older'}",)


def _parts(row: Evidence, setting: RunFeatures) -> tuple[str, ...]:
    plan = setting.kind
    kind = kind_of(row.run.accelerator, mixture=row.experts, width=row.width)
    ratio = float(setting.tokens) / float(setting.params)
    family = () if kind.family == plan.family else (f"another family of chip ({row.run.accelerator})",)
    experts = () if kind.mixture == plan.mixture else ("a mixture of experts" if kind.mixture else "dense",)
    width = () if kind.narrow == plan.narrow else (f"{row.width} products",)
    return (
        _times(row.run.params / float(setting.params), "parameters"),
        _times(row.ratio / ratio, "tokens per parameter"),
        *_generations(kind.generation - plan.generation),
        *family,
        *experts,
        *width,
        *(() if family or experts or width else ("same kind",)),
    )


def nearest_runs(setting: RunFeatures, most: int = 9) -> tuple[NearestRun, ...]:
    """The published runs that weigh most in what ``setting`` (of numbers) is expected at, heaviest first."""
    fit, kind = published_fit(), setting.kind
    params = math.log(float(setting.params))
    sizes = np.array([[params], [math.log(float(setting.tokens)) - params]])
    squared = squared_distances(fit.softened(sizes), fit.soft, fit.apart(kind))
    weights = fit.weights(squared)[0]
    order = [int(i) for i in np.argsort(-weights, kind="stable")[:most]]
    total = float(weights.sum())
    return tuple(
        NearestRun(
            fit.rows[i], float(weights[i]) / total, math.sqrt(float(squared[0, i])), _parts(fit.rows[i], setting)
        )
        for i in order
    )


@lru_cache(maxsize=8)
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


def _chip(setting: RunFeatures) -> tuple[str, ...]:
    device = find(setting.accelerator)
    devices = [find(row.run.accelerator) for row in evidence("whole")]
    if any(device is other for other in devices):
        return ()
    relatives = sorted({other.name for other in devices if other.family == device.family})
    if relatives:
        return (
            f"No published run used {device.name}; those on {', '.join(relatives)}, of the same family, stand for it.",
        )
    alike = sorted({other.name for other in devices if other.generation == device.generation})
    if alike:
        return (
            f"No published run used {device.name}; it is expected to reach as much of its best matmul as "
            f"{', '.join(alike)} of the same generation, and the range is wider.",
        )
    return (
        f"No published run used {device.name}, nor any chip of its generation; it is expected to reach as much of its "
        "best matmul as the chips before or after it, and the range is wider.",
    )


def _links(setting: RunFeatures) -> tuple[str, ...]:
    device = find(setting.accelerator)
    if not device.form_factor.startswith("PCIe") or float(setting.accelerators) <= 1:
        return ()
    return (
        f"{device.name} comes as a PCIe card, and every published run used accelerators with fast links between them: "
        "on many cards expect more hours than the range says.",
    )


def _width(setting: RunFeatures) -> tuple[str, ...]:
    if setting.width == "16-bit":
        return ()
    if not setting.kind.narrow:
        return (f"{setting.accelerator} has no rate for {setting.width} products; it is taken to multiply in 16 bits.",)
    runs = [row.run.model for row in evidence("whole") if row.width == setting.width]
    if runs:
        return ()
    return (f"No published whole run used {setting.width} products; 8-bit ones stand for them.",)


def beyond_evidence(setting: RunFeatures) -> tuple[str, ...]:
    """What of ``setting`` (of numbers) lies beyond every published run, a sentence each; none where nothing does."""
    return (
        *_past(float(setting.accelerators), "accelerators", "count", "accelerators"),
        *_past(float(setting.params), "parameters (active)", "count", "params"),
        *_past(float(setting.tokens), "tokens", "count", "tokens"),
        *_chip(setting),
        *_links(setting),
        *_width(setting),
    )
