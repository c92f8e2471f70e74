"""Training memory, through one step: what rises and falls between the start of a step and its end."""

from __future__ import annotations

from core.planning.memory_estimate import MemoryEstimate
from core.training.device.peak import through_one_step
from core.views.plan import text_memory
from core.views.training.charts_step import step_curve
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def step_panel(_: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    curve = through_one_step(h.setup)
    text = text_memory.over_a_step(h, curve)
    show.takeaway(text)
    show.chart(
        step_curve(curve, h.usable, TOKENS),
        alt=f"Memory of one accelerator over one step. {plain(text)}",
        key="memory:step",
    )
