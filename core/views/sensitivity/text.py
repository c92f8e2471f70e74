"""What moves the answer, in words: which ranges the inputs run over, and what each of them does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.messages import Message, message
from core.planning.estimate import PlanEstimate
from core.planning.sensitivity import Input, Swing
from core.wording import Amount, format_value

_KINDS: Mapping[Input, str] = {"MFU": "percent", "price": "price"}
"""Inputs that are no counts → the format of their values."""


@dataclass(frozen=True, slots=True)
class NamedSwing:
    """A swing with its input's name and its range in words."""

    swing: Swing
    name: Message
    over: Amount

    @property
    def span(self) -> str:
        """The range of the input."""
        return format_value(*self.over)


def named(swings: Sequence[Swing], *, dollars: bool) -> tuple[NamedSwing, ...]:
    """Return those that move days, or dollars, at all, with their names; the widest first."""

    def size(swing: Swing) -> float:
        return max(swing.dollars if dollars else swing.days)

    # Rounding of the last digits moves nothing.
    moving = [swing for swing in swings if swing.moved(dollars=dollars) > 1e-9 * size(swing)]
    ordered = sorted(moving, key=lambda swing: -swing.moved(dollars=dollars))
    return tuple(map(_named, ordered))


def _named(swing: Swing) -> NamedSwing:
    over = Amount((swing.low, swing.high), _KINDS.get(swing.input, "count"))
    return NamedSwing(swing, message(f"sensitivity.input.{swing.input.lower()}"), over)


def unrented(a: PlanEstimate) -> Message | str:
    """Return that days are shown for want of dollars; empty if there are dollars."""
    if math.isnan(a.middle.dollars):
        return message("sensitivity.no_price", device=a.device.name)
    return message("sensitivity.owned") if a.plan.owned else ""


def moved(ordered: Sequence[NamedSwing], *, dollars: bool) -> Message:
    """Return what moves the answer most."""
    if not ordered:
        return message("sensitivity.nothing")
    top = ordered[0]
    low, high = sorted(top.swing.dollars if dollars else top.swing.days)
    result = Amount((low, high), "dollars" if dollars else "days")
    many = top.swing.input in ("tokens", "parameters", "accelerators")
    return message(
        "sensitivity.takeaway_many" if many else "sensitivity.takeaway", input=top.name, over=top.over, result=result
    )


def moved_alt(text: Message) -> Message:
    """Return what the picture shows."""
    return message("sensitivity.alt", takeaway=text)
