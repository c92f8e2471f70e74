"""Fields of a sweep."""

from __future__ import annotations

from core.fields import CATALOG, Field, choice, optional
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.form.whole_run import OWN_DEADLINE
from core.planning.plan import parse_within
from core.planning.sweep.axes import AXES
from core.planning.sweep.sweep import RESULTS

_PART = "sweep"


def _list(text: str) -> str:
    """Return the values of one side as one line; `core.planning.sweep.axes.parse_values` reads them."""
    if len(text) > limit("sweep_chars"):
        most = float(limit("sweep_chars"))
        raise QuantityError(message("sweep.error.long", characters=float(len(text)), most=most))
    return " ".join(text.split())


def _values(id: str) -> Field:
    return Field(id, CATALOG, "", _list, part=_PART, max_chars=limit("sweep_chars"))


X = choice("x", CATALOG, tuple(AXES), "accelerators", part=_PART)
Y = choice("y", CATALOG, tuple(AXES), "parameters", part=_PART)
X_VALUES = _values("xs")
Y_VALUES = _values("ys")
RESULT = choice("res", CATALOG, tuple(RESULTS), "days", part=_PART)
DUE = optional(OWN_DEADLINE, CATALOG, parse_within, nothing=None, part=_PART)

SWEEP_FIELDS = (X, X_VALUES, Y, Y_VALUES, RESULT, DUE)
