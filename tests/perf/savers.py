"""Visitors who save plans: what they were told is saved, and whether it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.store.store import Store
from pages.common.registry import COMPUTE
from tests.perf.client import Run, Session

_SAVED = re.compile(r"Saved as “(.*?)”.*?r_plan=([0-9a-f]+)")
SAVING = 0.1
"""Share of changes that are saves."""
FOLD, NAME, SAVE = "compute:saving", "c_save_name", "c_save"


async def to_save(session: Session) -> None:
    """Go to Compute budget and open the box that saves its plan."""
    await session.open(COMPUTE.url_path)
    await session.rerun(unfold=FOLD)


async def save(session: Session, name: str) -> tuple[Run, str]:
    """Save the plan on the page under this name: the run, and the id of the plan if it says that it is saved."""
    run = await session.rerun({NAME: name}, press=SAVE)
    anies = [plan for text in run.html for result, plan in _SAVED.findall(text) if result == name]
    return run, anies[-1] if anies else ""


def lost(address: str, confirmed: Mapping[str, str]) -> list[str]:
    """Of confirmed saves (id → name), those that the database does not hold, or holds as something else, or torn."""
    store = Store.open(address)
    try:
        return [
            plan.id
            for plan, name in ((store.get(key), name) for key, name in confirmed.items())
            if plan.entry.name != name or plan.problems or [change.revision for change in store.history(plan.id)] != [1]
        ]
    finally:
        store.close()
