"""One layout in words: where its step spends the time, its pipeline, traffic, nearby layouts, and launch settings."""

from __future__ import annotations

from collections.abc import Sequence

from core.hardware.accelerators import Accelerator
from core.messages import Message, message, messages, pick_message
from core.search.launch import TRL, Launch
from core.search.neighbours import Neighbour
from core.search.placement import ParallelGroup, Timeline
from core.search.request import LayoutResult
from core.step_time.running import COMPUTE, INTERNEVO, JAX, PARTS, StepTime
from core.training.device.memory import DeviceMemory
from core.training.layout import OFFLOAD_NAMES, Layout, recompute_name
from core.units import QuantityText, format_duration, format_exact, significant
from core.views.common.table import Table, table_of
from core.views.search.names import part_name
from core.wording import format_value, seconds_text, signed


def breakdown_text(result: LayoutResult) -> Message:
    """Return the share of a step that computes, and the largest overhead."""
    step, whole = result.step, result.seconds
    part = step.largest_overhead
    return message(
        "search.breakdown.takeaway",
        compute=sum(float(getattr(step, name)) for name in COMPUTE) / whole,
        part=part_name(part),
        share=float(getattr(step, part)) / whole,
    )


def bubble_text(layout: Layout, line: Timeline, step: StepTime) -> Message:
    """Return the share of a step in which pipeline stages wait, and how many micro-batches are drawn of it."""
    many = float(layout.micro_batches)
    if layout.pipeline == 1:
        return message("search.pipeline.none", micro_batches=many)
    return pick_message(
        "search.pipeline.all" if line.micro_batches == many else "search.pipeline.some",
        stages=float(layout.pipeline),
        share=float(step.bubble) / float(step.total),
        drawn=float(line.micro_batches),
        micro_batches=many,
        waiting=line.waiting,
    )


def stage_name(place: int, count: int) -> Message | str:
    """Return the name of a pipeline stage; empty if there is one."""
    return message("search.stage", stage=place + 1.0) if count > 1 else ""


def stages_text(rows: Sequence[tuple[int, DeviceMemory]], count: int) -> Message:
    """Return which stage uses most memory, and which least."""
    place, most = max(rows, key=lambda row: float(row[1].total))
    return pick_message(
        "search.memory.single" if count == 1 else "search.memory.stages",
        stage=place + 1.0,
        most=float(most.total),
        least=min(float(memory.total) for _, memory in rows),
    )


def group_table(groups: Sequence[ParallelGroup]) -> Table:
    """Return each kind of parallelism with its groups, what it sends, and what of that is exposed."""
    return table_of(
        {
            message("search.groups.kind"): [message(f"search.kind.{group.kind}") for group in groups],
            message("search.groups.ranks"): [format_exact(group.ranks) for group in groups],
            message("search.groups.stride"): [format_exact(group.stride) for group in groups],
            message("search.groups.nodes"): [format_exact(group.nodes) for group in groups],
            message("search.groups.sent"): [format_value(group.sent, "GiB") for group in groups],
            message("search.groups.exposed"): [format_duration(max(0.0, group.exposed), 3) for group in groups],
        }
    )


def traffic_text(groups: Sequence[ParallelGroup]) -> Message:
    """Return which kind of parallelism sends most, and how much crosses the network."""
    if not groups:
        return message("search.traffic.none")
    most = max(groups, key=lambda group: group.sent)
    far = sum(group.sent for group in groups if not group.inside)
    return message("search.traffic.takeaway", kind=message(f"search.kind.{most.kind}"), sent=most.sent, network=far)


# ------------------------------------------------------------------------------ nearby layouts


def neighbor_headings() -> tuple[Message, ...]:
    """Return the headings of `neighbor_rows`."""
    return messages("search.near", "change seconds difference memory reason")


def change_text(here: LayoutResult, neighbor: Neighbour) -> Message:
    """Return which field of the layout changes, from what to what."""

    def named(value: int) -> str:
        if neighbor.field == "recompute":
            return recompute_name(value)
        return OFFLOAD_NAMES[value] if neighbor.field == "offload" else f"{value:,}"

    before = named(int(getattr(here.layout, neighbor.field)))
    return message(f"search.field.{neighbor.field}", before=before, after=named(neighbor.value))


def neighbor_rows(here: LayoutResult, neighbors: Sequence[Neighbour]) -> list[tuple[str, ...]]:
    """Return each change with its step time, memory, and the parts that change most; or why it is invalid."""
    rows: list[tuple[str, ...]] = []
    for neighbor in neighbors:
        change, there = change_text(here, neighbor), neighbor.found
        if there is None:
            rows.append((change, "", "", "", message("search.near.invalid", rule=neighbor.rule)))
            continue
        longer, memory = there.pace / here.pace - 1, float(there.memory.total)
        state = "fits" if neighbor.fits else "over" if there.spare < 0 else "tight"
        text = pick_message(f"search.near.{state}", memory=memory, over=-there.spare)
        cells = seconds_text(there.seconds, 4), signed(longer), QuantityText(text, memory, "B")
        rows.append((change, *cells, _moved(here.step, there.step)))
    return rows


def _moved(before: StepTime, after: StepTime) -> str:
    """Return the parts of a step that change most: ``tensor parallel −0.31 s, pipeline bubble +0.12 s``."""
    changes = {name: float(getattr(after, name)) - float(getattr(before, name)) for name in PARTS}
    most = sorted(changes, key=lambda name: -abs(changes[name]))[:3]
    worth = [name for name in most if abs(changes[name]) > 1e-3 * float(before.total)]
    signs = {name: "+" if changes[name] > 0 else "−" for name in worth}
    parts = {name: f"{signs[name]}{significant(abs(changes[name]), 2)}" for name in worth}
    return ", ".join(message("search.near.part", part=part_name(name), change=text) for name, text in parts.items())


def neighbors_text(here: LayoutResult, neighbors: Sequence[Neighbour]) -> Message:
    """Return whether a change that fits is faster, and which one."""
    times = {neighbor: neighbor.found.pace for neighbor in neighbors if neighbor.found and neighbor.fits}
    if not times:
        return message("search.near.none")
    best = min(times, key=times.__getitem__)
    faster = 1 - times[best] / here.pace
    way = "search.near.faster" if faster > 0 else "search.near.slower"
    return message(way, change=change_text(here, best), share=abs(faster))


# ------------------------------------------------------------------------------ launch settings


def launch_text(launches: Sequence[Launch], software: str, device: Accelerator) -> list[Message]:
    """Return which programs run the plan and which cannot, and what their settings leave out."""
    able = [launch.system for launch in launches if launch.text]
    failing = [launch.system for launch in launches if not launch.text]
    said = [message("search.launch.able", systems=able)] if able else []
    said += [message("search.launch.failing", systems=failing)] if failing else []
    said += [message("search.launch.software", software=software)] if software in (JAX.id, INTERNEVO.id) else []
    said += [message("search.launch.tpu")] if device.family == "TPU" else []
    return said + ([message("search.launch.add")] if any(system != TRL for system in able) else [])
