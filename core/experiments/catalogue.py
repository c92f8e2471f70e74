"""Every experiment by its id: what it is called, the page where it stands, and the function that measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.experiments import gradient, initialisation, linear_bytes, transfer
from core.experiments.found import Found


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. id: also of what opens it. where: a page, by its id. work: what is measured."""

    id: str
    title: str
    where: str
    work: Callable[[], Found]


EXPERIMENTS: Mapping[str, Experiment] = {
    one.id: one
    for one in (
        Experiment("init", "Initialisation: how outputs grow with the width", "lecture", initialisation.work),
        Experiment("loop", "A gradient by hand, and a training loop of ten lines", "lecture", gradient.work),
        Experiment("deep", "The lecture’s deep linear model, byte by byte", "memory", linear_bytes.work),
        Experiment("send", "Made on the device, or sent to it", "measure", transfer.work),
    )
}
"""In the order in which they stand."""


def standing_on(page: str) -> tuple[Experiment, ...]:
    """The experiments of a page."""
    return tuple(one for one in EXPERIMENTS.values() if one.where == page)
