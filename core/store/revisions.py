"""What is written of a plan: its row and the line of its history, both or neither.

PostgreSQL takes them as one statement, which is a transaction by itself: one way to the database and back, where a
transaction of several statements has one for each. SQLite, whose statements wait for nothing, takes two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BindParameter, Column, Connection, Integer, bindparam, func, insert, select, update
from sqlalchemy.sql.dml import Insert, Update

from core.limits import cached, limit
from core.store.tables import CHANGES, PLANS

_OWN = ("who", "edits")
"""Columns of a history that a plan has not."""


def added(connection: Connection, row: Mapping[str, Any], history: Mapping[str, str]) -> bool:
    """Write a new plan; False where as many are saved as may be. history: `_OWN` of its history."""
    return _put(connection, (), {**_bound(row), "most": limit("saved_plans")}, history)


def altered(
    connection: Connection, id: str, seen: int, new: Mapping[str, Any], history: Mapping[str, str]
) -> bool:  # fmt: skip
    """Write ``new`` columns of a plan, "revision" and "changed" among them; False where it is no longer at ``seen``."""
    return _put(connection, tuple(sorted(new)), {**_bound(new), "to_id": id, "seen": seen}, history)


def _put(connection: Connection, names: tuple[str, ...], bound: dict[str, Any], history: Mapping[str, str]) -> bool:
    if connection.dialect.name == "postgresql":
        return connection.execute(_both(names), {**bound, **_bound(history)}).rowcount == 1
    if connection.execute(_plan(names), bound).rowcount != 1:
        return False
    line = {"plan": bound["to_id"], "revision": bound["to_revision"], "changed": bound["to_changed"]}
    connection.execute(insert(CHANGES), {**line, **history})
    return True


def _bound(row: Mapping[str, Any]) -> dict[str, Any]:
    return {f"to_{name}": cell for name, cell in row.items()}


def _to(column: Column[Any]) -> BindParameter[Any]:
    return bindparam(f"to_{column.name}", type_=column.type)


@cached("results_kept")
def _plan(names: tuple[str, ...]) -> Insert | Update:
    """The statement for a plan's row: a new one where ``names`` is empty, else those columns of one."""
    if names:
        same = (PLANS.c.id == bindparam("to_id"), PLANS.c.revision == bindparam("seen"))
        return update(PLANS).where(*same).values({name: _to(PLANS.c[name]) for name in names})
    there = select(func.count()).select_from(PLANS).scalar_subquery()
    row = select(*map(_to, PLANS.c)).where(there < bindparam("most", type_=Integer))
    return insert(PLANS).from_select(list(PLANS.c.keys()), row).execution_options(preserve_rowcount=True)


@cached("results_kept")
def _both(names: tuple[str, ...]) -> Insert:
    """The same with the line of its history, in one statement of PostgreSQL."""
    plan = _plan(names).returning(PLANS.c.id, PLANS.c.revision, PLANS.c.changed).cte("plan")
    line = select(plan.c.id, plan.c.revision, plan.c.changed, *(_to(CHANGES.c[name]) for name in _OWN))
    columns = ["plan", "revision", "changed", *_OWN]
    return insert(CHANGES).from_select(columns, line).execution_options(preserve_rowcount=True)
