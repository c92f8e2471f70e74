"""Compute budget, the rows of the plan: those that a planner reads first, and all of them in three scenarios."""

from __future__ import annotations

from core.messages import message
from core.planning.estimate import PlanEstimate
from core.views.report.rows import HEADINGS, main_rows, plan_rows
from pages.common import show
from pages.common.inputs import Inputs


def draw_main_rows(a: PlanEstimate) -> None:
    """Draw the rows that a planner reads first, each with its range."""
    ranged = message("row.heading.range" if a.plan.expects_mfu else "row.heading.entered_range")
    show.small_table(
        (HEADINGS[0], HEADINGS[2], ranged),
        [(show.remarked(row.label, row.note), *row.range_cells(3)) for row in main_rows(a)],
    )


def table_panel(_: Inputs, a: PlanEstimate) -> None:
    """Draw the table of all quantities of the plan."""
    show.small_table(
        HEADINGS[:4],
        [(show.remarked(row.label, row.note), *row.cells()[1:-1]) for row in plan_rows(a)],
        caption=message("row.caption"),
    )
