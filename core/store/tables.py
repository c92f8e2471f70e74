"""The tables that are read. `core.store.migrations` makes them, and those of measurements that older versions kept."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, String, Table, Text

HEAD = "0005"
"""The version of the database that this code reads and writes."""

META = MetaData()

PLANS = Table(
    "plans",
    META,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("tags", Text, nullable=False),  # each between line breaks, so that one is found by "\ntag\n"
    Column("owner", Text, nullable=False),
    Column("searched", Text, nullable=False),  # before the long columns, which a search then need not read
    Column("made", BigInteger, nullable=False),  # microseconds from 1970, UTC, as every time here
    Column("changed", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("archived", Integer, nullable=False),
    Column("form_version", Integer, nullable=False),
    Column("knowledge", Text, nullable=False),
    Column("results", Text, nullable=False),
    Column("texts", Text, nullable=False),  # JSON in ASCII, which carries any text into any database and back
    Column("kind", String(16), nullable=False, server_default="plan"),  # or "decision", once "calendar"
    Index("plans_newest", "archived", "changed", "id"),
    Index("plans_tags", "archived", "tags"),
)

CHANGES = Table(
    "plan_changes",
    META,
    Column("plan", String(32), ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("changed", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("edits", Text, nullable=False),
)

COMMENTS = Table(
    "plan_comments",
    META,
    Column("id", String(32), primary_key=True),
    Column("plan", String(32), ForeignKey("plans.id", ondelete="CASCADE"), nullable=False),
    Column("made", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index("plan_comments_in_order", "plan", "made", "id"),
)
