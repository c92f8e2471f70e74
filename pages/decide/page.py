"""Decide: which run goes on which offer, every run on every offer, and the schedule and the bill of the choice."""

from __future__ import annotations

from datetime import date

from core.messages import message
from core.planning.decide.decision import GOAL, START, DecisionResult, decide
from core.planning.decide.schedule import Schedule, explain
from core.planning.form.links import link_texts
from core.views.decide import text
from core.views.report.decide import DecideReport, decide_csv, decide_html, decide_markdown
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.registry import COMPARE, COMPUTE
from pages.common.takeaway import FileKind, downloads, page_link, typed_name
from pages.decide.choice import draw_choice
from pages.decide.matrix import draw_matrix
from pages.decide.schedule import actual_schedule, draw_schedule
from pages.decide.tables import draw_tables

_FILES: tuple[FileKind[DecideReport], ...] = (
    (message("export.html"), "html", "text/html", decide_html),
    (message("export.csv"), "csv", "text/csv", decide_csv),
    (message("export.markdown"), "md", "text/markdown", decide_markdown),
)


def _question(inputs: Inputs) -> None:
    with plan_sidebar.question():
        plan_sidebar.ask(inputs, message("decide.page.start"), START, width=115)
        plan_sidebar.ask(inputs, message("decide.page.goal_word"), GOAL)


def _answer(d: DecisionResult) -> None:
    best = d.answer.best
    show.answer(text.answer(d), text.detail(best) if best else "")
    for note in filter(None, (text.left_out(d), best and text.limits_line(best))):
        show.note(note)
    if reasons := text.reasons(d):
        show.error(reasons)


def _files(inputs: Inputs, d: DecisionResult, planned: Schedule | None) -> None:
    with show.fold(message("export.title"), key=inputs.key("fold_take"), icon=":material/download:") as fold:
        if not fold.open:
            return
        show.note(message("decide.page.export_about"))
        name = typed_name(inputs, message("decide.page.name"), suggested_name(d))
        report = DecideReport(name, inputs.reading, d, planned, page_link(inputs), date.today())
        downloads(inputs, name, _FILES, lambda: report)


def suggested_name(d: DecisionResult) -> str:
    """Return the name of a decision that has none."""
    names = [run.name for run in d.runs.runs]
    return message("decide.page.suggested", runs=names, offers=float(len(d.offers.offers)))


def page(inputs: Inputs) -> None:
    """Draw the answer, the matrix, the tables, the assignment, and its schedule."""
    d = decide(inputs.reading)
    _question(inputs)
    show.input_errors(inputs)
    plan_sidebar.draw_actions(inputs.reading.texts, "decision")
    with show.guarded(message("common.answer")):
        _answer(d)
    with show.guarded(message("decide.title.matrix")):
        draw_matrix(inputs, d)
    draw_tables(inputs, d)
    draw_choice(inputs, d)
    one = d.chosen or d.answer.best
    planned = actual_schedule(d, one) if one else None
    if planned:
        draw_schedule(inputs, d, planned)
        show.how(lambda: explain(planned, d.matrix.kwh), key="decide:how", notes=[message("decide.page.method")])
    _files(inputs, d, planned)
    show.next_page(COMPUTE.title, COMPUTE, link_texts(inputs.reading.texts))
    show.next_page(COMPARE.title, COMPARE, link_texts(inputs.reading.texts))
    show.footer(inputs)


plan_sidebar.draw_page(page)
