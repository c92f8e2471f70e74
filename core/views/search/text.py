"""What a search found, as sentences and rows: the layout of the plan, the search space, and other cluster sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.messages import Message, message, pick_message
from core.planning.estimate import PlanEstimate
from core.planning.plan import OWN_SHAPE, Plan
from core.planning.sensitivity import ClusterResult
from core.search.request import Columns, LayoutResult, SearchRequest, SearchResult
from core.step_time.running import PARTS
from core.training.layout import OFFLOAD_NAMES
from core.units import format_exact, format_quantity, significant
from core.views.common.rows import Row
from core.views.common.table import Table, table_of
from core.views.plan.text import by_6n, model_text
from core.views.search.names import layout_label, part_name, recompute_label, table_layout
from core.wording import format_value, percent, rent_or_none, seconds_text


def headline(at: PlanEstimate) -> Message:
    """Return the layout of a plan, and the time of a step."""
    layout = at.step.layout
    way = "single" if layout.accelerators == 1 else "custom" if at.plan.own_layout else "fastest"
    return pick_message(
        f"search.headline.{way}",
        model=model_text(at),
        accelerators=float(at.count),
        device=at.device.name,
        layout=layout_label(layout),
        seconds=at.step.seconds,
    )


def step_range(at: PlanEstimate) -> Message:
    """Return the range of the step time."""
    return message("search.range", range=(at.step.low, at.step.high))


def answer_rows(at: PlanEstimate, result: SearchResult) -> list[Row]:
    """Return the rows of a step, and of the number of layouts searched."""
    request, step = at.request, at.step
    sequences = step.tokens // request.timed_length
    batch = message("search.row.tokens_note", sequences=float(sequences), length=float(request.seq_len))
    recompute = message("search.row.micro_batch_note", recompute=recompute_label(step.layout))
    capacity = "" if math.isnan(step.usable) else message("search.row.memory_note", capacity=step.usable)
    space = pick_message(
        "search.row.fitting_note" if result.kept_free else "search.row.fitting_note_all",
        layouts=float(result.count),
        headroom=result.kept_free,
    )
    return [
        Row("step_tokens", message("search.row.tokens"), float(sequences * request.seq_len), "count", note=batch),
        Row("micro_batch", message("row.micro_batch"), float(step.layout.micro_batch), "count", note=recompute),
        Row("memory", message("row.memory_bytes"), float(step.memory.total), "bytes_binary", note=capacity),
        Row("fitting", message("search.row.fitting"), float(result.fitting), "count", note=space),
    ]


def step_text(at: PlanEstimate) -> Message:
    """Return the batch of a step, its micro-batch and recomputation, and the software."""
    layout, request = at.step.layout, at.request
    return pick_message(
        "search.step.offload" if layout.offload else "search.step.plain",
        sequences=float(at.step.tokens // request.timed_length),
        length=float(request.seq_len),
        micro_batch=float(layout.micro_batch),
        recompute=recompute_label(layout),
        offload=OFFLOAD_NAMES[int(layout.offload)],
        software=at.whole.software,
    )


def does_not_fit(plan: Plan, request: SearchRequest, result: SearchResult) -> Message:
    """Return that no layout fits and which one is closest, or that none meets the constraints."""
    near = result.nearest
    return pick_message(
        "search.headline.does_not_fit" if near else "search.headline.no_layout",
        model=_model(plan),
        accelerators=float(request.cluster.count),
        device=request.cluster.accelerator.name,
        batch=request.batch,
        layouts=float(result.count),
        layout=layout_label(near.layout) if near else "",
        needed=float(near.memory.total) if near else math.nan,
        capacity=request.usable,
    )


def _model(plan: Plan) -> Message | str:
    known = plan.catalog_model
    if known is None:
        return message("plan.model.parameters", parameters=plan.parameters)
    return message("plan.model.sized", model=known.name, size=known.sized) if plan.model == OWN_SHAPE else known.name


def network_note(request: SearchRequest) -> Message | str:
    """Return the bandwidth between nodes where it is assumed; empty for a known or measured one, and for one node."""
    here, measured = request.cluster, request.rates and dict(request.rates.known).get("between")
    device = here.accelerator
    if here.nodes == 1 or measured or device.network_confidence != "assumed":
        return ""
    rate = format_quantity(8 * here.link_between, "bits_per_s")
    return message("search.network", rate=rate, device=device.name, source=device.network_source)


def fastest_text(plan: Plan, result: SearchResult, here: LayoutResult) -> Message | str:
    """Return the fastest layout of the search space, compared with the plan's layout.

    Empty if they are the same or about as fast.
    """
    best = result.best
    if best is None or here.layout == best.layout:
        return ""
    slower = here.pace / best.pace - 1
    if not plan.own_layout and slower <= _AS_FAST:
        return ""
    way = "search.fastest.space" if not plan.own_layout else "search.fastest.slower"
    return message(
        "search.fastest.faster" if slower < 0 else way,
        share=abs(slower),
        layout=layout_label(best.layout),
        micro_batch=float(best.layout.micro_batch),
        recompute=recompute_label(best.layout),
    )


_AS_FAST = 0.005


def space_table(plan: Plan, request: SearchRequest, plans: Columns, best: LayoutResult, most: int) -> Table:
    """Return the first ``most`` layouts of the search space."""
    count = range(min(most, len(plans.seconds)))
    layouts, mfu = [plans.at(i) for i in count], request.by_6n(best.mfu) * best.pace
    days = [plan.tokens * float(plans.pace[i]) / 1e6 / 86400 for i in count]
    return table_of(
        {
            message("search.space.layout"): [table_layout(one) for one in layouts],
            message("search.space.micro_batch"): [format_exact(int(one.micro_batch)) for one in layouts],
            message("search.space.recompute"): [recompute_label(one) for one in layouts],
            message("search.space.seconds"): [seconds_text(float(plans.seconds[i]), 4) for i in count],
            message("search.space.mfu"): [percent(mfu / float(plans.pace[i])) for i in count],
            message("search.space.memory"): [format_value(float(plans.memory[i]), "GiB") for i in count],
            message("search.space.days"): [significant(each, 3) for each in days],
            message("search.space.overhead"): [part_name(PARTS[int(plans.bound[i])]) for i in count],
        }
    )


_SLOWER = 1.5
"""How many times the fastest pace a layout may take to count as one that saves memory."""


def pareto_text(result: SearchResult) -> Message:
    """Return how many layouts are Pareto-optimal, and the memory that a slower one saves."""
    fast = result.pareto[0]
    small = min(
        (one for one in result.pareto if one.pace <= _SLOWER * fast.pace), key=lambda one: float(one.memory.total)
    )
    return pick_message(
        "search.pareto.single" if small is fast else "search.pareto.several",
        layouts=float(len(result.pareto)),
        memory=float(fast.memory.total),
        smallest=float(small.memory.total),
        slower=small.pace / fast.pace - 1,
    )


def size_table(results: Sequence[ClusterResult]) -> Table:
    """Return the plan at each cluster size, with its accelerator-hours over those of the smallest."""
    runs = [one.answer.middle for one in results]
    return table_of(
        {
            message("search.sizes.accelerators"): [format_exact(one.accelerators) for one in results],
            message("search.sizes.layout"): [layout_label(one.layout) for one in results],
            message("search.sizes.mfu"): [percent(by_6n(one.answer)) for one in results],
            message("search.sizes.days"): [significant(run.days, 3) for run in runs],
            message("search.sizes.cost"): [rent_or_none(one.answer.dollars.mid) for one in results],
            message("search.sizes.hours"): [format_value(run.hours / runs[0].hours, "factor") for run in runs],
        }
    )


def sizes_text(results: Sequence[ClusterResult], deadline: float, better: tuple[int, float] | None) -> list[Message]:
    """Return how far more accelerators help, the next better number, and the smallest cluster that meets a deadline
    with the confidence that the plan asks for.

    Args:
        deadline: Days, NaN without one.
        better: The next better number of accelerators, and the share by which it is faster.
    """
    if not results:
        return [message("search.sizes.none")]
    first, last = results[0], results[-1]
    said = [
        message(
            "search.sizes.takeaway",
            first=float(first.accelerators),
            last=float(last.accelerators),
            factor=first.answer.middle.days / last.answer.middle.days,
            before=by_6n(first.answer),
            after=by_6n(last.answer),
        )
    ]
    if better:
        said.append(message("search.sizes.better", accelerators=float(better[0]), share=better[1]))
    if math.isnan(deadline):
        return said
    level = first.answer.plan.limits.level
    enough = next((one for one in results if one.answer.range_of("days").quantile(level) <= deadline), None)
    accelerators = float(enough.accelerators) if enough else math.nan
    way = "search.sizes.within" if enough else "search.sizes.too_late"
    return [*said, pick_message(way, accelerators=accelerators, deadline=deadline, confidence=level)]
