"""Measured collectives."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "collectives",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kept", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
    )
