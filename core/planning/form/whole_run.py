"""Fields of the whole run: limits, failures, power, experience, and measured rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.dates import refuse_day
from core.fields import Field, choice, optional, quantity
from core.glossary import meaning
from core.hardware.cluster import RateName, Rates
from core.limits import limit
from core.number_text import is_money
from core.planning.measured import EXAMPLE, CarriedRates, parse_own_runs
from core.planning.plan import BY_AGE, CERTAINTIES, LONGEST_DAYS, MATURITIES, NOT_MEASURED
from core.runs.energy import MOST_DRAWN, US_GRID, USUAL_PUE
from core.runs.goodput import parse_failures
from core.search.request import FREE_MEMORY
from core.units import Kind, QuantityError, parse_quantity

MATURITY = choice(
    "ready",
    "Its software",
    MATURITIES,
    BY_AGE,
    few=True,
    part="more",
    help="Runs on an architecture that had been out for two years at most reached less of their steps. **by its age**: "
    "new where the latest published runs were so early on it. **first run on it**, **proven**: what you know of yours.",
)
OWN_RUNS = Field(
    "ownruns",
    "Your own runs, one a line",
    "",
    parse_own_runs,
    "lines",
    part="more",
    placeholder=EXAMPLE,
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
    help="What the same people trained before: parameters, tokens, accelerators, and how long, in days, hours or "
    "accelerator-hours; or tokens/s of the whole cluster. The cells of a table are read as well. What they reached of "
    "their steps moves and narrows the range.",
)


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


RATES = "rates"
"""The part of the form."""

_LEAST = 1e6
_MEANT = (
    "Measured on the accelerator, in place of what its datasheet leads one to expect. Step times of layouts and the "
    "roofline of a layer are of these rates; empty: of the datasheet’s."
)

_ONE_WAY = " Bus bandwidth of large collectives, one way, of one accelerator: between nodes its share of the network."


def _read(kind: Kind, high: float, example: str) -> Callable[[str], float]:
    return lambda text: parse_quantity(text, kind, low=_LEAST, high=high, example=example)


def _rate(id: str, label: str, kind: Kind, high: float, example: str, more: str = "") -> Field:
    field = optional(
        id,
        label,
        _read(kind, high, example),
        nothing=NOT_MEASURED,
        placeholder="datasheet’s",
        part=RATES,
        help=_MEANT + more,
    )
    return replace(field, omit_if_empty=True)


_FLOP_PER_S, _BYTES_PER_S = float(limit("measured_flop_per_s")), float(limit("measured_bytes_per_s"))

RATE_FIELDS: Mapping[RateName, Field] = {
    "matmul16": _rate("r16", "Measured, 16-bit", "flop_per_s", _FLOP_PER_S, "662 TFLOP/s"),
    "matmul8": _rate("r8", "Measured, 8-bit", "flop_per_s", _FLOP_PER_S, "1.2 PFLOP/s"),
    "matmul4": _rate("r4", "Measured, 4-bit", "flop_per_s", _FLOP_PER_S, "4 PFLOP/s"),
    "memory": _rate("rmem", "Measured, memory", "bytes_per_s", _BYTES_PER_S, "3 TB/s"),
    "inside": _rate("rin", "Measured, links", "bytes_per_s", _BYTES_PER_S, "370 GB/s", _ONE_WAY),
    "between": _rate("rnet", "Measured, network", "bytes_per_s", _BYTES_PER_S, "46 GB/s", _ONE_WAY),
}
"""What of `Rates` is measured, and its field."""


_UNSAID = re.compile(r"[^A-Za-z0-9 .,:+/()-]")
"""What a device's name and a date do without, and text that is shown might mean something by."""


def origin_text(device: str, day: str) -> str:
    """The origin of rates as text, ``H100 80GB HBM3, 22 Nov 2026``: a device as it calls itself, and a day."""
    named = " ".join(_UNSAID.sub(" ", device.replace("NVIDIA", "")).replace(",", " ").split())
    return f"{named[: limit('rates_origin') - len(day) - 2].rstrip()}, {day}"


def _origin(text: str) -> str:
    if wrong := _UNSAID.search(text):
        raise QuantityError(
            f"“{wrong[0]}” is in no device’s name and no date. For example: H100 80GB HBM3, 22 Nov 2026."
        )
    return " ".join(text.split())


ORIGIN = Field(
    "rof",
    "Measured on",
    "",
    _origin,
    part=RATES,
    placeholder="device, date",
    max_chars=limit("rates_origin"),
    help="The device by the name it gives itself, a comma, and when. Rates of an accelerator of the catalogue count "
    "for that accelerator alone.",
    omit_if_empty=True,
)

MEASURED_FIELDS: tuple[Field, ...] = (*RATE_FIELDS.values(), ORIGIN)
"""All of them, in the order in which a link spells them."""


def measured_of(values: Mapping[str, Any]) -> CarriedRates:
    """What was measured, by the values of a form."""
    return CarriedRates(Rates(**{name: values[field.id] for name, field in RATE_FIELDS.items()}), values[ORIGIN.id])


WHOLE = "whole"
"""The part of the form."""


def _interval(text: str) -> float:
    return parse_quantity(text, "seconds", low=1.0, high=1e8, example="30 min")


def _drawn(text: str) -> float:
    return parse_quantity(text, "ratio", low=0.01, high=MOST_DRAWN, example="100%")


FAILURES = Field(
    "rate1k",
    "Failures/1,000 acc.-days, or MTBF",
    "0.474",
    parse_failures,
    part=WHOLE,
    help="Failures that stop the run. A bare number is per 1,000 accelerator-days; Llama 3 405B had 0.474. Or type "
    "those of the whole cluster: 8 per day, or the mean time between them, MTBF 3 h.",
)
WRITES = quantity(
    "each",
    "Writes, each acc.",
    "120 MB/s",
    "bytes_per_s",
    low=1,
    high=1e12,
    part=WHOLE,
    help="Bandwidth of writing a checkpoint, for each accelerator: storage grows with the cluster. 120 MB/s are the "
    "2 TB/s that Llama 3’s storage sustained for 16,384.",
)
RESTART = quantity(
    "back",
    "Restart",
    "10 min",
    "seconds",
    high=1e6,
    part=WHOLE,
    help="From a failure until it trains again: noticing, replacing, loading, and warming up.",
)
EVERY = optional(
    "every",
    "Checkpoint every",
    _interval,
    nothing=math.nan,
    placeholder="best",
    part=WHOLE,
    help="Training time between checkpoints. Empty: Daly’s best interval.",
)
WAITS = quantity(
    "waits",
    "Training waits",
    "100%",
    "ratio",
    high=1.0,
    part=WHOLE,
    help="Share of a checkpoint’s writing during which training stands still. Written in the background it is a few "
    "percent: the copy out of the accelerators’ memory.",
)
OTHER = quantity(
    "other",
    "Other stops",
    "0%",
    "ratio",
    high=0.9,
    part=WHOLE,
    help="Share of the time on the wall for evaluation, planned stops, idle tails.",
)
TAKEN = replace(
    optional(
        "spot",
        "Spot, interruptions/h",
        lambda text: parse_quantity(text, "number", high=float(limit("interruptions")), example="0.05"),
        nothing=0.0,
        placeholder="none",
        part=WHOLE,
        help="How often an hour all accelerators are taken away at once, as spot capacity is. Each time is a failure: "
        "work since the last checkpoint is lost, and a restart.",
    ),
    omit_if_empty=True,
)
DRAW = optional(
    "draw",
    "Power drawn",
    _drawn,
    nothing=None,
    placeholder="as published",
    part=WHOLE,
    help="Empty: of what the node of the accelerators draws at most, host and fans in it, the share that training was "
    "measured to draw, 76% as a rule. Or type an average as a share of the accelerators’ own power limits: 100% is "
    "what published tables take; 10.2 kW for 8 accelerators of 700 W are 182%.",
)
PUE = quantity(
    "pue",
    "PUE",
    str(USUAL_PUE),
    "number",
    low=1.0,
    high=3.0,
    part=WHOLE,
    help=meaning("PUE"),
)
GRID = quantity(
    "grid",
    "Grid, kg/kWh",
    str(US_GRID),
    "number",
    high=3.0,
    part=WHOLE,
    help="kg of CO₂ equivalent per kWh. 0.385 is the US average in LLaMA’s table.",
)
