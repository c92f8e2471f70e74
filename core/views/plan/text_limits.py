"""The limits of a plan in words: which it keeps or misses, by how much, how surely, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.planning.evaluation import Answer
from core.planning.plan import CERTAINTIES
from core.planning.plan_limits import SURE, Check, Limited, all_checks, all_met, changed_to_keep, surer_of_deadline
from core.units import format_count, format_duration, format_quantity
from core.views.plan.text_memory import gib
from core.wording import listed, percent, plural, rent

NAMES: dict[Limited, str] = {
    "deadline": "deadline",
    "money": "money",
    "power": "power",
    "host": "host memory",
    "memory": "memory to keep free",
}
"""What is limited, as tables name it."""

_UNKNOWN: dict[Limited, str] = {
    "deadline": "how long it takes is unknown",
    "money": "no rent is known",
    "power": "the node’s power is unknown",
    "host": "the host’s memory is unknown",
    "memory": "its memory is unknown",
}

_AS_GOOD_AS_SURE = 0.995


def limit_checks(a: Answer) -> tuple[Check, ...]:
    """The limits of an answered plan, that of memory where it can be laid out; none where nobody typed any."""
    return all_checks(a) if a.plan.limits.has_limits else ()


def amount_of(check: Check, value: float) -> str:
    """A value of a limit with its unit."""
    match check.id:
        case "deadline":
            return format_duration(86400 * value, 3)
        case "money":
            return rent(value)
        case "power":
            return format_quantity(value, "watts", 3)
        case "host" | "memory":
            return gib(value)


def mark(check: Check) -> str:
    """That a limit is kept or missed, in a sign and a word."""
    return "? unknown" if check.met is None else "✓ kept" if check.met else "✗ missed"


def outcome(check: Check) -> str:
    """Whether a limit is kept, and by how much: ``✗ missed by 21 days``."""
    if check.met is None:
        return f"{mark(check)}: {_UNKNOWN[check.id]}"
    if math.isinf(check.value):
        return f"{mark(check)}: no steps are that fast"
    by = amount_of(check, abs(check.over))
    return f"{mark(check)} with {by} to spare" if check.met else f"{mark(check)} by {by}"


def missed(every: Sequence[Check]) -> list[str]:
    """By how much each limit is missed that is: ``power missed by 4.19 kW``."""
    return [f"{NAMES[check.id]} {outcome(check).removeprefix('✗ ')}" for check in every if check.met is False]


def value_text(a: Answer, check: Check) -> str:
    """What the plan comes to, at which probability, and how likely the limit holds; empty where that is unknown."""
    if not math.isfinite(check.value):
        return ""
    text = amount_of(check, check.value)
    if math.isnan(check.probability):
        return text
    return f"{a.plan.limits.certainty}: {text}, {likely(check.probability)} to hold"


def free_memory(a: Answer, check: Check) -> str:
    """What is free of an accelerator's memory, once, and how much of it is to stay so."""
    share = a.plan.limits.free
    usable = check.limit / (1 - share)
    free = usable - check.value
    if free < 0:
        return f"{gib(-free)} too much"
    return f"{gib(free)} free" + (f" (the plan reserves {gib(share * usable)}, {percent(share)})" if share else "")


def _in_words(a: Answer, check: Check, shown: str = "", *, dated: bool = False) -> str:
    """A limit in a sentence: ``120 days: ✗ 21 days over (P75: 141 days, 38 % likely to hold)``. shown: the chance that
    the sentence before it has told, which is not repeated. dated: as in `limits_sentence`."""
    if check.met is None or math.isinf(check.value):
        return f"{named(a, check)}: {outcome(check)}"
    if check.id == "memory":
        return f"memory {'✓' if check.met else '✗'} {free_memory(a, check)}"
    by = amount_of(check, abs(check.over))
    if check.id == "deadline" and abs(check.over) < 1:
        by = "under a day"
    details: list[str] = []
    if not math.isnan(check.probability):
        details = (
            [] if a.plan.limits.certainty == "P50" else [f"{a.plan.limits.certainty}: {amount_of(check, check.value)}"]
        )
        details += [f"{likely(check.probability)} to hold"] if likely(check.probability) != shown else []
    how = f"✓ {by} to spare" if check.met else f"✗ {by} over"
    how = mark(check) if dated and check.id == "deadline" else how
    return f"{named(a, check)}: {how}" + (f" ({', '.join(details)})" if details else "")


def likely(probability: float) -> str:
    """``38 % likely``; what is nearly certain not as if it were."""
    if probability > _AS_GOOD_AS_SURE:
        return "nearly certain"
    return "hardly likely" if probability < 1 - _AS_GOOD_AS_SURE else f"{percent(float(f'{probability:.2g}'))} likely"


def named(a: Answer, check: Check) -> str:
    """A limit by its amount: ``120 days``, ``$12 M``, ``8 % of memory free``."""
    if check.id == "memory":
        return f"{percent(a.plan.limits.free)} of memory free"
    return amount_of(check, check.limit) + (" of host memory" if check.id == "host" else "")


def verdict(every: Sequence[Check]) -> str:
    """How many limits are kept: ``✓ Meets all 3 limits``, ``✗ Misses 1 of 3 limits``."""
    count = f"{len(every)} {plural(len(every), 'limit')}"
    match all_met(every):
        case True:
            return f"✓ Meets all {count}" if len(every) > 1 else "✓ Meets its limit"
        case False:
            count_missed = sum(check.met is False for check in every)
            return f"✗ Misses {count_missed} of {count}" if len(every) > 1 else "✗ Misses its limit"
        case None:
            return f"? Misses none of {count} that is known"


def sentence(a: Answer) -> str:
    """Every limit, kept or missed, those that are missed first; empty where nobody typed any."""
    every = limit_checks(a)
    return " ".join(filter(None, (limits_sentence(a, every), what_it_takes(a, every)))) if every else ""


def limits_sentence(a: Answer, every: Sequence[Check], *, dated: bool = False) -> str:
    """Limits of ``a``, or of a calendar of which it is a run, those that are missed first, and how likely all hold.
    dated: the deadline is a day, and how far the end is from it is known already, in days of the calendar."""
    ranged = [check for check in every if not math.isnan(check.probability)]
    met = bool(all_met(every) and ranged)
    chance = together(every)
    at_once = f"; **{chance}** all at once" if len(ranged) > 1 and not met else ""
    ordered = sorted(every, key=lambda check: check.met is not False)
    parts = "; ".join(_in_words(a, check, chance if met else "", dated=dated) for check in ordered)
    return f"**{verdict(every)}{f', {chance}' if met else ''}**: {parts}{at_once}."


def line(a: Answer, *, asked: bool = False) -> str:
    """The limits in a line under an answer: `sentence`, or whether it fits in memory where nobody typed any. asked:
    whether the question has a deadline of its own."""
    return sentence(a) or in_memory(a, all_checks(a), asked=asked)


def in_memory(a: Answer, every: Sequence[Check], *, asked: bool = False) -> str:
    """The only limit where nobody typed any."""
    fits = [_in_words(a, check).replace("memory", "**Memory**", 1) for check in every if check.id == "memory"]
    sentences = (*fits, *(() if asked or a.find != "time" else ("no deadline and no budget set",)))
    return f"{'; '.join(sentences)}." if sentences else ""


def together(every: Sequence[Check]) -> str:
    """How likely deadline and money hold at once: both grow with the days of the run, so the harder one decides. Empty
    where that is not known."""
    chances = [check.probability for check in every if not math.isnan(check.probability)]
    return likely(min(chances)) if chances else ""


def what_it_takes(a: Answer, every: Sequence[Check]) -> str:
    """For each limit that is missed the plan nearest to this one that keeps it, and what else that one misses; for a
    deadline that can well be missed, the plan that is sure of it."""
    sentences: list[str] = []
    for check in every:
        if sure := surer_of_deadline(a, check):
            sentences.append(_surely(a, check, *sure))
            continue
        result = changed_to_keep(a, check)
        if result is None:
            if check.met is False and check.id == "deadline" and a.find == "time":
                sentences.append(f"No number of {a.device.name} keeps {named(a, check)}.")
            continue
        others = _others(result, check)
        still = f", which misses {listed(others)}" if others else ""
        count = f"**{format_count(result.count)}** {a.device.name}"
        match check.id:
            case "money":
                sentences.append(
                    f"{named(a, check)} pays for **{format_count(result.middle.tokens, 3)}** tokens{still}."
                )
            case "power":
                days = format_duration(86400 * result.middle.days, 3)
                sentences.append(f"{named(a, check)} is enough for {count}, in {days}{still}.")
            case _:
                sentences.append(f"{named(a, check)} would take {count}{still}.")
    return " ".join(sentences)


def _others(a: Answer, check: Check) -> list[str]:
    """What a plan misses beside ``check``, memory apart."""
    apart = (check.id, "host", "memory")
    return [named(a, other) for other in limit_checks(a) if other.met is False and other.id not in apart]


def _surely(a: Answer, check: Check, now: Answer, sure: Answer) -> str:
    """How many accelerators are sure of a deadline, and what they would miss that these do not."""
    lost = [name for name in _others(sure, check) if name not in _others(now, check)]
    still = f", and keep {listed(lost)} less surely" if lost else ""
    how = likely(CERTAINTIES[SURE])
    return f"**{format_count(sure.count)}** {a.device.name} would make {named(a, check)} {how}{still}."
