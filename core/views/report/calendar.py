"""A report on a calendar: one HTML file for the screen and for paper, and Markdown for a pull request."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.data_version import data_version
from core.fields import ParsedForm
from core.planning.calendar.schedule import Schedule
from core.planning.cost.bill import CostOption
from core.planning.cost.choose_pools import ComparedPools, calendar_checks
from core.planning.cost.form import prices_of
from core.planning.cost.pool_bill import pool_costs
from core.views.calendar import text, text_fit, text_pools
from core.views.calendar.charts import calendar
from core.views.common.markup import markdown_text, unlinked
from core.views.common.palette import LIGHT
from core.views.cost import text as cost_text
from core.views.report.document import picture, remarked, rendered
from core.views.report.tables import address

Cell = tuple[str, str]
"""A cell of a table, and the remark under it."""

_ON_SCREEN = ("waits for", "quarter", "paused", "work", "power")
"""Columns that a page of paper has no room for."""


@dataclass(frozen=True)
class CalendarReport:
    """A calendar under a name. link: the whole address that opens it again. date: the day of the report. compared: the
    pools held against each other, where somebody asked for that."""

    name: str
    reading: ParsedForm
    schedule: Schedule
    ways: tuple[CostOption, ...]
    link: str
    date: datetime.date
    compared: ComparedPools | None = None

    @property
    def sentence(self) -> str:
        """The answer."""
        return text.sentence(self.schedule, self.ways[0])

    @property
    def detail(self) -> str:
        """The quieter line under it."""
        return text.detail(self.schedule, self.ways[0], cost_text.fleet_text(self.schedule, prices_of(self.reading)))

    @property
    def limits(self) -> str:
        """Which limits it keeps, by how much and how likely."""
        return text.limits(self.schedule, calendar_checks(self.schedule, self.ways[0].total))

    @property
    def choice(self) -> str:
        """On which pools the runs meet every limit; empty where nobody asked."""
        if not (found := self.compared):
            return ""
        said = (text_pools.sentence(found.lines, found.plan), text_pools.terms(found.lines, found.plan))
        return " ".join(filter(None, said))

    def concerns(self) -> list[str]:
        """What is wrong with the calendar, and who waits for whom."""
        s = self.schedule
        lost, rescued = text.unfitting(s)
        late, perhaps = text.beyond(s)
        every = (text.missed(s), *late, *text.impossible(s), *lost, *rescued, *perhaps, *text.queued(s))
        return [line for line in every if line]

    def tables(self) -> dict[str, tuple[Sequence[str], list[tuple[Cell, ...]]]]:
        """Title → headings and rows: the runs, the pools where there are any, what each would take, and the bill."""
        s, found = self.schedule, self.compared
        runs = [_narrow(zip(*row, strict=True), text.TABLE) for row in zip(text.rows(s), text.remarks(s), strict=True)]
        paid = cost_text.pool_rows(pool_costs(s, prices_of(self.reading))) if s.fleet.pools else []
        paid = [_narrow(row, cost_text.POOLS) for row in paid]
        choice = (text_pools.headings(found.plan), text_pools.rows(found.lines, found.plan)) if found else None
        return {
            "Runs": (_on_paper(text.TABLE), runs),
            **({"Pools": (_on_paper(cost_text.POOLS), paid)} if paid else {}),
            **({"Which pool, and how many": choice} if choice else {}),
            "What it costs": (cost_text.heading(self.ways), cost_text.rows(self.ways)),
        }


def _on_paper(heads: Sequence[str]) -> tuple[str, ...]:
    """The headings that paper has room for."""
    return tuple(name for name in heads if name not in _ON_SCREEN)


def _narrow(cells: Iterable[Cell], heads: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of a row that paper has room for; of the range of days not the steps alone."""
    named = dict(zip(heads, cells, strict=True))
    if "trains" in named:
        days, remark = named["trains"]
        named["trains"] = days, remark.partition(" · ")[0]
    return tuple(named[name] for name in _on_paper(heads))


def calendar_html(report: CalendarReport) -> str:
    """The whole file, which needs nothing else."""
    s = report.schedule
    return rendered(
        "calendar_report.html",
        report.name,
        report.date,
        report.link,
        sentence=report.sentence,
        detail=report.detail,
        limits=report.limits,
        choice=report.choice,
        concerns=report.concerns(),
        picture=picture(calendar(s, LIGHT), text.picture(s)),
        tables=[
            {"title": title, "heads": heads, "rows": [[remarked(*cell) for cell in row] for row in rows]}
            for title, (heads, rows) in report.tables().items()
        ],
        method=f"{text.METHOD} {text_fit.NOTE}",
    )


def calendar_markdown(report: CalendarReport) -> str:
    """The same as Markdown, without pictures."""
    parts = [
        f"# {markdown_text(report.name)}",
        report.sentence,
        report.detail,
        report.limits,
        *filter(None, [report.choice]),
    ]
    parts += [f"- {line}" for line in report.concerns()]
    for title, (heads, rows) in report.tables().items():
        lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(_cell(*cell) for cell in row)} |" for row in rows]
        parts += [f"## {title}", "\n".join(lines)]
    made = f"Napkin, {report.date.isoformat()}, data {data_version()}"
    return "\n\n".join([*parts, f"{made}: <{address(report.link)}>", ""])


def _cell(cell: str, remark: str) -> str:
    """A cell and its remark on one line, which no sign of the table breaks."""
    line = f"{cell} ({remark})" if remark else cell
    return unlinked(line).replace("|", "\\|").replace("\n", " ")
