"""In which inputs plans differ, of those that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.fields import Field, ParsedForm
from core.planning.form.layout import LAYING, MICRO_BATCH, OWN_LAYOUT_FIELDS, RECOMPUTE, ZERO
from core.planning.form.plan_form import (
    COUNT,
    MFU,
    MFU_KIND,
    MODEL_NAME,
    PARAMETERS,
    PLAN_FORM,
    SHAPE,
    TRAINED,
    WITHIN,
)
from core.planning.form.precision import OWN_FIELDS, POLICY
from core.planning.form.search import KEPT_FIELDS
from core.planning.form.trained import METHOD, not_of
from core.planning.plan import OWN_LAYOUT, OWN_POLICY, OWN_SHAPE, TYPED

_FOUND = {"tokens": TRAINED.id, "parameters": PARAMETERS.id, "accelerators": COUNT.id, "MFU": MFU.id}


_BEGUN = PLAN_FORM.parse({})
_ANY_LAYOUT = frozenset((*KEPT_FIELDS, *OWN_LAYOUT_FIELDS)) - {ZERO, RECOMPUTE, MICRO_BATCH}
"""Fields of a layout that do nothing in any plan as long as they are as they begin: degrees of 1, nothing kept to."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A field in which plans differ, and each plan's text; None where the field does not count in that plan."""

    field: Field
    texts: tuple[str | None, ...]


def effective_fields(reading: ParsedForm) -> frozenset[str]:
    """The ids of the fields on which the answer to a plan depends.

    What a search likes best moves none. A model that is known by its name needs no number of parameters, one of types
    chosen by name none of its own, what is found is not given, and a rank is asked for where there are adapters.
    """
    values = reading.values
    find, model = values["find"], values[MODEL_NAME.id]
    own = values[LAYING.id] == OWN_LAYOUT
    silent = {field.id for field in (KEPT_FIELDS if own else OWN_LAYOUT_FIELDS)}
    silent |= {_FOUND.get(find, WITHIN.id), *not_of(values[METHOD.id])}
    if find == "parameters":
        silent.add(MODEL_NAME.id)
    if find == "parameters" or model != TYPED:
        silent.add(PARAMETERS.id)
    if find == "parameters" or model != OWN_SHAPE:
        silent.add(SHAPE.id)
    if find == "MFU" or values[MFU.id] is None:
        silent.add(MFU_KIND.id)
    if values[POLICY.id] != OWN_POLICY:
        silent |= {item.id for item in OWN_FIELDS.values()}
    return frozenset(item.id for item in PLAN_FORM.fields if item.id not in silent)


def same_value(form: ParsedForm, other: ParsedForm, field: Field) -> bool:
    """Whether two plans say the same of a field; 1024 is 1,024, and nothing is nothing."""
    return form.texts[field.id] == other.texts[field.id] or form.values[field.id] == other.values[field.id]


def differing_fields(readings: Sequence[ParsedForm]) -> tuple[Differing, ...]:
    """The fields in which not all plans say the same, in the form's order."""
    counts = [effective_fields(reading) for reading in readings]
    differences: list[Differing] = []
    for field in PLAN_FORM.fields:
        results = [field.id in there for there in counts]
        given = [r for r, there in zip(readings, results, strict=True) if there]
        silent = field in _ANY_LAYOUT and all(same_value(r, _BEGUN, field) for r in given)
        if any(not same_value(r, given[0], field) for r in given[1:]) or (given and not all(results) and not silent):
            texts = tuple(r.texts[field.id] if there else None for r, there in zip(readings, results, strict=True))
            differences.append(Differing(field, texts))
    return tuple(differences)
