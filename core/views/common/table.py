"""Tables, written column by column: each heading beside the cells under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from core.messages import Message

Table: TypeAlias = tuple[tuple[Message, ...], list[tuple[str, ...]]]
"""Headings, and rows of cells."""


def table_of(columns: Mapping[Message, Sequence[str]]) -> Table:
    """Return columns by heading as a table."""
    return tuple(columns), list(zip(*columns.values(), strict=True))
