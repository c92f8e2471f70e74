"""Saved plans and their history, as they come out of the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.planning.comparison.entry import Entry

RESULT = "_"
"""Before the name of a result in a history: that of a field has none."""

NAME, NOTE, TAGS, ARCHIVED = "name", "note", "tags", "archived"
"""What a history calls that of a plan which is no field of it."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan as it was kept.

    owner: who saved it; empty without sign-in. made, changed: in UTC. revision: 1 when saved, one more with each
    change. data_version: of `core.data_version` when its results were worked out. problems: what could not be read of
    the row; where there are any, its fields can be looked at and copied, not changed.
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


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: the id of a field, `NAME`, `NOTE`, `TAGS`, `ARCHIVED`, or a result under `RESULT`; old and new
    text, empty where there was or is none."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Change:
    """A revision: when it was made, by whom, and what it changed; nothing in the first. whole: whether all of its row
    could be read."""

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
