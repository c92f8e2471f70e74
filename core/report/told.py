"""What a report is made of: plans with their answers, the address that opens them again, and the day."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.planning.answer import words
from core.planning.answer.export import Line, plan_lines
from core.planning.compare.compared import Compared, compared
from core.planning.compare.entry import Entry


@dataclass(frozen=True)
class Report:
    """Plans, one or several. link: the whole address that opens them again. date: the day of the report. base: the
    index of the plan that the others are held against."""

    plans: tuple[Compared, ...]
    link: str
    date: datetime.date
    base: int = 0

    @property
    def title(self) -> str:
        """The plan's name, or how many there are."""
        return self.plans[0].name if len(self.plans) == 1 else f"{len(self.plans)} plans compared"

    @cached_property
    def _lines(self) -> dict[Compared, dict[str, Line]]:
        return {one: {line.name: line for line in plan_lines(one.answer)} for one in self.plans if one.answer}

    def lines(self, plan: Compared) -> Sequence[Line]:
        """Every quantity of a plan; none of one without an answer."""
        return tuple(self._lines.get(plan, {}).values())

    def line(self, plan: Compared, quantity: str) -> Line | None:
        """One quantity of a plan; None where it has none of that name."""
        return self._lines.get(plan, {}).get(quantity)

    def quantities(self) -> tuple[str, ...]:
        """The names of what any plan has, each behind what it follows there."""
        return merged(list(lines) for lines in self._lines.values())


def report_of(entries: Sequence[Entry], link: str, date: datetime.date, base: int = 0) -> Report:
    """A report on ``entries``, one or more."""
    return Report(tuple(compared(one) for one in entries), link, date, base)


def merged(orders: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Names of several lists as one, each that is new behind the one that it follows."""
    found: list[str] = []
    for names in orders:
        at = 0
        for name in names:
            if name in found:
                at = found.index(name) + 1
            else:
                found.insert(at, name)
                at += 1
    return tuple(found)


def concerns(one: Compared) -> list[tuple[str, bool]]:
    """What is to be said beside a plan's answer, and whether it is in our own words: others quote what was typed."""
    a = one.answer
    said = [(problem.message, False) for problem in one.reading.problems]
    if a is None:
        return said
    why, instead = words.other_peak(a)
    ours = [f"{why} {instead}".strip(), words.impossible(a), words.memory(a), words.tight(a), *words.cautions(a)]
    return [*said, *((text, True) for text in ours if text)]
