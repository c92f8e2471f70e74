"""Parallel plan, the layout in detail: its step, its pipeline in time, memory by stage, and its groups."""

from __future__ import annotations

from core.messages import message
from core.planning.layout import stages, traffic
from core.search.placement import groups, timeline_of
from core.search.request import LayoutResult
from core.views.search import text_step as text
from core.views.search.charts_step import pipeline, waterfall
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.inputs import SearchInputs

_STAGES = 16


def draw_step(here: LayoutResult) -> None:
    """Draw the parts of a step."""
    show.chart(
        waterfall(here.step, TOKENS, low=here.low, high=here.high),
        alt=plain(message("parallel.alt.step", finding=text.breakdown_text(here))),
        key="parallel:waterfall",
    )


def evidence_panel(_: Inputs, a: SearchInputs) -> None:
    """Draw the panel."""
    if a.at is None:
        show.note(message("parallel.no_layout"))
        return
    here, layout = a.at.step, a.at.step.layout
    show.takeaway(text.breakdown_text(here))
    line = timeline_of(layout, here.step)
    finding = text.bubble_text(layout, line, here.step)
    show.takeaway(finding)
    if layout.pipeline > 1:
        alt = plain(message("parallel.alt.pipeline", finding=finding))
        show.chart(pipeline(line, TOKENS), alt=alt, key="parallel:pipeline")
    count = int(layout.pipeline)
    rows = stages(a.request, layout, _STAGES)
    finding = text.stages_text(rows, count)
    show.takeaway(finding)
    show.chart(
        device_bars([(text.stage_name(place, count), memory) for place, memory in rows], here.usable, TOKENS),
        alt=plain(message("parallel.alt.stages", finding=finding)),
        key="parallel:stages",
    )
    kinds = groups(layout, here.step, traffic(a.request, layout), a.request.cluster.per_node)
    show.takeaway(text.traffic_text(kinds))
    if kinds:
        show.small_table(*text.group_table(kinds))
