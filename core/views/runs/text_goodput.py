"""The end-to-end time in words and table cells: what it goes to, failures, energy and carbon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from core.budget.equations import Interval
from core.messages import Message, message, pick_message
from core.planning.estimate import PlanEstimate
from core.runs.energy import drawn_power, node_power
from core.runs.goodput import FailureRecord
from core.units import Kind, QuantityText, format_count, format_quantity, significant
from core.views.common.rows import cited, known
from core.views.hardware.text import power
from core.wording import span

_NOTHING = 1e-9
"""A share of the time that rounding leaves."""


def whole_text(a: PlanEstimate) -> Message:
    """Return the parts of the end-to-end time in a sentence."""
    m, rest = a.middle, unexplained(a)
    way = "whole.takeaway_rest" if rest > _NOTHING else "whole.takeaway"
    return pick_message(
        "whole.takeaway_impossible" if a.impossible else way,
        days=m.days,
        steps=m.steps_days,
        share=m.steps_days / m.days,
        lost=1 - m.goodput,
        rest=rest,
    )


def unexplained(a: PlanEstimate) -> float:
    """Return the share of the time that neither the steps of the layout nor failures and checkpoints explain."""
    m = a.middle
    return max(0.0, m.goodput - m.mfu / m.steps_mfu)


def failures_text(a: PlanEstimate) -> Message:
    """Return how often the run fails, and its goodput."""
    mtbf, goodput = float(a.interruptions.mtbf), a.middle.goodput
    if math.isinf(mtbf):
        return message("whole.no_failures", goodput=goodput)
    low, count, high = sorted(float(round(failure)) for failure in failures(a))
    return pick_message(
        "whole.failures_range" if low < high else "whole.failures",
        failures=count,
        range=(low, high),
        mtbf=mtbf,
        goodput=goodput,
    )


def failures(a: PlanEstimate) -> tuple[float, ...]:
    """Return the failures expected at the low end of the MFU, in the middle and at the high end: over all the time that
    anything of the run is at work."""
    at_work = 86400 * (1 - a.interruptions.elsewhere)
    return tuple(at_work * end.days / float(a.interruptions_at(end).mtbf) for end in a.ends)


def checkpoint_rows(a: PlanEstimate) -> list[tuple[str, str]]:
    """Return rows about checkpoints, each with its range where it has one."""
    ends = [a.interruptions_at(end) for end in a.ends]
    per = float(a.interruptions.checkpoint) / a.stored_parameters
    rows: list[tuple[str, str]] = [
        (message("whole.table.size", bytes=per), _scenarios((s.checkpoint for s in ends), "bytes", 4)),
        (message("whole.table.write"), _scenarios((s.write for s in ends), "seconds")),
    ]
    if math.isfinite(float(a.interruptions.interval)):
        rows.append((message("whole.table.interval"), _scenarios((s.interval for s in ends), "seconds")))
    if math.isfinite(float(a.interruptions.mtbf)):
        rows += [
            (message("whole.table.young"), _scenarios((s.young for s in ends), "seconds")),
            (message("whole.table.daly"), _scenarios((s.daly for s in ends), "seconds")),
        ]
    return rows


def _scenarios(values: Iterable[Any], kind: Kind, digits: int = 3) -> str:
    """Return the middle of three values, and behind it their range where there is one."""
    low, middle, high = sorted(float(value) for value in values)
    text = format_quantity(middle, kind, digits)
    if low == high:
        return text
    ends = f"{text} ({span(format_quantity(low, kind, 3), format_quantity(high, kind, 3))})"
    return text.written(ends) if isinstance(text, QuantityText) else ends


def time_shares(a: PlanEstimate) -> list[tuple[str, float, str]]:
    """Return the parts of the end-to-end time with the roles whose colors they wear; those of no length are left
    out."""
    s, rest = a.interruptions, unexplained(a)
    mfu = a.middle.steps_mfu if rest else a.middle.mfu_while_training
    steps = message("whole.part.steps_impossible") if a.impossible else message("whole.part.steps", mfu=mfu)
    parts: list[tuple[str, float, str]] = [
        (steps, a.middle.goodput - rest, "parameters"),
        (message("whole.part.rest"), rest, "buffers"),
        (message("whole.part.writing"), float(s.writing), "activations"),
        (message("whole.part.lost"), float(s.lost), "gradients"),
        (message("whole.part.restarting"), float(s.restarting), "master"),
        (message("whole.part.other"), s.elsewhere, "optimizer"),
    ]
    return [part for part in parts if part[1] > 1e-12]


def failure_rows(records: Sequence[FailureRecord]) -> list[tuple[str, ...]]:
    """Return the rows of published failure rates."""
    return [
        (
            r.name,
            format_count(r.accelerators),
            significant(r.rate, 3),
            r.counted,
            cited(r.source, r.known),
        )
        for r in records
    ]


def energy_text(a: PlanEstimate) -> Message:
    """Return energy, carbon and peak power, with their ranges where they have one."""
    a = a.on_found_accelerators
    if not a.energy.known:
        way = "whole.energy_unknown_power" if a.device.tdp_note else "whole.energy_unknown"
        return pick_message(way, device=a.device.name, power=power(a.device))
    return pick_message(
        "whole.energy_range" if a.energy.low < a.energy.high else "whole.energy",
        energy=a.energy.mid,
        energy_range=_ends(a.energy),
        carbon=a.carbon.mid,
        carbon_range=_ends(a.carbon),
        power=a.middle.peak_watts,
    )


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def power_basis(a: PlanEstimate) -> Message | str:
    """Return what energy and peak power are computed from; empty if no power is known."""
    if not a.energy.known:
        return ""
    node, (_, share) = node_power(a.device), drawn_power(a.device, a.plan.power.draw)
    return message(
        "whole.power_basis" if a.plan.power.draw is None else "whole.power_basis_entered",
        node=node.node,
        accelerators=float(node.accelerators),
        watts=node.watts,
        origin=known(node.confidence),
        source=node.source,
        share=share,
        pue=a.plan.power.pue,
    )
