"""A backup holds all that was confirmed before it was begun, and a restore puts it back whole or not at all."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest

from core.limits import limit
from core.planning.comparison.entry import EntryKind, entry_of
from core.store.__main__ import main
from core.store.backup import back_up, restore
from core.store.errors import StoreError
from core.store.plans import SavedPlan
from core.store.store import Store
from tests.core import measure_cases as measured
from tests.core import store_cases as cases


@contextmanager
def fresh() -> Iterator[Store]:
    """An empty store; where these laws are tried in another database, that of `cases.fresh`."""
    with cases.fresh() as store:
        yield store


def filled(store: Store) -> None:
    """Something of every table."""
    plan = store.save(entry_of("Plan ⅓", {"n": "8B", "tokens": "2T"}), "a note\nof two lines", ["b", "a"], "Ann")
    store.change(plan.id, 1, name="Renamed", who="Ben")
    store.comments.add(plan.id, "why?", "Cy")
    store.archive(store.save(entry_of("old", {})).id)
    store.save(entry_of("days", {"start": "2027-01-15"}, kind="calendar"))
    store.measurements.keep(measured.record(1, points=3))


@contextmanager
def stopping(stop: Event) -> Iterator[None]:
    """Stop who saves at the end, whatever happens."""
    try:
        yield
    finally:
        stop.set()


def wait_for(confirmed: Sequence[SavedPlan], count: int, savers: Sequence[Future[None]]) -> None:
    """Wait until so many saves are confirmed; fail with what a saver fails with."""
    while len(confirmed) < count:
        for saver in savers:
            with suppress(TimeoutError):
                saver.result(timeout=0.01)
                raise AssertionError("who saves stopped")


def all_of(store: Store) -> object:
    """All that people see of a store."""
    kinds: tuple[EntryKind, ...] = ("plan", "calendar")
    plans = [
        plan
        for kind in kinds
        for archived in (False, True)
        for plan in store.find(kind=kind, archived=archived, per_page=limit("plans_listed")).plans
    ]
    said = [(store.history(plan.id), store.comments.of(plan.id)) for plan in plans]
    return plans, said, store.measurements.history()


def test_what_is_restored_is_what_was_backed_up(tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    with fresh() as store:
        filled(store)
        before = all_of(store)
        counts = back_up(store._engine, file)
    assert counts["plans"] == 3
    assert all(counts[name] for name in ("plan_changes", "plan_comments", "measurements", "measurement_points"))
    assert [path.name for path in tmp_path.iterdir()] == ["backup.db"]
    with fresh() as store:
        assert restore(store._engine, file) == counts
        assert all_of(store) == before
        later = store.save(entry_of("later", {}))
        with pytest.raises(StoreError, match=r"keeps plans 4,.*--replace.*Nothing was changed"):
            restore(store._engine, file)
        assert store.get(later.id)
        restore(store._engine, file, replace=True)
        assert all_of(store) == before


def test_a_backup_has_every_plan_that_was_confirmed_before_it_began(tmp_path: Path) -> None:
    with fresh() as store:
        stop, confirmed = Event(), list[SavedPlan]()

        def save() -> None:
            while not stop.is_set():
                confirmed.append(store.save(entry_of("plan", {"n": f"{len(confirmed) + 1}B"})))

        with ThreadPoolExecutor(3) as threads, stopping(stop):
            savers = [threads.submit(save) for _ in range(3)]
            seen: list[set[str]] = []
            for number in range(3):
                wait_for(confirmed, 20 * (number + 1), savers)
                seen.append({plan.id for plan in confirmed.copy()})
                back_up(store._engine, tmp_path / f"{number}.db")
        everything = {plan.id: plan for plan in confirmed}
    for number, ids in enumerate(seen):
        with fresh() as store:
            restore(store._engine, tmp_path / f"{number}.db")
            assert [store.get(one) for one in ids] == [everything[one] for one in ids]


def test_a_restore_while_people_save_leaves_a_whole_database(tmp_path: Path) -> None:
    """Each save is there as it was confirmed, or gone with all that was replaced."""
    with fresh() as store:
        filled(store)
        back_up(store._engine, tmp_path / "backup.db")
        stop, confirmed = Event(), list[SavedPlan]()

        def save() -> None:
            while not stop.is_set():
                confirmed.append(store.save(entry_of("plan", {"n": f"{len(confirmed) + 1}B"})))

        with ThreadPoolExecutor(2) as threads, stopping(stop):
            savers = [threads.submit(save) for _ in range(2)]
            wait_for(confirmed, 20, savers)
            restore(store._engine, tmp_path / "backup.db", replace=True)
            many = len(confirmed)
            wait_for(confirmed, many + 20, savers)
        assert all(store.get(plan.id) == plan for plan in confirmed[many + 2 :])
        for plan in confirmed[:20]:
            with pytest.raises(StoreError):
                store.get(plan.id)


def test_a_backup_of_the_version_before_is_brought_up_to_date(tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    with fresh() as store:
        saved = store.save(entry_of("old", {"n": "8B"}))
        back_up(store._engine, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TABLE plan_comments")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    older = file.read_bytes()
    with fresh() as store:
        restore(store._engine, file)
        assert store.get(saved.id) == saved
    assert file.read_bytes() == older


def nothing_of(file: Path) -> None:
    file.write_bytes(b"")


def a_picture(file: Path) -> None:
    file.write_bytes(b"\x89PNG" + bytes(5000))


def another_database(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE plans (id TEXT)")


def another_with_versions(file: Path) -> None:
    another_database(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('0005')")


def half_of_it(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def holes_in_it(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:12288] = bytes(8192)
    file.write_bytes(bytes(content))


def a_newer_one(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def orphans(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM plans")


REFUSED = {
    nothing_of: "no backup of Napkin",
    a_picture: "no backup of Napkin",
    another_database: "no backup of Napkin",
    another_with_versions: "no backup of Napkin",
    half_of_it: "damaged|cannot be restored",
    holes_in_it: "damaged|cannot be restored",
    a_newer_one: "newer Napkin",
    orphans: "damaged",
    Path.unlink: "cannot be read: No such file",
}


@pytest.mark.parametrize("spoil", REFUSED, ids=lambda spoil: spoil.__name__)
def test_what_is_no_whole_backup_is_refused_before_anything_is_touched(spoil: object, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    with fresh() as store:
        filled(store)
        before = all_of(store)
        back_up(store._engine, file)
        assert callable(spoil)
        spoil(file)
        with pytest.raises(StoreError, match=REFUSED[spoil]):  # type: ignore[index]
            restore(store._engine, file, replace=True)
        assert all_of(store) == before


def test_the_command_backs_up_and_restores_what_the_environment_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "backup.db")
    with patch.dict(os.environ, {"NAPKIN_DATA": str(tmp_path / "one")}):
        assert main(["backup", file]) == 1
        assert "Start it once" in capsys.readouterr().err
        store = Store.open(tmp_path / "one" / "napkin.db")
        plan = store.save(entry_of("ours", {"n": "8B"}))
        assert main(["backup", file]) == 0
        assert main(["backup", file]) == 1
        assert "there already" in capsys.readouterr().err
        assert main(["restore", file]) == 1
        assert "--replace" in capsys.readouterr().err
        store.close()
    with patch.dict(os.environ, {"NAPKIN_DATA": str(tmp_path / "two")}):
        assert main(["restore", file]) == 0
        assert "plans 1, plan changes 1: to" in capsys.readouterr().out
        store = Store.open(tmp_path / "two" / "napkin.db")
        assert store.get(plan.id) == plan
        store.close()
    assert main(["backup", str(tmp_path / "nowhere" / "backup.db")]) == 1
    assert "no folder" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "one")
