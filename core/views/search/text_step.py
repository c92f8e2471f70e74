"""One plan in words: what its step goes to, how its stages wait, what is sent where, its neighbours, its launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.hardware.accelerators import Accelerator
from core.search.launch import TRL, Launch
from core.search.neighbours import Neighbour
from core.search.placement import ParallelGroup, Timeline
from core.search.request import LayoutResult
from core.step_time.running import INTERNEVO, JAX, StepTime
from core.training.device.memory import DeviceMemory
from core.training.layout import OFFLOAD_NAMES, Layout
from core.units import QuantityText, format_duration, format_exact, significant
from core.views.plan.text_memory import gib
from core.views.search.names import NAMES, PARTS
from core.views.search.text import again
from core.wording import listed, percent, percent_of_whole, plural, seconds_text

_COMPUTING = ("matmul", "attention", "elementwise")


def bound_of(step: StepTime) -> str:
    """The part that takes most beside computing."""
    return max((name for name in NAMES if name not in _COMPUTING), key=lambda name: float(getattr(step, name)))


def goes_to(result: LayoutResult) -> str:
    """What a step's time goes to: computing, and the largest part beside it."""
    step, whole = result.step, result.seconds
    computing = sum(float(getattr(step, name)) for name in _COMPUTING)
    most = bound_of(step)
    return (
        f"**{percent_of_whole(computing / whole)} of a step computes**; most of the rest is "
        f"{PARTS[most][0]}, {percent_of_whole(float(getattr(step, most)) / whole)}."
    )


def waits(layout: Layout, line: Timeline, step: StepTime) -> str:
    """How long stages wait for each other."""
    stages, many = int(layout.pipeline), int(layout.micro_batches)
    if stages == 1:
        return f"**No pipeline:** every accelerator has all layers, and {many:,} {plural(many, 'micro-batch')} a step."
    share = percent_of_whole(float(step.bubble) / float(step.total))
    text = f"**{stages} stages wait {share} of the step** for each other and for the fullest of them."
    if line.micro_batches < many:
        text += (
            f" Drawn are {line.micro_batches:,} of {many:,} micro-batches; with so few the stages wait "
            f"{percent_of_whole(line.waiting)} of the time."
        )
    return text


_LINKS = {True: "inside a node", False: "over the network"}
GROUPS = (
    "parallelism",
    "accelerators in a group",
    "rank stride",
    "links",
    "each sends in a step",
    "waited for",
)
"""Headings of the table of what is sent over which link."""


def group_rows(groups: Sequence[ParallelGroup]) -> list[tuple[str, ...]]:
    """Each kind of parallelism with its group, its link, what is sent, and what of it is waited for."""
    return [
        (
            group.kind,
            format_exact(group.ranks),
            format_exact(group.stride),
            _LINKS[group.inside] + ("" if group.inside else f", {group.nodes:,} nodes"),
            gib(group.sent),
            format_duration(group.exposed, 3) if group.exposed > 0 else "none",
        )
        for group in groups
    ]


def sent(groups: Sequence[ParallelGroup]) -> str:
    """Which kind of parallelism sends most, and over which links."""
    if not groups:
        return "**One accelerator alone sends nothing.**"
    most = max(groups, key=lambda group: group.sent)
    near = sum(group.sent for group in groups if group.inside)
    far = sum(group.sent for group in groups if not group.inside)
    return (
        f"**{most.kind.capitalize()} parallelism sends most**, {gib(most.sent)} in a step from each accelerator. "
        f"{gib(near)} stay inside nodes, {gib(far)} go over the network."
    )


def stage_name(place: int, count: int) -> str:
    """A pipeline stage by its number; nothing where there is one."""
    return f"stage {place + 1}" if count > 1 else ""


def fullest(rows: Sequence[tuple[int, DeviceMemory]], count: int, usable: float) -> str:
    """Which stage holds most, and what it leaves."""
    place, most = max(rows, key=lambda row: float(row[1].total))
    spare = usable - float(most.total)
    room = "" if math.isnan(spare) else f", {gib(abs(spare))} {'free' if spare >= 0 else 'too much'}"
    if count == 1:
        return f"**Each accelerator holds {gib(float(most.total))}**{room}."
    least = min(float(memory.total) for _, memory in rows)
    return f"**Stage {place + 1} of {count} holds most**, {gib(float(most.total))}{room}; the emptiest {gib(least)}."


DURATIONS = (
    "Forward takes a third of a micro-batch’s time and backward two, beside what is recomputed: the sums are those of "
    "the step, their split is that of matrix products."
)
COUNTED = ("accelerators in a group", "rank stride", "each sends in a step", "waited for")
"""Headings of columns that hold figures."""


NEIGHBOURS = ("change", "seconds a step", "against this", "on each", "why")
"""Headings of the table of neighbours."""

_FIELDS = {
    "tensor": "tensor",
    "pipeline": "pipeline",
    "interleave": "chunks a stage",
    "context": "context",
    "expert": "expert",
    "expert_tensor": "expert tensor",
    "micro_batch": "micro-batch",
    "zero": "ZeRO",
    "recompute": "recompute",
    "sequence_parallel": "sequence parallel",
    "offload": "offload",
}


def _value(field: str, value: int) -> str:
    if field == "recompute":
        return again(value)
    if field == "offload":
        return OFFLOAD_NAMES[value]
    if field == "sequence_parallel":
        return "on" if value else "off"
    return f"{value:,}"


def neighbour_row(here: LayoutResult, neighbour: Neighbour) -> tuple[str, ...]:
    """One change, what it does to time and memory, and why; or why it cannot be."""
    if neighbour.found is None:
        return _step(here, neighbour), "", "", "", f"cannot be: {neighbour.rule}"
    longer = neighbour.found.pace / here.pace - 1
    memory = float(neighbour.found.memory.total)
    over = "" if neighbour.fits else ", leaves too little free"
    over = f", {gib(-neighbour.found.spare)} over" if neighbour.found.spare < 0 else over
    return (
        _step(here, neighbour),
        seconds_text(neighbour.found.seconds, 4),
        QuantityText(f"{'+' if longer >= 0 else '−'}{percent(abs(longer))}", longer),
        QuantityText(f"{gib(memory)}{over}", memory, "B"),
        moved(here.step, neighbour.found.step),
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


def around(here: LayoutResult, neighbours: Sequence[Neighbour]) -> str:
    """Whether any step from here is better, and what the worst costs."""
    times = {neighbour: neighbour.found.pace for neighbour in neighbours if neighbour.found and neighbour.fits}
    if not times:
        return "**No neighbour fits.**"
    best, worst = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    faster = 1 - times[best] / here.pace
    verdict = (
        f"**{_step(here, best)} is {percent(faster)} faster**"
        if faster > 0
        else f"**No single change that fits is faster**; the nearest is {_step(here, best)}, {percent(-faster)} slower"
    )
    return f"{verdict}. The dearest that fits is {_step(here, worst)}, {percent(times[worst] / here.pace - 1)} slower."


def _step(here: LayoutResult, neighbour: Neighbour) -> str:
    before = getattr(here.layout, neighbour.field)
    return (
        f"{_FIELDS[neighbour.field]} {_value(neighbour.field, int(before))} → "
        f"{_value(neighbour.field, neighbour.value)}"
    )


def launched(launches: Sequence[Launch], software: str, device: Accelerator) -> str:
    """Which programs run the plan, with remarks or without, and that the plan's software is none of them."""
    able = [launch for launch in launches if launch.text]
    failing = [launch.system for launch in launches if not launch.text]
    remarks = ", with the remarks below" if any(launch.notes for launch in able) else ""
    taken = f"**{listed([launch.system for launch in able])}** can run this plan{remarks}." if able else ""
    failed = f"**{listed(failing, 'or')}** cannot run it." if failing else ""
    other = f"The plan’s software is {software}." if software in (JAX.id, INTERNEVO.id) else ""
    where = "These programs run on GPUs and not on TPUs." if device.family == "TPU" else ""
    rest = "Add the model, the data, and the learning rate." if any(launch.system != TRL for launch in able) else ""
    return " ".join(filter(None, (taken, failed, other, where, rest)))
