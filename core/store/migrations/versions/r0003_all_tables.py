"""All tables: plans and the history of their changes, measurements and their results, measured collectives.

Its number is that of the third script before the first release, so that a database made by those three opens as it is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = None


def upgrade() -> None:
    """Make them."""
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
    op.create_table(
        "measurements",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("imported", sa.Integer, nullable=False),
        sa.Column("kept", sa.BigInteger, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("results", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
    )
    op.create_index("measurements_newest", "measurements", ["started", "id"])
    op.create_table(
        "measurement_points",
        sa.Column("measurement", sa.String(32), sa.ForeignKey("measurements.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("outcome", sa.Text, nullable=False),
    )
    op.create_table(
        "collectives",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kept", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
    )
