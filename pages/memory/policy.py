"""Training memory, precision: a format for each class of tensors, their sum, and every named precision."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.form.training import OWN_FIELDS, POLICY
from core.planning.memory_estimate import MemoryEstimate, under_each_policy
from core.planning.plan import OWN_POLICY
from core.views.training import text_precision
from pages.common import show
from pages.common.inputs import Inputs

_WIDTHS = [6.4, 0.8, 3.6]


def precision_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """Draw the precision of each tensor, and the memory of every precision."""
    show.takeaway(text_precision.adds_up(h))
    with st.container(key="memory_policy", gap=None):
        for row in text_precision.precision_rows(h):
            is_matmul = row.field is OWN_FIELDS["multiplies"]
            place = st.container(key=inputs.key("products")) if is_matmul else st.container()
            choice, size, why = place.columns(_WIDTHS, vertical_alignment="bottom")
            with choice:
                if row.field:
                    inputs.draw(row.field, label=row.name, changed=lambda: inputs.put(POLICY.id, OWN_POLICY))
                else:
                    show.note(row.name)
            with size:
                show.note(f"**{row.bytes}**" if row.bytes else "")
            with why:
                show.note(row.why)
        with st.container(key="memory_sum"):
            for cell, text in zip(st.columns(_WIDTHS), text_precision.total(h), strict=True):
                with cell:
                    show.note(text)
    rows = under_each_policy(h)
    with st.container(key="memory_policies"):
        show.small_table(
            [show.Column(heading, numeric=i > 0) for i, heading in enumerate(text_precision.policy_headings())],
            [(show.remarked(row.policy.id, row.policy.note), *text_precision.policy_row(row)[1:]) for row in rows],
            caption=message("training.policy.caption", optimizer=h.optimizer.name),
            here=[row.policy.id for row in rows].index(h.policy.id),
        )
    show.note(message("training.policy.why_so_many"))
