"""Saved plans and their history, as they come out of the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.planning.comparison.entry import Entry

RESULT = "_"
"""Prefix of a result in a history."""

NAME, NOTE, TAGS, ARCHIVED = "name", "note", "tags", "archived"
"""Parts of a plan in a history that are not fields."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A saved plan.

    owner: who saved it; empty without sign-in. made, changed: in UTC. revision: 1 when saved, plus one for each change.
    data_version: `core.data_version` of its results. problems: what cannot be read; a plan with any cannot be changed.
    dropped: what an older version had and this one does not, as a notice.
    """

    id: str
    entry: Entry
    note: str
    tags: tuple[str, ...]
    owner: str
    made: datetime
    changed: datetime
    revision: int
    archived: bool
    data_version: str
    problems: tuple[str, ...] = ()
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: the id of a field, `NAME`, `NOTE`, `TAGS`, `ARCHIVED`, or a result under `RESULT`; old and new text,
    empty if there was or is none."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Change:
    """A revision: when it was made, by whom, and what it changed; nothing in the first. whole: whether its row could be
    read."""

    revision: int
    when: datetime
    who: str
    edits: tuple[Edit, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class PlanPage:
    """A page of plans, newest first, and how many there are in all."""

    plans: tuple[SavedPlan, ...]
    total: int
