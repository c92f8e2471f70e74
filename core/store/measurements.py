"""Measurements kept in the database of saved plans: written while they run, and found again after any end."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Engine, case, delete, func, insert, or_, select, update

from core.benchmark.device import DeviceKind
from core.benchmark.record import Record
from core.limits import limit
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.measured import LOST_S, History, StoredMeasurement, columns, outcome_text, read_kept
from core.store.tables import MEASUREMENTS, POINTS
from core.wording import cleaned


class Measurements:
    """The measurements of one database. Every method raises `StoreError` where it cannot do what it says.

    clock: microseconds since 1970, UTC.

    Those measured here are kept without being asked, so there is always room for one more: when there are as many as
    may be, one without a result goes, else the oldest. Imported ones somebody has chosen: they are never thrown out,
    and a further one is refused.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    # ------------------------------------------------------------------------------------------ reading

    def get(self, id: str) -> StoredMeasurement:
        """One measurement."""
        with self._transaction() as connection:
            row = connection.execute(select(MEASUREMENTS).where(MEASUREMENTS.c.id == id)).mappings().first()
            if row is None:
                raise StoreError("This measurement is no longer here: it was removed, or it is of another database.")
            return self._read(connection, [dict(row)])[0]

    def history(
        self, *, device: str = "", kind: DeviceKind | None = None, imported: bool | None = None, page: int = 1,
        per_page: int = 20,
    ) -> History:  # fmt: skip
        """Measurements, the one started last first; of one device, one kind of device, or one origin. page: from 1."""
        c = MEASUREMENTS.c
        conditions = [c.device == device] if device else []
        conditions += [c.kind == kind] if kind else []
        conditions += [c.imported == int(imported)] if imported is not None else []
        size = max(1, min(per_page, limit("plans_listed")))
        statement = select(MEASUREMENTS).where(*conditions).order_by(c.started.desc(), c.id.desc())
        with self._transaction() as connection:
            total = connection.execute(select(func.count()).select_from(MEASUREMENTS).where(*conditions)).scalar_one()
            start = min(max(1, page) - 1, max(0, total - 1) // size) * size
            rows = connection.execute(statement.limit(size).offset(start)).mappings()
            return History(self._read(connection, [dict(row) for row in rows]), total)

    def latest(self, device: str = "", kind: DeviceKind | None = None) -> StoredMeasurement | None:
        """The one started last here that has results; of one device or kind of device. None where there is none."""
        c = MEASUREMENTS.c
        conditions = [c.imported == 0, c.results > 0]
        conditions += [c.device == device] if device else []
        conditions += [c.kind == kind] if kind else []
        with self._transaction() as connection:
            statement = select(MEASUREMENTS).where(*conditions).order_by(c.started.desc(), c.id.desc())
            row = connection.execute(statement.limit(1)).mappings().first()
            return self._read(connection, [dict(row)])[0] if row else None

    def devices(self) -> tuple[str, ...]:
        """The names of all devices measured or imported."""
        statement = select(MEASUREMENTS.c.device).where(MEASUREMENTS.c.device != "").distinct()
        with self._transaction() as connection:
            return tuple(sorted(str(scalar) for scalar in connection.execute(statement).scalars()))

    # ------------------------------------------------------------------------------------------ writing

    def keep(self, record: Record, owner: str = "") -> None:
        """Write a measurement, or what is new of one that is here; it then counts as heard of now.

        One with an origin is imported. Writing the same again changes nothing else, so that who does not know whether
        a write has arrived may repeat it. owner: who started it, when that is known.
        """
        now = self._clock()
        row = columns(record) | {"beat": now}
        row |= {"owner": cleaned(owner, limit("plan_owner"))} if owner else {}
        with self._transaction(writes=True) as connection:
            this, points = MEASUREMENTS.c.id == record.id, POINTS.c.measurement == record.id
            here = connection.execute(select(MEASUREMENTS.c.id).where(this).with_for_update()).first() is not None
            have = connection.execute(select(func.count()).select_from(POINTS).where(points)).scalar_one()
            row["results"] = max(have, len(record.outcomes))
            if here:
                connection.execute(update(MEASUREMENTS).where(this).values(row))
            else:
                self._make_room(connection, record, now)
                server = "" if record.origin is not None else cleaned(platform.node(), limit("plan_owner"))
                fresh = {"owner": "", "server": server, "kept": now}
                connection.execute(insert(MEASUREMENTS).values({"id": record.id, **fresh, **row}))
            more = [
                {"measurement": record.id, "seq": seq, "outcome": outcome_text(outcome)}
                for seq, outcome in enumerate(record.outcomes[have:], have)
            ]
            if more:
                connection.execute(insert(POINTS), more)

    def remove(self, id: str) -> None:
        """Delete a measurement and its results for good."""
        measurement = self.get(id)
        if measurement.record is not None and measurement.record.stage in ("queued", "running"):
            raise StoreError("This measurement still runs: cancel it first.")
        with self._transaction(writes=True) as connection:
            _delete(connection, [id])

    def lost(self) -> int:
        """Write down which measurements were lost, which reading them says already; gives how many there are."""
        c = MEASUREMENTS.c
        late = c.beat < self._clock() - LOST_S * 1_000_000
        with self._transaction() as connection:
            rows = connection.execute(select(MEASUREMENTS).where(c.stage.in_(("queued", "running")), late)).mappings()
            results = [measurement.record for measurement in self._read(connection, [dict(row) for row in rows])]
        for record in results:
            if record is not None:
                self.keep(record)
        return len(results)

    # ------------------------------------------------------------------------------------------ within

    def _transaction(self, *, writes: bool = False) -> AbstractContextManager[Connection]:
        return transaction(self._engine, writes=writes, what="measurements")

    def _read(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> tuple[StoredMeasurement, ...]:
        """Rows of measurements with their results."""
        of: dict[object, list[object]] = {row["id"]: [] for row in rows}
        statement = select(POINTS).where(POINTS.c.measurement.in_(of), POINTS.c.seq < limit("measure_outcomes"))
        for point in connection.execute(statement.order_by(POINTS.c.measurement, POINTS.c.seq)).mappings():
            of[point["measurement"]].append(point["outcome"])
        now = self._clock()
        return tuple(read_kept(row, of[row["id"]], now) for row in rows)

    def _make_room(self, connection: Connection, record: Record, now: int) -> None:
        """Room for one more; raises `StoreError` for an imported one where there is none."""
        c, imported = MEASUREMENTS.c, record.origin is not None
        most = limit("measurements_imported") if imported else limit("measurements_kept")
        statement = select(func.count()).select_from(MEASUREMENTS).where(c.imported == int(imported))
        excess = connection.execute(statement).scalar_one() - most + 1
        if excess <= 0:
            return
        if imported:
            raise StoreError(
                f"{most:,} imported measurements are kept, as many as there may be. Remove one that nobody needs, and "
                "import this one again."
            )
        ended = or_(c.stage.not_in(("queued", "running")), c.beat < now - LOST_S * 1_000_000)
        empty_first = case((c.results == 0, 0), else_=1)
        oldest = select(c.id).where(c.imported == 0, ended).order_by(empty_first, c.kept, c.id).limit(excess)
        _delete(connection, list(connection.execute(oldest).scalars()))


def _delete(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(delete(POINTS).where(POINTS.c.measurement.in_(ids)))
    connection.execute(delete(MEASUREMENTS).where(MEASUREMENTS.c.id.in_(ids)))
