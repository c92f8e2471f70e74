"""Training memory, ZeRO and parallelism: what each stage and each degree leaves on one accelerator."""

from __future__ import annotations

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate, over_degree, stages
from core.training.device.traffic import traffic_per_step
from core.views.training import text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS, projecting
from pages.memory.form import GROWN


def parallel_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
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
    inputs.draw(GROWN)
    degree = inputs.reading.values[GROWN.id]
    rows = over_degree(h, degree)[:: 2 if projecting() else 1]  # every other one can be read on a wall
    takeaway = text.growing_text(h, degree, rows)
    show.takeaway(takeaway)
    bars = [(message("memory.grow.row", degree=degree, size=float(size)), memory) for size, memory in rows]
    show.chart(
        device_bars(bars, h.usable, TOKENS),
        alt=plain(message("memory.picture.alt_bars", rows=[name for name, _ in bars], takeaway=takeaway)),
        key="memory:grown",
    )
