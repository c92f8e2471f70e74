"""Comments on saved plans and calendars: who said what of one, and when. They are no revision of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from pydantic import BaseModel
from sqlalchemy import Engine, delete, func, insert, select

from core.limits import limit
from core.store.engine import transaction
from core.store.errors import StoreError
from core.store.plans import Comment
from core.store.rows import Moment, RowText, moment, read_cells
from core.store.tables import COMMENTS, PLANS
from core.wording import cleaned


class _CommentRow(BaseModel):
    id: RowText = ""
    made: Moment = 0
    who: RowText = ""
    text: RowText = "(cannot be read)"


class Comments:
    """The comments of one database. Every method raises `StoreError` where it cannot do what it says.

    clock: microseconds since 1970, UTC.
    """

    def __init__(self, engine: Engine, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    def of(self, plan: str) -> tuple[Comment, ...]:
        """All about a plan, the first one first; what cannot be read of one says so."""
        c = COMMENTS.c
        wanted = select(COMMENTS).where(c.plan == plan).order_by(c.made, c.id).limit(limit("plan_comments"))
        with transaction(self._engine) as connection:
            rows = [read_cells(_CommentRow, dict(row))[0] for row in connection.execute(wanted).mappings()]
        return tuple(Comment(row.id, moment(row.made), row.who, row.text) for row in rows)

    def add(self, plan: str, text: str, who: str = "") -> None:
        """Say something about a plan."""
        comment, most = cleaned(text, limit("comment_chars"), lines=True), limit("plan_comments")
        if not comment:
            raise StoreError("The comment is empty.")
        row = {"id": secrets.token_hex(8), "plan": plan, "made": self._clock(), "text": comment}
        row["who"] = cleaned(who, limit("plan_owner"))
        with transaction(self._engine, writes=True) as connection:
            if connection.execute(select(PLANS.c.id).where(PLANS.c.id == plan)).first() is None:
                raise StoreError("This plan is no longer here: it was deleted, or it is of another database.")
            there = select(func.count()).select_from(COMMENTS).where(COMMENTS.c.plan == plan)
            if connection.execute(there).scalar_one() >= most:
                raise StoreError(f"{most:,} comments are kept of a plan. Delete one that nobody needs, and try again.")
            connection.execute(insert(COMMENTS).values(row))

    def remove(self, id: str) -> None:
        """Delete one for good; nothing where it is gone already."""
        with transaction(self._engine, writes=True) as connection:
            connection.execute(delete(COMMENTS).where(COMMENTS.c.id == id))
