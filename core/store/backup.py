"""Backup and restore: all that a database keeps, in one file of SQLite, whatever kind of database it is kept in."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, Engine, Table, func, inspect, select, text

from core.store.engine import make_engine, place_of, transaction
from core.store.errors import StoreError
from core.store.migrate import migrate, version_of
from core.store.tables import HEAD, META, PLANS

_ROWS = 500
"""Rows that are copied at once."""

_HEADER = b"SQLite format 3\0"


def back_up(engine: Engine, file: Path) -> Mapping[str, int]:
    """Write all that the database keeps at one moment into a new ``file``, while others read and write it.

    Returns how many rows there are of each table. Raises `StoreError`, and leaves no file, where the database is of
    another version or cannot be read, and where the file is there already or cannot be written.
    """
    if file.exists():
        raise StoreError(f"{file} is there already. Name another file.")
    if not file.parent.is_dir():
        raise StoreError(f"There is no folder {file.parent}.")
    unfinished = file.with_name(f"{file.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        with _opened(unfinished) as copy, _moment(engine) as source:
            if version_of(source) != HEAD:
                raise StoreError(
                    f"The saved plans ({place_of(engine)}) are of version {version_of(source) or 'none'}, and this "
                    f"Napkin writes {HEAD}. Start it once, which brings them up to date."
                )
            migrate(copy)
            with transaction(copy, writes=True, what="backup") as target:
                counts = _copied(source, target)
        with closing(sqlite3.connect(unfinished)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, that can be carried anywhere
        os.replace(unfinished, file)
    except OSError as problem:
        raise StoreError(f"{file} cannot be written: {problem.strerror}.") from problem
    finally:
        unfinished.unlink(missing_ok=True)
    return counts


def restore(engine: Engine, file: Path, *, replace: bool = False) -> Mapping[str, int]:
    """Put all of a backup into the database, which is whole at every moment; an older backup is brought up to date.

    replace: also where plans are there already, which are gone then. Returns how many rows there are of each table.
    Raises `StoreError`, and changes nothing, for a file that is no whole backup or of a newer version, and where the
    database keeps something that was not to be replaced.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "backup.db"
        _checked_copy(file, copy)
        with _opened(copy) as source_engine:
            _up_to_date(source_engine, file)
            migrate(engine)
            with _moment(source_engine) as source, transaction(engine, writes=True) as target:
                if engine.dialect.name == "postgresql":  # SQLite lets one write at a time
                    # Every save of a plan writes to it first; those that wait hold none of what is deleted here.
                    target.execute(text(f"LOCK TABLE {PLANS.name} IN SHARE ROW EXCLUSIVE MODE"))
                if not replace:
                    _empty(engine, target)
                for table in reversed(META.sorted_tables):
                    target.execute(table.delete())
                return _copied(source, target)


@contextmanager
def _opened(file: Path) -> Generator[Engine]:
    engine = make_engine(file)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _moment(engine: Engine) -> Generator[Connection]:
    """A transaction that reads the database as it is at one moment."""
    with transaction(engine, isolation="REPEATABLE READ") as connection:
        yield connection


def _copied(source: Connection, target: Connection) -> dict[str, int]:
    """Every row of every table, those first that others point to; how many each has."""
    counts: dict[str, int] = {}
    for table in META.sorted_tables:
        counts[table.name] = 0
        for rows in source.execute(select(table)).mappings().partitions(_ROWS):
            target.execute(table.insert(), [dict(row) for row in rows])
            counts[table.name] += len(rows)
    return counts


def _empty(engine: Engine, target: Connection) -> None:
    kept = {table.name: _count(target, table) for table in META.sorted_tables}
    if any(kept.values()):
        raise StoreError(
            f"The database ({place_of(engine)}) keeps {summary(kept)} already. With --replace the backup takes their "
            "place. Nothing was changed."
        )


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _checked_copy(file: Path, copy: Path) -> None:
    """A copy of a file that is a database of SQLite, which can be brought up to date."""
    try:
        with closing(file.open("rb")) as opened:
            if opened.read(len(_HEADER)) != _HEADER:
                raise StoreError(f"{file} is no backup of Napkin. Nothing was changed.")
        shutil.copyfile(file, copy)
    except OSError as problem:
        raise StoreError(f"{file} cannot be read: {problem.strerror}. Nothing was changed.") from problem


def _up_to_date(engine: Engine, file: Path) -> None:
    """Bring the copy of a backup to this version. Raises `StoreError` unless it is a whole one of Napkin."""
    damaged = StoreError(f"{file} is damaged. Nothing was changed.")
    foreign = StoreError(f"{file} is no backup of Napkin. Nothing was changed.")
    try:
        with transaction(engine) as connection:
            if connection.exec_driver_sql("PRAGMA integrity_check").scalar() != "ok":
                raise damaged
            if not version_of(connection):
                raise foreign
        migrate(engine)
        with transaction(engine) as connection:
            if not all(_there(connection, table) for table in META.sorted_tables):
                raise foreign
            if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                raise damaged
    except StoreError as problem:
        if problem in (damaged, foreign):
            raise
        raise StoreError(f"{file} cannot be restored. {problem}") from problem


def _there(connection: Connection, table: Table) -> bool:
    """Whether the database has the table with all of its columns."""
    found = inspect(connection)
    return found.has_table(table.name) and {one["name"] for one in found.get_columns(table.name)} >= {*table.c.keys()}


def summary(counts: Mapping[str, int]) -> str:
    """What there is of each table, for people: ``plans 12, plan changes 34``."""
    some = [f"{name.replace('_', ' ')} {counts[name]:,}" for name in META.tables if counts.get(name)]
    return ", ".join(some) or "nothing"
