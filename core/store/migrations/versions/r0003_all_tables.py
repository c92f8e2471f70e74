"""Plans and the history of their changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "plans",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("searched", sa.Text, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("archived", sa.Integer, nullable=False),
        sa.Column("form_version", sa.Integer, nullable=False),
        sa.Column("knowledge", sa.Text, nullable=False),
        sa.Column("results", sa.Text, nullable=False),
        sa.Column("texts", sa.Text, nullable=False),
    )
    op.create_index("plans_newest", "plans", ["archived", "changed", "id"])
    op.create_index("plans_tags", "plans", ["archived", "tags"])
    op.create_table(
        "plan_changes",
        sa.Column("plan", sa.String(32), sa.ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("edits", sa.Text, nullable=False),
    )
