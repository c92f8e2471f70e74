"""What is said where a plan does not go into the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from core.fields import clipped
from core.limits import limit
from core.planning.comparison.entry import Entry


def full() -> str:
    """That no more plans fit, and that nothing is lost."""
    return (
        f"The comparison already holds {limit('compared_plans')} plans, as many as can be read side by side. "
        "Remove one on Compare first; these stay as they are."
    )


def no_room(entries: Sequence[Entry]) -> str:
    """Which plans of a file are left out of a comparison that is full; empty where none is."""
    names = ", ".join(f"“{clipped(entry.name)}”" for entry in entries)
    return f"Left out of the comparison: {names}. {full()}" if entries else ""


def already_in(entry: Entry) -> str:
    """That a plan is in the comparison already."""
    return f"This very plan is in the comparison already, as “{clipped(entry.name)}”."
