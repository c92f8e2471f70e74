"""A saved plan on a page: what the link to it carries, and what a visitor has changed of it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.planning.comparison.comparison import compare_plan
from core.planning.comparison.entry import Entry, entry_of
from core.planning.form.links import link_texts
from core.planning.form.plan_form import FIND


def on_page(entry: Entry, *, fill_answer: bool) -> dict[str, str]:
    """Every field of a plan as a page begins with it.

    fill_answer: on a page where nothing is to be found; what the plan finds then stands in its field.
    """
    texts = dict(entry.reading.texts)
    if entry.kind == "calendar":
        return texts
    return texts | link_texts(texts, compare_plan(entry).answer) if fill_answer else texts


def with_changes(entry: Entry, now: Mapping[str, str], *, fill_answer: bool) -> Entry:
    """``entry`` with what a page has ``now`` and did not begin with; the rest stays as it was saved."""
    if entry.kind == "calendar":
        return replace(entry, texts={**entry.texts, **entry_of("", now, entry.kind).texts})
    begun, here = (entry_of("", link_texts(texts)).texts for texts in (on_page(entry, fill_answer=fill_answer), now))
    unasked = {FIND.id} if fill_answer else set[str]()
    changed = {name: text for name, text in here.items() if text != begun[name] and name not in unasked}
    return replace(entry, texts={**entry.texts, **changed})
