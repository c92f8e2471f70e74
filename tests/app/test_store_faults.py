"""Faults of the database: each is a sentence on the page, work stays, and it is over when it is over."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from sqlalchemy import event

from core.messages import message
from core.planning.comparison.entry import entry_of
from core.store import engine
from core.store.errors import StoreError
from core.store.store import Store
from pages.common.registry import COMPUTE, SAVED
from tests.app.plan_pages import bodies, opened, stripped, words
from tests.app.test_saved import press, save

Fault = Callable[[Store], AbstractContextManager[None]]


def by_each_connection(pragma: str) -> Fault:
    @contextmanager
    def fault(store: Store) -> Iterator[None]:
        def begin(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(pragma)

        event.listen(store._engine, "connect", begin)
        store.close()
        yield
        event.remove(store._engine, "connect", begin)
        store.close()

    return fault


@contextmanager
def full_disk(store: Store) -> Iterator[None]:
    with by_each_connection("PRAGMA max_page_count = 1")(store):
        filler = store.save(entry_of("x", {}))
        for note in ("n" * 500, "n"):  # what is free in its pages
            with suppress(StoreError):
                for revision in range(store.get(filler.id).revision, 999):
                    store.change(filler.id, revision, note=f"{note}{revision}")
        yield


@contextmanager
def held_by_another(store: Store) -> Iterator[None]:
    with patch.object(engine, "WAIT_S", 0), closing(sqlite3.connect(store.where, isolation_level=None)) as holder:
        store.close()
        holder.execute("BEGIN IMMEDIATE")
        yield
        store.close()


def with_file(change: Callable[[Path], object]) -> Fault:
    """The database's file is another one for a while."""

    @contextmanager
    def fault(store: Store) -> Iterator[None]:
        file = Path(store.where)
        store.close()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = file.read_bytes()
        change(file)
        yield
        store.close()
        for left in file.parent.glob(f"{file.name}-*"):
            left.unlink()
        file.write_bytes(before)

    return fault


def without_a_table(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE plans")


@contextmanager
def server_away(_: Store) -> Iterator[None]:
    with patch.dict(os.environ, {"DATABASE_URL": "postgresql://napkin:secret@127.0.0.1:1/plans"}):
        yield


BROKEN = message("store.error.broken")
FAULTS: dict[str, tuple[Fault, str]] = {
    "the disk is full": (full_disk, message("store.error.full")),
    "it may only be read": (by_each_connection("PRAGMA query_only = 1"), message("store.error.read_only")),
    "another process holds it": (held_by_another, message("store.error.locked", wait=0.0)),
    "its file is half there": (with_file(lambda file: os.truncate(file, file.stat().st_size // 2 + 100)), BROKEN),
    "its file is something else": (with_file(lambda file: file.write_text("Minutes of a meeting. " * 99)), BROKEN),
    "its file is empty": (with_file(lambda file: os.truncate(file, 0)), BROKEN),
    "a table is gone": (with_file(without_a_table), BROKEN),
    "its server is away": (server_away, message("store.error.away")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_said_and_what_was_typed_is_saved_when_it_is_over(store: Store, name: str) -> None:
    fault, says = FAULTS[name]
    app = opened(COMPUTE, {"n": "8B"})
    save(app, COMPUTE, "Before")
    (before,) = store.find().plans
    with fault(store):
        app.text_input(key="p_tokens").set_value("3T").run()
        if any(button.key == "c_save_changes" for button in app.button):  # else it is said where that would stand
            press(app, "c_save_changes")
        assert any(says in stripped(body) for body in bodies(app, "np-error"))
        assert "secret" not in words(app)
        assert str(Path(store.where).parent) not in words(app)
        assert app.text_input(key="p_tokens").value == "3T"
        assert bodies(app, "np-answer")
    press(app.run(), "c_save_changes")
    assert not bodies(app, "np-error")
    after = store.get(before.id)
    assert (after.entry.texts["n"], after.entry.texts["tokens"]) == ("8B", "3T")
    assert [one.revision for one in store.history(after.id)] == [2, 1]


def test_a_plan_of_the_next_version_stands_beside_the_others_with_a_sentence(store: Store) -> None:
    store.save(entry_of("Of today", {"n": "8B"}))
    next_one = store.save(entry_of("Of tomorrow", {"n": "9B"}))
    with closing(sqlite3.connect(store.where)) as connection:
        connection.execute("UPDATE plans SET form_version = 99 WHERE id = ?", [next_one.id])
        connection.commit()
    said = words(opened(SAVED, {}))
    assert "Of today" in said
    assert "99" in said
    assert store.find().total == 2
