"""The whole run in words and table cells: what its hours hold, failures, energy and carbon."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.answer.outlook import Outlook
from core.planning.answer.words import amount, digits, percent, span
from core.planning.budget.interval import Interval
from core.planning.whole.goodput import FailureRecord
from core.planning.whole.wall import Wall
from core.training.words import plural
from core.units import Kind, format_count, format_duration, format_quantity, significant


def whole(wall: Wall, o: Outlook) -> str:
    """Takeaway of the whole run: what the answer's hours hold."""
    run = wall.run
    stops = f"checkpoints, failures and restarts **{percent(1 - run.goodput)}**"
    if wall.typed:
        return (
            f"The answer takes your **{percent(o.plan.mfu)}** for every hour, {_days(o)}. If it is the MFU of steady "
            f"steps, {stops} of the time make the run **{format_duration(run.wall, digits(o))}** on the wall."
        )
    head = f"The answer’s **{_days(o)}** on the wall hold {stops}"
    if wall.steady is None:
        beyond = ", which is beyond the peak" if wall.pace > 1 else ""
        return f"{head}, so the steps have to run at **{percent(wall.pace)}** MFU{beyond}."
    behind = f"the median of {len(wall.steady.rows)} comparable steady measurements{_width(wall)}"
    if wall.unexplained:
        return (
            f"{head}; steps at {percent(wall.benchmark)} MFU, {behind}, **{percent(wall.steps)}**; and "
            f"**{percent(wall.unexplained)}** that nothing here explains: slower steps, waiting, evaluation, or other "
            "stages billed with them."
        )
    return (
        f"{head}, so the steps run at **{percent(wall.pace)}** MFU: no less than {percent(wall.benchmark)}, {behind}. "
        "Nothing is left to explain."
    )


def _days(o: Outlook) -> str:
    return format_duration(86400 * o.over("days").mid, digits(o))


def _width(wall: Wall) -> str:
    """The width of the steady measurements' format."""
    return f" in {wall.steady.profile.width.removesuffix('-bit')} bits" if wall.steady else ""


def failing(wall: Wall) -> str:
    """How often it fails and saves, in a sentence."""
    run = wall.run
    if math.isinf(run.mtbf):
        return "Without failures."
    count = round(run.failures)
    return (
        f"**{format_count(count)}** {plural(count, 'failure')} expected, one every {format_duration(run.mtbf, 3)}; a "
        f"checkpoint every **{format_duration(run.interval, 3)}**; goodput **{percent(run.goodput)}**."
    )


def whole_rows(wall: Wall) -> list[tuple[str, str]]:
    """Rows of the table of the whole run."""
    run = wall.run
    return [
        ("checkpoint", format_quantity(run.checkpoint, "bytes")),
        ("training stands still for one", format_duration(run.write, 3)),
        ("best interval by Young", format_duration(run.young, 3)),
        ("best interval by Daly", format_duration(run.daly, 3)),
    ]


def shares(wall: Wall) -> list[tuple[str, float, str]]:
    """The parts of the wall time with the roles whose colours they wear; those of no length are left out."""
    run = wall.run
    parts = [
        (f"steps at {percent(wall.pace)} MFU", wall.steps, "parameters"),
        ("not explained", wall.unexplained, "buffers"),
        ("writing checkpoints", run.writing, "activations"),
        ("lost and done again", run.lost, "gradients"),
        ("restarting", run.restarting, "master"),
        ("other stops", run.elsewhere, "optimizer"),
    ]
    return [part for part in parts if part[1] > 0]


def failures(records: Sequence[FailureRecord]) -> list[tuple[str, ...]]:
    """Rows of the table of published failure rates."""
    return [
        (r.name, format_count(r.accelerators), f"{significant(r.rate, 3)}", r.counted, f"{r.source} ({r.known})")
        for r in records
    ]


def used(wall: Wall, o: Outlook, power: str) -> str:
    """Energy and carbon of the answer's hours in a sentence, with their range."""
    if not wall.energy.known:
        return f"**Energy: unknown**, because no single power is published for this accelerator ({power or 'none'})."
    hours = amount(float(o.middle.hours), digits(o))
    return (
        f"The answer’s {hours} accelerator-hours take {_ranged(wall.energy, 'watt_hours')}, and the grid emits "
        f"{_ranged(wall.carbon, 'kg_co2')} of CO₂ equivalent for them."
    )


def _ranged(over: Interval, kind: Kind) -> str:
    """The middle, and behind it the range where there is one."""
    if over.low == over.high:
        return f"**{format_quantity(over.mid, kind)}**"
    low, middle, high = (format_quantity(value, kind, 3) for value in (over.low, over.mid, over.high))
    return f"**{middle}** ({span(low, high)})"
