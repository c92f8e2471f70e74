"""Tables of a decision, the same on its page and in its report: a cell is a text and a remark under it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.budget.equations import Interval
from core.dates import format_day
from core.messages import Message, message
from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import DecisionResult
from core.planning.decide.matrix import Cell
from core.planning.decide.offers import OFFER_COLUMNS, Cells
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.decide.schedule import Bill, Schedule
from core.views.decide import text
from core.wording import FORMATS, Amount, format_value, unmarked


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title. words: columns from the left that hold no figures."""

    title: Message
    heads: Sequence[str]
    rows: Sequence[Sequence[tuple[str, str]]]
    words: int = 1


def _heads(*names: str) -> list[Message]:
    return [message(f"decide.head.{name}") for name in names]


def _ranged(amount: Interval, kind: str) -> tuple[str, str]:
    """Return the median of an amount, and its range."""
    if not amount.known:
        return message("decide.unknown"), ""
    ends = format_value(*Amount((amount.low, amount.high), kind))
    return FORMATS[kind](amount.mid), "" if ends == FORMATS[kind](amount.mid) else ends


def _day(schedule: Schedule, at: Interval) -> tuple[str, str]:
    """Return the day of a moment in the median, and those of its range."""
    low, mid, high = (format_day(schedule.day(end)) for end in (at.low, at.mid, at.high))
    return mid, "" if low == high else message("decide.days", first=low, last=high)


def entered(title: Message, columns: Sequence[str], rows: Iterable[Cells]) -> Table:
    """Return the rows of a table as they were entered, without columns that are empty."""
    filled = [row for row in rows if any(row.values())]
    used = [column for column in columns if any(row.get(column) for row in filled)]
    cells = [[(unmarked(row.get(column, "")), "") for column in used] for row in filled]
    return Table(title, [text.column_label(column) for column in used], cells, words=len(used))


def entered_tables(d: DecisionResult) -> list[Table]:
    """Return the offers and the runs as they were entered."""
    return [
        entered(message("decide.title.offers"), OFFER_COLUMNS, d.offers.rows),
        entered(message("decide.title.runs"), RUN_COLUMNS, d.runs.rows),
    ]


def matrix_table(d: DecisionResult) -> Table:
    """Return every run on every offer."""
    m = d.matrix
    rows: list[list[tuple[str, str]]] = []
    for i, run in enumerate(m.runs):
        cells = [m.at(i, j) for j in range(len(m.offers))]
        rows.append([(unmarked(run.name), about(cells)), *map(_matrix_cell, cells)])
    heads = [message("decide.head.run"), *(unmarked(offer.name) for offer in m.offers)]
    return Table(message("decide.title.matrix"), heads, rows)


def about(cells: Sequence[Cell]) -> str:
    """Return what the run of these cells trains; empty if none has a result."""
    answered = next((cell.answer for cell in cells if cell.answer), None)
    return text.run_about(answered) if answered else ""


def _matrix_cell(cell: Cell) -> tuple[str, str]:
    days, more = text.cell_texts(cell)
    return message("decide.cell.both", verdict=text.cell_verdict(cell), days=days), " · ".join(more) or cell.problem


def matrix_board(d: DecisionResult, here: tuple[int, int] | None) -> dict[str, Any]:
    """Return what the component ``matrix`` draws: headings, and cells with their texts and classes.

    Args:
        here: The cell whose plan is in the sidebar.
    """
    m, best = d.matrix, d.answer.best
    placed = {(one.cell.run.row, one.cell.offer.row) for one in best.placements} if best else set[tuple[int, int]]()
    rows: list[dict[str, Any]] = []
    for i, run in enumerate(m.runs):
        cells = [m.at(i, j) for j in range(len(m.offers))]
        drawn = [_drawn(cell, f"{i}.{j}", (run.row, cell.offer.row) in placed) for j, cell in enumerate(cells)]
        rows.append({"name": run.name, "about": about(cells), "cells": drawn})
    return {
        "heads": [{"name": offer.name, "about": text.offer_about(offer)} for offer in m.offers],
        "rows": rows,
        "here": f"{here[0]}.{here[1]}" if here else "",
        "alt": message("decide.matrix.alt", runs=float(len(m.runs)), offers=float(len(m.offers))),
        "placed": message("decide.cell.placed"),
        "corner": message("decide.head.run"),
    }


_STATES = {True: "met", False: "missed", None: "unknown"}


def _drawn(cell: Cell, id: str, placed: bool) -> dict[str, Any]:
    days, more = text.cell_texts(cell)
    label = message("decide.cell.label", run=cell.run.name, offer=cell.offer.name, result=_matrix_cell(cell)[0])
    return {
        "id": id,
        "verdict": text.cell_verdict(cell),
        "days": days,
        "more": more or [cell.problem],
        "state": _STATES[cell.met],
        "placed": placed,
        "label": label,
    }


def assignments_table(best: Assignment, others: Sequence[Assignment]) -> Table:
    """Return the best assignment and its alternatives."""
    rows = [
        [
            (message("decide.assignment", parts=text.parts(one)), ""),
            _day(one.schedule, one.ends),
            _ranged(one.cost, "dollars"),
            (format_value(watts, "W") if math.isfinite(watts := one.schedule.peak_watts) else "", ""),
            (_limits(one), ""),
            (message("decide.best") if one is best else text.difference(best, one), ""),
        ]
        for one in (best, *others)
    ]
    heads = _heads("assignment", "ends", "cost", "power", "limits", "difference")
    return Table(message("decide.title.assignments"), heads, rows)


def _limits(one: Assignment) -> Message:
    if not one.limits:
        return message("decide.none")
    return text.verdict(one.met, one.probability)


def schedule_table(schedule: Schedule) -> Table:
    """Return when each run starts and ends, and on what."""
    rows = [
        [
            (unmarked(run.cell.run.name), ""),
            (text.accelerators_of(run.cell), ""),
            _day(schedule, run.begin),
            _day(schedule, run.end),
            (format_day(schedule.day(run.deadline - 1)) if math.isfinite(run.deadline) else "", ""),
            (FORMATS["days"](run.maintenance) if run.maintenance else "", ""),
        ]
        for run in schedule.runs
    ]
    heads = _heads("run", "on", "starts", "ends", "deadline", "maintenance")
    used = [i for i in range(len(heads)) if any(row[i][0] for row in rows)]
    kept = [[row[i] for i in used] for row in rows]
    return Table(message("decide.title.schedule"), [heads[i] for i in used], kept, words=2)


def bill_table(paid: Bill) -> Table:
    """Return the lines of a bill, and its total."""
    rows = [
        [
            (message(f"decide.bill.{line.id}"), "" if line.counted else message("decide.bill.not_counted")),
            (unmarked(line.offer.name), text.offer_about(line.offer)),
            _ranged(line.amount, "dollars"),
        ]
        for line in paid.lines
    ]
    total, remark = _ranged(paid.total, "dollars")
    rows.append([(message("decide.bill.total"), ""), ("", ""), (message("decide.strong", text=total), remark)])
    return Table(message("decide.title.bill"), _heads("line", "offer", "cost"), rows, words=2)
