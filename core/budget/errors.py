"""What cannot be worked out."""

from __future__ import annotations


class BudgetError(ValueError):
    """A budget that cannot be worked out. ``field`` names the quantity at fault; the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
