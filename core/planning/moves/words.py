"""What moves the answer, in words: which ranges the inputs run over, and what each of them does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.models.flops import conventions
from core.models.spec import TransformerSpec
from core.planning.answer.outlook import Outlook, Published
from core.planning.answer.words import interval
from core.planning.budget.rule import format_price
from core.planning.moves.sensitivity import Assumptions, Input, Swing, sensitivity
from core.units import format_count, format_duration, format_money

_NAMES: Mapping[Input, str] = {
    "tokens": "tokens",
    "parameters": "parameters",
    "accelerators": "accelerators at work",
    "mfu": "MFU",
    "goodput": "goodput",
    "price": "price per hour",
    "peak": "peak",
    "flop_per_parameter": "what counts as work",
}


@dataclass(frozen=True, slots=True)
class Named:
    """A swing with its input's name and its range in words."""

    swing: Swing
    name: str
    span: str


def assumed(o: Outlook) -> Assumptions:
    """The plan's middle as what days and dollars follow from."""
    plan = o.plan
    price = (plan.price_low + plan.price_high) / 2
    return Assumptions(
        plan.tokens,
        plan.params,
        plan.accelerators,
        plan.peak,
        plan.mfu,
        price=price,
        flop_per_parameter=float(o.middle.per_parameter),
    )


def swings(
    o: Outlook, seen: Published, spec: TransformerSpec, seq_len: int, share: float, *, typed: bool
) -> tuple[Named, ...]:
    """Every input over its range: MFU over that of the comparable runs, the price over its own, and tokens, parameters
    and accelerators by ``share`` down and up. With a typed MFU also what it counts as work, from 6ND to the full
    square; a published one is by 6ND, and counting otherwise would change it and not the time."""
    plan = o.plan
    ways = [way.per_token for way in conventions(spec, seq_len)]
    least, most = min(ways[0], ways[2]) / ways[0], ways[3] / ways[0]
    ranges: dict[Input, tuple[float, float]] = {
        "mfu": (min(seen.mfu.low, plan.mfu), max(seen.mfu.high, plan.mfu)),
        "tokens": (plan.tokens * (1 - share), plan.tokens * (1 + share)),
        "parameters": (plan.params * (1 - share), plan.params * (1 + share)),
        "accelerators": (max(1.0, plan.accelerators * (1 - share)), plan.accelerators * (1 + share)),
    }
    if typed:
        ranges["flop_per_parameter"] = (6 * least, 6 * most)
    if plan.price_low < plan.price_high:
        ranges["price"] = (plan.price_low, plan.price_high)
    found = sensitivity(assumed(o), ranges)
    return tuple(Named(one, _NAMES[one.input], _span(one)) for one in found)


def _span(one: Swing) -> str:
    if one.input == "mfu":
        return interval((one.low, one.high))
    if one.input == "price":
        return format_price(one.low, one.high)
    if one.input == "flop_per_parameter":
        return f"{one.low:.3g} to {one.high:.3g} FLOPs per N and D"
    return f"{format_count(one.low, 3)}–{format_count(one.high, 3)}"


def moving(named: tuple[Named, ...], *, dollars: bool) -> str:
    """Takeaway of the tornado: what moves the answer most."""
    ordered = sorted(named, key=lambda n: -(n.swing.dollars_moved if dollars else n.swing.days_moved))
    top = ordered[0]
    low, high = sorted(top.swing.dollars if dollars else top.swing.days)
    shown = [format_money(v) if dollars else format_duration(86400 * v, 3) for v in (low, high)]
    name = top.name[0].upper() + top.name[1:]
    return (
        f"**{name}** moves the answer most: over {top.span} it runs from **{shown[0]}** to **{shown[1]}**, everything "
        "else as assumed."
    )


def ordered(named: tuple[Named, ...], *, dollars: bool) -> tuple[Named, ...]:
    """Those that move days, or dollars, at all; the widest first."""

    def moved(one: Named) -> float:
        return one.swing.dollars_moved if dollars else one.swing.days_moved

    def size(one: Named) -> float:
        return max(one.swing.dollars if dollars else one.swing.days)

    # Rounding of the last digits moves nothing.
    return tuple(sorted((n for n in named if moved(n) > 1e-9 * size(n)), key=lambda n: -moved(n)))
