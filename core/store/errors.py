"""Errors of saved plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages import message

if TYPE_CHECKING:
    from core.store.plans import SavedPlan


class StoreError(Exception):
    """A plan or a measurement that cannot be read or written. Nothing was written. The message says what to do."""


class Conflict(StoreError):  # noqa: N818 - it is no fault
    """Another user has changed the plan. newer: the plan as it is now."""

    def __init__(self, newer: SavedPlan) -> None:
        super().__init__(message("store.error.conflict", plan=newer.entry.name, revision=float(newer.revision)))
        self.newer = newer
