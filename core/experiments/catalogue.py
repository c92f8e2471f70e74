"""The experiments: id, title, page, and the function that measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.experiments import initialization, linear_bytes, transfer
from core.experiments.found import Found
from core.messages import message


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. id: also the id of its panel's switch. where: id of its page. work: function that measures."""

    id: str
    title: str
    where: str
    work: Callable[[], Found]


EXPERIMENTS: Mapping[str, Experiment] = {
    one.id: one
    for one in (
        Experiment("init", message("experiments.title.init"), "lecture", initialization.work),
        Experiment("deep", message("experiments.title.deep"), "memory", linear_bytes.work),
        Experiment("send", message("experiments.title.send"), "measure", transfer.work),
    )
}
"""All experiments in order."""


def standing_on(page: str) -> tuple[Experiment, ...]:
    """Return the experiments of a page."""
    return tuple(one for one in EXPERIMENTS.values() if one.where == page)
