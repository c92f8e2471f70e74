"""Calendar and cost, the layouts: what each run holds as laid out, and its step."""

from __future__ import annotations

from core.planning.calendar.form import texts_of
from core.views.calendar import text_fit as text
from pages.calendar.inputs import CalendarAnswer
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import PARALLEL


def layouts(inputs: Inputs, a: CalendarAnswer) -> None:
    """The fold. Nothing is searched before it is opened."""
    with show.fold("Does each run fit? Memory, and its layout", key=inputs.key("fold_layouts")) as fold:
        if not fold.open:
            return
        rows: list[list[show.Html]] = []
        for run in a.schedule.runs:
            name, *others = text.layout_row(run)
            link = show.link(name[0], PARALLEL, texts_of(inputs.reading, run.run))
            rows.append([show.Html(link), *(show.remarked(*cell) for cell in others)])
        show.small_table(
            [show.Column(heading, numeric=i > 1) for i, heading in enumerate(text.LAYOUTS)],
            rows,
            caption="A run’s name leads to its layouts on Parallel plan",
        )
        show.note(text.NOTE)
