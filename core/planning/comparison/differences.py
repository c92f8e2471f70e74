"""In which inputs plans differ, of those that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.fields import Field, ParsedForm
from core.planning.form.plan_form import (
    COUNT,
    MFU,
    MODEL_NAME,
    PACE,
    PARAMETERS,
    PLAN_FORM,
    SEARCH,
    SHAPE,
    TRAINED,
    WITHIN,
)
from core.planning.form.precision import OWN_FIELDS, POLICY
from core.planning.form.rates import RATES
from core.planning.form.search import BATCH
from core.planning.plan import OWN, OWN_POLICY, TYPED

_FOUND = {"tokens": TRAINED.id, "parameters": PARAMETERS.id, "accelerators": COUNT.id, "MFU": MFU.id}
_IDLE = tuple(one for one in PLAN_FORM.fields if one.part in (SEARCH, RATES) and one.id != BATCH.id)
"""What a search over layouts is asked and counts with, but for the batch: no answer depends on it."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A field in which plans differ, and each plan's text; None where the field does not count in that plan."""

    field: Field
    texts: tuple[str | None, ...]


def effective_fields(reading: ParsedForm) -> frozenset[str]:
    """The ids of the fields on which the answer to a plan depends, and its global batch.

    What a search over layouts is asked besides moves no answer, nor do measured rates. A model that is known by its
    name needs no number of parameters, one of types chosen by name none of its own, and what is found is not given.
    """
    values = reading.values
    find, model = values["find"], values[MODEL_NAME.id]
    silent = {one.id for one in _IDLE} | {_FOUND.get(find, WITHIN.id)}
    if find == "parameters":
        silent.add(MODEL_NAME.id)
    if find == "parameters" or model != TYPED:
        silent.add(PARAMETERS.id)
    if find == "parameters" or model != OWN:
        silent.add(SHAPE.id)
    if find == "MFU" or values[MFU.id] is None:
        silent.add(PACE.id)
    if values[POLICY.id] != OWN_POLICY:
        silent |= {one.id for one in OWN_FIELDS.values()}
    return frozenset(one.id for one in PLAN_FORM.fields if one.id not in silent)


def same_value(one: ParsedForm, other: ParsedForm, field: Field) -> bool:
    """Whether two plans say the same of a field; 1024 is 1,024, and nothing is nothing."""
    return one.texts[field.id] == other.texts[field.id] or one.values[field.id] == other.values[field.id]


def differing_fields(readings: Sequence[ParsedForm]) -> tuple[Differing, ...]:
    """The fields in which not all plans say the same, in the form's order."""
    counts = [effective_fields(one) for one in readings]
    found: list[Differing] = []
    for one in PLAN_FORM.fields:
        said = [one.id in there for there in counts]
        given = [r for r, there in zip(readings, said, strict=True) if there]
        if any(not same_value(r, given[0], one) for r in given[1:]) or (given and not all(said)):
            texts = tuple(r.texts[one.id] if there else None for r, there in zip(readings, said, strict=True))
            found.append(Differing(one, texts))
    return tuple(found)


def differing_search_fields(readings: Sequence[ParsedForm]) -> tuple[Field, ...]:
    """Fields of the search, and rates, in which plans differ, and on which nothing that is compared depends."""
    return tuple(one for one in _IDLE if any(not same_value(r, readings[0], one) for r in readings[1:]))
