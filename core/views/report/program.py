"""Plans as a Python program on the library alone, which works the report's numbers out anew."""

from __future__ import annotations

from pprint import pformat

from core.fields import LINK_VERSION
from core.planning.comparison.entry import results_of
from core.views.report.report import Report

_BODY = """
import sys

sys.path.insert(0, ".")  # Napkin's folder, in which this is run
try:
    from core.budget.errors import BudgetError
    from core.planning.evaluation import answer
    from core.planning.form.plan_form import plan_from
    from core.planning.applied_layout import applied_layout
    from core.planning.comparison.entry import results_of
except ModuleNotFoundError as problem:
    raise SystemExit(
        f"There is no {{problem.name}} here. Run this in the folder of Napkin, with the Python that has its packages: "
        f'cd there, then .venv/bin/python "{{__file__}}"'
    ) from None

# Every field of each plan as text, as a link of version {version} has them.
PLANS = {plans}

# What they came to: days, dollars, accelerators, MFU over all hours, bytes on the fullest accelerator, watt-hours.
THEN = {then}


def tell(results, then):
    for quantity, value in results.items():
        print(f"  {{quantity}} = {{value!r}} (then {{then.get(quantity)!r}})")


for (name, texts), then in zip(PLANS, THEN, strict=True):
    print(name)
    try:
        a = answer(plan_from(texts))
    except BudgetError as problem:
        print("  no answer:", problem)
        continue
    tell(results_of(a), then)
    # a.explain() has every formula with its values and its source, a.memory what one accelerator holds.
"""

_LAYOUT = """
# What a step of the plan's layout came to, in seconds, days of all steps alone and bytes; and how systems are given it.
STEP = {step}
LAUNCH = {launch}

tell(applied_layout(plan_from(PLANS[0][1])).results, STEP)
for system, text in LAUNCH.items():
    print(f"\\n{{system}}\\n{{text}}")
"""


def as_python(report: Report) -> str:
    """A program for the folder of Napkin. Texts that could not be read stand as what was used instead."""
    plans = [(plan.name, dict(plan.reading.texts)) for plan in report.plans]
    then = [results_of(plan.answer) if plan.answer else {} for plan in report.plans]
    body = _BODY.format(version=LINK_VERSION, plans=_literal(plans), then=_literal(then))
    if at := report.layout:
        launch = {launch.system: launch.text for launch in at.launches}
        body += _LAYOUT.format(step=_literal(at.results), launch=_literal(launch))
    return f'"""Made by Napkin on {report.date.isoformat()}. In its folder: .venv/bin/python FILE."""\n{body}'


def _literal(value: object) -> str:
    return pformat(value, width=118, sort_dicts=False)
