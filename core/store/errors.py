"""What goes wrong with saved plans, in words that a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.store.plans import SavedPlan


class StoreError(Exception):
    """A plan or a measurement cannot be read or written, and nothing was. The message says why and what helps."""


class Conflict(StoreError):  # noqa: N818 - it is no fault
    """Somebody else has changed the plan meanwhile. newer: the plan as it is now."""

    def __init__(self, newer: SavedPlan) -> None:
        super().__init__(
            f"“{newer.entry.name}” was changed meanwhile: it is at revision {newer.revision} now. Nothing was saved."
        )
        self.newer = newer
