"""The whole run in words and table cells: what its hours hold, failures, energy and carbon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from core.budget.equations import Interval
from core.planning.estimate import PlanEstimate
from core.runs.energy import ASSUMED, drawn_power, node_power
from core.runs.goodput import FailureRecord
from core.units import Kind, QuantityText, format_count, format_duration, format_quantity, significant
from core.views.hardware.text import power
from core.wording import amount, percent, plural, span


def whole(a: PlanEstimate) -> str:
    """Takeaway of the whole run: what the answer's hours hold."""
    m = a.middle
    days = f"**{format_duration(86400 * m.days, 3)}** on the wall"
    lost = f"checkpoints, failures and restarts take **{percent(1 - m.goodput)}**"
    if a.impossible:
        return f"Of the answer’s {days} {lost}, which leaves too little time for the work: no steps are that fast."
    steps = f"the steps alone, at **{percent(m.steps_mfu)}** MFU, take **{format_duration(86400 * m.steps_days, 3)}**"
    if (rest := unexplained(a)) <= 1e-9:
        return f"Of the answer’s {days} {steps}; {lost}: **{percent(m.mfu)}** over all hours."
    return (
        f"Of the answer’s {days} {steps}; {lost}; the other **{percent(rest)}** is what published runs lose besides: "
        "slower layouts and software, evaluation, ramp-up. Sources do not separate it."
    )


def unexplained(a: PlanEstimate) -> float:
    """Share of the wall time that neither the steps of the fastest layout nor failures and checkpoints explain."""
    m = a.middle
    return max(0.0, m.goodput - m.mfu / m.steps_mfu)


def failing(a: PlanEstimate) -> str:
    """How often it fails and saves, in a sentence."""
    mtbf = float(a.interruptions.mtbf)
    saved = float(a.interruptions.interval)
    every = f"a checkpoint every **{format_duration(saved, 3)}**; " if math.isfinite(saved) else ""
    if math.isinf(mtbf):
        return f"Without failures; {every}goodput **{percent(a.middle.goodput)}**."
    low, count, high = sorted(round(failure) for failure in failures(a))
    over = f" ({span(format_count(low), format_count(high))})" if low < high else ""
    return (
        f"**{format_count(count)}** {plural(count, 'failure')}{over} expected, one every {format_duration(mtbf, 3)}; "
        f"{every}goodput **{percent(a.middle.goodput)}**."
    )


def failures(a: PlanEstimate) -> tuple[float, ...]:
    """Failures expected at the low end of the MFU, in the middle and at the high end: over all the time that anything
    of the run is at work."""
    at_work = 86400 * (1 - a.interruptions.elsewhere)
    return tuple(at_work * end.days / float(a.interruptions_at(end).mtbf) for end in a.ends)


def whole_rows(a: PlanEstimate) -> list[tuple[str, str]]:
    """Rows of the table of the whole run, each with its range where what was found has one."""
    ends = [a.interruptions_at(end) for end in a.ends]
    per = float(a.interruptions.checkpoint) / a.stored_parameters
    rows = [
        (f"checkpoint, {significant(per)} bytes per parameter", _scenarios((s.checkpoint for s in ends), "bytes", 4)),
        ("training stands still for one", _scenarios((s.write for s in ends), "seconds")),
    ]
    if math.isfinite(float(a.interruptions.mtbf)):
        rows += [
            ("best interval by Young", _scenarios((s.young for s in ends), "seconds")),
            ("best interval by Daly", _scenarios((s.daly for s in ends), "seconds")),
        ]
    return rows


def _scenarios(values: Iterable[Any], kind: Kind, digits: int = 3) -> str:
    """The middle of three values, and behind it their range where there is one."""
    low, middle, high = sorted(float(value) for value in values)
    text = format_quantity(middle, kind, digits)
    if low == high:
        return text
    ends = f"{text} ({span(format_quantity(low, kind, 3), format_quantity(high, kind, 3))})"
    return text.written(ends) if isinstance(text, QuantityText) else ends


def shares(a: PlanEstimate) -> list[tuple[str, float, str]]:
    """The parts of the wall time with the roles whose colours they wear; those of no length are left out."""
    s = a.interruptions
    rest = unexplained(a)
    steps = (
        "steps"
        if a.impossible
        else f"steps at {percent(a.middle.steps_mfu if rest else a.middle.mfu_while_training)} MFU"
    )
    parts = [
        (steps, a.middle.goodput - rest, "parameters"),
        ("slower steps, evaluation and the rest", rest, "buffers"),
        ("writing checkpoints", float(s.writing), "activations"),
        ("lost and done again", float(s.lost), "gradients"),
        ("restarting", float(s.restarting), "master"),
        ("other stops", s.elsewhere, "optimizer"),
    ]
    return [part for part in parts if part[1] > 1e-12]


def failure_rows(records: Sequence[FailureRecord]) -> list[tuple[str, ...]]:
    """Rows of the table of published failure rates."""
    return [
        (r.name, format_count(r.accelerators), significant(r.rate, 3), r.counted, f"{r.source} ({r.known})")
        for r in records
    ]


def used(a: PlanEstimate) -> str:
    """Energy, carbon and the most power at once in sentences, with their ranges on what was found."""
    a = a.on_found_accelerators
    if not a.energy.known:
        given = f": {power(a.device)}" if a.device.tdp_note else ""
        return f"**Energy: unknown**, because no single power is published for this accelerator{given}."
    return (
        f"The answer’s {amount(a.middle.hours, 3)} accelerator-hours take {_ranged(a.energy, 'watt_hours')}, and the "
        f"grid emits {_ranged(a.carbon, 'kg_co2')} of CO₂ equivalent for them. The building draws "
        f"{_ranged(a.range_of('peak_watts'), 'watts')} of peak power."
    )


def power_basis(a: PlanEstimate) -> str:
    """What the energy and the most power are counted from; empty where no power is known."""
    if not a.energy.known:
        return ""
    node, (_, share) = node_power(a.device), drawn_power(a.device, a.plan.power.draw)
    drawn = "of the accelerators’ own power limits, as typed" if a.plan.power.draw is not None else "of it on average"
    source = "Assumed" if node.confidence == ASSUMED else f"Source, {node.confidence}"
    return (
        f"A {node.node} of {node.accelerators} draws {format_quantity(node.watts, 'watts', 3)} at most. {source}: "
        f"{node.source}. Training draws {percent(share)} {drawn}; PUE {significant(a.plan.power.pue)}. Storage and "
        "switches between nodes are not in it."
    )


def _ranged(over: Interval, kind: Kind) -> str:
    """The middle, and behind it the range where there is one."""
    low, middle, high = (format_quantity(value, kind, 3) for value in (over.low, over.mid, over.high))
    return f"**{middle}**" if over.low == over.high else f"**{middle}** ({span(low, high)})"
