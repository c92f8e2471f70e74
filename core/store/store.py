"""Plans kept in a database: saved, changed, found again, and never lost to somebody else's change."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from core.knowledge import knowledge
from core.limits import limit
from core.planning.compare.entry import Entry
from core.store.engine import make_engine, shown, transaction
from core.store.errors import Conflict, StoreError
from core.store.measurements import Measurements
from core.store.migrate import migrate
from core.store.plans import Change, Edit, Found, SavedPlan
from core.store.rows import (
    cleaned,
    columns,
    edits_between,
    folded,
    read_change,
    read_plan,
    searched,
    tags_of,
)
from core.store.tables import CHANGES, PLANS


class Store:
    """The saved plans of one database. Every method raises `StoreError` where it cannot do what it says.

    clock: microseconds since 1970, UTC. measurements: those kept in the same database.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._engine = engine
        self._clock = clock
        self.where = shown(engine)
        self.measurements = Measurements(engine, clock)

    @classmethod
    def open(cls, address: str) -> Store:
        """The store at an SQLAlchemy address, made where there is none and brought to the version of this code."""
        made = cls(make_engine(address))
        try:
            migrate(made._engine)
        except StoreError:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Give back every connection."""
        self._engine.dispose()

    # ------------------------------------------------------------------------------------------ reading

    def get(self, id: str) -> SavedPlan:
        """One plan, archived or not."""
        with transaction(self._engine) as connection:
            return self._plan(connection, id)

    def find(
        self, text: str = "", tags: Sequence[str] = (), *, archived: bool = False, page: int = 1, per_page: int = 20
    ) -> Found:
        """Plans that have every word of ``text`` and every tag, newest change first. page: from 1."""
        c, tagged = PLANS.c, tags_of(tags)
        asked = [c.archived == int(archived)]
        asked += [c.searched.contains(word, autoescape=True) for word in folded(text)[: limit("search_chars")].split()]
        asked += [c.tags.icontains(f"\n{tag}\n", autoescape=True) for tag in tagged]
        size = max(1, min(per_page, limit("plans_listed")))
        wanted = select(PLANS).where(*asked).order_by(c.changed.desc(), c.id.desc())
        with transaction(self._engine) as connection:
            total = connection.execute(select(func.count()).select_from(PLANS).where(*asked)).scalar_one()
            start = min(max(1, page) - 1, max(0, total - 1) // size) * size
            rows = connection.execute(wanted.limit(size).offset(start)).mappings()
            return Found(tuple(read_plan(dict(row)) for row in rows), total)

    def like(self, entry: Entry) -> SavedPlan | None:
        """The plan on the list that was changed last of those with this name and these texts; None where none has."""
        name, found = cleaned(entry.name, limit("plan_name")), self.find(entry.name, per_page=limit("plans_listed"))
        return next((one for one in found.plans if one.entry.name == name and one.entry.texts == entry.texts), None)

    def tags(self, *, archived: bool = False) -> tuple[str, ...]:
        """Every tag in use."""
        asked = select(PLANS.c.tags).where(PLANS.c.archived == int(archived)).distinct()
        with transaction(self._engine) as connection:
            found = {tag for line in connection.execute(asked).scalars() for tag in tags_of(line.replace("\n", ","))}
        # One of those that differ in case only, which a search does not tell apart.
        alike = {tag.lower(): tag for tag in sorted(found, reverse=True)}
        return tuple(alike[key] for key in sorted(alike))

    def history(self, id: str) -> tuple[Change, ...]:
        """The changes of a plan, the last one first."""
        asked = select(CHANGES).where(CHANGES.c.plan == id).order_by(CHANGES.c.revision.desc())
        with transaction(self._engine) as connection:
            rows = connection.execute(asked.limit(limit("changes_listed"))).mappings()
            return tuple(read_change(dict(row)) for row in rows)

    # ------------------------------------------------------------------------------------------ writing

    def save(self, entry: Entry, note: str = "", tags: Iterable[str] = (), owner: str = "") -> SavedPlan:
        """A new plan."""
        row = {
            **_columns(entry),
            "note": cleaned(note, limit("plan_note"), lines=True),
            "tags": _joined(tags_of(tags)),
        }
        return self._insert(row, owner)

    def duplicate(self, id: str, owner: str = "") -> SavedPlan:
        """A new plan that is like another, whatever the other's state; its history begins anew."""
        with transaction(self._engine) as connection:
            row = self._row(connection, id)
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
        """The plan with what is given, and the rest as it was; a change of nothing is no change.

        Raises `Conflict` where the plan is no longer at ``revision``. entry: its fields and results, and its name
        unless ``name`` is given.
        """
        given: dict[str, Any] = _columns(entry) if entry is not None else {}
        if name is not None:
            given["name"] = cleaned(name, limit("plan_name"))
            if not given["name"]:
                raise StoreError("A plan needs a name to be found by.")
        if note is not None:
            given["note"] = cleaned(note, limit("plan_note"), lines=True)
        if tags is not None:
            given["tags"] = _joined(tags_of(tags))
        return self._change(id, given, who, revision)

    def archive(self, id: str, who: str = "") -> SavedPlan:
        """Take a plan off the list; `restore` brings it back."""
        return self._change(id, {"archived": 1}, who)

    def restore(self, id: str, who: str = "") -> SavedPlan:
        """Put an archived plan back on the list."""
        return self._change(id, {"archived": 0}, who)

    def forget(self, id: str) -> None:
        """Delete an archived plan and its history for good."""
        with transaction(self._engine, writes=True) as connection:
            plan = self._plan(connection, id, locked=True)
            if not plan.archived:
                raise StoreError("Only an archived plan can be deleted.")
            connection.execute(delete(CHANGES).where(CHANGES.c.plan == id))
            connection.execute(delete(PLANS).where(PLANS.c.id == id))

    # ------------------------------------------------------------------------------------------ within

    def _row(self, connection: Connection, id: str, *, locked: bool = False) -> dict[str, Any]:
        asked = select(PLANS).where(PLANS.c.id == id)
        row = connection.execute(asked.with_for_update() if locked else asked).mappings().first()
        if row is None:
            raise StoreError("This plan is no longer here: it was deleted, or it is of another database.")
        return dict(row)

    def _plan(self, connection: Connection, id: str, *, locked: bool = False) -> SavedPlan:
        return read_plan(self._row(connection, id, locked=locked))

    def _insert(self, row: dict[str, Any], owner: str) -> SavedPlan:
        now = self._clock()
        fresh = {"id": secrets.token_hex(8), "made": now, "changed": now, "revision": 1, "archived": 0}
        full = {**row, **fresh, "owner": cleaned(owner, limit("plan_owner"))}
        plan = read_plan(full)
        full["searched"] = searched(plan)
        with transaction(self._engine, writes=True) as connection:
            if connection.execute(select(func.count()).select_from(PLANS)).scalar_one() >= limit("saved_plans"):
                raise StoreError(
                    f"{limit('saved_plans'):,} plans are saved, as many as there may be. Archive some that nobody "
                    "needs, delete them from the archive, and save again."
                )
            connection.execute(insert(PLANS).values(full))
            self._tell(connection, plan, now, plan.owner, ())
        return plan

    def _change(self, id: str, given: dict[str, Any], who: str, revision: int | None = None) -> SavedPlan:
        with transaction(self._engine, writes=True) as connection:
            row = self._row(connection, id, locked=True)
            old = read_plan(row)
            if revision not in (None, old.revision):
                raise Conflict(old)
            if "texts" in given and old.problems:
                raise StoreError(f"This plan cannot be changed here. {' '.join(old.problems)} Save yours as a new one.")
            new = read_plan({**row, **given})
            edits = edits_between(old, new)
            if not edits and new.knowledge == old.knowledge:
                return old
            # A clock may be set back; the order of a plan's changes is that of its revisions all the same.
            now = max(self._clock(), _microseconds(old) + 1)
            told = {**given, "changed": now, "revision": old.revision + 1}
            new = read_plan({**row, **told})
            connection.execute(update(PLANS).where(PLANS.c.id == id).values({**told, "searched": searched(new)}))
            self._tell(connection, new, now, who, edits)
        return new

    def _tell(self, connection: Connection, plan: SavedPlan, now: int, who: str, edits: tuple[Edit, ...]) -> None:
        told = json.dumps([(edit.field, edit.old, edit.new) for edit in edits])
        by = cleaned(who, limit("plan_owner"))
        connection.execute(
            insert(CHANGES).values(plan=plan.id, revision=plan.revision, changed=now, who=by, edits=told)
        )


_COPY = " (copy)"


def _columns(entry: Entry) -> dict[str, Any]:
    try:
        return columns(entry, knowledge())
    except ValueError as problem:
        raise StoreError(str(problem)) from None


def _joined(tags: tuple[str, ...]) -> str:
    return "\n".join(("", *tags, "")) if tags else ""


def _microseconds(plan: SavedPlan) -> int:
    return int(plan.changed.timestamp()) * 1_000_000 + plan.changed.microsecond
