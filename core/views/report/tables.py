"""Plans as CSV in base units and as Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from core.messages import message
from core.planning.nearest_runs import repeated_runs
from core.planning.plan_limits import limit_report
from core.views.common.markup import markdown_text, unlinked
from core.views.common.rows import Row
from core.views.plan import text_limits
from core.views.plan.text import headline, mfu_text, range_text, times_text
from core.views.report.report import Report, concerns
from core.views.report.rows import HEADINGS
from core.views.runs.text import repeated_run
from core.views.search.text import headline as layout_headline
from core.views.search.text import step_text

_FORMULA = re.compile(r"(?:^|(?<=[;\t\r\n]))(?=\s*[-+=@－＋＝＠\t\r])")
"""Where a text, or a part of it after a cell separator of some locale, begins like a spreadsheet formula."""

_ADDRESS = re.compile(r"https?://[^\s<>\"']+")


COLUMNS = ("quantity", "pessimistic", "median", "optimistic", "unit", "note")
"""Names of columns and scenarios in CSV, which never change."""


def harmless(text: str) -> str:
    """Return text as a CSV cell that no spreadsheet evaluates."""
    return _FORMULA.sub("'", text)


def rows_csv(rows: Sequence[Row]) -> str:
    """Return the rows of one plan as CSV with headings, numbers in full."""
    return _written([COLUMNS, *(_cells(row) for row in rows)])


def _cells(row: Row) -> list[str]:
    """Return the cells of a row; numbers stay numbers, whatever their sign."""
    name, *values, unit, note = row.raw()
    texts = [harmless(value) for value in values] if isinstance(row.value, str) else values
    return [harmless(name), *texts, unit, harmless(note)]


def as_csv(report: Report) -> str:
    """Return one plan with scenarios as columns, or several plans as columns with a row for each scenario."""
    answered = [plan for plan in report.plans if plan.answer]
    if len(report.plans) == 1 and answered:
        return rows_csv(report.rows(answered[0]))
    rows = [["quantity", "scenario", "unit", *(harmless(plan.name) for plan in report.plans)]]
    for key, quantity in report.labels().items():
        found = [report.row(plan, key) for plan in report.plans]
        raw = [_cells(row) if row else ["", "", "", "", "", ""] for row in found]
        unit = next((cells[4] for cells in raw if cells[4]), "")
        for place, scenario in ((2, COLUMNS[2]), (1, COLUMNS[1]), (3, COLUMNS[3])):
            if any(cells[place] for cells in raw):
                rows.append([harmless(quantity), scenario, unit, *(cells[place] for cells in raw)])
    if len(answered) < len(report.plans):
        rows.append([message("report.csv.no_answer"), "", "", *(harmless(plan.problem) for plan in report.plans)])
    return _written(rows)


def _written(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def address(link: str) -> str:
    """Return ``link`` if it is a web address; else empty."""
    return link if _ADDRESS.fullmatch(link) else ""


def as_markdown(report: Report) -> str:
    """Return answers, limits, notices, the table of quantities, and the link."""
    parts = [f"# {markdown_text(report.title)}"]
    for plan in report.plans:
        if len(report.plans) > 1:
            parts.append(f"## {markdown_text(plan.name)}")
        if at := report.layout:
            parts += [unlinked(say(at)) for say in (layout_headline, step_text)]
        if plan.answer:  # where our own words name a device, that is as somebody typed it
            published = [repeated_run(plan.answer, run) for run in repeated_runs(plan.answer)]
            said = [say(plan.answer) for say in (headline, range_text, mfu_text, times_text)]
            limits = text_limits.limits_line(plan.answer, limit_report(plan.answer))
            parts += [unlinked(line) for line in (*said, limits, *published) if line]
        else:
            parts += [message("report.no_answer"), markdown_text(plan.problem)]
        parts += [f"> {unlinked(text) if ours else markdown_text(text)}" for text, ours in concerns(plan)]
    parts.append(_table(report))
    for line in report.layout.launches if report.layout else ():
        parts.append(f"### {line.system}")
        parts += [f"```{line.language}\n{line.text}\n```"] if line.text else []
        parts.append("\n".join(f"- {note}" for note in line.notes))
    parts.append(message("report.made", date=report.date.isoformat()))
    parts.append(f"{message('report.link')}: <{address(report.link)}>" if address(report.link) else "")
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(report: Report) -> str:
    answered = [plan for plan in report.plans if plan.answer]
    if len(report.plans) == 1:
        head = [*HEADINGS[:4], HEADINGS[5]]
        rows = [row.cells() for plan in answered for row in report.rows(plan)]
    else:
        head = [HEADINGS[0], *(plan.name for plan in report.plans)]
        rows = [
            [label, *(value(report.row(plan, key)) for plan in report.plans)] for key, label in report.labels().items()
        ]
    if not rows:
        return ""
    heading, *lines = ([markdown_text(cell) for cell in row] for row in (head, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(head), *lines))


def value(row: Row | None) -> str:
    """Return the median of a quantity with the range that it has, for a reader: ``187 days (149–247 days)``."""
    if row is None:
        return "–"
    middle, ends = row.range_cells()
    return f"{middle} ({ends})" if ends else middle
