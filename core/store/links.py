"""Measured collectives kept in the database of saved plans, until somebody removes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, Engine, delete, func, insert, select

from core.benchmark.collectives import Collectives
from core.limits import limit
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.rows import Moment, RowText, moment, read_cells
from core.store.tables import COLLECTIVES
from core.wording import cleaned

_OLDER = '"napkin-collectives"'
"""In the text of a row of Napkin's own benchmark, before it read the output of nccl-tests."""


@dataclass(frozen=True, slots=True)
class StoredLinks:
    """One of the list. name: the result in a line. kept: when it came into this database, in UTC."""

    id: str
    name: str
    kept: datetime


class _LinkRow(BaseModel):
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
        statement = select(c.id, c.name, c.kept).order_by(c.kept.desc(), c.id).limit(limit("collectives_kept"))
        with self._transaction() as connection:
            return tuple(_listed(dict(row)) for row in connection.execute(statement).mappings())

    def get(self, id: str) -> Collectives:
        """What one of them says."""
        statement = select(COLLECTIVES.c.result).where(COLLECTIVES.c.id == id)
        with self._transaction() as connection:
            cell: object = connection.execute(statement).scalar()
        if cell is None:
            raise StoreError("These collectives are no longer here: they were removed, or are of another database.")
        try:
            return Collectives.model_validate_json(str(cell))
        except ValidationError:
            pass
        if _OLDER in str(cell):
            raise StoreError(
                "These collectives were measured by an older Napkin’s own benchmark, which is no longer read. Run "
                "nccl-tests as said above, and remove them."
            )
        raise StoreError(
            "These collectives cannot be read: their row is damaged, or was written by a newer Napkin. They can only "
            "be removed."
        )

    def keep(self, result: Collectives, name: str) -> str:
        """Write it, unless it is here; gives its id, which is made from all it says but the day. name: it in a line."""
        same = result.model_dump_json(exclude={"day"}, ensure_ascii=True)
        this, c, most = hashlib.sha256(same.encode()).hexdigest()[:32], COLLECTIVES.c, limit("collectives_kept")
        with self._transaction(writes=True) as connection:
            if connection.execute(select(c.id).where(c.id == this)).first() is not None:
                return this
            if connection.execute(select(func.count()).select_from(COLLECTIVES)).scalar_one() >= most:
                raise StoreError(
                    f"{most:,} results of collectives are kept, as many as there may be. Remove one that nobody needs, "
                    "and bring this one in again."
                )
            row = {
                "id": this,
                "kept": self._clock(),
                "name": cleaned(name, limit("measure_text_chars")),
                "result": result.model_dump_json(ensure_ascii=True),
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
    cells, _ = read_cells(_LinkRow, row)
    return StoredLinks(cells.id, cleaned(cells.name, limit("measure_text_chars")) or "unreadable", moment(cells.kept))
