"""Training memory, ZeRO: what each stage leaves on one accelerator, and what is sent."""

from __future__ import annotations

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate, stages
from core.training.device.traffic import traffic_per_step
from core.views.training import text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def parallel_panel(_: Inputs, h: MemoryEstimate) -> None:
    """Draw the memory under each ZeRO stage."""
    takeaway = text.zero_text(h, stages(h))
    show.takeaway(takeaway)
    bars = [(message("memory.zero.row", stage=float(stage)), memory) for stage, memory in stages(h)]
    show.chart(
        device_bars(bars, h.usable, TOKENS),
        alt=plain(message("memory.picture.alt_bars", rows=[name for name, _ in bars], takeaway=takeaway)),
        key="memory:zero",
    )
    regathers = h.step.implementation.regathers
    traffic = traffic_per_step(h.spec, h.layout, policy=h.policy, seq_len=h.plan.seq_len, regathers=regathers)
    show.note(text.sent_text(traffic))
