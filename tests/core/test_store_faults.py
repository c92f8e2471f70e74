"""Whatever lies in the database or happens to it ends in a message, and nothing is half written."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, inspect

from core.fields import LINK_VERSION
from core.planning.comparison.entry import entry_of
from core.store import engine, locations
from core.store.engine import make_engine, transaction
from core.store.errors import StoreError
from core.store.migrate import version_of
from core.store.rows import as_of, read_change, read_plan
from core.store.store import Store
from core.store.tables import HEAD, META
from tests.core import store_cases as cases
from tests.core.store_cases import said
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PLAIN = entry_of("A plan", {})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(cases.address(tmp_path))
    yield made
    made.close()


def by_hand(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "napkin.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def python(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *args], cwd=ROOT, stdout=subprocess.PIPE, text=True)


# ------------------------------------------------------------------------------------------ rows

CELL = st.none() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
LEAF = st.none() | st.floats() | st.text(max_size=5)
JSON = st.recursive(LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)).map(json.dumps)
COLUMNS = ("id", "name", "note", "tags", "owner", "texts", "form_version", "results", "knowledge", "made", "changed")


@given(st.dictionaries(st.sampled_from((*COLUMNS, "revision", "archived", "edits", "who")), CELL | JSON))
def test_any_row_is_a_plan(row: dict[str, Any]) -> None:
    plan = read_plan(row)
    assert plan.entry.reading.values
    assert plan.entry.name == plan.entry.name.strip()
    assert read_change(row).edits is not None


BROKEN = {
    "texts = '{\"n\": 1}'": "texts",
    "texts = '{'": "texts",
    f"texts = '{'[' * 50_000}'": "texts",
    "results = '[]'": "results",
    "made = 'yesterday'": "made",
    "made = 9223372036854775807": "made",
    "revision = -1": "revision",
    "name = x'fffe'": "name",
    "form_version = 99": "99",
    'texts = \'{"n": "8B", "zork": "1"}\'': "zork",
}


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_row_is_listed_with_a_message_beside_the_others(store: Store, tmp_path: Path, change: str) -> None:
    broken, whole = store.save(PLAIN), store.save(entry_of("Whole", {}))
    by_hand(tmp_path, f"UPDATE plans SET {change} WHERE id = '{broken.id}'")  # noqa: S608
    found = {one.id: one for one in store.find().plans}
    assert found.pop(whole.id) == whole
    ((_, plan),) = found.items()
    (message,) = plan.problems
    assert BROKEN[change] in message
    if "revision" not in change:
        with said("store.error.damaged"):
            store.change(plan.id, plan.revision, entry=PLAIN)
        assert store.change(plan.id, plan.revision, note="seen").note == "seen"
    kept = _cell(tmp_path, broken.id)
    copy = store.duplicate(plan.id)
    assert _cell(tmp_path, copy.id) == kept


@pytest.mark.parametrize("damage", ["UPDATE plan_changes SET edits = '['", "DELETE FROM plan_changes"])
def test_a_damaged_history_leads_back_as_far_as_it_is_whole(store: Store, tmp_path: Path, damage: str) -> None:
    plan = store.save(PLAIN)
    for revision, note in enumerate(("one", "two", "three"), 1):
        plan = store.change(plan.id, revision, note=note)
    by_hand(tmp_path, f"{damage} WHERE revision = 3")
    history = store.history(plan.id)
    notes = {n: then.note if (then := as_of(plan, history, n)) else None for n in (1, 2, 3)}
    assert notes == {1: None, 2: None, 3: "two"}


def test_a_comment_that_cannot_be_read_hides_no_other(store: Store, tmp_path: Path) -> None:
    plan = store.save(PLAIN)
    for made, text in (("'then'", "x'fffe'"), ("1", "'one'")):
        by_hand(tmp_path, f"INSERT INTO plan_comments VALUES ({text}, '{plan.id}', {made}, 'Ada', {text})")  # noqa: S608
    said = [(one["who"], one["text"]) for one in store.comments(plan.id)]
    assert sorted(said) == [("Ada", "(cannot be read)"), ("Ada", "one")]


def _cell(folder: Path, id: str) -> object:
    with closing(sqlite3.connect(folder / "napkin.db")) as connection:
        return connection.execute("SELECT texts, form_version FROM plans WHERE id = ?", [id]).fetchone()


def test_texts_of_an_older_version_are_translated(store: Store, tmp_path: Path) -> None:
    saved = store.save(PLAIN)
    by_hand(tmp_path, """UPDATE plans SET form_version = 2, texts = '{"shard": "ZeRO-1", "n": "8B"}'""")
    read = store.get(saved.id)
    assert read.problems == ()
    assert (read.entry.texts["zero"], read.entry.texts["n"]) == ("1", "8B")
    store.change(saved.id, 1, entry=entry_of("A plan", {**read.entry.texts, "n": "9B"}))
    with closing(sqlite3.connect(tmp_path / "napkin.db")) as connection:
        assert connection.execute("SELECT form_version FROM plans").fetchone() == (LINK_VERSION,)


# ------------------------------------------------------------------------------------------ versions of the database


UNREAD = {"measurements", "measurement_points", "collectives"}
"""What older versions kept."""


def test_the_scripts_make_the_tables_that_the_code_reads(store: Store) -> None:
    with transaction(store._engine) as connection:
        made, asked = inspect(connection), META.tables
        assert set(made.get_table_names()) == {*asked, *UNREAD, "alembic_version"}
        for name, table in asked.items():
            columns = {one["name"]: (str(one["type"]), one["nullable"]) for one in made.get_columns(name)}
            assert columns == {one.name: (str(one.type), one.nullable) for one in table.columns}
            indexes = {one["name"]: one["column_names"] for one in made.get_indexes(name)}
            assert indexes == {one.name: [column.name for column in one.columns] for one in table.indexes}
            assert made.get_pk_constraint(name)["constrained_columns"] == [one.name for one in table.primary_key]
        assert version_of(connection) == HEAD


def test_a_database_of_before_calendars_opens_with_its_plans(store: Store, tmp_path: Path) -> None:
    plan = store.save(PLAIN)
    store.close()
    by_hand(tmp_path, "DROP TABLE plan_comments")
    by_hand(tmp_path, "ALTER TABLE plans DROP COLUMN kind", "UPDATE alembic_version SET version_num = '0003'")
    again = Store.open(cases.address(tmp_path))
    assert again.get(plan.id) == plan
    assert again.find().total == 1
    assert again.find(kind="decision").total == 0
    again.close()


@pytest.mark.parametrize(
    ("version", "message"), [("9999", "store.error.version_newer"), ("0001", "store.error.version_unreleased")]
)
def test_a_database_of_an_unknown_version_is_refused_and_left_alone(
    store: Store, tmp_path: Path, version: str, message: str
) -> None:
    store.save(PLAIN)
    store.close()
    stamp = f"UPDATE alembic_version SET version_num = {version!r}"  # noqa: S608
    by_hand(tmp_path, stamp, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = (tmp_path / "napkin.db").read_bytes()
    with said(message):
        Store.open(cases.address(tmp_path))
    assert (tmp_path / "napkin.db").read_bytes() == before


@pytest.mark.process
@pytest.mark.long
def test_processes_that_open_an_empty_folder_at_once_make_one_database(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom core.store.store import Store\nfrom core.planning.comparison.entry import entry_of\n"
        "sys.stdin.readline()\nStore.open(sys.argv[1]).save(entry_of('x', {}))"
    )
    command = [sys.executable, "-c", code, cases.address(tmp_path)]
    racers = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.close()
    assert [racer.wait(PATIENCE_S) for racer in racers] == [0, 0, 0, 0]
    store = Store.open(cases.address(tmp_path))
    assert store.find().total == 4
    store.close()


# ------------------------------------------------------------------------------------------ faults


def refused(store: Store, about: str, total: int) -> None:
    """Saving says what is wrong, and nothing came of it."""
    with said("store.error", about) as raised:
        store.save(PLAIN)
    assert raised.value.args[0].values["database"] == store.name
    assert "/" not in str(raised.value)
    assert store.find().total == total


def test_nobody_waits_for_the_connection_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two visitors open the database at once, and have one store between them."""
    both = Barrier(2)

    def opening(address: str) -> Store:
        both.wait(PATIENCE_S)
        return Store(make_engine(address))

    monkeypatch.setenv("DATABASE_URL", cases.address(tmp_path))
    monkeypatch.setattr(Store, "open", opening)
    with ThreadPoolExecutor(2) as visitors:
        one, other = visitors.map(lambda _: locations.plan_store(), range(2))
    assert one is other
    locations._stores.pop(locations.address()).close()


def test_a_folder_of_any_name_holds_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "what? 100% #1 & ü:memory:"
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("NAPKIN_DATA", str(folder))
    store = locations.plan_store()
    store.save(PLAIN)
    assert store.where == str(folder / "napkin.db")
    assert (folder / "napkin.db").stat().st_size > 0
    locations._stores.pop(locations.address()).close()


@pytest.mark.process
def test_a_write_that_another_process_holds_up_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WAIT_S", 0)
    store = Store.open(cases.address(tmp_path))
    store.save(PLAIN)
    code = (
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "napkin.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        refused(store, "store.error.locked", 1)
        holder.kill()
    store.save(PLAIN)
    assert store.find().total == 2
    store.close()


@pytest.mark.parametrize("all_of_it", [False, True])
def test_nothing_is_confirmed_after_the_file_was_removed(tmp_path: Path, all_of_it: bool) -> None:
    folder = tmp_path / "data"
    store = Store.open(cases.address(folder))
    store.save(PLAIN)
    if all_of_it:
        shutil.rmtree(folder)
    else:
        (folder / "napkin.db").unlink()
    with pytest.raises(StoreError):
        store.save(entry_of("Saved later", {}))
    other = Store.open(cases.address(folder))
    assert other.find().total == 0
    saved = store.save(entry_of("Saved last", {}))
    assert other.get(saved.id) == saved
    other.close()
    store.close()


def test_a_file_that_was_put_in_the_place_of_another_is_read_and_written(store: Store, tmp_path: Path) -> None:
    store.save(PLAIN)
    (tmp_path / "copy").mkdir()
    copy = Store.open(cases.address(tmp_path / "copy"))
    kept = copy.save(entry_of("Of the copy", {}))
    copy.close()
    (tmp_path / "copy" / "napkin.db").replace(tmp_path / "napkin.db")
    assert store.get(kept.id) == kept
    store.change(kept.id, kept.revision, note="written")
    other = Store.open(cases.address(tmp_path))
    assert other.get(kept.id).note == "written"
    other.close()


def test_a_file_that_cannot_be_made_again_confirms_nothing(store: Store, tmp_path: Path) -> None:
    saved = store.save(PLAIN)
    (tmp_path / "napkin.db").unlink()
    (tmp_path / "napkin.db").mkdir()
    with said("store.error", "store.error.shut"):
        store.change(saved.id, saved.revision, note="lost")


def fill(store: Store) -> None:
    for _ in range(500):
        store.save(entry_of("x" * 80, {}), "n" * 2000)


def test_a_database_that_is_full_takes_nothing_by_halves(store: Store) -> None:
    saved = store.save(PLAIN)
    store.close()
    event.listen(store._engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1"))
    with said("store.error", "store.error.full"):
        fill(store)
    plans = store.find(per_page=100).plans
    assert all(len(store.history(one.id)) == one.revision for one in plans)
    assert saved in plans


def test_a_database_that_may_only_be_read_is_read(store: Store, tmp_path: Path) -> None:
    saved = store.save(PLAIN)
    store.close()
    reader = Store.open(f"sqlite:///file:{tmp_path / 'napkin.db'}?mode=ro&uri=true")
    assert reader.get(saved.id) == saved
    refused(reader, "store.error.read_only", 1)
    reader.close()


def test_what_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "napkin.db").write_text("not a database, but long enough to have a header of a hundred bytes" * 3)
    with said("store.error", "store.error.broken"):
        Store.open(cases.address(tmp_path))
    (tmp_path / "file").write_text("")
    with said("store.error.folder"):
        Store.open(f"sqlite:///{tmp_path / 'file' / 'sub' / 'napkin.db'}")
    (tmp_path / "folder").mkdir()
    with said("store.error", "store.error.shut"):
        Store.open(f"sqlite:///{tmp_path / 'folder'}")


@pytest.mark.parametrize(
    "address", ["", "nonsense", "mysql://u:secret@h/d", "postgresql://u:secret@h:port/d", "redis://x"]
)
def test_an_address_of_no_database_is_said_without_its_password(address: str) -> None:
    with pytest.raises(StoreError, match="DATABASE_URL") as raised:
        Store.open(address)
    assert "secret" not in str(raised.value)


def test_a_server_that_is_away_is_said_without_its_password() -> None:
    with said("store.error", "store.error.away") as raised:
        Store.open("postgres://user:secret@127.0.0.1:1/plans")
    assert "PostgreSQL" in str(raised.value)
    assert "127.0.0.1" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.process
def test_what_was_confirmed_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom core.store.store import Store\nfrom core.planning.comparison.entry import entry_of\n"
        "store = Store.open(sys.argv[1])\n"
        "while True:\n print(store.save(entry_of('x', {}), 'note').id, flush=True)"
    )
    with python(code, cases.address(tmp_path)) as writer:
        assert writer.stdout
        told = [writer.stdout.readline().strip() for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.read().split("\n")[:-1]
    store = Store.open(cases.address(tmp_path))
    assert all(store.get(one).note == "note" for one in told)
    assert all(len(store.history(one.id)) == 1 for one in store.find(per_page=100).plans)
    store.close()
