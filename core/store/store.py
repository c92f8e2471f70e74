"""Saved plans in a database. No change of another user is lost."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, delete, func, insert, select, update

from core.data_version import data_version
from core.limits import limit
from core.messages import message
from core.planning.comparison.entry import Entry, EntryKind
from core.store.engine import make_engine, name_of, place_of, transaction
from core.store.errors import Conflict, StoreError
from core.store.migrate import migrate
from core.store.plans import Change, Edit, PlanPage, SavedPlan
from core.store.rows import (
    cleaned,
    columns,
    edits_between,
    folded,
    read_change,
    read_comment,
    read_plan,
    searched,
    tags_of,
)
from core.store.tables import CHANGES, COMMENTS, PLANS

_Result = TypeVar("_Result")


class Store:
    """The saved plans of one database. Every method raises `StoreError` on failure.

    clock: microseconds since 1970, UTC.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._engine = engine
        self._clock = clock
        self.where, self.name = place_of(engine), name_of(engine)

    @classmethod
    def open(cls, address: str | Path) -> Store:
        """Open the store in a file or at an SQLAlchemy address, created or migrated as needed."""
        result = cls(make_engine(address))
        try:
            migrate(result._engine)
        except StoreError:
            result.close()
            raise
        return result

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    # ------------------------------------------------------------------------------------------ reading

    def get(self, id: str) -> SavedPlan:
        """Return one plan, archived or not."""
        return read_plan(self._read(lambda connection: _row(connection, id)))

    def find(
        self,
        text: str = "",
        tags: Sequence[str] = (),
        *,
        archived: bool = False,
        page: int = 1,
        per_page: int = 20,
        kind: EntryKind = "plan",
    ) -> PlanPage:
        """Return plans or decisions with every word of ``text`` and every tag, newest change first. page: from 1."""
        c, tagged = PLANS.c, tags_of(tags)
        where = [c.archived == int(archived), c.kind.in_((kind, "calendar") if kind == "decision" else (kind,))]
        where += [c.searched.contains(word, autoescape=True) for word in folded(text)[: limit("search_chars")].split()]
        where += [c.tags.icontains(f"\n{tag}\n", autoescape=True) for tag in tagged]
        size = max(1, min(per_page, limit("plans_listed")))
        wanted = select(PLANS).where(*where).order_by(c.changed.desc(), c.id.desc()).limit(size)

        def page_of(connection: Connection) -> tuple[list[dict[str, Any]], int]:
            total = connection.execute(select(func.count()).select_from(PLANS).where(*where)).scalar_one()
            start = min(max(1, page) - 1, max(0, total - 1) // size) * size
            return _rows(connection, wanted.offset(start)), total

        rows, total = self._read(page_of)
        return PlanPage(tuple(map(read_plan, rows)), total)

    def like(self, entry: Entry) -> SavedPlan | None:
        """Return the newest listed plan with this name and these texts; None for none."""
        name, page = (
            cleaned(entry.name, limit("plan_name")),
            self.find(entry.name, per_page=limit("plans_listed"), kind=entry.kind),
        )
        return next((plan for plan in page.plans if plan.entry.name == name and plan.entry.texts == entry.texts), None)

    def tags(self, *, archived: bool = False) -> tuple[str, ...]:
        """Return every tag in use."""
        wanted = select(PLANS.c.tags).where(PLANS.c.archived == int(archived)).distinct()
        lines = self._read(lambda connection: connection.execute(wanted).scalars().all())
        parts = {tag for line in lines for tag in tags_of(line.replace("\n", ","))}
        # One of those that differ in case only, which a search does not tell apart.
        alike = {tag.lower(): tag for tag in sorted(parts, reverse=True)}
        return tuple(alike[key] for key in sorted(alike))

    def history(self, id: str) -> tuple[Change, ...]:
        """Return the changes of a plan, newest first."""
        wanted = select(CHANGES).where(CHANGES.c.plan == id).order_by(CHANGES.c.revision.desc())
        wanted = wanted.limit(limit("changes_listed"))
        return tuple(map(read_change, self._read(lambda connection: _rows(connection, wanted))))

    def comments(self, id: str) -> tuple[dict[str, str], ...]:
        """Return the comments on a plan that older versions stored, oldest first."""
        wanted = select(COMMENTS).where(COMMENTS.c.plan == id).order_by(COMMENTS.c.made, COMMENTS.c.id)
        return tuple(map(read_comment, self._read(lambda connection: _rows(connection, wanted))))

    # ------------------------------------------------------------------------------------------ writing

    def save(self, entry: Entry, note: str = "", tags: Iterable[str] = (), owner: str = "") -> SavedPlan:
        """Save a new plan."""
        row = {
            **_columns(entry),
            "note": cleaned(note, limit("plan_note"), lines=True),
            "tags": _joined(tags_of(tags)),
        }
        return self._insert(row, owner)

    def duplicate(self, id: str, owner: str = "") -> SavedPlan:
        """Save a copy of a plan, without its history."""
        row = self._read(lambda connection: _row(connection, id))
        name = cleaned(str(row["name"]), limit("plan_name") - len(_COPY)) + _COPY
        return self._insert({**row, "name": name}, owner)

    def change(
        self,
        id: str,
        revision: int,
        *,
        entry: Entry | None = None,
        name: str | None = None,
        note: str | None = None,
        tags: Iterable[str] | None = None,
        who: str = "",
    ) -> SavedPlan:
        """Change the given parts of a plan, and return it. Nothing happens without a change.

        Raises `Conflict` if the plan is no longer at ``revision``. entry: its fields and results, and its name unless
        ``name`` is given.
        """
        given: dict[str, Any] = _columns(entry) if entry is not None else {}
        if name is not None:
            given["name"] = cleaned(name, limit("plan_name"))
            if not given["name"]:
                raise StoreError(message("store.error.name"))
        if note is not None:
            given["note"] = cleaned(note, limit("plan_note"), lines=True)
        if tags is not None:
            given["tags"] = _joined(tags_of(tags))
        return self._change(id, given, who, revision)

    def archive(self, id: str, who: str = "") -> SavedPlan:
        """Archive a plan."""
        return self._change(id, {"archived": 1}, who)

    def restore(self, id: str, who: str = "") -> SavedPlan:
        """Restore an archived plan."""
        return self._change(id, {"archived": 0}, who)

    def forget(self, id: str) -> None:
        """Delete an archived plan and its history."""
        gone = delete(PLANS).where(PLANS.c.id == id, PLANS.c.archived == 1)  # the database deletes its history with it
        with transaction(self._engine, writes=True) as connection:
            if not connection.execute(gone).rowcount:
                _row(connection, id)
                raise StoreError(message("store.error.not_archived"))

    # ------------------------------------------------------------------------------------------ within

    def _read(self, act: Callable[[Connection], _Result]) -> _Result:
        with transaction(self._engine) as connection:
            return act(connection)

    def _insert(self, row: dict[str, Any], owner: str) -> SavedPlan:
        now = self._clock()
        fresh = {"id": secrets.token_hex(8), "made": now, "changed": now, "revision": 1, "archived": 0}
        full = {**row, **fresh, "owner": cleaned(owner, limit("plan_owner"))}
        plan = read_plan(full)
        full["searched"] = searched(plan)
        with transaction(self._engine, writes=True) as connection:
            if connection.execute(select(func.count()).select_from(PLANS)).scalar_one() >= limit("saved_plans"):
                raise StoreError(message("store.error.many", most=float(limit("saved_plans"))))
            connection.execute(insert(PLANS), full)
            _add_change(connection, full, plan.owner, ())
        return plan

    def _change(self, id: str, given: dict[str, Any], who: str, revision: int | None = None) -> SavedPlan:
        with transaction(self._engine, writes=True) as connection:
            row = _row(connection, id, lock=True)
            old = read_plan(row)
            if revision not in (None, old.revision):
                raise Conflict(old)
            if "texts" in given and old.problems:
                raise StoreError(message("store.error.damaged", problems=" ".join(old.problems)))
            new = read_plan({**row, **given})
            edits = edits_between(old, new)
            if not edits and new.data_version == old.data_version:
                return old
            # A clock may be set back; the order of a plan's changes is that of its revisions all the same.
            now = max(self._clock(), _microseconds(old) + 1)
            changed = {**given, "changed": now, "revision": old.revision + 1}
            new = read_plan({**row, **changed})
            connection.execute(update(PLANS).where(PLANS.c.id == id).values(**changed, searched=searched(new)))
            _add_change(connection, {**row, **changed}, who, edits)
        return new


def _rows(connection: Connection, wanted: Select[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(wanted).mappings()]


def _row(connection: Connection, id: str, *, lock: bool = False) -> dict[str, Any]:
    """Return a plan's row. lock: nobody else changes it before the transaction ends."""
    wanted = select(PLANS).where(PLANS.c.id == id)
    row = connection.execute(wanted.with_for_update() if lock else wanted).mappings().first()
    if row is None:
        raise StoreError(message("store.error.missing"))
    return dict(row)


def _add_change(connection: Connection, row: dict[str, Any], who: str, edits: tuple[Edit, ...]) -> None:
    """Write a change of ``row`` into the history."""
    text = json.dumps([(edit.field, edit.old, edit.new) for edit in edits])
    told = {"who": cleaned(who, limit("plan_owner")), "edits": text}
    line = {"plan": row["id"], "revision": row["revision"], "changed": row["changed"], **told}
    connection.execute(insert(CHANGES), line)


_COPY = " (copy)"


def _columns(entry: Entry) -> dict[str, Any]:
    try:
        return columns(entry, data_version())
    except ValueError as problem:
        raise StoreError(*problem.args) from None


def _joined(tags: tuple[str, ...]) -> str:
    return "\n".join(("", *tags, "")) if tags else ""


def _microseconds(plan: SavedPlan) -> int:
    return int(plan.changed.timestamp()) * 1_000_000 + plan.changed.microsecond
