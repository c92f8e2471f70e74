"""Comments on saved plans and calendars."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "plan_comments",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("plan", sa.String(32), sa.ForeignKey("plans.id", ondelete="CASCADE"), nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("plan_comments_in_order", "plan_comments", ["plan", "made", "id"])
