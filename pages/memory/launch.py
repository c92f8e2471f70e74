"""Training memory, launch settings: the plan as TRL is started with it."""

from __future__ import annotations

from core.planning.memory_estimate import MemoryEstimate
from core.planning.trl import trl
from core.views.plan.text_finetuning import launched
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.plan_page.launch import draw_launch


def launch_panel(_: Inputs, h: MemoryEstimate) -> None:
    """Draw the launch settings of TRL."""
    launch = trl(h)
    if launch.text:
        show.takeaway(launched(h))
    draw_launch(launch)
