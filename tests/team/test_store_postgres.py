"""The store's own tests once more, in PostgreSQL: the same laws, the same search, the same conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from sqlalchemy import create_engine, event, make_url, text

from core.limits import limit
from core.planning.comparison.entry import entry_of
from core.store.engine import make_engine
from core.store.errors import Conflict, StoreError
from core.store.store import Store
from core.store.tables import CHANGES, COMMENTS, PLANS
from tests.core import store_cases as cases
from tests.core import test_store as laws

# The store's own tests and fixtures, collected here as well; each asks `cases.fresh` for its database.
globals().update({name: one for name, one in vars(laws).items() if name.startswith("test_")})
store, shared = laws.store, laws.shared


@pytest.fixture(scope="session")
def empty(cluster: str) -> str:
    """Address of a database without tables; one a process, which may come back to these tests after others."""
    maker = create_engine(cluster, isolation_level="AUTOCOMMIT")
    with maker.connect() as connection:
        connection.execute(text("CREATE DATABASE store"))
    maker.dispose()
    return make_url(cluster).set(database="store").render_as_string(hide_password=False)


@pytest.fixture(scope="module", autouse=True)
def in_postgresql(empty: str) -> Iterator[None]:
    """Every fresh store of these tests is one database, emptied; four open it at once while it has no tables."""
    with ThreadPoolExecutor(4) as threads:
        for one in threads.map(Store.open, [empty] * 4):
            one.close()
    engine = make_engine(empty)

    @contextmanager
    def fresh() -> Iterator[Store]:
        with engine.begin() as connection:
            for table in (COMMENTS, CHANGES, PLANS):
                connection.execute(table.delete())
        yield Store(engine)

    with patch.object(cases, "fresh", fresh):
        yield
    engine.dispose()


def test_of_eight_who_change_one_revision_one_is_heard(store: Store) -> None:
    saved = store.save(entry_of("ours", {}))

    def change(number: int) -> bool:
        try:
            return store.change(saved.id, 1, note=f"of {number}").note == f"of {number}"
        except Conflict:
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(change, range(8))) == 1
    assert store.get(saved.id).revision == len(store.history(saved.id)) == 2


def test_a_database_that_was_restarted_costs_no_visitor_an_error(store: Store, cluster: str) -> None:
    """Every connection of the pool is dead, not only the one that is taken first."""
    saved = store.save(entry_of("ours", {}))
    with ExitStack() as at_once:
        for _ in range(3):
            at_once.enter_context(store._engine.connect())
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'store'"
    killer = create_engine(cluster)
    with killer.connect() as connection:
        assert connection.execute(text(others)).rowcount >= 3
    killer.dispose()
    assert store.change(saved.id, 1, note="another").revision == 2
    with ThreadPoolExecutor(4) as threads:
        assert len({one.total for one in threads.map(lambda _: store.find(), range(4))}) == 1


def test_connections_that_were_needed_at_once_are_kept(empty: str) -> None:
    engine, made = make_engine(empty), list[object]()
    event.listen(engine, "connect", lambda connection, _: made.append(connection))
    for _ in range(2):
        with ExitStack() as at_once:
            for _ in range(limit("database_connections")):
                at_once.enter_context(engine.connect())
    assert len(made) == limit("database_connections")
    engine.dispose()


def test_a_row_that_another_holds_is_waited_for_and_then_given_up(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.store.engine.WAIT_S", 1)
    waiting = Store.open(empty)
    saved = waiting.save(entry_of("ours", {}))
    holder = create_engine(empty)
    with holder.begin() as connection:
        connection.execute(PLANS.update().values(note="held"))
        with pytest.raises(StoreError, match="Another process"):
            waiting.change(saved.id, 1, note="mine")
        connection.rollback()
    holder.dispose()
    assert waiting.change(saved.id, 1, note="mine").note == "mine"
    waiting.close()
