"""Training memory, optimizers side by side: what each keeps, for this model, precision and layout."""

from __future__ import annotations

import streamlit as st

from core.planning.memory_estimate import MemoryEstimate, under_each_optimizer
from core.training.optimizers import headline, row_names
from core.views.plan import text_memory
from core.views.training import text
from core.views.training.charts_device import state_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS, projecting

_ON_A_WALL = 5  # rows that stand apart on a wall


def optimizers_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    rows = under_each_optimizer(h)
    named = headline(h.optimizer.name)
    named = (*named[: _ON_A_WALL - 1], named[-1]) if projecting() else named
    message = text_memory.optimizers(h, rows)
    show.takeaway(message)
    show.note(text_memory.state_tensors())
    by_name = {row.optimizer.name: row for row in rows}
    show.chart(
        state_bars(
            [(row, text_memory.unsharded(by_name[name])) for row, name in zip(row_names(named), named, strict=True)],
            TOKENS,
        ),
        alt=f"Bars of bytes per parameter for {len(named)} optimizers. {plain(message)}",
        key="memory:optimizers",
    )
    measured = h.policy.fp32_states  # the measurements are in fp32, and beside another format only confuse
    with st.container(key=inputs.key("states")):
        show.small_table(
            [
                show.Column("Optimizer"),
                show.Column("States", numeric=True),
                show.Column("State it keeps"),
                show.Column("Bytes for an m × n matrix"),
                show.Column(f"B/{text_memory.counted_parameter(h)}", numeric=True),
                show.Column("Model states", numeric=True),
                show.Column("In total", numeric=True),
                show.Column("Left", numeric=True),
                *([show.Column("Measured, in fp32", numeric=True)] if measured else []),
            ],
            [text_memory.optimizer_row(row, measured=measured) for row in rows],
            caption="From the most state to the least."
            + " Measured: the optimizer’s state after one step on a 512 × 256 matrix, per parameter." * measured,
            here=[row.optimizer.name for row in rows].index(h.optimizer.name),
        )
    show.note(text.left_out())
