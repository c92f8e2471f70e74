"""Training memory, post-training: what preference and reinforcement learning need in addition to the model."""

from __future__ import annotations

from core.messages import message
from core.planning.fine_tuning import post_training
from core.planning.memory_estimate import MemoryEstimate
from core.views.serving import text_post_training as text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def post_training_panel(_: Inputs, h: MemoryEstimate) -> None:
    """Draw the memory of post-training methods."""
    rows = post_training(h)
    takeaway, *verdict = text.takeaway(h, rows)
    show.takeaway(" ".join([takeaway, *verdict]))
    bars = [(message("serving.post.plan"), h.device_memory), *((row.method.method, row.memory) for row in rows)]
    show.chart(
        device_bars(bars, h.usable, TOKENS),
        alt=plain(message("memory.picture.alt_bars", rows=[name for name, _ in bars], takeaway=takeaway)),
        key="memory:post",
    )
    for row in rows:
        show.note(text.adds(row))
    show.note(message("serving.post.reference_free"))
    show.how(
        lambda: [step for row in rows for step in row.explain()],
        key="memory:post:how",
        label=message("serving.post.how"),
    )
