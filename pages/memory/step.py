"""Training memory over one step: what is allocated and freed between its start and its end."""

from __future__ import annotations

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate
from core.training.device.peak import through_one_step
from core.views.training.charts_step import step_curve
from core.views.training.text import step_text
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def step_panel(_: Inputs, h: MemoryEstimate) -> None:
    """Draw the memory over one step."""
    curve = through_one_step(h.setup)
    takeaway = step_text(curve)
    show.takeaway(takeaway)
    alt = plain(message("memory.picture.alt_step", takeaway=takeaway))
    show.chart(step_curve(curve, h.usable, TOKENS), alt=alt, key="memory:step")
