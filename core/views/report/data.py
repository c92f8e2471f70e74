"""Plans as JSON, and plans read from a file of any origin."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from core.data_version import data_version
from core.fields import LINK_VERSION, VERSION, clipped
from core.limits import limit
from core.messages import message
from core.models.configs.json_text import ConfigError, read_object
from core.planning.comparison.entry import RESULTS, Entry, entry_of, results_of
from core.planning.estimate import PlanEstimate
from core.planning.form.plan_form import PLAN_FORM
from core.store.plans import SavedPlan
from core.views.common.rows import Row
from core.views.plan.text import headline, times_text
from core.views.report.report import Report
from core.views.search.text import headline as layout_headline
from core.wording import cleaned, plain

if TYPE_CHECKING:
    from core.views.report.data_fields import FileFields

KIND = "napkin plans"
"""Kind of file, which the file names."""


class PlansFileError(ValueError):
    """A file without valid plans."""


def as_json(report: Report) -> str:
    """Return each plan's texts and results, with the version of data and formulas that made them."""
    plans = [
        {
            "name": plan.name,
            "texts": dict(plan.entry.texts),
            "results": results_of(plan.answer) if plan.answer else {},
            "rows": [_row(row) for row in report.rows(plan)],
            "sentence": plain(headline(plan.answer)) if plan.answer else "",
            "why": plan.problem,
            **(_of_layout(report.layout) if report.layout else {}),
        }
        for plan in report.plans
    ]
    about = {"date": report.date.isoformat(), "link": report.link, "knowledge": data_version()}
    return _written(KIND, about, plans)


def _row(row: Row) -> dict[str, str | float]:
    """Return a row with all digits in base units, without unknown numbers."""
    numbers = {"value": row.value, "pessimistic": row.pessimistic, "optimistic": row.optimistic}
    known = {name: number for name, number in numbers.items() if isinstance(number, str) or math.isfinite(number)}
    texts = {"key": row.key, "label": row.label, "unit": row.unit, "note": row.note, "formula": row.formula}
    return {**known, **{name: str(text) for name, text in texts.items() if text}}


def saved_as_json(plan: SavedPlan, comments: Sequence[Mapping[str, str]]) -> str:
    """Return a saved plan as a file that `read_json` reads, or a saved decision, with note, tags, and comments."""
    item = {
        "name": plan.entry.name,
        "texts": dict(plan.entry.texts),
        "results": dict(plan.entry.results),
        "note": plan.note,
        "tags": plan.tags,
        "comments": list(comments),
    }
    about = {"date": plan.changed.date().isoformat(), "knowledge": plan.data_version}
    return _written(KIND if plan.entry.kind == "plan" else "napkin decision", about, [item])


def _written(kind: str, about: Mapping[str, str], plans: Sequence[Mapping[str, Any]]) -> str:
    document = {"kind": kind, "version": LINK_VERSION, **about, "plans": plans}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _of_layout(applied: PlanEstimate) -> dict[str, Any]:
    """Return the layout with its step and launch settings, and the sentence on it."""
    layout = {field.name: int(getattr(applied.step.layout, field.name)) for field in fields(applied.step.layout)}
    return {
        "sentence": plain(layout_headline(applied)),
        "whole_run": plain(times_text(applied)),
        "layout": layout,
        "step": applied.step_values,
        "launch": {
            launch.system: {"text": launch.text, "notes": list(map(plain, launch.notes))} for launch in applied.launches
        },
    }


def read_json(text: str) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the plans of a file of `as_json` with their saved results, and notices about them.

    Texts of an older version are translated, missing fields have their defaults, and invalid ones are problems of the
    plan's reading. Raises `PlansFileError` for a file without valid plans.
    """
    result = _checked(text)
    sentences: list[str] = []
    most = limit("compared_plans")
    if len(result.plans) > most:
        sentences.append(message("report.file.first_plans", plans=float(len(result.plans)), most=float(most)))
    entries: list[Entry] = []
    for i, plan in enumerate(result.plans[:most]):
        name = cleaned(plan.name, limit("plan_name")) or str(message("comparison.unnamed", number=i + 1.0))
        named = {PLAN_FORM.key(name): (value,) for name, value in plan.texts.items()}
        texts, about = PLAN_FORM.from_address({**named, VERSION: (str(result.version),)})
        sentences += [message("report.file.field", plan=clipped(name), problem=line) for line in about]
        results = {name: value for name, value in plan.results.items() if name in RESULTS}
        entries.append(replace(entry_of(name, texts), results=results))
    if result.knowledge and result.knowledge != data_version():
        sentences.append(message("report.file.other_data"))
    return tuple(entries), tuple(dict.fromkeys(sentences))


def _checked(text: str) -> FileFields:
    from pydantic import ValidationError

    from core.views.report.data_fields import FileFields

    try:
        result = FileFields.model_validate(read_object(text, "file of plans"))
    except ConfigError as problem:
        raise PlansFileError(problem.rule) from None
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = clipped(".".join(str(part) for part in first["loc"]))
        raise PlansFileError(message("report.file.invalid", field=where, problem=first["msg"])) from None
    if result.kind != KIND:
        raise PlansFileError(message("report.file.other_kind", kind=clipped(result.kind), expected=KIND))
    return result
