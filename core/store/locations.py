"""Where this process keeps things: a folder of the user's, or one, or a database, that the environment names."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.store.store import Store

_lock = threading.Lock()
_stores: dict[str | Path, Store] = {}


def data_folder() -> Path:
    """``NAPKIN_DATA``, or ~/.local/share/napkin: of all servers of a machine that belong together."""
    return Path(os.environ.get("NAPKIN_DATA") or Path("~/.local/share/napkin").expanduser()).absolute()


def address() -> str | Path:
    """``DATABASE_URL``; without one, a file in the `data_folder`."""
    return os.environ.get("DATABASE_URL") or data_folder() / "napkin.db"


def plan_store() -> Store:
    """The store of this process, opened when it is first needed. Raises `StoreError`, and tries anew the next time.

    One thread imports the database's library, which half a second of processor time is spent on, and the others wait.
    Nobody waits for another's connection: a database that is away takes seconds to say so.
    """
    where = address()
    if where not in _stores:
        with _lock:
            from core.store.store import Store

        store = Store.open(where)
        with _lock:
            if _stores.setdefault(where, store) is not store:
                store.close()
    return _stores[where]
