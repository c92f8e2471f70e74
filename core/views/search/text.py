"""What a search found, as sentences and rows: the best plan, the whole space, other clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.estimate import PlanEstimate
from core.planning.layout import TYPED_NETWORK
from core.planning.plan import OWN_SHAPE, Plan
from core.planning.sensitivity import ClusterResult
from core.search.request import Columns, LayoutResult, SearchRequest, SearchResult, SpaceError
from core.training.layout import Layout, recompute_name
from core.units import format_count, format_duration, format_exact, format_quantity, significant
from core.views.plan.text import AS_ASKED, by_6n, rule_of
from core.views.plan.text_memory import gib, laid_out
from core.views.plan.text_rates import by
from core.views.plan.text_recomputed import recomputed
from core.views.search.names import NAMES, PARTS, short
from core.wording import listed, percent, plural, rent_or_none, seconds_text, span


def degrees(layout: Layout) -> str:
    """A layout in words: ``tensor 8 · pipeline 16 · data 128 under ZeRO-1, 8 chunks a stage``."""
    return laid_out(layout) + (f", {int(layout.interleave):,} chunks a stage" if layout.interleave > 1 else "")


def brief(layout: Layout) -> str:
    """A layout in a few letters: ``TP8 PP16×8 DP128, ZeRO-2``."""
    chunks = f"PP{int(layout.pipeline)}×{int(layout.interleave)}"
    named = short(layout).replace(f"PP{int(layout.pipeline)}", chunks) if layout.interleave > 1 else short(layout)
    shared = f" over {int(layout.shard_group):,}" if layout.shard_group else ""
    return named + (f", ZeRO-{int(layout.zero)}{shared}" if layout.zero else "")


def rest(layout: Layout) -> str:
    """What a layout does beside its degrees."""
    size = int(layout.micro_batch)
    off = ("", ", optimizer state on the host", ", optimizer state and weights on the host")[int(layout.offload)]
    return f"{size:,} {plural(size, 'sequence')} at a time, {recomputed(int(layout.recompute))}{off}"


def again(value: int) -> str:
    """The name of a way to recompute."""
    return recompute_name(value)


def _model(plan: Plan) -> str:
    known = plan.catalog_model
    if known:
        return f"**{known.name}** ({known.sized})" if plan.model == OWN_SHAPE else f"**{known.name}**"
    return f"**{format_count(plan.parameters)}**"


def _cluster(request: SearchRequest, idle: int = 0) -> str:
    count, name = request.cluster.count + idle, request.cluster.accelerator.name
    named = f"**{count:,} × {name}**" if count > 1 else f"one **{name}**"
    return f"{named}, {idle:,} of them idle," if idle else named


def _seconds(result: LayoutResult) -> str:
    """A step's time with its range."""
    low, high = f"{significant(result.low, 3)} s", f"{significant(result.high, 3)} s"
    return f"**{format_duration(result.seconds, 3)}** ({span(low, high)})"


def sentence(at: PlanEstimate) -> str:
    """The answer: the layout, what a step takes with its range, the MFU by 6N and by layer, and what is left."""
    plan, request, result = at.whole, at.request, at.step
    room = f"**{gib(result.spare)}** free" if result.spare >= 0 else f"**{gib(-result.spare)} too much**"
    room = "how much memory there is, is unknown" if math.isnan(result.spare) else room
    rule = rule_of(request.work_share_of(request.spec))
    under = f" under **{degrees(result.layout)}**" if result.layout.accelerators > 1 else ""
    return (
        f"{_model(plan)} on {_cluster(request, at.idle)}{under}: a step takes "
        f"{_seconds(result)} at "
        f"**{percent(request.by_6n(result.mfu))} MFU** by {rule} ({percent(result.mfu)} with causal attention counted)"
        f"{by(plan)}; {room}."
    )


def counted(at: PlanEstimate, result: SearchResult) -> str:
    """The batch, what is recomputed, what runs it, and how many plans there are."""
    free = f" with {percent(result.kept_free)} of memory free" if result.kept_free else ""
    if not result.fitting and at.step.spare >= 0:
        off = ", of which none offloads" if at.step.layout.offload and at.request.constraints.offload == 0 else ""
        return f"{stepped(at)} · it fits, and none of the {result.count:,} plans that are searched{off}"
    return f"{stepped(at)} · {result.fitting:,} of {result.count:,} plans fit{free}"


def stepped(at: PlanEstimate) -> str:
    """The batch of a step, what its layout does beside its degrees, and the software."""
    request = at.request
    sequences = at.step.tokens // request.timed_length
    tokens = format_count(sequences * request.seq_len, 3)
    batch = f"{sequences:,} {plural(sequences, 'sequence')} of {request.seq_len:,} tokens a step ({tokens}{asked(at)})"
    return f"{batch} · {rest(at.step.layout)} · {at.whole.software}, tuned {at.whole.tuned_by}"


def asked(at: PlanEstimate) -> str:
    """How many tokens a step was asked to have, where its layout takes others: `` of 16M``."""
    wanted, plan = at.whole.batch.target(at.whole.seq_len) * at.whole.seq_len, at.whole
    taken = at.step.tokens // at.request.timed_length * plan.seq_len
    return f" of {format_count(wanted, 3)}" if abs(taken / wanted - 1) > AS_ASKED else ""


def longer(share: float) -> str:
    """How much longer something takes: ``12% longer``, and from twice on ``2.5 times as long``."""
    return f"{percent(share)} longer" if share < 1 else f"{significant(1 + share, 3)} times as long"


def nothing_fits(plan: Plan, request: SearchRequest, result: SearchResult) -> str:
    """Where nothing fits, or nothing divides: the nearest, and by how much it misses."""
    near = result.nearest
    if not near:
        return (
            f"**No layout of {_model(plan).replace('**', '')}** runs on {_cluster(request)} with "
            f"about **{format_count(request.batch, 3)}** sequences a step under what it has to keep to."
        )
    return (
        f"{_model(plan)} does **not fit** on {_cluster(request)} under any of {result.count:,} plans. The nearest, "
        f"{degrees(near.layout)}, holds {gib(float(near.memory.total))}, **{gib(-near.spare)} over** its "
        f"{gib(near.usable)}."
    )


def too_many(problem: SpaceError) -> str:
    """That there are more plans than are searched, and which constraint helps."""
    named = problem.field.replace("_", " ")
    return (
        f"**{problem.count:,} plans**, more than the {problem.most:,} that are searched at once. Keep "
        f"**{named}** to one value, and there are {problem.left:,} at most."
    )


def network(request: SearchRequest) -> str:
    """What each accelerator has between nodes, and of which system that is; empty where the plan has one node."""
    here, measured = request.cluster, request.rates and dict(request.rates.known).get("between")
    if here.nodes == 1 or measured:
        return ""
    device = here.accelerator
    rate = f"{format_quantity(8 * here.link_between, 'bits_per_s')} for each {device.name}"
    if device.network_confidence == TYPED_NETWORK:
        return f"Between nodes: {rate}, as typed."
    if device.network_confidence == "assumed":
        return f"**The network between nodes is assumed:** {rate}, {device.network_source}. Another can be typed."
    known = "" if device.network_confidence == "verified" else ", as recalled"
    return f"Between nodes: {rate}, that of {device.network_source}{known}."


def assumed_network(at: PlanEstimate) -> str:
    """That the network is assumed, and what it is; else empty."""
    return network(at.request) if at.request.cluster.accelerator.network_confidence == "assumed" else ""


def little_free(free: float, result: SearchResult, here: LayoutResult) -> str:
    """That a layout fits and leaves less memory free than the plan keeps; else empty."""
    if not 0 <= here.spare < free * here.usable:
        return ""
    text = f"**It leaves {gib(here.spare)} free, less than the {percent(free)} that you keep free.**"
    return text if result.kept_free else f"{text} No layout leaves as much."


def against_best(plan: Plan, result: SearchResult, here: LayoutResult) -> str:
    """How the plan's layout stands to the best of the whole space; empty where it is the best itself."""
    best = result.best
    if best is None or here.layout == best.layout:
        return ""
    named = f"{degrees(best.layout)}, {rest(best.layout)}, {significant(best.seconds, 3)} s"
    slower = here.pace / best.pace - 1
    fits = "" if here.spare >= 0 or math.isnan(here.spare) else ", and it does **not fit**"
    if not plan.own_layout:
        return f"**In the whole space {named}**, {percent(slower)} faster." if slower > _AS_FAST else ""
    how = f"{percent(slower)} slower than" if slower >= 0 else f"{percent(-slower)} faster than"
    return f"This is your own layout, {how} the best of the whole space{fits}: {named}."


_AS_FAST = 0.005


PLANS = ("plan", "micro-batch", "recompute", "a step", "MFU by 6N", "on each", "days of steps", "most beside computing")
"""Headings of a table of plans; the first, the third and the last column are words."""


def plan_rows(
    plan: Plan, request: SearchRequest, plans: Columns, best: LayoutResult, top: int
) -> list[tuple[str, ...]]:
    """The first ``top`` plans as rows."""
    rows: list[tuple[str, ...]] = []
    for i in range(min(top, len(plans.seconds))):
        layout, pace = plans.at(i), float(plans.pace[i])
        rows.append(
            (
                brief(layout),
                format_exact(int(layout.micro_batch)),
                again(int(layout.recompute)),
                seconds_text(float(plans.seconds[i]), 4),
                percent(request.by_6n(best.mfu) * best.pace / pace),
                gib(float(plans.memory[i])),
                significant(plan.tokens * pace / 1e6 / 86400, 3),
                PARTS[NAMES[int(plans.bound[i])]][0],
            )
        )
    return rows


def kept(result: SearchResult) -> str:
    """How many of the plans that fit are at hand."""
    plans = result.plans
    if len(plans.seconds) == result.fitting:
        return f"These are all {result.fitting:,} that fit."
    slowest = float(plans.pace[-1] / plans.pace[0]) - 1
    return (
        f"Of {result.fitting:,} that fit, the {len(plans.seconds):,} fastest are kept: none takes more than "
        f"{longer(slowest)}."
    )


def front(result: SearchResult) -> str:
    """What more memory buys: the two ends of the front."""
    if len(result.pareto) < 2:
        return "**One plan is both the fastest and the smallest.**" if result.pareto else "**No plan fits.**"
    fast = result.pareto[0]
    bought = [
        f"{gib(float(small.memory.total))} for {percent(small.pace / fast.pace - 1)} more time"
        for small in (_smallest(result.pareto, most * fast.pace) for most in (1.05, 1.5))
        if small != fast
    ]
    less = f"; memory goes down to {listed(list(dict.fromkeys(bought)))}" if bought else ""
    return (
        f"**{len(result.pareto)} plans are beaten by none in both time and memory.** The fastest takes "
        f"{significant(fast.seconds, 3)} s and {gib(float(fast.memory.total))}{less}."
    )


def _smallest(front: Sequence[LayoutResult], most: float) -> LayoutResult:
    """The plan of a front with least memory of those of at most this pace."""
    return min((result for result in front if result.pace <= most), key=lambda result: float(result.memory.total))


SIZES = ("accelerators", "its layout", "idle", "MFU by 6N", "days", "dollars", "against the smallest")
"""Headings of the table of cluster sizes."""


def size_rows(results: Sequence[ClusterResult]) -> list[tuple[str, ...]]:
    """The plan at each size; last the accelerator-hours over those of the smallest."""
    first = results[0].answer.middle
    return [
        (
            format_exact(result.accelerators),
            degrees(result.layout),
            format_exact(result.accelerators - int(result.layout.accelerators)),
            percent(by_6n(result.answer)),
            significant(result.answer.middle.days, 3),
            rent_or_none(result.answer.dollars.mid),
            f"{significant(result.answer.middle.hours / first.hours, 3)} ×",
        )
        for result in results
    ]


def better(more: tuple[int, float] | None) -> str:
    """The next number of accelerators that is worth it, and how much faster it is; empty where none is."""
    return f"**Next better number: {more[0]:,}**, {percent(more[1])} faster. " if more else ""


def scaling(results: Sequence[ClusterResult], deadline: float) -> str:
    """How far more accelerators help, and the first size that keeps the deadline as surely as the plan wants it kept:
    days, NaN where there is none."""
    if not results:
        return "**No cluster of these sizes holds it.**"
    first, last = results[0], results[-1]
    text = (
        f"**From {first.accelerators:,} to {last.accelerators:,} accelerators** the same batch takes "
        f"{significant(first.answer.middle.days / last.answer.middle.days, 3)} times less time, at "
        f"{percent(by_6n(first.answer))} and then {percent(by_6n(last.answer))} MFU of the steps."
    )
    if math.isnan(deadline):
        return text
    limits = first.answer.plan.limits
    sure = "" if limits.level == 0.5 else f" at {limits.certainty}"
    enough = next((one for one in results if one.answer.range_of("days").quantile(limits.level) <= deadline), None)
    within = f"{format_duration(86400 * deadline, 3)}{sure}"
    if enough is None:
        return f"{text} All of them take longer than {within}."
    return f"{text} **{enough.accelerators:,}** are the first that take at most {within}."


STEP_SUMS = (
    "A step is a sum of parts, and each part a sum over layers and micro-batches. These are the formulas of the parts, "
    "with every value that this plan puts into them; constants were fitted to published steps."
)
