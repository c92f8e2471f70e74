"""What Home asks: the fields of a plan, and those of its second and third question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from core.fields import Field, choice, quantity
from core.floats.formats import FORMATS
from core.floats.typed_numbers import FloatTextError, parse
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
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


def _number(text: str) -> str:
    """Return a number's text, checked."""
    try:
        parse(text, FORMATS["fp32"])
    except FloatTextError as problem:
        raise QuantityError(str(problem)) from None
    return text


ACCELERATOR_COUNT = quantity(
    "k", message("home.field.count"), "8", "count", low=1, high=limit("accelerators"), whole=True
)
ACCELERATOR_TYPE = Field(
    "mem", message("home.field.accelerator"), "H100 SXM", ACCELERATOR.parse, "choice", ACCELERATOR.options
)
NUMBER = Field("x", message("home.field.number"), "1e-8", _number, max_chars=limit("float_box_chars"))
_COUNTED = (message("home.counted.all"), message("home.counted.states"))
COUNTED = choice("of", message("home.field.counted"), get_args(Counted), "everything", few=True, short=_COUNTED)
FORM = plan_form("h", ACCELERATOR_COUNT, ACCELERATOR_TYPE, COUNTED, NUMBER)
_ASKED = (PARAMETERS, TRAINED, COUNT, ACCELERATOR, MFU)
_BARE = {field.id: field.default for field in ACCELERATOR_FIELDS}
LECTURES = message("home.preset.lecture")
PAGE_PRESETS = {
    message("home.preset.published"): _BARE | {field.id: field.default for field in (MODEL_NAME, *_ASKED)},
    LECTURES: _BARE | {item.id: PRESETS[LECTURE][item.id] for item in (MODEL_NAME, *_ASKED)},
}
ASKED_OF_MEMORY = (ACCELERATOR_COUNT, ACCELERATOR_TYPE, COUNTED)
_OF_MEMORY = (*ASKED_OF_MEMORY, LAYING, RECOMPUTE, OPTIMIZER, POLICY, ZERO)
COUNTED_PRESETS: Mapping[str, Mapping[str, str]] = {
    message("home.preset.all"): {one.id: one.default for one in _OF_MEMORY},
    message("home.preset.saved"): {
        **{one.id: one.default for one in _OF_MEMORY},
        LAYING.id: OWN_LAYOUT,
        RECOMPUTE.id: "none",
    },
    message("home.preset.states"): {
        **{one.id: one.default for one in _OF_MEMORY},
        COUNTED.id: "model states alone",
        POLICY.id: "fp32",
    },
}
