"""Messages and rows of a comparison: who meets the limits, who is faster and cheaper, and every result side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from core.budget.equations import Interval
from core.fields import clipped
from core.limits import limit
from core.messages import Message, message, pick_message
from core.planning.comparison.comparison import (
    QUANTITIES,
    QUANTITY,
    ComparedPlan,
    Differing,
    Lead,
    Quantity,
    change,
    changed_results,
    lead,
    least,
    middles,
    result,
    sooner_probability,
)
from core.planning.comparison.entry import Entry
from core.planning.plan import whole_accelerators
from core.planning.plan_limits import Check, all_met
from core.views.common.rows import row_label
from core.views.plan import text as plan_text
from core.views.plan import text_limits
from core.views.plan.text_memory import laid_out
from core.wording import apart_as_shown, format_value, rent_or_none, signed, span, unmarked

Cell: TypeAlias = tuple[str, str]
"""Text of a cell, and the remark under it."""

CellRow: TypeAlias = tuple[str, list[Cell]]
"""Label of a row, and a cell for every plan."""

_KINDS = {
    "days": "days",
    "steps_days": "days",
    "memory_bytes": "GiB",
    "usable_bytes": "GiB",
    "watt_hours": "Wh",
    "peak_watts": "W",
    "mfu": "percent",
}
"""A result → its format; others are dollars and counts."""

_CERTAIN = 0.95
"""Probability from which a lead is stated without it."""


def plan_name(plan: ComparedPlan) -> str:
    """Return a plan’s name for a sentence: as short as tells it apart, without markup."""
    return unmarked(plan.short_name)


def shown(quantity: str, value: float) -> str:
    """Return a result with its unit, as every page shows it."""
    if quantity == "dollars":
        return rent_or_none(value)
    if quantity in _KINDS:
        return format_value(value, _KINDS[quantity])
    return format_value(value, "count" if not value < 1e6 else "exact")


def shown_of(plan: ComparedPlan, quantity: str, value: float) -> str:
    """Return a result of a plan, or that its accelerators are owned."""
    return plan_text.OWNED if quantity == "dollars" and plan.owned else shown(quantity, value)


# ------------------------------------------------------------------------------ the answer


def answer(plans: Sequence[ComparedPlan], base: int) -> list[Message]:
    """Return which plans meet all limits, and which is fastest and cheapest, by how much and with what probability."""
    answered = [plan for plan in plans if plan.answer]
    if not answered:
        return [message("comparison.no_answers")]
    limits = _limits_answer([plan for plan in plans if plan.limits])
    if len(answered) > 1:
        return [*limits, *_leads(plans, base)]
    (plan,) = answered
    return [*limits, message("comparison.single", plan=plan.short_name, answer=plan_text.headline(plan.entry.answer))]


def _limits_answer(limited: Sequence[ComparedPlan]) -> list[Message]:
    if not limited:
        return []
    count = float(len(limited))
    if meeting := [plan.short_name for plan in limited if all_met(plan.limits)]:
        return [message("comparison.limits.met", meeting=float(len(meeting)), limited=count, plans=meeting)]
    nearest = min(limited, key=_missing)
    missed = [text_limits.limit_in_sentence(check.id) for check in nearest.limits if check.met is False]
    if not missed:
        return [message("comparison.limits.unknown")]
    return [message("comparison.limits.missed", limited=count, plan=nearest.short_name, missed=missed)]


def _missing(plan: ComparedPlan) -> tuple[int, float]:
    """Return how many limits a plan misses, and by what share in total."""
    missed = [check for check in plan.limits if check.met is False]
    return (len(missed) or len(plan.limits), sum(check.over / check.limit for check in missed if check.limit))


def _leads(plans: Sequence[ComparedPlan], base: int) -> list[Message]:
    days, dollars = (middles(plans, QUANTITY[name]) for name in ("days", "dollars"))
    faster, cheaper = lead(days, base), lead(dollars, base)
    said: list[Message] = []
    if faster:
        chance = _chance(plans, faster)
        said.append(
            pick_message(
                "comparison.fastest_likely" if chance < _CERTAIN else "comparison.fastest",
                plan=_doubted(plans[faster.plan]),
                against=plans[faster.against].short_name,
                days=apart_as_shown(days[faster.against], days[faster.plan]),
                share=faster.share,
                chance=chance,
            )
        )
    else:
        said += _tie(plans, days, "days")
    if cheaper:
        said.append(
            message(
                "comparison.cheapest_rent" if any(plan.owned for plan in plans) else "comparison.cheapest",
                plan=_doubted(plans[cheaper.plan]),
                against=plans[cheaper.against].short_name,
                dollars=apart_as_shown(dollars[cheaper.against], dollars[cheaper.plan]),
                share=cheaper.share,
            )
        )
    else:
        said += _tie(plans, dollars, "dollars")
    return said


def _doubted(plan: ComparedPlan) -> Message | str:
    wrong = doubt(plan)
    return message("comparison.doubted", plan=plan.short_name, doubt=wrong) if wrong else plan.short_name


def _chance(plans: Sequence[ComparedPlan], faster: Lead) -> float:
    """Return the probability that the fastest plan is faster than each other one; 1 if unknown."""
    others = [plan for i, plan in enumerate(plans) if i != faster.plan]
    chances = [sooner_probability(plans[faster.plan], other) for other in others]
    return min(filter(math.isfinite, chances), default=1.0)


def _tie(plans: Sequence[ComparedPlan], values: Sequence[float], quantity: str) -> list[Message]:
    """Return that some plans lead together, or that all known results are equal; nothing for fewer than two."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return []
    best = [plans[i].short_name for i in least(values)]
    return [pick_message(_TIES[quantity][bool(best)], plans=best, days=min(known), dollars=min(known))]


_TIES = {
    "days": ("comparison.tied.days", "comparison.tied.fastest"),
    "dollars": ("comparison.tied.dollars", "comparison.tied.cheapest"),
}
"""Of all plans, and of some."""


def doubt(plan: ComparedPlan) -> Message | str:
    """Return why a plan’s results cannot be reached as they are; empty if they can."""
    if plan.answer and plan.answer.impossible:
        return message("comparison.doubt.impossible")
    if plan.layout_problem:
        return message("comparison.doubt.layout")
    return message("comparison.doubt.memory") if plan.memory and plan.memory.fits == "over" else ""


def notices(plans: Sequence[ComparedPlan]) -> list[Message]:
    """Return notices about single plans: no result, an invalid layout, changed results, owned accelerators, or no
    price."""
    said: list[Message] = []
    for plan in plans:
        if plan.answer is None:
            said.append(message("comparison.notice.no_answer", plan=plan.short_name, problem=plan.problem))
        elif plan.layout_problem:
            said.append(message("comparison.notice.layout", plan=plan.short_name, problem=str(plan.layout_problem)))
        if changed := changed_text(plan):
            said.append(message("comparison.notice.changed", plan=plan.short_name, changes=changed))
        if plan.answer and plan.price_unknown:
            said.append(message("comparison.notice.price", device=plan.answer.device.name))
        if plan.owned:
            said.append(message("comparison.notice.owned", plan=plan.short_name))
    unproven = dict.fromkeys(p.answer.device.name for p in plans if p.answer and p.answer.plan.expects_mfu)
    proofs = map(plan_text.no_published_run, unproven)
    return list(dict.fromkeys([*said, *(proof for proof in proofs if isinstance(proof, Message))]))


def changed_text(plan: ComparedPlan) -> list[Message]:
    """Return the results that have changed since the plan was saved: ``End-to-end time 265 days → 251 days``."""
    return [
        message("comparison.change", result=row_label(name), before=shown(name, then), now=shown(name, now))
        for name, then, now in changed_results(plan)
    ]


def in_short(plan: ComparedPlan) -> Message:
    """Return a plan's result in a few words."""
    if plan.answer is None:
        return message("comparison.short.none")
    result = message("comparison.short", days=plan.answer.middle.days)
    if not plan.price_unknown:
        cost = shown_of(plan, "dollars", plan.answer.dollars.mid)
        result = message("comparison.short_cost", days=plan.answer.middle.days, cost=cost)
    wrong = doubt(plan)
    return message("comparison.short_doubt", result=result, doubt=wrong) if wrong else result


# ------------------------------------------------------------------------------ rows


def result_rows(plans: Sequence[ComparedPlan], base: int) -> list[CellRow]:
    """Return each result of every plan, with its range and its difference from the baseline."""
    solved = {plan.answer.find for plan in plans if plan.answer}
    rows: list[CellRow] = []
    for quantity in QUANTITIES:
        if quantity.id in ("tokens", "parameters") and quantity.id not in solved:
            continue
        values = middles(plans, quantity)
        best = least(values) if quantity.fewer else ()
        cells = [
            (shown_of(plan, quantity.id, value), _remark(plan, quantity, change(value, values[base]), i in best))
            for i, (plan, value) in enumerate(zip(plans, values, strict=True))
        ]
        rows.append((row_label(quantity.id), cells))
    rows += limit_rows(plans)
    rows.append((message("row.layout"), [_layout(plan) for plan in plans]))
    none = message("comparison.short.none")
    return [
        (label, [cell if plan.answer else (none, "") for plan, cell in zip(plans, cells, strict=True)])
        for label, cells in rows
    ]


def _remark(plan: ComparedPlan, quantity: Quantity, by: float, is_least: bool) -> str:
    parts = (
        ranged(quantity.id, result(plan, quantity)),
        signed(by) if math.isfinite(by) and by else "",
        message("comparison.cell.least") if is_least else "",
        _basis(plan, quantity.id),
    )
    return " · ".join(filter(None, parts))


def ranged(quantity: str, interval: Interval) -> str:
    """Return the range of a result; empty if it is one value."""
    low, high = shown(quantity, interval.low), shown(quantity, interval.high)
    return "" if not interval.known or low == high else span(low, high)


def _basis(plan: ComparedPlan, quantity: str) -> Message | str:
    """Return what a result rests on where an MFU was entered, or whether memory suffices."""
    a = plan.answer
    if a is None:
        return ""
    if quantity == "mfu" and not a.plan.expects_mfu:
        return plan_text.mfu_basis(a)
    if quantity == "days":
        return plan_text.days_basis(a)
    if quantity == "memory_bytes" and plan.memory and plan.memory.fits != "unknown":
        return message("sweep.fits" if plan.memory.fits == "fits" else "sweep.does_not_fit")
    return ""


def _layout(plan: ComparedPlan) -> Cell:
    if plan.memory is None:
        return message("comparison.doubt.layout"), ""
    layout = plan.memory.layout
    idle = float(whole_accelerators(plan.memory.plan.accelerators) - int(layout.accelerators))
    return laid_out(layout), message("comparison.cell.idle", idle=idle) if idle else ""


def limit_rows(plans: Sequence[ComparedPlan]) -> list[CellRow]:
    """Return each limit that any plan has, met or missed by every plan."""
    rows: list[CellRow] = []
    for limited in text_limits.KINDS:
        found = [next((check for check in plan.limits if check.id == limited), None) for plan in plans]
        if any(found):
            cells = [_limit_cell(plan, check) for plan, check in zip(plans, found, strict=True)]
            rows.append((message("row.limit", limit=text_limits.limit_name(limited)), cells))
    return rows


def _limit_cell(plan: ComparedPlan, check: Check | None) -> Cell:
    if check is None or plan.answer is None:
        return "–", ""
    if check.id == "memory" and check.met is not None:
        return text_limits.mark(check), text_limits.free_memory(check)
    remark = (text_limits.named(plan.answer, check), text_limits.value_text(plan.answer, check))
    return text_limits.outcome(check), " · ".join(filter(None, remark))


def input_rows(differings: Sequence[Differing]) -> list[CellRow]:
    """Return each field in which plans differ, with its text in every plan."""
    return [(d.field.label, [(_setting(d, text), "") for text in d.texts]) for d in differings]


def _setting(differing: Differing, text: str | None) -> str:
    if text is None:
        return "–"
    if differing.field.kind == "switch":
        return message("comparison.cell.on" if text == "true" else "comparison.cell.off")
    return unmarked(clipped(text)) or differing.field.placeholder or message("comparison.cell.default")


def bars_alt(plans: Sequence[ComparedPlan], base: int) -> Message:
    """Return what the bars show."""
    results = [
        message("comparison.alt.plan", plan=plan.short_name, result=in_short(plan)) for plan in plans if plan.answer
    ]
    return message("comparison.alt", base=plans[base].short_name, results=results)


# ------------------------------------------------------------------------------ the list of plans


def full() -> Message:
    """Return that no more plans fit into the comparison."""
    return message("comparison.error.full", most=float(limit("compared_plans")))


def left_out(entries: Iterable[Entry]) -> Message | str:
    """Return which plans of a file do not fit into the comparison; empty if all do."""
    names = [message("comparison.quoted", plan=clipped(entry.name)) for entry in entries]
    return message("comparison.error.left_out", plans=names, most=float(limit("compared_plans"))) if names else ""


def already_in(entry: Entry) -> Message:
    """Return that a plan is in the comparison already."""
    return message("comparison.error.already_in", plan=clipped(entry.name))
