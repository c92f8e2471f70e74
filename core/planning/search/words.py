"""What a search found, as sentences and rows: the best plan, what it is made of, and what stands beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.answer.exploring import Rescue, Size, days_for
from core.planning.answer.plan import OWN, Plan
from core.planning.answer.searching import Query
from core.planning.answer.words_memory import gib, laid_out, recomputed
from core.planning.search.constraints import SpaceError
from core.planning.search.figures import NAMES, PARTS
from core.planning.search.found import Columns, Found, Searched
from core.planning.search.narrow import layout_at
from core.planning.search.neighbours import Neighbour
from core.planning.search.placement import Group
from core.planning.search.timeline import Timeline
from core.planning.step.parts import StepTime
from core.training import Layout
from core.training.layout import RECOMPUTES
from core.units import format_count, format_duration, significant
from core.wording import dollars, listed, percent, plural, share_of, span


def degrees(layout: Layout) -> str:
    """A layout in words: ``tensor 8 · pipeline 16 · data 128 under ZeRO-1, 8 chunks a stage``."""
    return laid_out(layout) + (f", {int(layout.interleave):,} chunks a stage" if layout.interleave > 1 else "")


def _rest(layout: Layout) -> str:
    """What a layout does beside its degrees."""
    size = int(layout.micro_batch)
    off = ", optimizer state on the host" if layout.offload else ""
    return f"{size:,} {plural(size, 'sequence')} at a time, {recomputed(layout)}{off}"


def again(value: int) -> str:
    """The name of a way to recompute."""
    return next(name for name, way in RECOMPUTES.items() if way == value)


def _model(plan: Plan) -> str:
    known = plan.known
    return f"**{known.name}**" if known and plan.model != OWN else f"A model of **{format_count(plan.parameters)}**"


def _cluster(query: Query) -> str:
    count = query.accelerators
    return f"**{count:,} × {query.accelerator}**" if count > 1 else f"one **{query.accelerator}**"


def _seconds(found: Found) -> str:
    """A step's time with its range, where one is known."""
    text = f"**{format_duration(found.seconds, 3)}**"
    if math.isnan(found.low):
        return text
    return f"{text} ({span(f'{significant(found.low, 3)} s', f'{significant(found.high, 3)} s')})"


def sentence(plan: Plan, query: Query, found: Found) -> str:
    """The answer: the layout, what a step takes with its range, the MFU, days for all tokens, and what is left."""
    days = format_duration(86400 * days_for(plan.tokens, query, found.seconds), 3)
    room = f"**{gib(found.spare)}** to spare" if found.spare >= 0 else f"**{gib(-found.spare)} too much**"
    room = "how much memory there is, is unknown" if math.isnan(found.spare) else room
    return (
        f"{_model(plan)} on {_cluster(query)} under **{degrees(found.layout)}**: a step takes {_seconds(found)} at "
        f"**{percent(found.mfu)} MFU**, {format_count(plan.tokens)} tokens **{days}** of steps; {room}."
    )


def counted(query: Query, result: Searched, shown: Found) -> str:
    """The quieter line: the batch, what is recomputed, how many plans were looked at and in what time."""
    tokens = format_count(query.batch * query.seq_len, 3)
    batch = f"{query.batch:,} {plural(query.batch, 'sequence')} of {query.seq_len:,} tokens a step ({tokens})"
    looked = f"{result.fitting:,} of {result.count:,} plans fit"
    return f"{batch} · {_rest(shown.layout)} · {looked}"


def second(result: Searched) -> str:
    """The runner-up and what it gives up; empty where there is none."""
    best, other = result.best, result.second
    if not best or not other:
        return ""
    slower = other.seconds / best.seconds - 1
    less = float(best.memory.total) - float(other.memory.total)
    room = f"leaves {gib(abs(less))} {'more' if less > 0 else 'less'}" if abs(less) > 2**20 else "leaves as much memory"
    pace = f"takes {percent(slower)} longer" if slower >= 0 else f"is {percent(-slower)} faster"
    return f"**Second:** {degrees(other.layout)}, {_rest(other.layout)}; it {pace} and {room}."


def nothing_fits(plan: Plan, query: Query, result: Searched, ways: Sequence[Rescue]) -> str:
    """Where nothing fits, or nothing divides: the nearest, by how much it misses, and the cheapest change."""
    if not result.count or not result.nearest:
        head = (
            f"**No layout of {_model(plan).replace('**', '')} divides** over {_cluster(query)} with "
            f"**{query.batch:,}** {plural(query.batch, 'sequence')} a step under what it has to keep to."
        )
    else:
        near = result.nearest
        head = (
            f"{_model(plan)} does **not fit** on {_cluster(query)} under any of {result.count:,} plans. The nearest, "
            f"{degrees(near.layout)}, holds {gib(float(near.memory.total))}, **{gib(-near.spare)} over** its "
            f"{gib(near.usable)}."
        )
    return f"{head} {rescue(ways[0]).capitalize()} it would." if ways else f"{head} No small change makes one fit."


_CHANGED = {
    "koff": "with **offload allowed**",
    "knode": "with **tensor parallelism over nodes**",
    "count": "on **{}** of them",
    "gb": "with **{}** sequences a step",
    "kzero": "with **any ZeRO stage**",
    "krc": "with **any recomputation**",
}


def rescue(way: Rescue) -> str:
    """A change under which a plan fits."""
    named = [_CHANGED.get(name, f"with **any {name.removeprefix('k')}**").format(text) for name, text in way.texts]
    return listed(list(dict.fromkeys(named)))


def too_many(problem: SpaceError) -> str:
    """That there are more plans than are searched, and which constraint helps."""
    named = problem.field.replace("_", " ")
    return (
        f"**{problem.count:,} plans**, more than the {problem.most:,} that are searched at once. Keep "
        f"**{named}** to one value, and there are {problem.left:,} at most."
    )


# ------------------------------------------------------------------------------------------ the space

PLANS = ("plan", "micro-batch", "recompute", "a step", "MFU", "on each", "days", "most beside computing")
"""Headings of a table of plans; the first, the third and the last column are words."""


def plan_rows(plan: Plan, query: Query, plans: Columns, best: Found, top: int) -> list[tuple[str, ...]]:
    """The first ``top`` plans as rows."""
    rows: list[tuple[str, ...]] = []
    for i in range(min(top, len(plans.seconds))):
        layout, seconds = layout_at(plans, i), float(plans.seconds[i])
        rows.append(
            (
                degrees(layout) + ("" if plans.overlap[i] else ", without overlap"),
                f"{int(layout.micro_batch):,}",
                again(int(layout.recompute)),
                f"{significant(seconds, 4)} s",
                percent(best.mfu * best.seconds / seconds),
                gib(float(plans.memory[i])),
                significant(days_for(plan.tokens, query, seconds), 3),
                PARTS[NAMES[int(plans.bound[i])]][0],
            )
        )
    return rows


def kept(plans: Columns, result: Searched) -> str:
    """How many plans are drawn."""
    count = len(plans.seconds)
    of = len(result.plans.seconds)
    if not count:
        return "**No plan lies within these ranges.** Widen one of them."
    fastest = f"the {of:,} fastest of {result.fitting:,} that fit" if of < result.fitting else f"all {of:,} that fit"
    return f"{count:,} {plural(count, 'plan')} drawn of {fastest}."


_COMPUTING = ("matmul", "attention", "elementwise")


def bound_of(step: StepTime) -> str:
    """The part that takes most beside computing."""
    return max((name for name in NAMES if name not in _COMPUTING), key=lambda name: float(getattr(step, name)))


def front(result: Searched) -> str:
    """What more memory buys: the two ends of the front."""
    if len(result.pareto) < 2:
        return "**One plan is both the fastest and the smallest.**" if result.pareto else "**No plan fits.**"
    fast, small = result.pareto[0], result.pareto[-1]
    return (
        f"**{len(result.pareto)} plans are beaten by none in both time and memory.** From the fastest, "
        f"{significant(fast.seconds, 3)} s in {gib(float(fast.memory.total))}, to the smallest, "
        f"{significant(small.seconds, 3)} s in {gib(float(small.memory.total))}: "
        f"{percent(small.seconds / fast.seconds - 1)} more time saves "
        f"{gib(float(fast.memory.total) - float(small.memory.total))}."
    )


# ------------------------------------------------------------------------------------------ one plan


def goes_to(found: Found) -> str:
    """What a step's time goes to: computing, and the largest part beside it."""
    step, whole = found.step, found.seconds
    computing = sum(float(getattr(step, name)) for name in _COMPUTING)
    most = bound_of(step)
    return (
        f"**{share_of(computing / whole)} of a step computes**; most of the rest is "
        f"{PARTS[most][0]}, {share_of(float(getattr(step, most)) / whole)}."
    )


def waits(layout: Layout, line: Timeline, step: StepTime) -> str:
    """How long stages wait for each other."""
    stages, many = int(layout.pipeline), int(layout.micro_batches)
    if stages == 1:
        return f"**No pipeline:** every accelerator has all layers, and {many:,} {plural(many, 'micro-batch')} a step."
    share = share_of(float(step.bubble) / float(step.total))
    text = f"**{stages} stages wait {share} of the step** for each other and for the fullest of them."
    if line.micro_batches < many:
        text += (
            f" Drawn are {line.micro_batches:,} of {many:,} micro-batches; with so few the stages wait "
            f"{share_of(line.waiting)} of the time."
        )
    return text


_LINKS = {True: "inside a node", False: "over the network"}
GROUPS = (
    "parallelism",
    "accelerators of a group",
    "from one to the next",
    "runs",
    "each sends in a step",
    "waited for",
)
"""Headings of the table of what is sent over which link."""


def group_rows(found: Sequence[Group]) -> list[tuple[str, ...]]:
    """Each kind of parallelism with its group, its link, what is sent, and what of it is waited for."""
    return [
        (
            one.kind,
            f"{one.ranks:,}",
            f"{one.stride:,}",
            _LINKS[one.inside] + ("" if one.inside else f", {one.nodes:,} nodes"),
            gib(one.sent),
            format_duration(one.exposed, 3) if one.exposed > 0 else "none",
        )
        for one in found
    ]


def sent(found: Sequence[Group]) -> str:
    """Which kind of parallelism sends most, and over which links."""
    if not found:
        return "**One accelerator alone sends nothing.**"
    most = max(found, key=lambda one: one.sent)
    near = sum(one.sent for one in found if one.inside)
    far = sum(one.sent for one in found if not one.inside)
    return (
        f"**{most.kind.capitalize()} parallelism sends most**, {gib(most.sent)} in a step from each accelerator. "
        f"{gib(near)} stay inside nodes, {gib(far)} go over the network."
    )


# ------------------------------------------------------------------------------------------ neighbours

NEIGHBOURS = ("change", "seconds a step", "against this", "on each", "why")
"""Headings of the table of neighbours."""

_FIELDS = {
    "tensor": "tensor",
    "pipeline": "pipeline",
    "interleave": "chunks a stage",
    "context": "context",
    "expert": "expert",
    "micro_batch": "micro-batch",
    "zero": "ZeRO",
    "recompute": "recompute",
    "sequence_parallel": "sequence parallel",
    "offload": "offload",
    "overlap": "overlap",
}


def _value(field: str, value: int) -> str:
    if field == "recompute":
        return again(value)
    if field in ("sequence_parallel", "offload", "overlap"):
        return "on" if value else "off"
    return f"{value:,}"


def neighbour_row(here: Found, one: Neighbour) -> tuple[str, ...]:
    """One change, what it does to time and memory, and why; or why it cannot be."""
    if one.found is None:
        return _step(here, one), "", "", "", f"cannot be: {one.rule}"
    longer = one.found.seconds / here.seconds - 1
    over = f", {gib(-one.found.spare)} over" if one.found.spare < 0 else ""
    return (
        _step(here, one),
        f"{significant(one.found.seconds, 4)} s",
        f"{'+' if longer >= 0 else '−'}{percent(abs(longer))}",
        f"{gib(float(one.found.memory.total))}{over}",
        moved(here.step, one.found.step),
    )


def moved(before: StepTime, after: StepTime) -> str:
    """The parts of a step that change most: ``tensor parallel −0.31 s, pipeline’s wait +0.12 s``."""
    changes = {name: float(getattr(after, name)) - float(getattr(before, name)) for name in NAMES}
    most = sorted(changes, key=lambda name: -abs(changes[name]))[:3]
    worth = [name for name in most if abs(changes[name]) > 1e-3 * float(before.total)]
    return (
        ", ".join(f"{PARTS[n][0]} {'+' if changes[n] > 0 else '−'}{significant(abs(changes[n]), 2)} s" for n in worth)
        or "next to nothing changes"
    )


def around(here: Found, found: Sequence[Neighbour]) -> str:
    """Whether any step from here is better, and what the worst costs."""
    times = {one: one.found.seconds for one in found if one.found and not one.found.spare < 0}
    if not times:
        return "**No neighbour fits.**"
    best, worst = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    faster = 1 - times[best] / here.seconds
    verdict = (
        f"**{_step(here, best)} is {percent(faster)} faster**"
        if faster > 0
        else f"**No single change is faster**; the nearest is {_step(here, best)}, {percent(-faster)} slower"
    )
    return (
        f"{verdict}. The dearest that fits is {_step(here, worst)}, {percent(times[worst] / here.seconds - 1)} slower."
    )


def _step(here: Found, one: Neighbour) -> str:
    before = here.running.overlap if one.field == "overlap" else getattr(here.layout, one.field)
    return f"{_FIELDS[one.field]} {_value(one.field, int(before))} → {_value(one.field, one.value)}"


# ------------------------------------------------------------------------------------------ cluster sizes

SIZES = ("accelerators", "best plan", "seconds a step", "MFU", "days", "dollars", "against the smallest")
"""Headings of the table of cluster sizes."""


def size_rows(found: Sequence[Size]) -> list[tuple[str, ...]]:
    """The best plan at each size; last the accelerator-hours over those of the smallest."""
    first = found[0]
    return [
        (
            f"{one.accelerators:,}",
            degrees(one.best.layout),
            f"{significant(one.best.seconds, 3)} s",
            percent(one.best.mfu),
            significant(one.days, 3),
            dollars(one.dollars),
            f"{significant(one.days * one.accelerators / (first.days * first.accelerators), 3)} ×",
        )
        for one in found
    ]


def scaling(found: Sequence[Size], deadline: float) -> str:
    """How far more accelerators help, and the fewest that keep the deadline: days, NaN where there is none."""
    if not found:
        return "**No cluster of these sizes has a plan that fits.**"
    first, last = found[0], found[-1]
    text = (
        f"**From {first.accelerators:,} to {last.accelerators:,} accelerators** the same batch takes "
        f"{significant(first.days / last.days, 3)} times less time, at {percent(first.best.mfu)} and then "
        f"{percent(last.best.mfu)} MFU."
    )
    if math.isnan(deadline):
        return text
    enough = next((one for one in found if one.days <= deadline), None)
    within = format_duration(86400 * deadline, 3)
    if enough is None:
        return f"{text} None of these keeps to {within}."
    return f"{text} **{enough.accelerators:,}** are the first to keep to {within}."
