"""Whether accelerators hold the runs of a calendar, and by how much."""

from __future__ import annotations

from core.planning.calendar.schedule import Schedule, ScheduledRun
from core.training.layout import LayoutError
from core.views.plan.text_memory import gib
from core.wording import plural

NOTE = (
    "A run has the fastest layout that fits, or the plan’s own; days, dollars and what an accelerator holds are those "
    "of that layout. Where you entered an MFU, days are computed from it, and the step time is that of the layout."
)


def fit(run: ScheduledRun) -> tuple[str, str]:
    """Whether an accelerator holds a run as it is laid out, and by how much it does not or is free."""
    try:
        h = run.answer.memory
    except LayoutError as problem:
        return "✗ no layout", str(problem)
    match h.fits:
        case "fits":
            return f"✓ {gib(h.spare)}", "free"
        case "over":
            return f"✗ {gib(-h.spare)}", "too much"
        case "unknown":
            return "–", "its memory is unknown"


def fits(run: ScheduledRun) -> bool:
    """Whether nothing is known against it."""
    return not fit(run)[0].startswith("✗")


def unfit_count(s: Schedule) -> str:
    """That some runs are not held as laid out; empty where all are."""
    count = sum(not fits(run) for run in s.runs)
    if not count:
        return ""
    verb = "does" if count == 1 else "do"
    return f"**✗ {count} of {len(s.runs)} {plural(len(s.runs), 'run')} {verb} not fit as laid out**"
