"""Saved plans in sentences and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from core.data_version import data_version
from core.dates import format_day as day
from core.fields import clipped
from core.planning.comparison.comparison import ComparedPlan, calendar_result, changed_results, compare_plan
from core.planning.comparison.entry import RESULTS, Entry
from core.planning.cost.form import CALENDAR_FORM
from core.store.plans import ARCHIVED, NAME, NOTE, RESULT, TAGS, Change, Edit, PlanPage, SavedPlan
from core.views.calendar import text as calendar_text
from core.views.common.rows import row_label
from core.views.comparison.text import shown
from core.views.plan import text as plan_text
from core.wording import plural

_BEGINS = 70
"""Characters of a note that a row shows."""

_OWN = {NAME: "name", NOTE: "note", TAGS: "tags"}

NOTHING = "No plan is saved yet."
HOW_TO = (
    "“Save” at the top of every page of planning keeps the plan shown there, with its name, "
    "for everybody who uses this Napkin; “Save these plans” on Compare keeps all of them."
)
ALL = "Each is kept under its name, for everybody who uses this Napkin. One that is saved just so is not saved again."


def counted(page: PlanPage, text: str, tags: Sequence[str], *, archived: bool) -> str:
    """How many plans there are, or were found."""
    kind = "archived plan" if archived else "saved plan"
    looked = " with all of that" if text.strip() or tags else ""
    return f"**{page.total:,}** {plural(page.total, kind)}{looked}." if page.total else f"No {kind}{looked}."


def moment(when: datetime) -> str:
    """``22 Nov 2026, 10:54 UTC``."""
    return f"{day(when.date())}, {when:%H:%M} UTC"


def by(who: str) -> str:
    """`` by Ada``; empty where nobody signed in."""
    return f" by {who}" if who else ""


def state(plan: SavedPlan) -> str:
    """When it was saved and changed, and by whom first."""
    changed = f" · changed {moment(plan.changed)}, revision {plan.revision}" if plan.revision > 1 else ""
    return f"Saved{by(plan.owner)} {moment(plan.made)}{changed}"


def result(plan: SavedPlan, name: str) -> str:
    """A result as it was when saved; ``unknown`` where it was."""
    return shown(name, plan.entry.results[name]) if name in plan.entry.results else "unknown"


def remark(plan: SavedPlan) -> str:
    """The quieter line under a plan's name: that something is wrong with it, and how its note begins."""
    line = plan.note.partition("\n")[0]
    begins = line if len(line) <= _BEGINS else f"{line[:_BEGINS].rstrip()}…"
    return " · ".join(filter(None, ("cannot be read in full" if plan.problems else "", begins)))


def since(plan: SavedPlan) -> Mapping[str, tuple[str, str]]:
    """Results that data or formulas have changed since it was saved: then and now. Nothing is worked out where neither
    has changed."""
    if plan.data_version == data_version():
        return {}
    return {name: (shown(name, old), shown(name, new)) for name, old, new in changed_results(compare_plan(plan.entry))}


def answered(plan: ComparedPlan) -> str:
    """What the plan comes to now, in a sentence."""
    return plan_text.headline(plan.answer) if plan.answer else f"No answer: {plan.problem}"


def calendar(plan: SavedPlan) -> str:
    """What a saved calendar comes to now, in a sentence."""
    item = calendar_result(plan.entry)
    if item.schedule is None:
        return f"No answer: {item.problem}"
    return calendar_text.sentence(item.schedule, item.ways[0])


def back_to(edits: Sequence[Edit]) -> tuple[tuple[str, str, str], ...]:
    """What has changed since a revision: the field, as it was then, as it is now."""
    asked = (e for e in edits if e.field != ARCHIVED and not e.field.startswith(RESULT))
    return tuple((label(e.field), _clipped(e.old), _clipped(e.new)) for e in asked)


def no_way_back(revision: int) -> str:
    """That nothing is kept of a revision."""
    return (
        f"Revision {revision} cannot be brought back: not everything that was changed since is kept, or it was saved "
        "with fields that mean something else now."
    )


def edit(item: Edit) -> str:
    """``Tokens: 15T → 10T``."""
    if item.field == ARCHIVED:
        return "archived" if item.new == "true" else "back on the list"
    if item.field.startswith(RESULT):
        name = item.field.removeprefix(RESULT)
        return f"{row_label(name) if name in RESULTS else name}: {_amount(name, item.old)} → {_amount(name, item.new)}"
    return f"{label(item.field)}: {_clipped(item.old)} → {_clipped(item.new)}"


def change(item: Change) -> str:
    """All edits of a revision; the first one saved it."""
    return "; ".join(edit(e) for e in item.edits) or ("saved" if item.revision == 1 else "worked out anew")


def label(field: str) -> str:
    """What a field is called: its label in the form, or what a history calls it."""
    known = {field.id: field.label for field in CALENDAR_FORM.fields} | _OWN
    return known.get(field, field)


def differences(old: Entry, new: Entry) -> tuple[Edit, ...]:
    """The fields in which two plans differ."""
    return tuple(Edit(name, old.texts[name], text) for name, text in new.texts.items() if text != old.texts[name])


def changed_meanwhile(plan: SavedPlan) -> str:
    """That somebody else has changed a plan since it was opened."""
    return (
        f"“{plan.entry.name}” was changed meanwhile: it is at revision {plan.revision} of {moment(plan.changed)} now. "
        "Nothing of yours was saved yet."
    )


REPLACED = "The plan was replaced before it was saved. Undo that, then save again."
"""Why nothing was saved where another plan has taken the place of the one that was to be saved."""


def _clipped(text: str) -> str:
    return clipped(text.replace("\n", " ")) or "empty"


def _amount(name: str, text: str) -> str:
    try:
        return shown(name, float(text)) if text else "unknown"
    except ValueError:
        return "unknown"
