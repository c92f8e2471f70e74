"""Reports: plans with their answers, their link, and the date."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.messages import message
from core.planning.comparison.comparison import ComparedPlan
from core.planning.estimate import PlanEstimate
from core.views.common.rows import Row
from core.views.plan import text as plan_text
from core.views.report.rows import plan_rows, step_rows


@dataclass(frozen=True)
class Report:
    """One or several plans. link: address that opens them. base: index of the baseline. layout: of the only plan, for a
    report about it."""

    plans: tuple[ComparedPlan, ...]
    link: str
    date: datetime.date
    base: int = 0
    layout: PlanEstimate | None = None

    @property
    def title(self) -> str:
        """The plan's name, or the number of plans."""
        several = len(self.plans) > 1
        return message("report.title", plans=float(len(self.plans))) if several else self.plans[0].name

    @cached_property
    def _rows(self) -> dict[ComparedPlan, dict[str, Row]]:
        return {plan: {row.key: row for row in plan_rows(plan.answer)} for plan in self.plans if plan.answer}

    def rows(self, plan: ComparedPlan) -> Sequence[Row]:
        """Return every quantity of a plan, those of its layout first; none without an answer."""
        return (*(step_rows(self.layout) if self.layout else ()), *self._rows.get(plan, {}).values())

    def row(self, plan: ComparedPlan, key: str) -> Row | None:
        """Return one quantity of a plan; None if it has none of that key."""
        return self._rows.get(plan, {}).get(key)

    def labels(self) -> dict[str, str]:
        """Return the key and label of every quantity that any plan has, in the order of the plans."""
        labels = {row.key: row.label for rows in self._rows.values() for row in rows.values()}
        return {key: labels[key] for key in merged(list(rows) for rows in self._rows.values())}


def merged(orders: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return several lists as one that keeps the order of each: a new name follows its predecessor."""
    parts: list[str] = []
    for names in orders:
        at = 0
        for name in names:
            if name in parts:
                at = parts.index(name) + 1
            else:
                parts.insert(at, name)
                at += 1
    return tuple(parts)


def concerns(plan: ComparedPlan) -> list[tuple[str, bool]]:
    """Return the problems and notices of a plan, and whether each is a message: others quote what was entered."""
    a = plan.answer
    rows = [(problem.message, False) for problem in plan.reading.problems]
    if a is None:
        return rows
    ours = [
        plan_text.other_peak(a),
        plan_text.impossible(a),
        plan_text.does_not_fit(a),
        *plan_text.cautions(a),
    ]
    return [*rows, *((text, True) for text in ours if text)]
