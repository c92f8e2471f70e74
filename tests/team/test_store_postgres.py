"""The store's own tests once more, in PostgreSQL: the same laws, the same search, the same conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from sqlalchemy import create_engine, make_url, text

from core.planning.compare.entry import entry_of
from core.store import Conflict, StoreError
from core.store.engine import make_engine
from core.store.store import Store
from core.store.tables import CHANGES, MEASUREMENTS, PLANS, POINTS
from tests.core import store_cases as cases
from tests.core import test_store as laws
from tests.core import test_store_measurements as measured_laws

# The store's own tests and fixtures, collected here as well; each asks `cases.fresh` for its database.
for module in (laws, measured_laws):
    globals().update({name: one for name, one in vars(module).items() if name.startswith("test_")})
store, shared = laws.store, laws.shared
clock, kept, shared_kept = measured_laws.clock, measured_laws.kept, measured_laws.shared_kept


@pytest.fixture(scope="module")
def empty(cluster: str) -> str:
    """Address of a database without tables."""
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
            for table in (CHANGES, PLANS, POINTS, MEASUREMENTS):
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
    saved = store.save(entry_of("ours", {}))
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'store'"
    killer = create_engine(cluster)
    with killer.connect() as connection:
        assert connection.execute(text(others)).rowcount > 0
    killer.dispose()
    assert store.get(saved.id) == saved


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
