"""What Home asks: the fields of a plan, and those of its second and third question."""

from __future__ import annotations

from typing import get_args

from core.fields import Field, choice, quantity
from core.floats.formats import FORMATS
from core.floats.typed_numbers import FloatTextError, parse
from core.limits import limit
from core.planning.form.layout import LAYING, RECOMPUTE, ZERO
from core.planning.form.plan_form import (
    ACCELERATOR,
    ACCELERATOR_FIELDS,
    COUNT,
    MFU,
    MODEL_NAME,
    OPTIMIZER,
    PARAMETERS,
    POLICY,
    TRAINED,
    plan_form,
)
from core.planning.largest_model import Counted
from core.planning.plan import OWN_LAYOUT
from core.planning.presets import LECTURE, PRESETS
from core.units import QuantityError


def _number(text: str) -> str:
    """A number's text, checked."""
    try:
        parse(text, FORMATS["fp32"])
    except FloatTextError as problem:
        raise QuantityError(str(problem)) from None
    return text


HELD = quantity("k", "How many hold it", "8", "count", low=1, high=limit("accelerators"), whole=True)
HOLDER = Field("mem", "Which accelerator", "H100 SXM", ACCELERATOR.parse, "choice", ACCELERATOR.options)
NUMBER = Field("x", "A number", "1e-8", _number, max_chars=limit("float_box_chars"))
COUNTED = choice("of", "Counted", get_args(Counted), "everything", few=True)
FORM = plan_form("h", HELD, HOLDER, COUNTED, NUMBER)
_ASKED = (PARAMETERS, TRAINED, COUNT, ACCELERATOR, MFU)
_BARE = {field.id: field.default for field in ACCELERATOR_FIELDS}
LECTURES = "The lecture’s"
PAGE_PRESETS = {
    "As published runs did": _BARE | {field.id: field.default for field in (MODEL_NAME, *_ASKED)},
    LECTURES: _BARE | {item.id: PRESETS[LECTURE][item.id] for item in (MODEL_NAME, *_ASKED)},
}
ASKED_OF_MEMORY = (HELD, HOLDER, COUNTED)
_OF_MEMORY = (*ASKED_OF_MEMORY, LAYING, RECOMPUTE, OPTIMIZER, POLICY, ZERO)
COUNTED_PRESETS = {
    "Everything counted": {one.id: one.default for one in _OF_MEMORY},
    "Nothing computed again": {
        **{one.id: one.default for one in _OF_MEMORY},
        LAYING.id: OWN_LAYOUT,
        RECOMPUTE.id: "none",
    },
    "The lecture’s: model states alone": {
        **{one.id: one.default for one in _OF_MEMORY},
        COUNTED.id: "model states alone",
        POLICY.id: "fp32",
    },
}
