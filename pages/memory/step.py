"""Training memory, through one step: what rises and falls between the start of a step and its end."""

from __future__ import annotations

from core.planning.answer import words_memory
from core.planning.answer.holding import Held
from core.training import through_one_step
from core.training.device.figures_step import step_curve
from core.wording import plain
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def step(_: Inputs, h: Held) -> None:
    """The panel's content."""
    curve = through_one_step(h.setup)
    said = words_memory.over_a_step(h, curve)
    show.says(said)
    show.chart(
        step_curve(curve, h.usable, TOKENS),
        alt=f"Memory of one accelerator over one step. {plain(said)}",
        key="memory:step",
    )
