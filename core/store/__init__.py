"""Saved plans: kept in SQLite or PostgreSQL, each with the history of its changes.

What a page needs before it looks into the database stands here; the database's own library is imported by
`core.store.where.opened`.
"""

from core.store.errors import Conflict, StoreError
from core.store.rows import Change, Edit, Found, SavedPlan

__all__ = ["Change", "Conflict", "Edit", "Found", "SavedPlan", "StoreError"]
