"""Fields of the whole run: limits, failures, power, experience, and measured rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from core.dates import refuse_day
from core.fields import CATALOG, Field, choice, optional, quantity
from core.hardware.cluster import RateName, Rates
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError, is_money
from core.planning.measured import EXAMPLE, CarriedRates, parse_own_runs
from core.planning.plan import BY_AGE, CERTAINTIES, LONGEST_DAYS, MATURITIES, NOT_MEASURED
from core.quantities import parse_quantity
from core.runs.energy import MOST_DRAWN, US_GRID, USUAL_PUE
from core.runs.goodput import parse_failures
from core.search.request import FREE_MEMORY
from core.units import Kind

MATURITY = choice("ready", CATALOG, MATURITIES, BY_AGE, few=True, part="more")
OWN_RUNS = Field(
    "ownruns",
    CATALOG,
    "",
    parse_own_runs,
    "lines",
    part="more",
    placeholder=EXAMPLE,
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
)


LIMITS = "limits"
"""The part of the form."""

OWN_DEADLINE = "due"
"""The id of the deadline that a page has beside the plan's, for its own question."""

_DOLLARS = float(limit("dollars"))

_SURELY_DOLLARS = 1e5
"""A bare amount from here on is one of dollars: no run costs as many millions."""


def _days(text: str) -> float:
    """Return the days of a typed time."""
    refuse_day(text)
    if is_money(text):
        raise QuantityError(message("input.not_a_deadline", entered=text.strip()))
    return _amount("seconds", 60.0, 86400 * LONGEST_DAYS, "{} days", "120 days")(text) / 86400


def _amount(kind: Kind, low: float, high: float, meant: str, example: str) -> Callable[[str], float]:
    """Return a reader of amounts that say their unit: a bare 12 may be dollars or millions of them. meant: what a bare
    number is likely to be."""

    def read(text: str) -> float:
        value = parse_quantity(text, kind, low=low, high=high, example=example)
        typed = text.strip()
        if kind == "usd" and value >= _SURELY_DOLLARS:
            return value
        if not (is_money(typed) or typed[-1].isalpha()):
            raise QuantityError(message("input.no_unit", entered=typed, likely=meant.format(typed)))
        return value

    return read


def _limit(id: str, read: Callable[[str], float]) -> Field:
    def take(text: str) -> float:
        return math.nan if text.strip().lower() in ("none", "no limit") else read(text)

    return optional(id, CATALOG, take, nothing=math.nan, part=LIMITS, omit_if_empty=True)


DEADLINE = _limit("until", _days)
BUDGET = _limit("spend", _amount("usd", 1.0, _DOLLARS, "${}M", "$12M"))
POWER_LIMIT = _limit("mw", _amount("watts", 1.0, 1e12, "{} MW", "2 MW"))
HOST = _limit("ram", _amount("bytes_binary", 1e8, 1e14, "{} GiB", "128 GiB"))
MEMORY_HEADROOM = quantity("free", CATALOG, f"{FREE_MEMORY:.0%}", "ratio", high=0.9, part=LIMITS)
CERTAINTY = choice("sure", CATALOG, tuple(CERTAINTIES), "P50", few=True, part=LIMITS)

LIMIT_FIELDS = (DEADLINE, BUDGET, POWER_LIMIT, HOST, MEMORY_HEADROOM, CERTAINTY)
"""All of them, in the order in which a link spells them."""


RATES = "rates"
"""The part of the form."""

_LEAST = 1e6


def _rate(id: str, kind: Kind, high: float, example: str) -> Field:
    def read(text: str) -> float:
        return parse_quantity(text, kind, low=_LEAST, high=high, example=example)

    return optional(id, CATALOG, read, nothing=NOT_MEASURED, part=RATES, omit_if_empty=True)


_FLOP_PER_S, _BYTES_PER_S = float(limit("measured_flop_per_s")), float(limit("measured_bytes_per_s"))

RATE_FIELDS: Mapping[RateName, Field] = {
    "matmul16": _rate("r16", "flop_per_s", _FLOP_PER_S, "662 TFLOP/s"),
    "matmul8": _rate("r8", "flop_per_s", _FLOP_PER_S, "1.2 PFLOP/s"),
    "matmul4": _rate("r4", "flop_per_s", _FLOP_PER_S, "4 PFLOP/s"),
    "memory": _rate("rmem", "bytes_per_s", _BYTES_PER_S, "3 TB/s"),
    "inside": _rate("rin", "bytes_per_s", _BYTES_PER_S, "370 GB/s"),
    "between": _rate("rnet", "bytes_per_s", _BYTES_PER_S, "46 GB/s"),
}
"""What of `Rates` is measured, and its field."""


_UNSAID = re.compile(r"[^A-Za-z0-9 .,:+/()-]")
"""What a device's name and a date do without, and text that is shown might mean something by."""


def origin_text(device: str, day: str) -> str:
    """Return the origin of rates as text, such as ``H100 80GB HBM3, 22 Nov 2026``: the device's own name, and a
    date."""
    named = " ".join(_UNSAID.sub(" ", device.replace("NVIDIA", "")).replace(",", " ").split())
    return f"{named[: limit('rates_origin') - len(day) - 2].rstrip()}, {day}"


def _origin(text: str) -> str:
    if wrong := _UNSAID.search(text):
        raise QuantityError(message("input.device_name", character=wrong[0]))
    return " ".join(text.split())


ORIGIN = Field("rof", CATALOG, "", _origin, part=RATES, max_chars=limit("rates_origin"), omit_if_empty=True)

MEASURED_FIELDS: tuple[Field, ...] = (*RATE_FIELDS.values(), ORIGIN)
"""All of them, in the order in which a link spells them."""


def measured_of(values: Mapping[str, Any]) -> CarriedRates:
    """Return what was measured, by the values of a form."""
    return CarriedRates(Rates(**{name: values[field.id] for name, field in RATE_FIELDS.items()}), values[ORIGIN.id])


WHOLE = "whole"
"""The part of the form."""


def _interval(text: str) -> float:
    return parse_quantity(text, "seconds", low=1.0, high=1e8, example="30 min")


def _drawn(text: str) -> float:
    return parse_quantity(text, "ratio", low=0.01, high=MOST_DRAWN, example="100%")


FAILURES = Field("rate1k", CATALOG, "0.474", parse_failures, part=WHOLE)
CHECKPOINT_BANDWIDTH = quantity("each", CATALOG, "120 MB/s", "bytes_per_s", low=1, high=1e12, part=WHOLE)
RESTART = quantity("back", CATALOG, "10 min", "seconds", high=1e6, part=WHOLE)
CHECKPOINT_INTERVAL = optional("every", CATALOG, _interval, nothing=math.nan, part=WHOLE)
CHECKPOINT_BLOCKING = quantity("waits", CATALOG, "100%", "ratio", high=1.0, part=WHOLE)
OTHER_DOWNTIME = quantity("other", CATALOG, "0%", "ratio", high=0.9, part=WHOLE)
SPOT_INTERRUPTIONS = optional(
    "spot",
    CATALOG,
    lambda text: parse_quantity(text, "number", high=float(limit("interruptions")), example="0.05"),
    nothing=0.0,
    part=WHOLE,
    omit_if_empty=True,
)
AVERAGE_POWER = optional("draw", CATALOG, _drawn, nothing=None, part=WHOLE)
PUE = quantity("pue", CATALOG, str(USUAL_PUE), "number", low=1.0, high=3.0, part=WHOLE)
GRID = quantity("grid", CATALOG, str(US_GRID), "number", high=3.0, part=WHOLE)

WHOLE_FIELDS = (
    *(FAILURES, CHECKPOINT_BANDWIDTH, RESTART, CHECKPOINT_INTERVAL, CHECKPOINT_BLOCKING, OTHER_DOWNTIME),
    *(SPOT_INTERRUPTIONS, AVERAGE_POWER, PUE, GRID),
)
"""All of the whole run, in the order in which a link spells them."""
