"""What a sweep is asked beside the plan: its two sides, what its cells show, and what they have to keep to."""

from __future__ import annotations

from core.fields import Field, choice, optional
from core.limits import limit
from core.planning.form.limits import OWN_DEADLINE
from core.planning.plan import parse_within
from core.planning.sweep.axes import AXES
from core.planning.sweep.quantities import RESULTS
from core.units import QuantityError

SWEEP = "sweep"
"""The part of the form."""


def _list(text: str) -> str:
    """Values of one side; which ones can be read hangs on what is swept (`core.planning.sweep.axes.typed`)."""
    if len(text) > limit("sweep_chars"):
        raise QuantityError(f"{len(text):,} characters are more than {limit('sweep_chars')}.")
    return " ".join(text.split())


def _values(id: str, label: str) -> Field:
    return Field(
        id,
        label,
        "",
        _list,
        part=SWEEP,
        placeholder="near yours",
        max_chars=limit("sweep_chars"),
        help=f"Up to {limit('sweep_values')} values, such as 512, 1,024, 2,048. Empty: doublings, usual values or "
        "other options around the plan’s own.",
    )


X = choice("x", "Across", tuple(AXES), "accelerators", part=SWEEP)
Y = choice("y", "Up", tuple(AXES), "parameters", part=SWEEP)
X_VALUES, Y_VALUES = _values("xs", "Values across"), _values("ys", "Values up")
RESULT = choice("res", "Cells show", tuple(RESULTS), "days", part=SWEEP)
DUE = optional(
    OWN_DEADLINE,
    "Deadline",
    parse_within,
    nothing=None,
    part=SWEEP,
    help="What a cell has to keep to: a time such as 90 days, or money such as $5M. Empty: the plan’s "
    "deadline, or no limit where it has none.",
)

SWEEP_FIELDS = (X, X_VALUES, Y, Y_VALUES, RESULT, DUE)
"""All of them."""
