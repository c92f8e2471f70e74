"""Calendar and cost, to take away: a report as one file, and Markdown, made when somebody asks for one."""

from __future__ import annotations

from datetime import date

from core.messages import message
from core.planning.comparison.comparison import suggested
from core.planning.cost.choose_pools import compare_pools
from core.views.report.calendar import CalendarReport, calendar_html, calendar_markdown
from pages.calendar.form import WHICH
from pages.calendar.inputs import CalendarAnswer
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.takeaway import FileKind, downloads, page_link, typed_name

_FILES: tuple[FileKind[CalendarReport], ...] = (
    (message("export.html"), "html", "text/html", calendar_html),
    (message("export.markdown"), "md", "text/markdown", calendar_markdown),
)


def download_panel(inputs: Inputs, a: CalendarAnswer) -> None:
    """The fold."""
    with show.fold(message("export.title"), key=inputs.key("fold_take"), icon=":material/download:") as fold:
        if not fold.open:
            return
        name = typed_name(inputs, message("export.name_calendar"), f"{suggested(inputs.reading.texts)}, calendar")
        link = page_link(inputs)
        found = compare_pools(inputs.reading, a.question) if inputs.reading.values[WHICH.id] else None
        report = CalendarReport(name, inputs.reading, a.schedule, a.ways, link, date.today(), found)
        downloads(inputs, name, _FILES, lambda: report)
        show.note("The report opens without a network and prints: answer, runs, pools, bill, and the link back.")
