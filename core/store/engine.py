"""Connections to SQLite or PostgreSQL, with the same errors for both."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.limits import limit
from core.messages import Message, message, pick_message
from core.store.errors import StoreError

_LOG = logging.getLogger(__name__)

WAIT_S = 5
"""Seconds that a write waits for that of another process."""

_WRITES = "writes"

_SQLITE = {
    "SQLITE_BUSY": "store.error.locked",
    "SQLITE_LOCKED": "store.error.locked",
    "SQLITE_FULL": "store.error.full",
    "SQLITE_READONLY": "store.error.read_only",
    "SQLITE_PERM": "store.error.read_only",
    "SQLITE_CANTOPEN": "store.error.shut",
    "SQLITE_IOERR": "store.error.away",
    "SQLITE_NOTADB": "store.error.broken",
    "SQLITE_CORRUPT": "store.error.broken",
}
"""Prefixes of the names of SQLite's errors → messages."""

_POSTGRESQL = {
    "42P01": "store.error.broken",
    "53100": "store.error.full",
    "25006": "store.error.read_only",
    "42501": "store.error.read_only",
    "55P03": "store.error.locked",
    "57014": "store.error.locked",
}
"""PostgreSQL's codes → messages. An error without a code is one of the connection."""

_CONNECTION = ("08", "28", "3D", "57P")


def make_engine(address: str | Path) -> Engine:
    """Return an engine for a file of SQLite, or for an SQLAlchemy address of SQLite or PostgreSQL; nothing is opened
    yet. Raises `StoreError`."""
    if isinstance(address, Path):  # whose name may have a "?", which has a meaning of its own in an address
        return _sqlite(URL.create("sqlite", database=str(address)))
    try:
        url = make_url(address.replace("postgres://", "postgresql://", 1))
        kind = url.get_backend_name()
        if kind == "sqlite":
            return _sqlite(url)
        if kind == "postgresql":
            return _postgresql(url)
    except (SQLAlchemyError, ImportError, ValueError) as problem:
        raise StoreError(message("store.error.address")) from problem
    raise StoreError(message("store.error.scheme"))


def name_of(engine: Engine) -> str:
    """Return the database’s name for users: the file’s name, or the kind of server."""
    sqlite = engine.url.get_backend_name() == "sqlite"
    return Path(engine.url.database or "memory").name if sqlite else "PostgreSQL"


def place_of(engine: Engine) -> str:
    """Return the database’s place for the server’s log: the file, or the address without its password."""
    url = engine.url
    if url.get_backend_name() == "sqlite":
        return url.database or "memory"
    return f"PostgreSQL, {url.database} on {url.host or 'this machine'}"


@contextmanager
def transaction(engine: Engine, *, writes: bool = False) -> Generator[Connection]:
    """Open a transaction. Raises `StoreError` for errors of the database."""
    with _faults(engine), engine.connect().execution_options(**{_WRITES: writes}) as connection, connection.begin():
        yield connection


def _path_of(url: URL) -> Path | None:
    """Return the path of a database of SQLite; None for one in memory or behind a server."""
    name = url.database or ""
    on_disk = url.get_backend_name() == "sqlite" and name not in ("", ":memory:") and not name.startswith("file:")
    return Path(name) if on_disk else None


@contextmanager
def _faults(engine: Engine) -> Generator[None]:
    try:
        yield
    except SQLAlchemyError as problem:
        _LOG.warning("The database %s: %s", place_of(engine), problem)
        raise StoreError(message("store.error", database=name_of(engine), advice=_meaning(problem))) from problem


def _meaning(problem: SQLAlchemyError) -> Message:
    """Return what happened, and what to do."""
    found = "store.error.locked" if isinstance(problem, PoolTimeoutError) else "store.error.other"
    if isinstance(problem, DBAPIError):
        name: str = getattr(problem.orig, "sqlite_errorname", None) or ""
        code: str | None = getattr(problem.orig, "sqlstate", None)
        if "no such table" in str(problem.orig):
            found = "store.error.broken"
        elif name:
            found = next((meant for start, meant in _SQLITE.items() if name.startswith(start)), found)
        else:
            away = code is None or code.startswith(_CONNECTION)
            found = "store.error.away" if away else _POSTGRESQL.get(code or "", found)
    return pick_message(found, wait=float(WAIT_S))


def _inode(path: Path | None) -> tuple[int, int] | None:
    """Return what tells a file from another one at its path; None for no file."""
    with suppress(OSError):
        if path:
            status = path.stat()
            return status.st_dev, status.st_ino
    return None


def _lower(text: object) -> object:
    return text.lower() if isinstance(text, str) else text


def _sqlite(url: URL) -> Engine:
    if (path := _path_of(url)) is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as problem:
            _LOG.warning("The folder of the database cannot be made: %s", problem)
            raise StoreError(message("store.error.folder", reason=str(problem.strerror))) from problem
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": WAIT_S})

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # transactions begin where SQLAlchemy begins them, those of a migration too
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a broken row hides no others
        connection.create_function("lower", 1, _lower, deterministic=True)  # SQLite's own knows no letter beyond z
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        record.info["file"] = _inode(path)

    @event.listens_for(engine, "checkout")
    def taken(connection: Any, record: Any, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
        if record.info["file"] != _inode(path):  # it was removed or replaced: the one at the path is opened
            with suppress(sqlite3.Error):  # whose log would be taken for that of the new file
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise InvalidatePoolError

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        # One that reads first and writes later would be refused at once where another has written in between.
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL) -> Engine:
    patience = f"-c lock_timeout={WAIT_S}s -c statement_timeout={3 * WAIT_S}s"
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        hide_parameters=True,  # names and notes stay out of the log
        connect_args={"connect_timeout": WAIT_S, "options": patience},
        # All are kept: the server starts a process for each new one. The last one used goes first, so that there are
        # no more of them than were needed at once. One that has died meanwhile is replaced.
        pool_pre_ping=True,
        pool_size=limit("database_connections"),
        max_overflow=0,
        pool_use_lifo=True,
        pool_timeout=WAIT_S,
    )
