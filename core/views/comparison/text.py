"""A comparison in sentences and rows: who is sooner and cheaper, by how much, and in what the plans differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.budget.equations import Interval
from core.fields import clipped
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
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import LAYOUT, SEARCH
from core.planning.form.plan_form import CLUSTER, MODEL, MORE, QUESTION, STATES
from core.planning.form.whole_run import LIMITS, WHOLE
from core.planning.plan import whole_accelerators
from core.units import format_count, format_duration, format_quantity
from core.views.common.rows import row_label
from core.views.comparison import text_limits
from core.views.plan import text as plan_text
from core.views.plan.text_memory import gib, laid_out
from core.wording import apart_as_shown, listed, percent, plain, plural, rent_or_none, signed, span, unmarked

PARTS = {
    QUESTION: "asked for",
    MODEL: "model",
    CLUSTER: "cluster",
    MORE: "counting and price",
    STATES: "model states",
    LAYOUT: "layout",
    SEARCH: "layouts",
    WHOLE: "whole run",
    LIMITS: "limits",
}
"""Part of a plan's form → what its fields are of."""


def plan_name(plan: ComparedPlan) -> str:
    """A plan's name in sentences: as short as tells it apart, with no mark that they would take for their own."""
    return unmarked(plan.short_name)


def shown(quantity: str, value: float) -> str:
    """The result ``quantity`` of a plan, with its unit, as every page shows it."""
    match quantity:
        case "days" | "steps_days":
            return format_duration(86400 * value, 3)
        case "dollars":
            return rent_or_none(value)
        case "memory_bytes" | "usable_bytes":
            return gib(value)
        case "watt_hours":
            return format_quantity(value, "watt_hours", 3)
        case "peak_watts":
            return format_quantity(value, "watts", 3)
        case "mfu":
            return percent(value) if math.isfinite(value) else "unknown"
        case _:
            return format_count(value, 3 if value >= 1e6 else 15)


def problem_text(plan: ComparedPlan, quantity: str, value: float) -> str:
    """The same of a plan that has such a result, or why it has none."""
    return plan_text.OWNED if quantity == "dollars" and plan.owned else shown(quantity, value)


def ranged(quantity: str, interval: Interval) -> str:
    """The range of a result; empty where it is one value."""
    low, high = shown(quantity, interval.low), shown(quantity, interval.high)
    return "" if not interval.known or low == high else span(low, high)


# ------------------------------------------------------------------------------------------ who leads


def sentence(plans: Sequence[ComparedPlan], base: int) -> str:
    """Who meets all limits, who is sooner and who is cheaper, by how much and how surely, and whose accelerator no
    published run used."""
    parts = (text_limits.meeting_all(plans), _leads(plans, base), not_proven(plans) if len(plans) > 1 else "")
    return " ".join(filter(None, parts))


def _leads(plans: Sequence[ComparedPlan], base: int) -> str:
    if len(plans) == 1:
        return _alone(plans[0])
    answered = [plan for plan in plans if plan.answer]
    if not answered:
        return "None of these plans has an answer."
    if len(answered) == 1:
        return f"Only one of {len(plans)} plans has an answer: {_alone(answered[0])}"
    days, rents = (middles(plans, QUANTITY[name]) for name in ("days", "dollars"))
    sooner, cheaper = lead(days, base), lead(rents, base)
    cheapest = "cheapest to rent" if any(plan.owned for plan in answered) else "cheapest"
    if sooner and cheaper and sooner.plan == cheaper.plan:
        money = f"**{_less('dollars', rents, cheaper)}** ({_share(cheaper.share)})"
        than, other = plan_name(plans[sooner.against]), ""
        if cheaper.against != sooner.against:
            other = f" than {plan_name(plans[cheaper.against])}"
        return (
            f"{_with_doubt(plans[sooner.plan])} is soonest{_likely(plans, sooner)} and {cheapest}: "
            f"**{_less('days', days, sooner)}** "
            f"({_share(sooner.share)}) sooner than {than}, and {money} cheaper{other}."
        )
    first = (
        f"{_with_doubt(plans[sooner.plan])} is soonest{_likely(plans, sooner)}, by **{_less('days', days, sooner)}** "
        f"({_share(sooner.share)}) before {plan_name(plans[sooner.against])}"
        if sooner
        else _tied(plans, days, "days", "soonest", "take the same")
    )
    second = (
        f"{_with_doubt(plans[cheaper.plan])} is {cheapest}, by **{_less('dollars', rents, cheaper)}** "
        f"({_share(cheaper.share)}) under {plan_name(plans[cheaper.against])}"
        if cheaper
        else _tied(plans, rents, "dollars", cheapest, "cost the same")
    )
    if not cheaper:
        second = second[:1].lower() + second[1:]
    return f"{first}; {second}." if second else f"{first}."


_CERTAIN = 0.95


def _likely(plans: Sequence[ComparedPlan], sooner: Lead) -> str:
    """How likely the soonest is sooner than the next, where that is not certain: `` (70% likely)``; else empty."""
    others = [plan for i, plan in enumerate(plans) if i != sooner.plan]
    chances = [sooner_probability(plans[sooner.plan], other) for other in others]
    chance = min(filter(math.isfinite, chances), default=1.0)
    return f" ({percent(chance)} likely)" if chance < _CERTAIN else ""


def not_proven(plans: Sequence[ComparedPlan]) -> str:
    """Which accelerators no published run used, of plans whose days rest on published runs; mostly empty."""
    names = dict.fromkeys(p.answer.device.name for p in plans if p.answer and p.answer.plan.expects_mfu)
    return " ".join(filter(None, map(plan_text.no_published_run, names)))


def _alone(plan: ComparedPlan) -> str:
    if plan.answer is None:
        return f"“{plan_name(plan)}” has no answer: {plan.problem}"
    money = plan.answer.dollars.mid
    cost = f" for **{shown('dollars', money)}**" if math.isfinite(money) else ", at an unknown price"
    if plan.owned:
        cost = f", {plan_text.OWNED}"
    return f"**{plan_name(plan)}** takes **{shown('days', plan.answer.middle.days)}**{cost}."


def _tied(plans: Sequence[ComparedPlan], values: Sequence[float], name: str, lead: str, same: str) -> str:
    """That no plan leads alone: some lead together, all are the same, or too few are known."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return ""
    best = least(values)
    if best:
        return f"{listed([f'**{plan_name(plans[i])}**' for i in best])} are {lead}, at **{shown(name, min(known))}**"
    all_of = "All" if len(known) == len(values) > 2 else "Both" if len(known) == 2 else f"{len(known)} of them"
    return f"{all_of} {same}, **{shown(name, min(known))}**"


def _less(quantity: str, values: Sequence[float], by: Lead) -> str:
    return shown(quantity, apart_as_shown(values[by.against], values[by.plan]))


def _share(share: float) -> str:
    return percent(share) if math.isfinite(share) else "all of it"


def _with_doubt(plan: ComparedPlan) -> str:
    wrong = doubt(plan)
    return f"**{plan_name(plan)}**" + (f" ({wrong})" if wrong else "")


def doubt(plan: ComparedPlan) -> str:
    """Why a plan's numbers are not to be had as they stand, in a few words; empty where they are."""
    if plan.answer and plan.answer.impossible:
        return "impossible"
    if plan.layout_problem:
        return "it cannot be laid out so"
    return "it does not fit" if plan.memory and plan.memory.fits == "over" else ""


def remarks(plans: Sequence[ComparedPlan]) -> list[str]:
    """What is to be said of single plans: no answer, an unknown price, a layout that cannot be, results that moved."""
    sentences: list[str] = []
    for plan in plans:
        name = f"“{plan_name(plan)}”"
        if plan.answer is None:
            sentences.append(f"{name} has no answer: {plan.problem}")
            continue
        if plan.price_unknown:
            sentences.append(
                f"{name}: the price of {plan.answer.device.name} is unknown, so its dollars are. Type one."
            )
        if plan.owned:
            sentences.append(f"{name} has a price of 0: its accelerators are owned, and it is not compared by rent.")
        if plan.layout_problem:
            sentences.append(f"{name} cannot be laid out so: {plan.layout_problem}")
        if plan.answer.impossible:
            sentences.append(f"{name}: {plain(plan_text.impossible(plan.answer))}")
        if text := since_kept(plan):
            sentences.append(f"{name}: {text}")
    return sentences


def since_kept(plan: ComparedPlan) -> str:
    """Results that are others than when the plan was kept: ``End-to-end time when kept: 265 days; now 251 days``."""
    parts = [
        f"{row_label(name)} when kept: {shown(name, then)}; now {shown(name, now)}"
        for name, then, now in changed_results(plan)
    ]
    return ". ".join(parts) + "." if parts else ""


def in_short(plan: ComparedPlan) -> str:
    """What a plan comes to, in a few words."""
    if plan.answer is None:
        return "**no answer**"
    money = "" if plan.price_unknown else shown("dollars", plan.answer.dollars.mid)
    sentences = [f"**{shown('days', plan.answer.middle.days)}**", money, doubt(plan)]
    return " · ".join(filter(None, sentences))


# ------------------------------------------------------------------------------------------ rows


Cell = tuple[str, str]
"""What a cell says, and the remark under it."""


def result_rows(plans: Sequence[ComparedPlan], base: int) -> list[tuple[Cell, list[Cell]]]:
    """Each result of every plan with its range, how far it is from the baseline's, and whether it is the least."""
    parts = {plan.answer.find for plan in plans if plan.answer}
    rows: list[tuple[Cell, list[Cell]]] = []
    for quantity in QUANTITIES:
        if quantity.id in ("tokens", "parameters") and quantity.id not in parts:
            continue
        values = middles(plans, quantity)
        best = least(values) if quantity.fewer else ()
        cells = [
            (problem_text(plan, quantity.id, value), _remark(plan, quantity, values, base, i, best))
            for i, (plan, value) in enumerate(zip(plans, values, strict=True))
        ]
        rows.append(
            ((row_label(quantity.id), ""), [_none(plan, cell) for plan, cell in zip(plans, cells, strict=True)])
        )
    rows += text_limits.limit_rows(plans)
    rows.append((("Layout", ""), [_none(plan, _layout(plan)) for plan in plans]))
    return rows


def _none(plan: ComparedPlan, cell: Cell) -> Cell:
    return cell if plan.answer else ("no answer", "")


def _remark(
    plan: ComparedPlan, quantity: Quantity, values: Sequence[float], base: int, at: int, best: Sequence[int]
) -> str:
    interval = result(plan, quantity)
    by = change(values[at], values[base])
    sentences = [
        ranged(quantity.id, interval),
        "" if at == base or not math.isfinite(by) or by == 0 else signed(by),
        "●\u00a0least" if at in best else "",
        _of(plan, quantity.id),
    ]
    return " · ".join(filter(None, sentences))


def _of(plan: ComparedPlan, name: str) -> str:
    """What a result is of: where MFU and days are from, and of how much memory."""
    a = plan.answer
    if a is None:
        return ""
    if name == "mfu":
        return _mfu_of(a)
    if not a.plan.expects_mfu and name in ("days", "steps_days"):
        return plan_text.steps_basis(a) if name == "steps_days" else plan_text.days_basis(a)
    if name == "memory_bytes" and plan.memory:
        usable = plan.memory.usable
        fits = {"fits": "fits", "over": "does **not fit**", "unknown": ""}[plan.memory.fits]
        return f"of {gib(usable)}: {fits}" if fits else ""
    return ""


def _mfu_of(a: PlanEstimate) -> str:
    """Where the MFU is from, and of what it was typed."""
    if a.plan.mfu_is_of_steps:
        return f"typed as {percent(a.middle.steps_mfu)} of steady steps"
    return plan_text.mfu_basis(a)


def _layout(plan: ComparedPlan) -> Cell:
    if plan.memory is None:
        return "cannot be laid out so", ""
    count, layout = whole_accelerators(plan.memory.plan.accelerators), plan.memory.layout
    idle = count - int(layout.accelerators)
    return laid_out(layout) + (f" · {idle:,} of {count:,} idle" if idle else ""), ""


def input_rows(differings: Sequence[Differing], base: int) -> list[tuple[Cell, list[Cell]]]:
    """Each field in which plans differ, with what each of them says, and a mark where that is not the baseline's."""
    return [
        (
            (differing.field.label, PARTS.get(differing.field.part, "")),
            [
                (_setting(differing, text), "" if text == differing.texts[base] else "≠ baseline")
                for text in differing.texts
            ],
        )
        for differing in differings
    ]


def _setting(differing: Differing, text: str | None) -> str:
    if text is None:
        return "–"
    if differing.field.kind == "switch":
        return "on" if text == "true" else "off"
    return unmarked(clipped(text)) or differing.field.placeholder or "catalogue’s"


def inputs_in_words(differings: Sequence[Differing]) -> str:
    """In how many inputs the plans differ, and in which."""
    return (
        f"They differ in **{len(differings)}** {plural(len(differings), 'input')}: "
        f"{listed([differing.field.label for differing in differings])}."
        if differings
        else "They do not differ in any input that counts."
    )


def bars_alt(plans: Sequence[ComparedPlan], base: int) -> str:
    """What the bars show, for who does not see them."""
    parts = [
        f"{plan_name(plan)} {shown('days', plan.answer.middle.days)}, {shown('dollars', plan.answer.dollars.mid)}"
        for plan in plans
        if plan.answer
    ]
    return (
        f"Days and dollars of each plan, with their ranges; the baseline is {plan_name(plans[base])}. "
        f"{'; '.join(parts)}."
    )
