"""Calendar and cost, saved calendars: each opens here, and is held against the one that is shown."""

from __future__ import annotations

from core.planning.comparison.calendars import compare_calendar
from core.planning.comparison.entry import entry_of
from core.store.locations import plan_store
from core.views.calendar import text_compared as text
from core.views.common.markup import unmarked
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import CALENDAR
from pages.common.saving import link_to, refusals

_MOST = 8
"""Saved calendars beside the one that is shown: the last ones."""


def saved_calendars(inputs: Inputs) -> None:
    """The fold. Nothing is read from the database before it is opened."""
    title = "Saved calendars: open one, or compare"
    with show.fold(title, key=inputs.key("fold_saved"), icon=":material/compare:") as fold:
        if fold.open:
            with refusals():
                _compare(inputs)


def _compare(inputs: Inputs) -> None:
    plans = plan_store().find(kind="calendar", per_page=_MOST).plans
    if not plans:
        show.note("No calendar is saved yet: “Save” keeps this one, for everybody who uses this Napkin.")
        return
    here = compare_calendar(entry_of("", inputs.reading.texts, "calendar"))
    others = [(plan, compare_calendar(plan.entry)) for plan in plans]
    named = [(text.HERE, here), *((f"“{unmarked(plan.entry.name)}”", item) for plan, item in others)]
    show.takeaway(text.sentence(named))
    rows = [[show.remarked(*cell) for cell in text.row(text.HERE, here, None)]]
    for plan, item in others:
        (_, problem), *cells = text.row("", item, here)
        name = link_to(CALENDAR, plan, plan.entry.name) + show.typed("", problem)
        rows.append([show.Html(name), *(show.remarked(*cell) for cell in cells)])
    show.small_table(
        [show.Column(heading, numeric=heading in ("cost", "runs", "accelerators")) for heading in text.CALENDARS],
        rows,
        caption="A name opens its calendar here. Ends and costs are those of now, beside the calendar shown here",
    )
