"""Brings a database to the version that this code knows; alembic is imported only where there is something to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text

from core.messages import message
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.tables import HEAD

_SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 0x6E61706B
"""Any number, the same for all who migrate a PostgreSQL database."""


def migrate(engine: Engine) -> None:
    """Upgrade the database to `HEAD` in one transaction. Of several processes, one does it, and the others wait.

    Raises `StoreError` for a database of an unknown version, without a change.
    """
    with transaction(engine) as connection:
        if version_of(connection) == HEAD:
            return
    with transaction(engine, writes=True) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        _upgrade(connection)


def version_of(connection: Connection) -> str:
    """Return the version of a database; empty for one that has no tables yet."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def _upgrade(connection: Connection) -> None:
    from alembic.config import Config
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    here = version_of(connection)
    if here and here not in known:
        writer = "store.error.version_newer" if here > HEAD else "store.error.version_unreleased"
        raise StoreError(message(writer, found=here, known=HEAD))

    def steps(revision: Any, _: object) -> Any:
        return scripts._upgrade_revs(HEAD, revision)  # pyright: ignore[reportPrivateUsage]

    context = MigrationContext.configure(connection, opts={"fn": steps, "transactional_ddl": True})
    with Operations.context(context):
        context.run_migrations()
