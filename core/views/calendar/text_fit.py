"""Whether accelerators hold the runs of a calendar: by how much, and the fastest layouts that fit."""

from __future__ import annotations

from core.budget.errors import BudgetError
from core.planning.calendar.schedule import Schedule, ScheduledRun
from core.planning.plan_search import search_layouts, search_request
from core.search.result import SearchResult
from core.search.space import SpaceError
from core.training.layout import LayoutError
from core.units import format_duration
from core.views.common.markup import unmarked
from core.views.plan.text_memory import gib, laid_out, refused
from core.views.search.text import brief, too_many
from core.wording import plural

LAYOUTS = ("run", "as laid out", "holds", "fastest that fits", "its step", "it holds")

NOTE = (
    "All runs have the layout of the plan; what one holds follows from its model, sequence length and accelerators. "
    "Where the MFU is “published”, the days of a run are those of the fastest layout that fits, whatever is typed."
)


def fit(run: ScheduledRun) -> tuple[str, str]:
    """Whether an accelerator holds a run as it is laid out, and by how much it does not or is free."""
    try:
        h = run.answer.memory
    except LayoutError as problem:
        return "✗ no layout", f"{problem.field.replace('_', ' ')} {refused(problem)}"
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


def layout_row(run: ScheduledRun) -> tuple[tuple[str, str], ...]:
    """Cells of one run, in the order of `LAYOUTS`, each with a remark under it. It searches for the fastest layout."""
    try:
        h = run.answer.memory
        own = (laid_out(h.layout), ""), (gib(h.total), f"of {gib(h.usable)}, {' '.join(fit(run))}")
    except LayoutError:
        own = ("–", ""), fit(run)
    found, problem = _fastest(run)
    best = found.best if found else None
    if best is None:
        return ((unmarked(run.run.name), ""), *own, ("none", problem or "no layout fits"), ("–", ""), ("–", ""))
    return (
        (unmarked(run.run.name), ""),
        *own,
        (brief(best.layout), ""),
        (format_duration(best.seconds, 3), ""),
        (gib(float(best.memory.total)), f"of {gib(best.usable)}"),
    )


def _fastest(run: ScheduledRun) -> tuple[SearchResult | None, str]:
    """What a search finds for a run, or why there is none."""
    try:
        return search_layouts(search_request(run.run.plan)), ""
    except SpaceError as problem:
        return None, too_many(problem)
    except BudgetError as problem:
        return None, str(problem)
