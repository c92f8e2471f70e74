"""Kept collectives: what a file said is what is read, once however often it comes, and a broken row hides no other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from sqlalchemy import update

from core.limits import LIMITS, Limit
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.links import Links
from core.store.tables import COLLECTIVES
from tests.core import store_cases as cases
from tests.core.collectives_cases import made, timing


class Clock:
    """Seconds apart, in microseconds."""

    now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now


@pytest.fixture
def links() -> Iterator[Links]:
    with cases.fresh() as store:
        yield Links(store._engine, Clock())


def test_what_was_kept_is_read_newest_first_and_once(links: Links) -> None:
    first, second = made(), made(timings=(timing("send-recv", 1024, 1e-4),), versions="é\u4e00")
    ids = [links.keep(item, item.versions) for item in (first, second, first)]
    assert ids[0] == ids[2] != ids[1]
    assert [item.id for item in links.all()] == [ids[1], ids[0]]
    assert [item.name for item in links.all()] == [second.versions, first.versions]
    assert links.all()[0].kept > links.all()[1].kept
    assert [links.get(item) for item in ids] == [first, second, first]


def test_the_same_on_another_day_is_the_same(links: Links) -> None:
    later = made(day=date(2026, 3, 5))
    assert links.keep(made(), "a") == links.keep(later, "b")
    assert [links.get(item.id) for item in links.all()] == [made()]


def test_a_row_of_the_older_benchmark_is_named_so(links: Links) -> None:
    first = links.keep(made(), "a")
    older = {"result": '{"format":"napkin-collectives","version":1}'}
    with transaction(links._engine, writes=True) as connection:
        connection.execute(update(COLLECTIVES).values(older))
    with pytest.raises(StoreError, match="older Napkin"):
        links.get(first)


def test_what_was_removed_is_gone_and_may_be_removed_again(links: Links) -> None:
    first = links.keep(made(), "a")
    links.remove(first)
    links.remove(first)
    assert links.all() == ()
    with pytest.raises(StoreError, match="no longer here"):
        links.get(first)


def test_there_are_as_many_as_may_be(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "collectives_kept", Limit(1, "files", "few"))
    first = links.keep(made(), "a")
    with pytest.raises(StoreError, match="Remove one"):
        links.keep(made(versions="2.0"), "b")
    assert links.keep(made(), "a") == first
    links.remove(first)
    assert links.keep(made(versions="2.0"), "b") != id


@pytest.mark.parametrize(
    "broken", [{"result": "{}"}, {"result": b"\xff"}, {"result": ""}, {"kept": -5}, {"kept": 2**62}, {"name": "\u202e"}]
)
def test_a_broken_row_hides_no_other(links: Links, broken: dict[str, object]) -> None:
    first, other = links.keep(made(), "a"), links.keep(made(versions="2.0"), "b")
    with transaction(links._engine, writes=True) as connection:
        connection.execute(update(COLLECTIVES).where(COLLECTIVES.c.id == first).values(broken))
    assert {item.id for item in links.all()} == {first, other}
    assert all(item.name for item in links.all())
    assert links.get(other) == made(versions="2.0")
    if "result" in broken:
        with pytest.raises(StoreError, match="cannot be read"):
            links.get(first)
    links.remove(first)
    assert [item.id for item in links.all()] == [other]
