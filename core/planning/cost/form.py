"""Fields of what a calendar costs: prices of reserved, owned and rented accelerators, staff and storage."""

from __future__ import annotations

import math

from core.fields import Field, ParsedForm, optional, switch
from core.limits import limit
from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.cost.bill import Prices
from core.planning.form.plan_form import plan_form
from core.units import Kind, parse_quantity

MONEY = "money"


def _amount(
    id: str,
    label: str,
    kind: Kind,
    *,
    high: float,
    low: float = 0.0,
    scale: float = 1.0,
    example: str,
    default: str = "",
    help: str = "",
) -> Field:
    """A price or amount that is unknown while it is empty; in units of ``scale``."""

    def read(text: str) -> float:
        return parse_quantity(text, kind, low=low, high=high, example=example) * scale

    field = optional(id, label, read, nothing=math.nan, placeholder="unknown", part=MONEY, help=help)
    return field.with_default(default)


_DOLLARS = float(limit("dollars"))

HELD = switch(
    "held",
    "Pay for idle hours too",
    False,
    part=MONEY,
    help="Off: rented while runs work, as Compute budget counts. On: the whole fleet is rented from its start to the "
    "last end, with spares, maintenance and waiting.",
)
RESERVED = _amount(
    "rprice",
    "Reserved, $/h",
    "usd_per_hour",
    high=float(limit("price_per_hour")),
    example="1.90",
    help="Per accelerator and hour of a commitment; all of the fleet, all of the term, used or not.",
)
TERM = _amount(
    "term",
    "Term",
    "seconds",
    low=86400.0,
    high=3.2e9,
    scale=1 / 86400,
    example="1 year",
    default="1 year",
    help="As many terms as hold the whole calendar. AWS Savings Plans are for one or three years.",
)
CAPITAL = _amount(
    "capital",
    "Capital, $ each",
    "usd",
    high=_DOLLARS,
    example="35,000",
    help="Per accelerator, with its share of hosts, network and building work.",
)
YEARS = _amount(
    "years",
    "Years of use",
    "number",
    low=0.1,
    high=50,
    example="5",
    default="5",
    help="Straight-line. Five years is what Amazon’s 10-K for 2022 gives its servers.",
)
KWH = _amount(
    "kwh",
    "Power, $/kWh",
    "number",
    high=100,
    example="0.08",
    default="0.0806",
    help="8.06 cents is what industrial customers in the US paid on average in 2023, by the Energy Information "
    "Administration.",
)
STAFF = _amount(
    "staff", "Staff, $ a year", "usd", high=_DOLLARS, example="2M", help="People who run a fleet of one’s own."
)
SPACE = _amount(
    "space", "Space, $ a year", "usd", high=_DOLLARS, example="1M", help="Rent of the building, or its share."
)

MONEY_FIELDS: tuple[Field, ...] = (
    HELD,
    RESERVED,
    TERM,
    CAPITAL,
    YEARS,
    KWH,
    STAFF,
    SPACE,
)


def prices_of(reading: ParsedForm) -> Prices:
    """The prices that the values of a form over `MONEY_FIELDS` describe."""
    v = reading.values
    return Prices(
        held=v[HELD.id],
        reserved=v[RESERVED.id],
        term=v[TERM.id],
        capital=v[CAPITAL.id],
        years=v[YEARS.id],
        kwh=v[KWH.id],
        staff=v[STAFF.id],
        space=v[SPACE.id],
    )


CALENDAR_FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
