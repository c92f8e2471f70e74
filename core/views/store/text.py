"""Messages and rows of saved plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from core.data_version import data_version
from core.dates import format_day
from core.fields import clipped
from core.messages import Message, message
from core.planning.comparison.comparison import ComparedPlan, changed_results, compare_plan
from core.planning.comparison.entry import RESULTS, Entry
from core.planning.decide.decision import DECIDE_FORM, decide
from core.store.plans import ARCHIVED, NAME, NOTE, RESULT, TAGS, Change, Edit, PlanPage, SavedPlan
from core.views.common.rows import row_label
from core.views.comparison.text import shown
from core.views.decide import text as decide_text
from core.views.plan import text as plan_text

_BEGINS = 70
"""Characters of a note that a row shows."""

_LABELS = {NAME: "saved.name", NOTE: "saved.note", TAGS: "saved.field.tags"}


def count_text(page: PlanPage, *, searched: bool, archived: bool) -> Message:
    """Return how many plans there are, or match a search."""
    total = float(page.total)
    if searched:
        return message("saved.count_found", plans=total)
    return message("saved.count_archived" if archived else "saved.count", plans=total)


def moment_text(when: datetime) -> Message:
    """Return a time as ``22 Nov 2026, 10:54 UTC``."""
    return message("saved.moment", day=format_day(when.date()), time=f"{when:%H:%M}")


def state_text(plan: SavedPlan) -> list[Message]:
    """Return when and by whom a plan was saved, and when it was changed."""
    made, changed = moment_text(plan.made), moment_text(plan.changed)
    said = message("saved.made_by", who=plan.owner, when=made) if plan.owner else message("saved.made", when=made)
    if plan.revision == 1:
        return [said]
    return [said, message("saved.changed", revision=float(plan.revision), when=changed)]


def result_text(plan: SavedPlan, name: str) -> str:
    """Return a result as it was when saved."""
    results = plan.entry.results
    return shown(name, results[name]) if name in results else message("saved.unknown")


def remark_text(plan: SavedPlan) -> str:
    """Return the remark under a plan’s name: whether it is damaged, and how its note begins."""
    line = plan.note.partition("\n")[0]
    begins = line if len(line) <= _BEGINS else f"{line[:_BEGINS].rstrip()}…"
    return " · ".join(filter(None, (message("saved.damaged") if plan.problems else "", begins)))


def changes_since(plan: SavedPlan) -> Mapping[str, tuple[str, str]]:
    """Return results that new data or formulas have changed since a plan was saved: before and now, by name."""
    if plan.data_version == data_version():
        return {}
    return {name: (shown(name, old), shown(name, new)) for name, old, new in changed_results(compare_plan(plan.entry))}


def answer(plan: ComparedPlan) -> Message:
    """Return a saved plan's result as of now."""
    return plan_text.headline(plan.answer) if plan.answer else message("saved.no_answer", problem=plan.problem)


def decision_answer(plan: SavedPlan) -> str:
    """Return a saved decision's result as of now, and the choice."""
    d = decide(plan.entry.reading)
    return " ".join(filter(None, (decide_text.answer(d), decide_text.record(d, plan.entry.reading.texts))))


def changed_fields(edits: Sequence[Edit]) -> tuple[tuple[str, str, str], ...]:
    """Return the fields that have changed since a revision: label, before, and now."""
    fields = (e for e in edits if e.field != ARCHIVED and not e.field.startswith(RESULT))
    return tuple((label(e.field), _clipped(e.old), _clipped(e.new)) for e in fields)


def edit_text(item: Edit) -> Message:
    """Return an edit as ``Tokens: 15T → 10T``."""
    if item.field == ARCHIVED:
        return message("saved.edit.archived" if item.new == "true" else "saved.edit.restored")
    name = item.field.removeprefix(RESULT)
    if name != item.field:
        field, old, new = row_label(name) if name in RESULTS else name, _amount(name, item.old), _amount(name, item.new)
    else:
        field, old, new = label(name), _clipped(item.old), _clipped(item.new)
    return message("saved.edit", field=field, old=old, new=new)


def change_text(item: Change) -> Message:
    """Return all edits of a revision."""
    if item.edits:
        return message("saved.change", edits=list(map(edit_text, item.edits)))
    return message("saved.change.first" if item.revision == 1 else "saved.change.recalculated")


def label(field: str) -> str:
    """Return the label of a field, or of the name, note, or tags."""
    if field in _LABELS:
        return message(_LABELS[field])
    return next((known.label for known in DECIDE_FORM.fields if known.id == field), field)


def differences(old: Entry, new: Entry) -> tuple[Edit, ...]:
    """Return the fields in which two plans differ."""
    return tuple(Edit(name, old.texts[name], text) for name, text in new.texts.items() if text != old.texts[name])


def _clipped(text: str) -> str:
    return clipped(text.replace("\n", " ")) or message("saved.empty")


def _amount(name: str, text: str) -> str:
    try:
        return shown(name, float(text)) if text else message("saved.unknown")
    except ValueError:
        return message("saved.unknown")
