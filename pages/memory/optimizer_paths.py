"""Training memory, optimizers in motion: what the state buys, on a surface of two weights, step by step."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from core.fields import choice, optional, slider
from core.limits import limit
from core.training.optimizer_paths.path import (
    MOVING,
    OptimizerPath,
    disagreement,
    explained,
    optimizer_path,
    rate_of,
    read_start,
)
from core.training.optimizer_paths.surfaces import SURFACES
from core.units import parse_quantity
from core.views.training import text_optimizer_paths
from core.views.training.charts_optimizer_paths import descent, step_lengths
from core.wording import plain
from pages.common import show
from pages.common.figures import wire
from pages.common.inputs import Inputs
from pages.common.server.torch_import import torch_ready
from pages.common.theme import TOKENS

_SHOWN = "shown"

SURFACE = choice("land", "Surface", tuple(SURFACES), "scales", few=True, part=_SHOWN)
START = optional("from", "Start, as x, y", read_start, nothing=None, placeholder="the surface’s own", part=_SHOWN)
RATE = optional(
    "lr",
    "Learning rate of all",
    lambda text: parse_quantity(text, "number", low=1e-6, high=10.0, example="0.05"),
    nothing=None,
    placeholder="each its own",
    part=_SHOWN,
)
CHOSEN = choice("who", "Explain", MOVING, "Adam", few=True, part=_SHOWN)
STEP = slider("at", "Step", 1, limit("motion_steps"), 30, part=_SHOWN)

FIELDS = (SURFACE, START, RATE, CHOSEN, STEP)
"""The panel’s fields, for the page’s form."""

_COLUMNS = (
    show.Column("Optimizer", whole=True),
    *(show.Column(name, numeric=True) for name in ("Rate", "x, y", "Over the minimum", "Length of the step")),
    show.Column("Steps to 1 % of the first height", numeric=True),
)


@lru_cache(maxsize=64)
def _figures(
    surface: str, start: tuple[float, float], typed: float | None, chosen: str, step: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    walks = _walks(surface, start, typed)
    return wire(descent(walks, step, chosen, TOKENS)), wire(step_lengths(walks, step, chosen, TOKENS))


def _walks(surface: str, start: tuple[float, float], typed: float | None) -> list[OptimizerPath]:
    return [optimizer_path(name, surface, start, rate_of(name, surface, typed)) for name in MOVING]


def optimizer_paths_panel(inputs: Inputs) -> None:
    """The panel's content."""
    head = show.slot()
    with st.container(horizontal=True):
        for field in (SURFACE, START, RATE):
            inputs.draw(field)
    inputs.draw(CHOSEN)
    inputs.draw(STEP)
    show.draw_problems(inputs, *(field.id for field in FIELDS))
    values = inputs.reading.values
    surface, chosen, step = values[SURFACE.id], values[CHOSEN.id], values[STEP.id]
    typed, start = values[RATE.id], values[START.id] or SURFACES[surface].start
    torch_ready()
    walks = _walks(surface, start, typed)
    text = text_optimizer_paths.takeaway(walks, step)
    with head:
        show.takeaway(text)
        if typed is None and values[START.id] is None:
            show.note(text_optimizer_paths.LESSONS[surface])
    above, below = _figures(surface, start, typed, chosen, step)
    show.chart(above, alt=f"{SURFACES[surface].title} from above. {plain(text)}", key="memory:descent")
    show.chart(below, alt="Length of every step of each optimizer, on a log scale.", key="memory:steps")
    show.small_table(
        _COLUMNS,
        text_optimizer_paths.rows(walks, step),
        caption=f"After {text_optimizer_paths.counted(step)}.",
        here=MOVING.index(chosen),
    )
    show.note(text_optimizer_paths.rates(typed))
    done = next(w for w in walks if w.optimizer == chosen)
    if step <= done.steps:
        with show.question(text_optimizer_paths.equations_title(chosen, step), key=inputs.key("equations")):
            with st.container(key="how-memory:motion", gap=None):
                show.derive(explained(done, step))
            show.good(text_optimizer_paths.agreement(disagreement(done), done.steps))
    else:
        show.error(text_optimizer_paths.no_numbers(done))
    x, y = (float(side) for side in done.points[min(step, done.steps)])
    show.how([SURFACES[surface].height.explain(x=x, y=y)], key="memory:motion:how", label="The surface’s formula")
