"""Plans to save, and stores to save them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from sqlalchemy import event

from core.limits import limit
from core.planning.comparison.entry import RESULTS, Entry, entry_of
from core.planning.form.plan_form import PLAN_FORM
from core.store.engine import make_engine
from core.store.errors import StoreError
from core.store.rows import cleaned, tags_of
from core.store.store import Store

RESULT = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.dictionaries(st.sampled_from([one.id for one in PLAN_FORM.fields]), st.text(max_size=20), max_size=8)
NAMES = st.text(min_size=1, max_size=90).map(lambda text: cleaned(text, limit("plan_name"))).filter(bool)
NOTES = st.text(max_size=60).map(lambda text: cleaned(text, limit("plan_note"), lines=True))
TAGS = st.lists(st.text(max_size=30), max_size=10).map(tags_of)
ENTRIES = st.builds(
    lambda name, texts, results: Entry(name, entry_of(name, texts).texts, results),
    NAMES,
    TEXTS,
    st.dictionaries(st.sampled_from(RESULTS), RESULT),
)
"""Any text in any field, as a page would never send it and a database has to keep it."""


def address(folder: Path) -> str:
    """That of a database in ``folder``."""
    return f"sqlite:///{folder / 'napkin.db'}"


@contextmanager
def fresh() -> Iterator[Store]:
    """An empty store, gone afterwards: one that does not wait for the disk, because many are tried."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "napkin.db").write_bytes(_empty())
        engine = make_engine(address(Path(folder)))
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        store = Store(engine)
        yield store
        store.close()


@lru_cache(maxsize=1)
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        Store.open(address(Path(folder))).close()
        return (Path(folder) / "napkin.db").read_bytes()


@contextmanager
def said(id: str, advice: str = "") -> Iterator[pytest.ExceptionInfo[StoreError]]:
    """Fail unless this error is raised, with this advice."""
    with pytest.raises(StoreError) as raised:
        yield raised
    (message,) = raised.value.args
    assert (message.id, message.values["advice"].id if advice else "") == (id, advice)
