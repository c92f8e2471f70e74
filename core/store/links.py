"""Measured collectives kept in the database of saved plans: what a cluster's file said, until somebody removes it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy import Connection, Engine, delete, func, insert, select

from core.benchmark.collectives.result import read_result
from core.limits import limit
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.rows import Moment, RowText, moment, read_cells
from core.store.tables import COLLECTIVES
from core.wording import cleaned

if TYPE_CHECKING:
    from core.benchmark.collectives.result_fields import ResultFields


@dataclass(frozen=True, slots=True)
class StoredLinks:
    """One of the list. name: the result in a line. kept: when it came into this database, in UTC."""

    id: str
    name: str
    kept: datetime


class _Row(BaseModel):
    id: RowText = ""
    name: RowText = ""
    kept: Moment = 0


class Links:
    """The measured collectives of one database. Every method raises `StoreError` where it cannot do what it says.

    clock: microseconds since 1970, UTC.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    def all(self) -> tuple[StoredLinks, ...]:
        """All of them, the newest first."""
        c = COLLECTIVES.c
        request = select(c.id, c.name, c.kept).order_by(c.kept.desc(), c.id).limit(limit("collectives_kept"))
        with self._transaction() as connection:
            return tuple(_listed(dict(row)) for row in connection.execute(request).mappings())

    def get(self, id: str) -> ResultFields:
        """What one of them found."""
        request = select(COLLECTIVES.c.result).where(COLLECTIVES.c.id == id)
        with self._transaction() as connection:
            size = connection.execute(request).scalar()
        if size is None:
            raise StoreError("These collectives are no longer here: they were removed, or are of another database.")
        try:
            return read_result(str(size).encode("utf-8", "replace"))
        except ValueError:
            raise StoreError(
                "These collectives cannot be read: their row is damaged, or was written by a newer Napkin. They can "
                "only be removed."
            ) from None

    def keep(self, result: ResultFields, name: str) -> str:
        """Write it, unless it is here; gives its id, which is made from all that it says. name: it in a line."""
        text = result.model_dump_json(ensure_ascii=True)
        this, c, most = hashlib.sha256(text.encode()).hexdigest()[:32], COLLECTIVES.c, limit("collectives_kept")
        with self._transaction(writes=True) as connection:
            if connection.execute(select(c.id).where(c.id == this)).first() is not None:
                return this
            if connection.execute(select(func.count()).select_from(COLLECTIVES)).scalar_one() >= most:
                raise StoreError(
                    f"{most:,} files of collectives are kept, as many as there may be. Remove one that nobody needs, "
                    "and bring this one in again."
                )
            row = {
                "id": this,
                "kept": self._clock(),
                "name": cleaned(name, limit("measure_text_chars")),
                "result": text,
            }
            connection.execute(insert(COLLECTIVES).values(row))
        return this

    def remove(self, id: str) -> None:
        """Delete one for good; nothing where it is gone already."""
        with self._transaction(writes=True) as connection:
            connection.execute(delete(COLLECTIVES).where(COLLECTIVES.c.id == id))

    def _transaction(self, *, writes: bool = False) -> AbstractContextManager[Connection]:
        return transaction(self._engine, writes=writes, what="measured collectives")


def _listed(row: dict[str, Any]) -> StoredLinks:
    """A row without its result. As every row it is untrusted: what cannot be read of it stands empty."""
    cells, _ = read_cells(_Row, row)
    return StoredLinks(cells.id, cleaned(cells.name, limit("measure_text_chars")) or "unreadable", moment(cells.kept))
