"""What a sweep says: the least that is enough, what the plan's own cell comes to, and each cell in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from core.budget.equations import Interval
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import OWN_LAYOUT_FIELDS
from core.planning.form.plan_form import ACCELERATOR, COUNT
from core.planning.plan import PlanLimits, Within
from core.planning.plan_limits import check_of
from core.planning.sweep.axes import AXES, Axis
from core.planning.sweep.sweep import RESULTS, Bools, By, Recommendation, Result, Scale, Sweep, plan_of_texts
from core.training.layout import LayoutError
from core.units import format_count, format_duration, format_money, format_quantity
from core.views.plan import text_limits, text_memory
from core.views.plan.text import days_basis, limit_text, steps_time, typed_elsewhere
from core.wording import listed, percent, plural, rent

_UNITS: Mapping[str, str] = {
    "sequence length": "tokens",
    "micro-batch": "sequences",
    "price": "$ per accelerator and hour",
    "failures": "per 1,000 accelerator-days",
    "grid": "kg of CO₂ per kWh",
}


_ONLY_MEMORY = PlanLimits()
"""Of a plan for which nobody typed any limit."""


def side(axis: Axis) -> str:
    """An axis with the unit of its values."""
    return f"{axis.name}, {_UNITS[axis.name]}" if axis.name in _UNITS else axis.name


def clashing(axis: Axis) -> str:
    """That both sides of a sweep would set the same thing."""
    return f"Across and Up both set {axis.name}." if axis.name != "model" else "Across and Up both set the model."


def stays(within: Within, limits: PlanLimits = _ONLY_MEMORY) -> tuple[str, str]:
    """That a cell stays ``within`` what the question allows and keeps the plan's ``limits``, and that it does not;
    where there are neither, whether its steps can be that fast."""
    others: list[str] = []
    if not math.isnan(limits.days) and limits.days != within.days:
        others.append(limit_text(Within(limits.days)))
    if not math.isnan(limits.dollars) and limits.dollars != within.dollars:
        others.append(format_money(limits.dollars))
    if not math.isnan(limits.watts):
        others.append(format_quantity(limits.watts, "watts", 3))
    if not math.isnan(limits.host):
        others.append(f"{text_memory.gib(limits.host)} of host memory")
    sure = "" if limits.level == _ONLY_MEMORY.level else f" at {limits.certainty}"
    every = others if math.isinf(within.days) else [limit_text(within), *others]
    if not every:
        return "possible", "impossible"
    text = f"{listed(every)}{sure}"
    return f"within {text}", f"not within {text}" if others else f"over {text}"


def heading(sweep: Sweep, scale: Scale) -> str:
    """What the numbers in the cells are, and what is marked."""
    mark = "" if sweep.fits.all() else "; ✕ and hatched: does not fit"
    return f"{scale.title[0].upper()}{scale.title[1:]}{mark}"


def named(sweep: Sweep, cell: tuple[int, int], *, bold: bool = True) -> str:
    """A cell by its two values, the number of accelerators first: ``2,048 H100 SXM and an MFU of 45%``."""
    sides = [(sweep.x.axis, sweep.x.texts[cell[1]]), (sweep.y.axis, sweep.y.texts[cell[0]])]
    sides.sort(key=lambda side: side[0].id != COUNT.id)
    swept = {axis.id for axis, _ in sides}
    sentences: list[str] = []
    for axis, text in sides:
        if axis.id == COUNT.id and ACCELERATOR.id not in swept:
            sentences.append(f"{axis.format_value(text)} {sweep.plans[cell[0]][cell[1]].accelerator}")
        else:
            sentences.append(axis.phrase(text))
    if swept == {COUNT.id, ACCELERATOR.id}:
        sentences = [f"{sides[0][0].format_value(sides[0][1])} × {sentences[1]}"]
    joined = "with" if COUNT.id in swept and len(sentences) > 1 else "and"
    return f" {joined} ".join(f"**{text}**" if bold else text for text in sentences)


def sentence(sweep: Sweep, picked: Recommendation | None) -> str:
    """The least that is enough, and that one step less is not."""
    what = f"fit and stay {stays(sweep.within, sweep.limits)[0]}"
    if picked is None:
        return _nothing(sweep) if sweep.limited or not sweep.fits.any() else _unlimited(sweep)
    takes = _takes(float(sweep.days[picked.cell]), float(sweep.dollars[picked.cell]))
    text = f"{named(sweep, picked.cell)} {_SUPERLATIVES[picked.by]} that {what}: {takes}."
    return " ".join(filter(None, (_capital(text), _less(sweep, picked))))


_SUPERLATIVES: Mapping[By, str] = {
    "fewest": "are the fewest here",
    "soonest": "are the soonest",
    "most": "are the most",
    "least": "are the least",
    "cheapest": "are the cheapest",
    "roomiest": "leave the most memory free of those",
}


def _capital(text: str) -> str:
    """With the first letter as a sentence begins."""
    at = len(text) - len(text.lstrip("*"))
    return text[:at] + text[at : at + 1].upper() + text[at + 1 :]


def _takes(days: float, cost: float) -> str:
    text = f"**{format_duration(86400 * days, 3)}**"
    return f"{text} for **{rent(cost)}**" if math.isfinite(cost) and cost else text


def _nothing(sweep: Sweep) -> str:
    """That no cell is enough, and which of those that fit comes nearest."""
    if not sweep.fits.any():
        return "**Nothing here fits** an accelerator."
    text, nearest = f"**Nothing here fits and stays {stays(sweep.within, sweep.limits)[0]}.**", _least(sweep)
    if reasons := _unknown(sweep, sweep.fits & sweep.may_meet_limits):
        text = f"**Whether anything here fits and stays {stays(sweep.within, sweep.limits)[0]} is unknown**: {reasons}."
    return f"{text} Nearest is {nearest}." if nearest else text


_UNKNOWN: Mapping[str, str] = {"days": "time unknown", "dollars": "cost unknown", "peak_watts": "power unknown"}


def _unknown(sweep: Sweep, among: Bools) -> str:
    """What of the limits is unknown of some cells; empty where nothing is."""
    return listed([_UNKNOWN[name] for name, unknown in sweep.limits_unknown.items() if (unknown & among).any()])


def _unlimited(sweep: Sweep) -> str:
    """How many cells fit, and the soonest of them."""
    soonest, fit = _least(sweep), int(sweep.fits.sum())
    text = f"**{fit} of {sweep.days.size}** {plural(fit, 'combination')} fit."
    return f"{text} The soonest is {soonest}." if soonest else text


def _least(sweep: Sweep) -> str:
    """The cell of those that fit which takes the least time, or the least money where that is the limit; empty where
    none has an answer."""
    by, then = (sweep.dollars, sweep.days) if sweep.within.in_money else (sweep.days, sweep.dollars)
    left = np.where(sweep.fits & ~sweep.impossible & np.isfinite(by), by, np.inf)
    alike = left <= left.min() * (1 + 1e-9)
    at = np.unravel_index(int(np.argmin(np.where(alike, np.nan_to_num(then), np.inf))), sweep.shape)
    cell = (int(at[0]), int(at[1]))
    if not np.isfinite(left[cell]):
        return ""
    return f"{named(sweep, cell)}, in {_takes(float(sweep.days[cell]), float(sweep.dollars[cell]))}"


def _less(sweep: Sweep, picked: Recommendation) -> str:
    """That the next fewer accelerators are not enough whatever the other side, or with no less work than the plan's;
    empty where none are fewer."""
    counts, other = (sweep.x, sweep.y) if sweep.x.axis.id == COUNT.id else (sweep.y, sweep.x)
    at = picked.cell[1] if counts is sweep.x else picked.cell[0]
    if picked.by != "fewest" or at == 0:
        return ""
    fewer = counts.axis.format_value(counts.texts[at - 1])
    first, last = (other.axis.format_value(other.texts[at]) for at in (0, -1))
    over = f"up to {last}" if other.axis.want == "less" else f"from {first} to {last}"
    if other.axis.want == "more" and sweep.plan_cell:
        own, chosen = (cell[0] if other is sweep.y else cell[1] for cell in (sweep.plan_cell, picked.cell))
        if chosen >= own:
            over = f"from {other.axis.format_value(other.texts[own])} on"
    return f"**{fewer}** do not, at any {other.axis.name} {over}."


def own(a: PlanEstimate, within: Within) -> str:
    """What the plan itself comes to: time and money, memory, and the limit."""
    m = a.middle
    # What it rests on tells why the days of the same cluster are others where another MFU is assumed.
    rests = f"{days_basis(a) or steps_time(a)}, MFU {percent(m.mfu)} over all hours"
    sentences = [f"**Yours** takes {_takes(m.days, a.dollars.mid)} ({rests})"]
    try:
        h = a.memory
    except LayoutError as problem:
        sentences.append(f"cannot be laid out: {problem}")
    else:
        text = f"holds {text_memory.gib(h.total)} of {text_memory.gib(h.usable)}"
        sentences.append({"fits": f"fits ({text})", "over": f"does not fit ({text})", "unknown": text}[h.fits])
    money = within.in_money
    paid = Interval.point(math.nan) if a.plan.owned else a.dollars
    asked = ("money", within.dollars, paid) if money else ("deadline", within.days, a.range_of("days"))
    check = check_of(*asked, a.plan.limits.level)
    if a.impossible:
        sentences.append("needs steps faster than the accelerator multiplies")
    elif check.met is not None and math.isfinite(check.limit):
        at = "" if a.plan.limits.level == _ONLY_MEMORY.level else f" at {a.plan.limits.certainty}"
        by = text_limits.difference(check)
        sentences.append(f"{'meets' if check.met else 'misses'} {limit_text(within)} by {by}{at}")
    elif math.isfinite(check.limit):
        sentences.append(f"has an unknown {'cost' if money else 'time'}")
    return listed(sentences) + "."


def counted(sweep: Sweep) -> str:
    """How many cells are enough."""
    total = sweep.days.size
    yes = stays(sweep.within, sweep.limits)[0]
    fits, within, both = (int(mask.sum()) for mask in (sweep.fits, sweep.meets_limits, sweep.satisfies))
    free = f"leave {percent(sweep.limits.free)} of memory free" if sweep.limits.free else ""
    if not sweep.limited:
        leaving = int((sweep.fits & sweep.leaves_free).sum())
        return f"Of {total} cells **{fits}** fit" + (f", **{leaving}** {free}." if free else ".")
    may = int((sweep.fits & sweep.may_meet_limits).sum())
    unknown = f" Of **{may}** that fit it is unknown: {_unknown(sweep, sweep.fits)}." if may else ""
    both_do = f"**{both}** do both{free and f' and {free}'}"
    return f"Of {total} cells **{fits}** fit, **{within}** stay {yes}, {both_do}.{unknown}"


def apart(sweep: Sweep) -> str:
    """What the cells have that the plan has not, where that is more than the two values; empty where it is not."""
    plan, axes = plan_of_texts(sweep.base), [sweep.x.axis, sweep.y.axis]
    known, sentences = plan.catalog_model, list[str]()
    if known and AXES["parameters"] in axes:
        active = f", a mixture that has {format_count(known.active)} of {format_count(known.parameters)} active"
        sentences.append(
            "Other numbers of parameters are those of dense models of a usual shape; yours is "
            f"{known.name}{active if known.mixture else ''}."
        )
    given = replace(plan, prices=None) if AXES["price"] in axes else plan
    if typed := typed_elsewhere(given, (cell.accelerator for row in sweep.plans for cell in row)):
        sentences.append(typed)
    if sweep.plan_cell is None:
        own = [axis for axis in axes if axis.field in OWN_LAYOUT_FIELDS]
        why = ": it has the fastest layout, and they have one of their own" if own and not plan.own_layout else ""
        sentences.append(f"No cell is your plan{why}.")
    return " ".join(sentences)


def without(sweep: Sweep) -> str:
    """Why cells have no answer or no layout, each reason once; empty where all have."""
    reasons = list(dict.fromkeys(why for row in sweep.reasons for why in row if why))
    if not reasons:
        return ""
    count = sum(bool(why) for row in sweep.reasons for why in row)
    more = f" And {len(reasons) - 1} more reasons." if len(reasons) > 1 else ""
    return f"{count} of {sweep.days.size} cells cannot be: {_sentence(reasons[0])}{more}"


def _sentence(why: str) -> str:
    return why.replace("**", "") if why.endswith(".") else f"{why}."


def cell(sweep: Sweep, at: tuple[int, int], scale: Scale) -> str:
    """A cell for who points at it or hears it."""
    sentences = [f"{named(sweep, at, bold=False)}: {scale.full(float(scale.result.of(sweep)[at]))}"]
    if why := sweep.reasons[at[0]][at[1]]:
        sentences.append(_sentence(why).rstrip("."))
    else:
        sentences.append(f"{_fitting(sweep, at)} on {text_memory.gib(float(sweep.usable[at]))}")
    if np.isfinite(sweep.days[at]):
        sentences.append(
            "impossible: faster than the best matmul"
            if sweep.impossible[at]
            else _unknown(sweep, _only(sweep, at))
            if sweep.may_meet_limits[at]
            else stays(sweep.within, sweep.limits)[not sweep.meets_limits[at]]
        )
    return "; ".join(sentences)


def _only(sweep: Sweep, at: tuple[int, int]) -> Bools:
    """A cell alone."""
    cells = np.full(sweep.shape, False)
    cells[at] = True
    return cells


_LITTLE_FREE = "fits, but leaves too little free,"
_TOO_MUCH = {
    "days": "too long",
    "dollars": "too dear",
    "peak_watts": "too much power",
    "host": "too much on the host",
}


def _verdict(sweep: Sweep, at: tuple[int, int]) -> str:
    """Whether a cell fits and keeps every limit, or what it misses."""
    if sweep.satisfies[at]:
        return "yes"
    if sweep.reasons[at[0]][at[1]]:
        return "cannot be"
    missed = (
        (not sweep.fits[at], "too large"),
        (sweep.fits[at] and not sweep.leaves_free[at], "little free"),
        (sweep.impossible[at], "impossible"),
        *(
            (not kept[at], _TOO_MUCH[name])
            for name, kept in sweep.limits_met.items()
            if not _is_unknown(sweep, name, at)
        ),
    )
    words = [word for misses, word in missed if misses]
    return f"no: {', '.join(words)}" if words else _unknown(sweep, _only(sweep, at))


def _is_unknown(sweep: Sweep, name: str, at: tuple[int, int]) -> bool:
    return name in sweep.limits_unknown and bool(sweep.limits_unknown[name][at])


def _fitting(sweep: Sweep, at: tuple[int, int]) -> str:
    """Whether a cell fits, and leaves as much memory free as the plan keeps."""
    if not sweep.fits[at]:
        return "does not fit"
    return "fits" if sweep.leaves_free[at] else _LITTLE_FREE


def table(sweep: Sweep, result: Result) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of all cells: both values, the results that are asked for most, and what holds."""
    results = [RESULTS[name] for name in dict.fromkeys((result.name, "days", "dollars", "memory"))]
    kinds = {
        "time": "seconds",
        "money": "usd",
        "memory": "bytes_binary",
        "share": "ratio",
        "Wh": "watt_hours",
        "W": "watts",
        "g": "kg_co2",
    }
    headings = [
        sweep.y.axis.name,
        sweep.x.axis.name,
        *(result.name for result in results),
        f"fits {stays(sweep.within, sweep.limits)[0]}" if sweep.limited else "fits",
    ]

    def text(item: Result, at: tuple[int, int]) -> str:
        value = float(item.of(sweep)[at]) * (86400 if item.unit == "time" else 1)
        if item.unit == "money" and not value:
            return "no rent"
        if item.unit == "money":
            return rent(value)
        return format_quantity(value, kinds.get(item.unit, "count"), 4)  # type: ignore[arg-type]

    rows = [
        [
            sweep.y.axis.format_value(sweep.y.texts[i]),
            sweep.x.axis.format_value(sweep.x.texts[j]),
            *(text(result, (i, j)) for result in results),
            _verdict(sweep, (i, j)),
        ]
        for i in range(sweep.shape[0])
        for j in range(sweep.shape[1])
    ]
    return headings, rows
