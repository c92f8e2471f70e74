"""Training memory, ZeRO and parallelism: what each stage and each degree leaves on one accelerator."""

from __future__ import annotations

from core.planning.memory_estimate import MemoryEstimate, over_degree, stages
from core.training.device.traffic import traffic_per_step
from core.views.plan import text_memory
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS, projecting
from pages.memory.form import GROWN


def parallel_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    text = text_memory.zero_stages(h, stages(h))
    show.takeaway(text)
    show.chart(
        device_bars([(f"ZeRO-{stage}", memory) for stage, memory in stages(h)], h.usable, TOKENS),
        alt=f"One accelerator under each stage of ZeRO. {plain(text)}",
        key="memory:zero",
    )
    again = h.step.implementation.regathers
    traffic = traffic_per_step(h.spec, h.layout, policy=h.policy, seq_len=h.plan.seq_len, regathers=again)
    show.note(text_memory.sent(h, traffic))
    inputs.draw(GROWN)
    degree = inputs.reading.values[GROWN.id]
    rows = over_degree(h, degree)[:: 2 if projecting() else 1]  # every other one stands apart on a wall
    text = text_memory.growing(h, degree, rows)
    show.takeaway(text)
    show.chart(
        device_bars([(f"{degree} {size:,}", memory) for size, memory in rows], h.usable, TOKENS),
        alt=f"One accelerator as the {degree}-parallel degree grows. {plain(text)}",
        key="memory:grown",
    )
