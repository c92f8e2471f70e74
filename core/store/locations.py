"""Locations of stored data: a folder of the user, or a folder or database that the environment names."""

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
    """Return ``NAPKIN_DATA``, or ~/.local/share/napkin."""
    return Path(os.environ.get("NAPKIN_DATA") or Path("~/.local/share/napkin").expanduser()).absolute()


def address() -> str | Path:
    """Return ``DATABASE_URL``, or a file in the `data_folder`."""
    return os.environ.get("DATABASE_URL") or data_folder() / "napkin.db"


def plan_store() -> Store:
    """Return the store of this process, opened when first needed. Raises `StoreError`, and retries the next time.

    One thread imports the database's library, which takes half a second, and the others wait. No thread waits for the
    connection of another, because an unreachable database takes seconds to fail.
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
