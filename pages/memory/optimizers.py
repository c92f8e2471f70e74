"""Training memory, optimizers compared: what each stores, for this model, precision, and layout."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate, under_each_optimizer
from core.training.optimizers import headline, row_names
from core.views.training import text
from core.views.training.charts_device import state_bars
from core.views.training.text_precision import unsharded
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS, projecting

_ON_A_WALL = 5  # rows that can be read on a wall


def optimizers_panel(_: Inputs, h: MemoryEstimate) -> None:
    """Draw the memory of every optimizer."""
    rows = under_each_optimizer(h)
    named = headline(h.optimizer.name)
    named = (*named[: _ON_A_WALL - 1], named[-1]) if projecting() else named
    takeaway = text.optimizers_text(rows)
    show.takeaway(takeaway)
    show.note(text.states_note())
    by_name = {row.optimizer.name: row for row in rows}
    show.chart(
        state_bars(
            [(row, unsharded(by_name[name])) for row, name in zip(row_names(named), named, strict=True)], TOKENS
        ),
        alt=plain(message("memory.picture.alt_states", n=float(len(named)), takeaway=takeaway)),
        key="memory:optimizers",
    )
    with st.container(key="memory_states"):
        show.small_table(
            [show.Column(heading, numeric=i > 2) for i, heading in enumerate(text.optimizer_headings())],
            [text.optimizer_row(row) for row in rows],
            caption=message("training.optimizers.caption"),
            here=[row.optimizer.name for row in rows].index(h.optimizer.name),
        )
    show.note(text.optimizers_note())
