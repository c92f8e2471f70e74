"""Plans as texts for links: what was given, or solved."""

from __future__ import annotations

from collections.abc import Mapping

from core.fields import ParsedForm
from core.planning.estimate import PlanEstimate
from core.planning.form.layout import SEARCH
from core.planning.form.plan_form import (
    COUNT,
    FEWEST,
    FIND,
    MODEL_NAME,
    PARAMETERS,
    PLAN_FIELDS,
    SHAPE,
    TRAINED,
    WITHIN,
)
from core.planning.form.training import OWN_FIELDS, POLICY, TRAINED_PART
from core.planning.form.whole_run import DEADLINE, LIMITS, WHOLE
from core.planning.plan import OWN_POLICY, OWN_SHAPE, TYPED


def texts_as_given(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of `plan_as_given`, for a link or to keep."""
    return link_texts(texts) | {FIND.id: "time"}


def within_as_deadline(reading: ParsedForm) -> dict[str, str]:
    """Return the time limit within which accelerators are solved for, as the plan's deadline; empty for other
    questions."""
    if reading.values[FIND.id] != "accelerators":
        return {}
    return {FIND.id: "time", DEADLINE.id: reading.texts[WITHIN.id]}


def link_texts(texts: Mapping[str, str], a: PlanEstimate | None = None) -> dict[str, str]:
    """Return the texts of one page's form that belong to the plan, for a link to another page.

    Texts without effect are left out: a custom shape of another model, parameters of a model, dtypes of a named
    precision, rates without a measurement, and fields with the default that every page has. a: the estimate, whose
    solved values replace the fields to solve for.
    """
    model = texts.get(MODEL_NAME.id, TYPED)
    silent = {name for name, text in ((SHAPE.id, OWN_SHAPE), (PARAMETERS.id, TYPED)) if model != text}
    silent |= set() if texts.get(POLICY.id) == OWN_POLICY else {field.id for field in OWN_FIELDS.values()}
    silent |= {
        field.id
        for field in PLAN_FIELDS
        if field.part in (WHOLE, SEARCH, LIMITS, TRAINED_PART) and texts.get(field.id) == field.default
    }
    silent |= {field.id for field in PLAN_FIELDS if field.omit_if_empty and not texts.get(field.id)}
    linked = {field.id: texts[field.id] for field in PLAN_FIELDS if field.id in texts and field.id not in silent}
    if a and a.find == "parameters":
        linked.pop(SHAPE.id, None)
    return linked | (solved_texts(a) if a else {})


def _in_full(number: float, unit: str) -> str:
    """Return ``number`` with all its digits, and with its unit where it would be asked for."""
    digits = f"{number:,.0f}"
    return digits if number >= FEWEST else f"{digits} {unit}"


def solved_texts(a: PlanEstimate) -> dict[str, str]:
    """Return the texts of the fields that are solved for, with the results."""
    match a.find:
        case "accelerators":
            return {COUNT.id: f"{a.count:,}"}
        case "parameters":
            return {MODEL_NAME.id: TYPED, PARAMETERS.id: _in_full(a.middle.parameters, "parameters")}
        case "tokens":
            return {TRAINED.id: _in_full(a.middle.tokens, "tokens")}
        case _:
            return {}
