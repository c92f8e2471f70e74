"""A report on a decision: one HTML file for the screen and for paper, Markdown, and CSV."""

from __future__ import annotations

import csv
import datetime
import io
import math
from dataclasses import dataclass
from functools import cached_property

from core.fields import ParsedForm
from core.formula import derivation
from core.messages import message
from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import RECORD_FIELDS, DecisionResult
from core.planning.decide.schedule import Schedule, bill, explain
from core.views.common.markup import markdown_text, unlinked
from core.views.common.palette import LIGHT
from core.views.decide import tables, text
from core.views.decide.charts import gantt, gantt_alt
from core.views.report.document import picture, remarked, rendered
from core.views.report.tables import address, harmless
from core.wording import plain


@dataclass(frozen=True)
class DecideReport:
    """A decision under a name.

    Attributes:
        schedule: Of the assignment that was chosen, or else of the best. None if no run can be assigned.
        link: The whole address that opens it again.
        date: The day of the report.
    """

    name: str
    reading: ParsedForm
    decision: DecisionResult
    schedule: Schedule | None
    link: str
    date: datetime.date

    @property
    def best(self) -> Assignment | None:
        """The best assignment; None if there is none."""
        return self.decision.answer.best

    @property
    def detail(self) -> str:
        """The line under the answer."""
        return text.detail(self.best) if self.best else ""

    @property
    def limits(self) -> str:
        """Which limits are met."""
        return text.limits_line(self.best) if self.best else ""

    @property
    def record(self) -> str:
        """What was chosen, why, by whom, and when; empty if nothing was."""
        return text.record(self.decision, self.reading.texts) or ""

    @property
    def concerns(self) -> list[str]:
        """What cannot be read, and why nothing works."""
        problems = (*self.decision.offers.problems, *self.decision.runs.problems)
        return [*filter(None, [text.reasons(self.decision)]), *map(text.problem_text, problems)]

    @cached_property
    def tables(self) -> list[tables.Table]:
        """Offers, runs, matrix, assignments, schedule, and bill."""
        d, s = self.decision, self.schedule
        found = [*tables.entered_tables(d), tables.matrix_table(d)]
        found += [tables.assignments_table(self.best, d.answer.alternatives)] if self.best else []
        return found + ([tables.schedule_table(s), tables.bill_table(bill(s))] if s else [])


def decide_html(report: DecideReport) -> str:
    """Return the whole file, which needs nothing else."""
    s, watts = report.schedule, report.decision.matrix.limits.watts
    return rendered(
        "decide_report.html",
        report.name,
        report.date,
        report.link,
        sentence=text.answer(report.decision),
        detail=report.detail,
        limits=report.limits,
        record=report.record,
        concerns=report.concerns,
        picture=picture(gantt(s, watts, LIGHT), plain(gantt_alt(s))) if s else "",
        alt=plain(gantt_alt(s)) if s else "",
        tables=[
            {"title": one.title, "heads": one.heads, "rows": [[remarked(*cell) for cell in row] for row in one.rows]}
            for one in report.tables
            if one.rows
        ],
        method_title=message("decide.report.assumptions"),
        method=message("decide.page.method"),
        steps=derivation(explain(s, report.decision.matrix.kwh)) if s else (),
    )


def decide_markdown(report: DecideReport) -> str:
    """Return the report as Markdown, without the picture."""
    typed = {field.id: markdown_text(report.reading.texts[field.id]) for field in RECORD_FIELDS}
    record = text.record(report.decision, typed)
    said = (text.answer(report.decision), report.detail, report.limits, record)
    parts = [f"# {markdown_text(report.name)}", *map(unlinked, filter(None, said))]
    parts += [f"> {markdown_text(concern)}" for concern in report.concerns]
    for one in report.tables:
        lines = [one.heads, ["---"] * len(one.heads), *([_line(*cell) for cell in row] for row in one.rows)]
        if one.rows:
            parts += [f"## {one.title}", "\n".join(f"| {' | '.join(cells)} |" for cells in lines)]
    parts += [message("decide.page.method"), message("report.made", date=report.date.isoformat())]
    if there := address(report.link):
        parts.append(f"{message('report.link')}: <{there}>")
    return "\n\n".join(parts) + "\n"


def _line(cell: str, remark: str) -> str:
    """Return a cell and its remark on one line, which no sign of the table breaks."""
    said = f"{cell} ({remark})" if remark else cell
    return unlinked(said).replace("|", "\\|").replace("\n", " ")


CSV_COLUMNS = (
    *("run", "offer", "accelerator", "accelerators", "days_p10", "days", "days_p90", "usd_p10", "usd", "usd_p90"),
    *("watts", "mfu_needed", "chance", "meets_limits", "assigned", "starts", "ends"),
)
"""Names of columns in CSV, which never change."""


def decide_csv(report: DecideReport) -> str:
    """Return every run on every offer, and what is assigned, in base units with all digits."""
    scheduled = {run.cell.run.row: run for run in report.schedule.runs} if report.schedule else {}
    assigned = [run.cell for run in scheduled.values()]
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(CSV_COLUMNS)
    for cell in (*assigned, *(cell for cell in report.decision.matrix.cells.values() if cell not in assigned)):
        days, cost, run = cell.days, cell.cost, scheduled[cell.run.row] if cell in assigned else None
        amounts = (days.low, days.mid, days.high, cost.low, cost.mid, cost.high, cell.watts, cell.mfu_needed)
        names = (harmless(cell.run.name), harmless(cell.offer.name), harmless(cell.offer.accelerator))
        numbers = [repr(value) if math.isfinite(value) else "" for value in (*amounts, cell.probability)]
        met = "" if cell.met is None else str(cell.met).lower()
        times = (
            [report.decision.start + datetime.timedelta(days=at) for at in (run.begin.mid, run.end.mid)] if run else []
        )
        dates = [time.isoformat() for time in times] or ["", ""]
        write([*names, cell.accelerators, *numbers, met, str(bool(run)).lower(), *dates])
    return out.getvalue()
