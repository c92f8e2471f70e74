"""What moves the answer, in words: which ranges the inputs run over, and what each of them does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.planning.estimate import PlanEstimate
from core.planning.form.plan_form import PRICE
from core.planning.sensitivity import Input, Swing
from core.units import format_count, format_duration, format_money
from core.wording import interval, price

_NAMES: Mapping[Input, str] = {
    "tokens": "tokens",
    "parameters": "parameters",
    "accelerators": "accelerators at work",
    "MFU": "MFU over all hours",
    "price": "price per hour",
}


@dataclass(frozen=True, slots=True)
class NamedSwing:
    """A swing with its input's name and its range in words."""

    swing: Swing
    name: str
    span: str


def named(swings: Sequence[Swing], *, dollars: bool) -> tuple[NamedSwing, ...]:
    """Those that move days, or dollars, at all, with their names; the widest first."""

    def size(swing: Swing) -> float:
        return max(swing.dollars if dollars else swing.days)

    # Rounding of the last digits moves nothing.
    moving = [swing for swing in swings if swing.moved(dollars=dollars) > 1e-9 * size(swing)]
    ordered = sorted(moving, key=lambda swing: -swing.moved(dollars=dollars))
    return tuple(NamedSwing(swing, _NAMES[swing.input], _span(swing)) for swing in ordered)


def unrented(a: PlanEstimate) -> str:
    """That days are shown for want of dollars; empty where there are dollars."""
    if math.isnan(a.middle.dollars):
        return f"The price of {a.device.name} is unknown: type one as “{PRICE.label}”. These are days."
    return f"“{PRICE.label}” is 0, for what is owned: there is no rent. These are days." if a.plan.owned else ""


def _span(swing: Swing) -> str:
    if swing.input == "MFU":
        return interval((swing.low, swing.high))
    if swing.input == "price":
        return price(swing.low, swing.high)
    return f"{format_count(swing.low, 3)}–{format_count(swing.high, 3)}"


def moved(ordered: Sequence[NamedSwing], *, dollars: bool) -> str:
    """Takeaway of the tornado: what moves the answer most."""
    if not ordered:
        return "Nothing here moves the answer."
    top = ordered[0]
    low, high = sorted(top.swing.dollars if dollars else top.swing.days)
    parts = [format_money(v) if dollars else format_duration(86400 * v, 3) for v in (low, high)]
    name = top.name[0].upper() + top.name[1:]
    return (
        f"**{name}** moves the answer most: over {top.span} it runs from **{parts[0]}** to **{parts[1]}**, everything "
        "else as planned."
    )
