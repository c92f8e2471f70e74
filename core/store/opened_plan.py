"""A saved plan on a page: the texts of its link, and what a user has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.planning.comparison.comparison import compare_plan
from core.planning.comparison.entry import Entry, entry_of
from core.planning.form.links import link_texts
from core.planning.form.plan_form import FIND


def on_page(entry: Entry, *, fill_answer: bool) -> dict[str, str]:
    """Return every field of a plan as a page begins with it. fill_answer: enter the answer in its field."""
    texts = dict(entry.reading.texts)
    if entry.kind == "decision":
        return texts
    return texts | link_texts(texts, compare_plan(entry).answer) if fill_answer else texts


def with_changes(entry: Entry, now: Mapping[str, str], *, fill_answer: bool) -> Entry:
    """Return ``entry`` with the changes made on a page, and everything else as saved."""
    if entry.kind == "decision":
        return replace(entry, texts={**entry.texts, **entry_of("", now, entry.kind).texts})
    begun, here = (entry_of("", link_texts(texts)).texts for texts in (on_page(entry, fill_answer=fill_answer), now))
    unasked = {FIND.id} if fill_answer else set[str]()
    changed = {name: text for name, text in here.items() if text != begun[name] and name not in unasked}
    return replace(entry, texts={**entry.texts, **changed})
