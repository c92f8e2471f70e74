"""What a plan has to keep to, as fields: each may stay empty, and is no limit then."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from core.dates import refuse_day
from core.fields import Field, choice, optional, quantity
from core.limits import limit
from core.number_text import is_money
from core.planning.plan import CERTAINTIES, LONGEST_DAYS
from core.search.request import FREE_MEMORY
from core.units import Kind, QuantityError, parse_quantity

LIMITS = "limits"
"""The part of the form."""

OWN_DEADLINE = "due"
"""The id of the deadline that a page has beside the plan's, for its own question."""

_DOLLARS = float(limit("dollars"))

_SURELY_DOLLARS = 1e5
"""A bare amount from here on is one of dollars: no run costs as many millions."""


def _days(text: str) -> float:
    """Days of a typed time."""
    refuse_day(text)
    if is_money(text):
        raise QuantityError(f"“{text.strip()}” is money, and a deadline is a time. For example: 120 days.")
    return _amount("seconds", 60.0, 86400 * LONGEST_DAYS, "{} days", "120 days")(text) / 86400


def _amount(kind: Kind, low: float, high: float, meant: str, example: str) -> Callable[[str], float]:
    """A reader of amounts that say their unit: a bare 12 may be dollars or millions of them. meant: what a bare number
    is likely to be."""

    def read(text: str) -> float:
        value = parse_quantity(text, kind, low=low, high=high, example=example)
        typed = text.strip()
        if kind == "usd" and value >= _SURELY_DOLLARS:
            return value
        if not (is_money(typed) or typed[-1].isalpha()):
            raise QuantityError(f"“{typed}” has no unit. Did you mean {meant.format(typed)}?")
        return value

    return read


def _limit(id: str, label: str, read: Callable[[str], float], help: str) -> Field:
    def take(text: str) -> float:
        return math.nan if text.strip().lower() in ("none", "no limit") else read(text)

    field = optional(id, label, take, nothing=math.nan, placeholder="none", part=LIMITS, help=help)
    return replace(field, omit_if_empty=True)


DEADLINE = _limit("until", "Deadline", _days, "Days on the wall that the whole run may take, such as 120 days.")
MOST_DOLLARS = _limit(
    "spend",
    "Budget",
    _amount("usd", 1.0, _DOLLARS, "${}M", "$12M"),
    "Rent of the whole run, such as $12M. Of accelerators that are owned nothing is counted.",
)
MOST_WATTS = _limit(
    "mw",
    "Power limit",
    _amount("watts", 1.0, 1e12, "{} MW", "2 MW"),
    "What the building may draw at once, such as 2 MW: the nodes at their most, times PUE.",
)
HOST = _limit(
    "ram",
    "Host memory",
    _amount("bytes_binary", 1e8, 1e14, "{} GiB", "128 GiB"),
    "What the host of a node has, such as 128 GiB, for what is offloaded there.",
)
FREE = quantity(
    "free",
    "Memory headroom",
    f"{FREE_MEMORY:.0%}",
    "ratio",
    high=0.9,
    part=LIMITS,
    help="Share of an accelerator’s memory that has to stay free, for what no account foresees.",
)
CERTAINTY = choice(
    "sure",
    "Limits hold at",
    tuple(CERTAINTIES),
    "P50",
    few=True,
    part=LIMITS,
    help="P50: the middle of the range keeps the limit. P75, P90: three in four, or nine in ten such runs do.",
)

LIMIT_FIELDS = (DEADLINE, MOST_DOLLARS, MOST_WATTS, HOST, FREE, CERTAINTY)
"""All of them, in the order in which a link spells them."""
