"""The store's own tests once more, in PostgreSQL: the same laws, the same search, the same conflicts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, event, make_url, text

from core.limits import LIMITS, Limit, limit
from core.planning.comparison.entry import entry_of
from core.store.engine import make_engine
from core.store.errors import Conflict, StoreError
from core.store.plans import SavedPlan
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


Act = Callable[[Store, SavedPlan], object]


def archived(store: Store, plan: SavedPlan) -> SavedPlan:
    return store.archive(plan.id, "Ada")


ACTS: dict[str, tuple[Act, int]] = {
    "get": (lambda store, plan: store.get(plan.id), 1),
    "history": (lambda store, plan: store.history(plan.id), 1),
    "find": (lambda store, plan: store.find("ours"), 2),
    "save": (lambda store, plan: store.save(plan.entry, "a note", ["a tag"], "Ada"), 1),
    "change": (lambda store, plan: store.change(plan.id, 1, note="another", who="Ada"), 2),
    "archive": (archived, 2),
    "forget": (lambda store, plan: store.forget(archived(store, plan).id), 3),
}
"""What is done with a plan that was just saved, and how often the database is waited for then."""


def left(act: Act, store: Store) -> object:
    """Everything that the database holds after ``act``, with neither ids nor times."""
    plan = store.save(entry_of("ours", {}))
    act(store, plan)
    found = [*store.find().plans, *store.find(archived=True).plans]
    told = [[(change.revision, change.who, change.edits) for change in store.history(one.id)] for one in found]
    return [(one.entry, one.note, one.tags, one.owner, one.revision, one.archived) for one in found], told


@pytest.mark.parametrize("act", ACTS)
def test_a_database_that_was_restarted_costs_no_visitor_an_error(store: Store, cluster: str, act: str) -> None:
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
    ACTS[act][0](store, saved)
    with ThreadPoolExecutor(4) as threads:
        assert len({one.total for one in threads.map(lambda _: store.find(), range(4))}) == 1


@contextmanager
def losing(store: Store, moment: str, nth: int) -> Iterator[list[int]]:
    """The connection is lost at the ``nth`` statement from now; gives the numbers of those that were sent."""
    sent = list[int]()

    def lose(connection: Connection, *_: object) -> None:
        sent.append(len(sent))
        if sent[-1] == nth:
            driven = connection.connection.driver_connection
            assert driven
            driven.close()
            raise psycopg.OperationalError("the connection was lost")

    event.listen(store._engine, f"{moment}_cursor_execute", lose)
    yield sent
    event.remove(store._engine, f"{moment}_cursor_execute", lose)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
def test_a_connection_that_is_lost_loses_nothing_and_doubles_nothing(act: str, moment: str) -> None:
    """Before the database has read a statement, or after it has done it and before it could say so; any statement."""
    done = ACTS[act][0]
    with cases.fresh() as store:
        wanted = left(done, store)
    for nth in itertools.count():
        with cases.fresh() as store, losing(store, moment, nth) as sent:
            assert left(done, store) == wanted
        if nth not in sent:
            return


def test_the_last_plan_that_may_be_saved_is_saved_though_its_answer_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "saved_plans", Limit(1, "plans", "a test"))
    with losing(store, "after", 0):
        saved = store.save(entry_of("ours", {}))
    assert store.find().plans == (saved,)
    with pytest.raises(StoreError, match="the maximum"):
        store.save(entry_of("ours", {}))


@pytest.mark.parametrize("act", ACTS)
def test_how_often_the_database_is_waited_for(store: Store, tmp_path: Path, act: str) -> None:
    """By the protocol's own record; a thread that waits queues for the interpreter each time it goes on."""
    done, most = ACTS[act]
    plans = [store.save(entry_of("ours", {})) for _ in range(9)]  # the driver prepares what is asked more often
    for plan in plans[:8]:
        done(store, plan)
    with (tmp_path / "said").open("ab") as out:
        held = store._engine.raw_connection()  # the one that is taken next
        driven: psycopg.Connection = held.driver_connection  # type: ignore[assignment]
        driven.pgconn.trace(out.fileno())
        held.close()
        done(store, plans[8])
        driven.pgconn.untrace()
    assert (tmp_path / "said").read_text().count("ReadyForQuery") == most


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
