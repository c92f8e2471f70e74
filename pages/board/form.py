"""What the what-if board asks: the fields of a plan, and those of the board."""

from __future__ import annotations

from core.fields import switch
from core.planning.answer.form import plan_form
from core.planning.board.form import BOARD_FIELDS
from core.planning.board.stories import BOARD_STORIES

PANELS = {"table": switch("table", "The table behind it, to sort and to take away", False, part="panels")}
"""Titles of the panels."""

_FIRST = next(iter(BOARD_STORIES.values()))
_OWN = {one.id for one in BOARD_FIELDS}

FORM = plan_form(
    "w",
    *(one.with_default(_FIRST[one.id]) for one in BOARD_FIELDS),
    *PANELS.values(),
    **{name: text for name, text in _FIRST.items() if name not in _OWN},
)
"""It begins with the first chip."""
