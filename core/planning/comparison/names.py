"""Names of plans: one suggested from what a plan is, and none twice in a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from core.limits import limit
from core.models.configs.custom import NAME
from core.planning.comparison.differences import effective_fields, same_value
from core.planning.comparison.entry import Entry
from core.planning.form.plan_form import PLAN_FORM, plan_of
from core.planning.plan import OWN_SHAPE, TYPED, Plan
from core.units import format_count, format_duration, format_money

_BETWEEN = " · "
_TELLING = 3
"""A name says up to so many fields in which its plan differs from another of the same name."""


def suggested(texts: Mapping[str, str], among: Collection[Entry] = ()) -> str:
    """A name for the plan of ``texts``: model, tokens and accelerators, as far as they are given.

    Where one ``among`` the others has it already, also what tells the two apart: ``70B · 15T · 1,024 × H100 SXM · MFU
    40%``.
    """
    reading = PLAN_FORM.parse(texts)
    name = _named(plan_of(reading))
    other = next((entry for entry in among if entry.name == name), None)
    if other:
        counts = effective_fields(reading)
        parts = [
            f"{field.label} {reading.texts[field.id]}"
            for field in PLAN_FORM.fields
            if field.id in counts and reading.texts[field.id] and not same_value(reading, other.reading, field)
        ]
        name = _BETWEEN.join((name, *parts[:_TELLING]))
    return unique(name, [entry.name for entry in among])


def _named(plan: Plan) -> str:
    within = plan.within
    limited = format_money(within.dollars) if within.in_money else format_duration(86400 * within.days, 3)
    model = {TYPED: format_count(plan.parameters), OWN_SHAPE: NAME}.get(plan.model, plan.model)
    count = "" if plan.find == "accelerators" else f"{format_count(plan.accelerators)} × "
    parts = (
        "" if plan.find == "parameters" else model,
        "" if plan.find == "tokens" else format_count(plan.tokens),
        f"{count}{plan.accelerator}",
        "" if plan.find == "time" else f"{'for' if within.in_money else 'in'} {limited}",
    )
    return _BETWEEN.join(filter(None, parts))


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names without the parts that all of them begin with, and that tell none of them from another."""
    parts = [name.split(_BETWEEN) for name in names]
    same = 0
    if len(names) > 1:
        most = min(map(len, parts)) - 1
        same = next((i for i in range(most) if len({each[i] for each in parts}) > 1), most)
    return tuple(_BETWEEN.join(each[same:]) for each in parts)


def unique(name: str, taken: Collection[str]) -> str:
    """``name``, cut to what a name may have, with a number where it is taken."""
    most = limit("plan_name")
    text, number = name[:most], 1
    while text in taken:
        number += 1
        text = f"{name[: most - 5]} ({number})"
    return text


def distinct(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The same plans, the later of two with one name numbered."""
    result: list[Entry] = []
    for entry in entries:
        name = unique(entry.name, [other.name for other in result])
        result.append(entry if name == entry.name else replace(entry, name=name))
    return tuple(result)
