"""Sentences of a decision: the assignment and its limits, why nothing works, and the record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.dates import format_day
from core.messages import Message, find_message, message, pick_message
from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import BECAUSE, BY, ON, DecisionResult
from core.planning.decide.matrix import Cell
from core.planning.decide.offers import CellProblem, Offer
from core.planning.estimate import PlanEstimate
from core.views.plan import text as plan_text
from core.views.plan import text_limits
from core.wording import price


def column_label(column: str) -> Message:
    """Return the heading of a column of offers or runs."""
    return find_message(f"decide.column.{column}") or message("decide.column.check")


def column_help(column: str) -> Message | None:
    """Return what a column of offers or runs holds."""
    return find_message(f"decide.column.{column}.help")


def problem_text(problem: CellProblem) -> Message:
    """Return what is wrong with a cell, with its row and column."""
    column = column_label(problem.column)
    return message("decide.problem", row=problem.row + 1.0, column=column, reason=problem.reason)


def left_out(d: DecisionResult) -> Message | None:
    """Return which rows do not count because of a cell that cannot be read. None if all do."""
    tables = {"offers": d.offers.problems, "runs": d.runs.problems}
    rows = {name: sorted({one.row + 1 for one in problems}) for name, problems in tables.items()}
    said = [
        pick_message(f"decide.left_out.{name}", rows=list(map(str, some)), count=float(len(some)))
        for name, some in rows.items()
        if some
    ]
    return message("decide.left_out", rows=said) if said else None


# ------------------------------------------------------------------------------ names


def accelerators_of(cell: Cell) -> Message:
    """Return the accelerators of a cell, and the offer where it has a name of its own."""
    offer, count = cell.offer, float(cell.accelerators)
    own = "decide.on" if offer.name == offer.accelerator else "decide.on.named"
    return pick_message(own, count=count, accelerator=offer.accelerator, offer=offer.name)


def run_on(cell: Cell) -> Message:
    """Return a run and its accelerators: ``32B on 256 H100 SXM``."""
    return message("decide.part", run=cell.run.name, on=accelerators_of(cell))


def parts(assignment: Assignment) -> list[Message]:
    """Return the accelerators to which each run of an assignment goes."""
    return [run_on(placement.cell) for placement in assignment.placements]


def price_text(offer: Offer) -> Message | str:
    """Return the price of an offer as entered, or that of the catalog."""
    if offer.contract == "owned":
        if math.isnan(offer.capital):
            return message("decide.price.unknown")
        return message("decide.price.capital", capital=offer.capital, years=offer.years)
    low, high = offer.prices or (offer.device.price_low, offer.device.price_high)
    return message("decide.price.unknown") if math.isnan(low) else price(low, high)


def offer_about(offer: Offer) -> Message:
    """Return how many accelerators an offer has, which where its name does not say so, their contract, and price."""
    contract = message(f"decide.contract.{offer.contract}")
    about = "decide.offer.about" if offer.name == offer.accelerator else "decide.offer.named"
    count = pick_message("decide.offer.or_more" if offer.or_more else "decide.offer.count", count=float(offer.count))
    price = price_text(offer)
    return pick_message(about, count=count, accelerator=offer.accelerator, contract=contract, price=price)


def run_about(a: PlanEstimate) -> Message:
    """Return what a run trains."""
    return message(
        "decide.run.about", model=plan_text.model_text(a), tokens=a.plan.tokens, length=float(a.plan.seq_len)
    )


# ------------------------------------------------------------------------------ the answer


def answer(d: DecisionResult) -> Message:
    """Return the best assignment as a sentence."""
    best = d.answer.best
    if best is None:
        return message("decide.answer.none")
    priced, several = best.cost.known, len(best.placements) > _NAMED
    offers = list(dict.fromkeys(placement.cell.offer.name for placement in best.placements))
    every = message("decide.parts.many", runs=float(len(best.placements)), offers=offers)
    return pick_message(
        _ANSWERS[best.met is not False, priced],
        parts=[every] if several else parts(best),
        runs=float(len(best.placements)),
        day=format_day(best.schedule.day(best.ends.mid)),
        cost=best.cost.mid,
    )


_NAMED = 3
"""Runs that the answer names; of more it says the offers."""

_ANSWERS = {
    (True, True): "decide.answer.best",
    (True, False): "decide.answer.best_unpriced",
    (False, True): "decide.answer.nearest",
    (False, False): "decide.answer.nearest_unpriced",
}


def detail(best: Assignment) -> str:
    """Return the ranges of the end and of the cost, and the peak power."""
    schedule, cost, watts = best.schedule, best.cost, best.schedule.peak_watts
    first, last = (format_day(schedule.day(at)) for at in (best.ends.low, best.ends.high))
    said = [message("decide.detail.ends", first=first, last=last)]
    unknown = [offer.name for offer in best.bill.unknown]
    said += [message("decide.detail.cost", cost=(cost.low, cost.high))] if cost.known else []
    said += [message("decide.detail.unpriced", offers=unknown)] if unknown else []
    said += [] if math.isnan(watts) else [message("decide.detail.power", watts=watts)]
    return " ".join(said)


def limits_line(best: Assignment) -> str:
    """Return which limits an assignment meets, by how much, and with what chance."""
    if not best.limits:
        return message("decide.limits.none")
    a = next((placement.cell.answer for placement in best.placements if placement.cell.answer), None)
    return " ".join(text_limits.limits_text(a, best.limits)) if a else text_limits.verdict(best.limits)


def reasons(d: DecisionResult) -> str:
    """Return why no assignment meets all limits: what each limit would have to be. Empty if one does."""
    said = [
        pick_message(
            _REASONS[reason.limit, reason.alone],
            needed=reason.needed,
            allowed=reason.allowed,
            run=reason.run.name if reason.run else "",
        )
        for reason in d.answer.reasons
    ]
    unpriced = [
        offer.name for offer in d.matrix.offers if any(c.offer is offer and not c.cost.known for c in d.matrix.every)
    ]
    if said and unpriced and not math.isnan(d.matrix.limits.dollars):
        said.append(message("decide.reason.unpriced", offers=unpriced))
    return " ".join(said)


_REASONS = {
    ("deadline", False): "decide.reason.deadline",
    ("money", False): "decide.reason.budget",
    ("power", False): "decide.reason.power",
    ("deadline", True): "decide.reason.deadline_alone",
    ("money", True): "decide.reason.budget_alone",
    ("power", True): "decide.reason.power_alone",
    ("model", False): "decide.reason.model",
}


def difference(best: Assignment, other: Assignment) -> Message:
    """Return how an alternative differs: ``$0.9M more · 21 days sooner``."""
    days, dollars = other.ends.mid - best.ends.mid, other.cost.mid - best.cost.mid
    said: list[Message] = []
    if abs(dollars) > 1e-3 * abs(best.cost.mid):
        said.append(message("decide.difference.more" if dollars > 0 else "decide.difference.less", cost=abs(dollars)))
    if abs(days) > 1e-3 * best.ends.mid:
        said.append(message("decide.difference.later" if days > 0 else "decide.difference.sooner", days=abs(days)))
    return message("decide.difference", parts=said) if said else message("decide.difference.same")


# ------------------------------------------------------------------------------ cells of the matrix


def cell_verdict(cell: Cell) -> Message:
    """Return whether a cell meets all limits, with its chance."""
    return verdict(cell.met, cell.probability)


def verdict(met: bool | None, chance: float) -> Message:
    """Return whether all limits are met, with the chance where that is uncertain: ``✓ 92%``."""
    if met is None:
        return message("decide.cell.unknown")
    return pick_message(_VERDICTS[met, math.isnan(chance)], chance=chance)


_VERDICTS = {
    (True, True): "decide.cell.met",
    (True, False): "decide.cell.met_chance",
    (False, True): "decide.cell.missed",
    (False, False): "decide.cell.missed_chance",
}


def cell_texts(cell: Cell) -> tuple[Message, list[str]]:
    """Return the days of a cell, then lines: their range, its cost and power, and the MFU needed for the deadline."""
    if cell.answer is None:
        return message("decide.cell.none"), []
    days, cost = cell.days, cell.cost
    paid = [message("decide.cell.cost", cost=cost.mid) if cost.known else message("decide.cell.cost_unknown")]
    paid += [] if math.isnan(cell.watts) else [message("decide.cell.power", watts=cell.watts)]
    more = [message("decide.cell.range", days=(days.low, days.high)), " · ".join(paid)]
    more += [] if math.isnan(cell.mfu_needed) else [message("decide.cell.mfu", mfu=cell.mfu_needed)]
    return message("decide.cell.days", days=days.mid), more


# ------------------------------------------------------------------------------ the record


def record(d: DecisionResult, texts: Mapping[str, str]) -> Message | None:
    """Return what was chosen, why, by whom, and when. None if nothing was."""
    if not d.chosen_key:
        return None
    what: Sequence[Message] = parts(d.chosen) if d.chosen else [message("decide.record.lost")]
    because, by, on = (texts[field.id].strip() or message("decide.record.blank") for field in (BECAUSE, BY, ON))
    return message("decide.record", what=what, because=because, by=by, on=on)
