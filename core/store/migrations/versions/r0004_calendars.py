"""Calendars are saved beside plans: what a row is. All that were saved before are plans."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("plans", sa.Column("kind", sa.String(16), nullable=False, server_default="plan"))
