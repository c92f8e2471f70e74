"""The saved plan that one works on, and “Save”. Before that is opened, only its name is read from the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import suggested, with_results, with_saved_results
from core.planning.comparison.entry import Entry, EntryKind, entry_of
from core.store.errors import Conflict, StoreError
from core.store.locations import plan_store
from core.store.opened_plan import on_page, with_changes
from core.store.plans import SavedPlan
from core.views.store import text as store_text
from pages.common import comparison_list, show
from pages.common.inputs import HELD, Inputs
from pages.common.registry import COMPUTE, SAVED, PageSpec
from pages.common.server.sign_in import ask_name, who
from pages.streamlit_patches import uninterrupted

ID, REVISION = "r_plan", "r_rev"
"""Parameters of a link to a saved plan: which, and at what revision it was seen."""

_NEW, _SAVE, _OVER, _COPY = "new", "save", "over", "copy"
"""What a button asks for. It is done where the row is drawn: a callback would have the plan of before a field that was
just changed."""


def link_to(page: PageSpec, plan: SavedPlan, label: str = "") -> show.Html:
    """Return a link that opens a saved plan on ``page``, where its changes can then be saved; the page's title is its
    label unless another one is given."""
    texts = on_page(plan.entry, fill_answer=page != COMPUTE)
    return show.link(label or page.title, page, texts, {ID: plan.id, REVISION: str(plan.revision)})


Held: TypeAlias = tuple[str, int] | None
"""The saved plan that one works on, and the revision at which it was seen; None where the plan is not saved."""

_ENTRY = "plan:entry"


def held(kind: EntryKind = "plan") -> Held:
    """Return the saved plan or decision that is open for changes."""
    return st.session_state.get(HELD[kind])


def hold(saved: Held, kind: EntryKind = "plan") -> None:
    """Open this saved plan or decision for changes, or none, also after the page is reloaded."""
    st.session_state[HELD[kind]] = saved
    if saved:
        st.query_params.update({ID: saved[0], REVISION: str(saved[1])})
    else:
        st.query_params.pop(ID, None)
        st.query_params.pop(REVISION, None)


def take_up_held(inputs: Inputs, kind: EntryKind) -> Held:
    """Return the saved plan or decision that one works on when a page begins: that of the link that opened it, else the
    same as before."""
    if inputs.linked or HELD[kind] not in st.session_state:
        # Taken up once: the address goes on saying what the page was opened with.
        plan, revision = st.query_params.get(ID, ""), st.query_params.get(REVISION, "")
        known = revision.isascii() and revision.isdigit() and len(revision) < 10
        linked = (plan[: limit("plan_id")], int(revision) if known else 0) if plan else None
        st.session_state[HELD[kind]] = linked
    saved = held(kind)
    if saved and st.query_params.get(ID) != saved[0]:
        hold(saved, kind)
    return saved


def name_of(saved: Held) -> str:
    """Return the name of a saved plan; empty without one, or if the database does not respond."""
    entry = _entry_of(saved) if saved else None
    return entry.name if entry else ""


def saved_as(texts: Mapping[str, str], kind: EntryKind) -> str:
    """Return the id of what one works on, if it was saved just so; else empty."""
    saved = held(kind)
    entry = _entry_of(saved) if saved else None
    return saved[0] if saved and entry and dict(entry.reading.texts) == dict(texts) else ""


def _entry_of(saved: tuple[str, int]) -> Entry | None:
    """Return a saved plan as it was seen, read once; None if the database does not answer."""
    known, entry = st.session_state.get(_ENTRY, (None, None))
    if known != saved:
        entry = None
        with suppress(StoreError):
            entry = plan_store().get(saved[0]).entry
        st.session_state[_ENTRY] = (saved, entry)
    return entry


@contextmanager
def refusals() -> Iterator[None]:
    """Show errors of the database in place of the part that raised them."""
    try:
        yield
    except StoreError as problem:
        show.error(str(problem))


def saving(inputs: Inputs, texts: Mapping[str, str], kind: EntryKind = "plan") -> None:
    """Draw the button that saves the plan or decision of ``texts``, or its changes where one works on a saved one."""
    box = _SaveBox(inputs, texts, kind)
    with show.popover(message("saved.box"), key=f"{inputs.page.id}:saving", icon=":material/bookmark:") as drawn:
        if drawn.open or box.is_asked:
            with refusals(), suppress(Conflict):  # what is drawn now shows it
                box.act()
            box.draw()


def saving_all(inputs: Inputs, entries: Sequence[Entry]) -> None:
    """Draw the row that saves several plans, each under its name; one that is saved just so already is not saved
    again."""
    with show.fold(message("saved.all"), key=f"{inputs.page.id}:saving_all", icon=":material/bookmark:") as drawn:
        if drawn.open:
            show.note(message("saved.all_detail"))
            # Done where it is drawn, so that a field just changed counts.
            if st.button(message("saved.all.button"), key=inputs.key("save_all"), icon=":material/bookmark_add:"):
                try:
                    plans = _keep_all(entries)
                except StoreError as problem:
                    show.error(str(problem))
                else:
                    links = " · ".join(show.link(plan.entry.name, SAVED, {"plan": plan.id}) for plan in plans)
                    show.note(message("saved.all.done"), show.Html(links))


def _keep_all(entries: Sequence[Entry]) -> list[SavedPlan]:
    """Return the saved plans that are as ``entries``, in their order, new where there was none."""
    store = plan_store()
    return [store.like(entry) or store.save(with_saved_results(entry), owner=who()) for entry in entries]


def conflict(
    inputs: Inputs, plan: SavedPlan, rows: Sequence[Sequence[str]], *, copy: Callable[[], None],
    take: Callable[[], None], over: Callable[[], None],
) -> None:  # fmt: skip
    """Draw that another user has changed ``plan``, both versions, and the three choices. rows: differences, theirs and
    yours."""
    show.error(str(Conflict(plan)))
    cells = [[show.typed(cell) for cell in row] for row in rows]
    heads = (message("saved.history.field"), message("saved.conflict.theirs"), message("saved.conflict.yours"))
    show.small_table(heads, cells, words=None)
    with st.container(horizontal=True):
        st.button(message("saved.conflict.copy"), key=inputs.key("save_copy"), on_click=copy, type="primary")
        st.button(message("saved.conflict.take"), key=inputs.key("save_theirs"), on_click=take)
        st.button(message("saved.conflict.overwrite"), key=inputs.key("save_over"), on_click=over)


class _SaveBox:
    """What “Save” opens, in one run."""

    def __init__(self, inputs: Inputs, texts: Mapping[str, str], kind: EntryKind) -> None:
        self.inputs, self.texts = inputs, texts
        self.kind: EntryKind = kind
        self.fill_answer = inputs.page != COMPUTE
        self.asked_key, self.held_key = f"saving:{kind}", HELD[kind]
        self.name_key, self.note_key = inputs.key("save_name"), inputs.key("save_note")
        self.plan: SavedPlan | None = None
        """The plan that this run has saved."""

    @property
    def is_asked(self) -> bool:
        """Whether a button has asked for something that is not done yet."""
        return self.asked_key in st.session_state

    def act(self) -> None:
        """Do what a button has asked for, as one piece: an interruption would lose it, or save it twice."""
        with uninterrupted():
            if self.is_asked:
                self._save(*st.session_state.pop(self.asked_key))

    def _save(self, action: str, name: str, note: str, seen: Held) -> None:
        if seen != held(self.kind):  # a click right after this one has put another plan here
            raise StoreError(message("saved.box.replaced"))
        store = plan_store()
        saved = store.get(seen[0]) if seen and action != _NEW else None
        if not saved or not seen or (action == _SAVE and _is_renamed(saved, name)):
            entry = with_results(entry_of(name or suggested(self.texts), self.texts, self.kind))
            self._hold(store.save(entry, note, owner=who()))
        else:
            own, notes = with_results(self._mine(saved)), "\n".join(filter(None, (saved.note, note)))
            if action == _COPY:
                copied = message("saved.box.copy", plan=saved.entry.name[: limit("plan_name") - 7])
                copy = replace(own, name=name or str(copied))
                self._hold(store.save(copy, notes, saved.tags, who()))
            else:
                self._hold(store.change(*seen, entry=own, note=notes, who=who()))
        st.session_state[self.name_key] = st.session_state[self.note_key] = ""

    def _typed(self, key: str) -> str:
        return str(st.session_state.get(key) or "").strip()

    def draw(self) -> None:
        """Draw the saved plan that the page shows, and the fields to save a new one."""
        saved = held(self.kind)
        save_changes: Callable[[], None] | None = None
        if saved:
            with refusals():
                save_changes = self._changes(self.plan or plan_store().get(saved[0]))
        proposed = suggested(self.texts)
        # While a name is typed, the buttons follow it.
        st.text_input(
            message("saved.name"), key=self.name_key, max_chars=limit("plan_name"), placeholder=proposed, live=True
        )
        st.text_input(message("saved.box.note"), key=self.note_key, max_chars=limit("plan_note"))
        ask_name(self.inputs.key("save_who"))
        with st.container(horizontal=True):
            new = message("saved.box.new" if saved else "saved.box")
            st.button(new, key=self.inputs.key("save"), on_click=self._ask(_NEW))
            if save_changes:
                label = message("saved.box.changes")
                st.button(label, key=self.inputs.key("save_changes"), type="primary", on_click=save_changes)

    def _changes(self, plan: SavedPlan) -> Callable[[], None] | None:
        """Return what was changed of a saved plan on the page, and whether another user has changed it; how to save
        that."""
        there = show.link(message("saved.box.link"), SAVED, {"plan": plan.id})
        revision = float(plan.revision)
        show.note(message("saved.box.saved_as", plan=plan.entry.name, revision=revision), show.Html(there))
        for line in plan.problems:
            show.error(line)
        edits = store_text.differences(plan.entry, self._mine(plan))
        if edits and plan.revision != st.session_state[self.held_key][1]:
            conflict(
                self.inputs,
                plan,
                [(store_text.label(edit.field), edit.old, edit.new) for edit in edits],
                copy=self._ask(_COPY),
                take=partial(self._take, plan),
                over=self._ask(_OVER, plan),
            )
        elif edits:
            show.note(message("saved.box.changed", edits=list(map(store_text.edit_text, edits))))
            return None if _is_renamed(plan, self._typed(self.name_key)) else self._ask(_SAVE, plan)
        return None

    def _mine(self, plan: SavedPlan) -> Entry:
        return with_changes(plan.entry, self.texts, fill_answer=self.fill_answer)

    def _hold(self, plan: SavedPlan) -> None:
        self.plan = plan
        hold((plan.id, plan.revision), self.kind)

    def _ask(self, what: str, seen: SavedPlan | None = None) -> Callable[[], None]:
        """Return a callback that asks for something; ``seen`` is the plan that a user who asks has before their
        eyes."""

        def ask() -> None:
            if seen:
                st.session_state[self.held_key] = (seen.id, seen.revision)
            texts = (self._typed(self.name_key), self._typed(self.note_key))
            st.session_state[self.asked_key] = (what, *texts, held(self.kind))

        return ask

    def _take(self, plan: SavedPlan) -> None:
        for name, text in on_page(plan.entry, fill_answer=self.fill_answer).items():
            self.inputs.put(name, text)
        self._hold(plan)


def _is_renamed(plan: SavedPlan, name: str) -> bool:
    """Return whether ``name`` is another one, which asks for a new plan: the saved one is not to be changed then."""
    return name not in ("", plan.entry.name)


def put_several(inputs: Inputs, label: str, plans: Callable[[], Sequence[SavedPlan]]) -> None:
    """Draw a box that adds saved plans to the comparison under their names. plans: called while the box is open."""
    key = inputs.key("several")
    with show.popover(label, key=f"{inputs.page.id}:several", icon=":material/bookmarks:") as box:
        if not box.open:
            return
        with refusals():
            known = {plan.id: plan for plan in plans()}
            st.session_state[key] = [one for one in st.session_state.get(key, ()) if one in known]

            def add() -> None:
                problems = [comparison_list.offer(known[one].entry) for one in st.session_state[key]]
                st.session_state[f"{key}:said"] = tuple(dict.fromkeys(filter(None, problems)))
                st.session_state[key] = []

            st.multiselect(
                message("saved.several"), list(known), key=key, format_func=lambda one: known[one].entry.name
            )
            st.button(message("saved.compare"), key=f"{key}_add", on_click=add)
            for line in st.session_state.pop(f"{key}:said", ()):
                show.error(line)
