"""Parallel plan, why this one: its step, its pipeline in time, the memory of its stages, and where shards lie."""

from __future__ import annotations

from core.planning.layout import stages, traffic
from core.search.placement import groups, timeline_of
from core.search.request import LayoutResult
from core.views.search import text_step as words
from core.views.search.charts_placement import device_grid
from core.views.search.charts_step import pipeline, waterfall
from core.views.search.text import network
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.request import SearchInputs

_STAGES = 16


def draw_parts(here: LayoutResult) -> None:
    """What a step of the plan in force goes to."""
    show.chart(
        waterfall(here.step, TOKENS, low=here.low, high=here.high),
        alt=f"One step, part after part. {plain(words.goes_to(here))}",
        key="parallel:waterfall",
    )


def evidence_panel(_: Inputs, a: SearchInputs) -> None:
    """The panel's content."""
    if a.in_force is None:
        show.note("Nothing fits, so there is no layout to take apart. Choose one of your own under “Layout”.")
        return
    here, layout = a.in_force, a.in_force.layout
    show.takeaway(words.goes_to(here))
    line = timeline_of(layout, here.step)
    text = words.waits(layout, line, here.step)
    show.takeaway(text)
    if layout.pipeline > 1:
        show.chart(
            pipeline(line, TOKENS),
            alt=f"Each stage’s forward and backward passes over one step. {plain(text)}",
            key="parallel:pipeline",
        )
        show.note(words.DURATIONS)
    rows = stages(a.request, layout, _STAGES)
    text = words.fullest(rows, int(layout.pipeline), here.usable)
    show.takeaway(text)
    show.chart(
        device_bars(
            [(words.stage_name(place, int(layout.pipeline)), memory) for place, memory in rows], here.usable, TOKENS
        ),
        alt=f"What one accelerator of each stage holds. {plain(text)}",
        key="parallel:stages",
    )
    node = a.request.cluster.per_node
    result = groups(layout, here.step, traffic(a.request, layout), node)
    text = words.sent(result)
    show.takeaway(text)
    if between := network(a.request):
        show.note(between)
    show.chart(
        device_grid(layout, node, TOKENS),
        alt=f"Accelerators by pipeline stage with the shards that each holds, in nodes of {node}. {plain(text)}",
        key="parallel:grid",
    )
    if result:
        show.small_table(
            [show.Column(heading, numeric=heading in words.COUNTED) for heading in words.GROUPS],
            words.group_rows(result),
            caption="What each kind of parallelism sends, and over which links.",
        )
