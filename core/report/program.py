"""Plans as a Python program on the library alone, which works the report's numbers out anew."""

from __future__ import annotations

from pprint import pformat

from core.fields import LINK_VERSION
from core.planning.compare.entry import results_of
from core.report.told import Report

_BODY = """
from core.planning import BudgetError, answer, plan_from
from core.planning.compare.entry import results_of

# Every field of each plan as text, as a link of version {version} has them.
PLANS = {plans}

# What they came to: days, dollars, accelerators, MFU over all hours, bytes on the fullest accelerator, watt-hours.
THEN = {then}

for (name, texts), then in zip(PLANS, THEN, strict=True):
    print(name)
    try:
        a = answer(plan_from(texts))
    except BudgetError as problem:
        print("  no answer:", problem)
        continue
    for quantity, value in results_of(a).items():
        print(f"  {{quantity}} = {{value!r}} (then {{then.get(quantity)!r}})")
    # a.explain() has every formula with its values and its source, a.memory what one accelerator holds.
"""


def as_python(report: Report) -> str:
    """A program for a folder with Napkin's ``core``. Texts that could not be read stand as what was used instead."""
    plans = [(one.name, dict(one.reading.texts)) for one in report.plans]
    then = [results_of(one.answer) if one.answer else {} for one in report.plans]
    body = _BODY.format(version=LINK_VERSION, plans=_literal(plans), then=_literal(then))
    return (
        f'"""Made by Napkin on {report.date.isoformat()}. In its folder: PYTHONPATH=. .venv/bin/python FILE."""\n{body}'
    )


def _literal(value: object) -> str:
    return pformat(value, width=118, sort_dicts=False)
