"""Measurements and their results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make both tables."""
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
