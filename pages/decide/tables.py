"""Decide, what its tables change: offers as entered, and runs, of which one is the plan in the sidebar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.messages import message
from core.number_text import QuantityError
from core.planning.decide.decision import OFFERS, RUNS, DecisionResult
from core.planning.decide.matrix import Cell
from core.planning.decide.offers import OFFER_COLUMNS, CellProblem, Cells, write_table
from core.planning.decide.runs import RUN_COLUMNS, model_texts
from core.planning.form.layout import BATCH
from core.planning.form.plan_form import MODEL_NAME, PARAMETERS, SEQ_LEN, SHAPE, TRAINED
from core.planning.form.whole_run import DEADLINE, POWER_LIMIT
from core.planning.plan import OWN_SHAPE, TYPED
from core.views.decide import text
from pages.common import field_changes, plan_sidebar, show
from pages.common.inputs import Inputs
from pages.decide.grid import Rows, edit_table

_FIELDS = {"tokens": TRAINED, "seq": SEQ_LEN, "batch": BATCH}
_OF_PLAN = ("model", *_FIELDS)
"""Columns of a run that are fields of the plan."""


def draw_tables(inputs: Inputs, d: DecisionResult) -> None:
    """Draw both tables, each with what is wrong with its cells."""
    given = bool(inputs.reading.texts[OFFERS.id].strip())
    first = d.matrix.offers[0] if d.matrix.offers else None
    with show.question(message("decide.title.offers")):
        if given or first is None:
            show.note(message("decide.page.offers_hint"))
        else:
            count = float(first.count)
            show.note(message("decide.page.own_cluster", count=count, accelerator=first.accelerator))
        rows = d.offers.rows if given else ()

        def take_offers(rows: Rows) -> None:
            plan_sidebar.take_with_undo(inputs, {OFFERS.id: write_table(rows, OFFER_COLUMNS)})

        edit_table("offers", OFFER_COLUMNS, rows, d.offers.problems if given else (), take_offers)
        _problems(d.offers.problems)
    with show.question(message("decide.title.runs")):
        show.note(message("decide.page.runs_hint"))
        here, plan = sidebar_row(d.runs.rows), plan_cells(inputs.reading.texts)
        shown = [{**plan, **_filled(row)} if at == here else row for at, row in enumerate(d.runs.rows)]

        def take_runs(rows: Rows) -> None:
            texts = _taken(rows[here], plan)
            plan_sidebar.take_with_undo(inputs, {**texts, RUNS.id: write_table(rows, RUN_COLUMNS)})

        edit_table("runs", RUN_COLUMNS, shown, d.runs.problems, take_runs)
        _problems(d.runs.problems)


def _problems(problems: Sequence[CellProblem]) -> None:
    for problem in problems:
        show.error(text.problem_text(problem))


def plan_cells(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a run that trains what the plan of ``texts`` does."""
    own = {TYPED: PARAMETERS.id, OWN_SHAPE: SHAPE.id}.get(texts[MODEL_NAME.id], MODEL_NAME.id)
    return {"model": texts[own], **{column: texts[field.id] for column, field in _FIELDS.items()}}


def _filled(row: Cells) -> dict[str, str]:
    return {column: cell for column, cell in row.items() if cell}


def sidebar_row(rows: Sequence[Cells]) -> int:
    """Return the index of the run that is the plan in the sidebar: the first that takes all from there."""
    own = (
        at
        for at, row in enumerate(rows)
        if not any(row.get(column) for column in _OF_PLAN) and (not at or any(row.values()))
    )
    return next(own, 0)


def _taken(row: dict[str, str], plan: Cells) -> dict[str, str]:
    """Empty the cells of the sidebar's run that say what the plan says; return what the others change in the plan.

    A cell that cannot be read stays in its row, where it is marked.
    """
    texts: dict[str, str] = {}
    for column in _OF_PLAN:
        cell = row.get(column, "").strip()
        if cell == plan.get(column, ""):
            row[column] = ""
            continue
        try:
            if column == "model":
                texts |= model_texts(cell) if cell else {}
            elif cell:
                _FIELDS[column].parse(cell)
                texts[_FIELDS[column].id] = cell
        except QuantityError:
            continue
        row[column] = ""
    return texts


def take_cell(inputs: Inputs, d: DecisionResult, cell: Cell) -> None:
    """In a callback: show the plan of a cell in the sidebar. Every other run keeps what it trains, spelled out."""
    texts = sidebar_texts(cell)
    rows = [dict(row) for row in d.runs.rows]
    for run in d.runs.runs:
        if run.row != cell.run.row:
            rows[run.row] |= plan_cells({**inputs.reading.texts, **run.texts})
    if cell.run.row != sidebar_row(d.runs.rows):
        rows[cell.run.row] |= dict.fromkeys(_OF_PLAN, "") | {"name": cell.run.name}
        texts |= {RUNS.id: write_table(rows, RUN_COLUMNS)}
    field_changes.replaced(inputs, texts)
    plan_sidebar.take_with_undo(inputs, texts)


def sidebar_texts(cell: Cell) -> dict[str, str]:
    """Return the texts of a cell that the sidebar takes: not the limits, which are those of all runs."""
    return {name: typed for name, typed in cell.texts.items() if name not in (DEADLINE.id, POWER_LIMIT.id)}


def cell_here(d: DecisionResult, texts: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the cell whose plan is in the sidebar; None if none is."""
    row = sidebar_row(d.runs.rows)
    for (i, j), cell in d.matrix.cells.items():
        if cell.run.row == row and all(texts[name] == typed for name, typed in sidebar_texts(cell).items()):
            return i, j
    return None
