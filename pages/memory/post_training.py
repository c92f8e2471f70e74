"""Training memory, post-training: what preference and reinforcement learning hold beside the model."""

from __future__ import annotations

from core.planning.fine_tuning import post_training
from core.planning.memory_estimate import MemoryEstimate
from core.views.serving import text_post_training as text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def post_training_panel(_: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    rows = post_training(h)
    message = text.takeaway(h, rows)
    show.takeaway(message)
    show.chart(
        device_bars(
            [("this plan", h.device_memory), *((row.method.method, row.memory) for row in rows)], h.usable, TOKENS
        ),
        alt=f"One accelerator under this plan and each method. {plain(message)}",
        key="memory:post",
    )
    for row in rows:
        show.note(text.adds(h, row))
    show.note(text.REWARD)
    show.how(
        lambda: [step for row in rows for step in row.explain()],
        key="memory:post:how",
        label="How the copies are counted",
    )
