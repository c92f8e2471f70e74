"""Rows of the database as plans. A row is untrusted: whatever it contains becomes a plan with problems, never an
exception."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, Json, ValidationError

from core.fields import LINK_VERSION, VERSION
from core.limits import limit
from core.messages import message
from core.planning.comparison.entry import FORMS, RESULTS, Entry, EntryKind, entry_of
from core.planning.form.plan_form import ACCELERATOR, MODEL_NAME
from core.store.plans import ARCHIVED, NAME, NOTE, RESULT, TAGS, Change, Edit, SavedPlan
from core.wording import cleaned

LAST = 253_402_300_799_999_999
"""Microseconds from 1970 to the end of the year 9999."""


_Model = TypeVar("_Model", bound=BaseModel)
Moment = Annotated[int, Field(ge=0, le=LAST)]
RowText = Annotated[str, Field(max_length=limit("saved_chars"))]


class _PlanRow(BaseModel):
    """A row of plans. Unreadable cells have the defaults."""

    id: RowText = ""
    name: RowText = str(message("store.unreadable"))
    note: RowText = ""
    tags: RowText = ""
    owner: RowText = ""
    texts: Json[dict[str, str]] = Field(default_factory=dict[str, str])
    form_version: Annotated[int, Field(ge=1)] = LINK_VERSION
    results: Json[dict[str, float]] = Field(default_factory=dict[str, float])
    kind: Annotated[EntryKind, BeforeValidator(lambda kind: "decision" if kind == "calendar" else kind)] = "plan"
    knowledge: RowText = ""
    made: Moment = 0
    changed: Moment = 0
    revision: Annotated[int, Field(ge=1)] = 1
    archived: bool = False


class _ChangeRow(BaseModel):
    """A row of plan_changes, likewise."""

    revision: int = 0
    changed: Moment = 0
    who: RowText = ""
    edits: Json[list[tuple[str, str, str]]] = Field(default_factory=list[tuple[str, str, str]])


class _CommentRow(BaseModel):
    """A row of plan_comments, likewise."""

    made: Moment = 0
    who: RowText = ""
    text: RowText = str(message("store.problem.comment"))


def read_plan(row: Mapping[str, Any]) -> SavedPlan:
    """Return the plan of a row."""
    cells, bad = read_cells(_PlanRow, row)
    problems: list[str] = [message("store.problem.cells", columns=bad)] if bad else []
    form = FORMS[cells.kind]
    texts, _ = form.from_address(
        {form.key(name): (text,) for name, text in cells.texts.items()} | {VERSION: (str(cells.form_version),)}
    )
    unknown = form.unknown(cells.texts)
    if cells.form_version > LINK_VERSION:
        problems.append(message("store.problem.newer", found=float(cells.form_version), known=float(LINK_VERSION)))
    elif cells.form_version == LINK_VERSION and unknown:
        problems.append(message("store.problem.fields", fields=unknown))
    entry = entry_of(cells.name, texts, cells.kind)
    return SavedPlan(
        id=cells.id,
        entry=replace(entry, results=_finite(cells.results)),
        note=cleaned(cells.note, limit("plan_note"), lines=True),
        tags=tags_of(cells.tags.replace("\n", ",")),
        owner=cleaned(cells.owner, limit("plan_owner")),
        made=moment(cells.made),
        changed=moment(cells.changed),
        revision=cells.revision,
        archived=cells.archived,
        data_version=cells.knowledge,
        problems=tuple(problems),
        dropped=form.dropped(cells.texts),
    )


def read_change(row: Mapping[str, Any]) -> Change:
    """Return the change of a row, without what cannot be read."""
    cells, bad = read_cells(_ChangeRow, row)
    edits = tuple(Edit(*edit) for edit in cells.edits)
    return Change(cells.revision, moment(cells.changed), cells.who, edits, not bad)


def read_comment(row: Mapping[str, Any]) -> dict[str, str]:
    """Return time, user, and text of a comment."""
    cells, _ = read_cells(_CommentRow, row)
    return {"when": moment(cells.made).isoformat(), "who": cells.who, "text": cells.text}


def read_cells(model: type[_Model], row: Mapping[str, Any]) -> tuple[_Model, tuple[str, ...]]:
    """Return a row as its model, and the columns that cannot be read, which have their defaults."""
    try:
        return model.model_validate(dict(row)), ()
    except ValidationError as problem:
        bad = {str(error["loc"][0]) for error in problem.errors(include_url=False, include_input=False)}
        return model.model_validate({name: cell for name, cell in row.items() if name not in bad}), tuple(sorted(bad))


def columns(entry: Entry, knowledge: str) -> dict[str, Any]:
    """Return a plan as columns of its row. Raises ``ValueError`` for a missing name or too many characters."""
    stored = entry_of(entry.name, entry.texts, entry.kind)
    # Half of a surrogate pair, which no browser sends, is no text for a database.
    texts = json.dumps({name: text.encode("utf-8", "replace").decode("utf-8") for name, text in stored.texts.items()})
    if not stored.name:
        raise ValueError(message("store.error.name"))
    if len(texts) > limit("saved_chars"):
        most = float(limit("saved_chars"))
        raise ValueError(message("store.error.long", characters=float(len(texts)), most=most))
    results = json.dumps(_finite(entry.results))
    return {
        "name": stored.name,
        "texts": texts,
        "form_version": LINK_VERSION,
        "results": results,
        "kind": entry.kind,
        "knowledge": knowledge,
    }


def searched(plan: SavedPlan) -> str:
    """Return the text that a search compares: name, note, tags, owner, model, and accelerator."""
    texts = plan.entry.texts
    searchable = (plan.entry.name, plan.note, *plan.tags, plan.owner, texts[MODEL_NAME.id], texts[ACCELERATOR.id])
    return folded("\n".join(searchable))


def folded(text: str) -> str:
    """Return ``text`` in lower case with normalized accents."""
    return cleaned(unicodedata.normalize("NFC", text.casefold()), len(text) + limit("saved_chars"), lines=True)


def tags_of(text: str | Iterable[str]) -> tuple[str, ...]:
    """Return the tags of a line with commas, or of several: sorted, each once whatever its case, up to the limit."""
    line = text if isinstance(text, str) else ",".join(text)
    tags: dict[str, str] = {}
    for part in line.split(","):
        if tag := cleaned(part, limit("tag_chars")):
            tags.setdefault(tag.casefold(), tag)
    return tuple(tags[key] for key in sorted(tags))[: limit("plan_tags")]


def edits_between(old: SavedPlan, new: SavedPlan) -> tuple[Edit, ...]:
    """Return the edits between two states of a plan."""
    before, after = _tracked(old), _tracked(new)
    names = dict.fromkeys((*before, *after))
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(Edit(*pair) for pair in pairs if pair[1] != pair[2])


def as_of(plan: SavedPlan, history: Iterable[Change], revision: int) -> SavedPlan | None:
    """Return ``plan`` as it was at an earlier revision. None if its history is incomplete or damaged, or older fields
    have another meaning now."""
    state, at = _tracked(plan), plan.revision
    for change in history:
        if at <= revision:
            break
        if change.revision != at or not change.whole or any(state.get(e.field, "") != e.new for e in change.edits):
            return None
        state |= {edit.field: edit.old for edit in change.edits}
        at -= 1
    results = {name: text for name in RESULTS if (text := state.pop(RESULT + name, ""))}
    name, note, tags, _ = (state.pop(own) for own in (NAME, NOTE, TAGS, ARCHIVED))
    if at != revision or plan.problems or state.keys() != plan.entry.texts.keys():
        return None
    try:
        entry = replace(plan.entry, name=name, texts=state, results={n: float(text) for n, text in results.items()})
    except ValueError:
        return None
    return replace(plan, entry=entry, note=note, tags=tags_of(tags), revision=revision)


def _tracked(plan: SavedPlan) -> dict[str, str]:
    """Return everything that a history tracks, as texts."""
    results = {RESULT + name: repr(value) for name, value in plan.entry.results.items()}
    own = {NAME: plan.entry.name, NOTE: plan.note, TAGS: ", ".join(plan.tags)}
    return {**own, ARCHIVED: "true" if plan.archived else "false", **plan.entry.texts, **results}


def _finite(results: Mapping[str, float]) -> dict[str, float]:
    return {name: float(results[name]) for name in RESULTS if math.isfinite(results.get(name, math.nan))}


def moment(microseconds: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(microsecond=microseconds % 1_000_000)
