"""Plans to save that no page would send, each known by its number."""

from __future__ import annotations

import random

from core.planning.comparison.entry import Entry, entry_of
from core.planning.form.plan_form import PLAN_FORM

_FIELDS = [field.id for field in PLAN_FORM.fields]


def plan(number: int) -> tuple[Entry, str, tuple[str, ...], str]:
    """What `Store.save` takes: any of a plan's fields with any text, a note, tags, an owner; its name is the number."""
    chance = random.Random(number)

    def text(most: int) -> str:
        return "".join(chance.choices("aZ09 ,;'\"\\-=%_ü€漢\n", k=chance.randint(0, most))).strip()

    fields = {field: text(40) for field in chance.sample(_FIELDS, chance.randint(0, 12))}
    return entry_of(f"{number}", fields), text(1500), (f"tag {number}",), f"owner {number}"
