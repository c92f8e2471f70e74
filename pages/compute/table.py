"""Compute budget, every quantity of the plan in three scenarios."""

from __future__ import annotations

from core.planning.estimate import PlanEstimate
from core.views.report.plan_table import HEADINGS, plan_lines
from pages.common import show
from pages.common.inputs import Inputs


def table_panel(_: Inputs, a: PlanEstimate) -> None:
    """The panel's content."""
    show.small_table(
        ("quantity", *HEADINGS[1:4]),
        [(show.remarked(line.name, line.note), *line.cells()[1:-1]) for line in plan_lines(a)],
        caption="Scenarios: in each column MFU, price and all that follows belong together. With the MFU of published "
        "runs they are its P10, median and P90",
    )
