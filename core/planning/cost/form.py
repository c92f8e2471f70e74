"""Fields of the cost of a calendar: prices of reserved and owned accelerators, power, staff, and space."""

from __future__ import annotations

import math

from core.fields import Field, ParsedForm, optional, switch
from core.limits import limit
from core.messages import message
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
    """Return a field for a price that is unknown while empty, in units of ``scale``."""

    def read(text: str) -> float:
        return parse_quantity(text, kind, low=low, high=high, example=example) * scale

    field = optional(
        id, label, read, nothing=math.nan, placeholder=message("cost.field.unknown"), part=MONEY, help=help
    )
    return field.with_default(default)


_DOLLARS = float(limit("dollars"))

HELD = switch("held", message("cost.field.held"), False, part=MONEY, help=message("cost.field.held_help"))
RESERVED = _amount(
    "rprice",
    message("cost.field.reserved"),
    "usd_per_hour",
    high=float(limit("price_per_hour")),
    example="1.90",
    help=message("cost.field.reserved_help"),
)
TERM = _amount(
    "term",
    message("cost.field.term"),
    "seconds",
    low=86400.0,
    high=3.2e9,
    scale=1 / 86400,
    example="1 year",
    default="1 year",
    help=message("cost.field.term_help"),
)
CAPITAL = _amount(
    "capital",
    message("cost.field.capital"),
    "usd",
    high=_DOLLARS,
    example="35,000",
    help=message("cost.field.capital_help"),
)
YEARS = _amount(
    "years",
    message("cost.field.years"),
    "number",
    low=0.1,
    high=50,
    example="5",
    default="5",
    help=message("cost.field.years_help"),
)
KWH = _amount(
    "kwh",
    message("cost.field.kwh"),
    "number",
    high=100,
    example="0.08",
    default="0.0806",
    help=message("cost.field.kwh_help"),
)
STAFF = _amount(
    "staff", message("cost.field.staff"), "usd", high=_DOLLARS, example="2M", help=message("cost.field.staff_help")
)
SPACE = _amount(
    "space", message("cost.field.space"), "usd", high=_DOLLARS, example="1M", help=message("cost.field.space_help")
)

MONEY_FIELDS: tuple[Field, ...] = (HELD, RESERVED, TERM, CAPITAL, YEARS, KWH, STAFF, SPACE)


def prices_of(reading: ParsedForm) -> Prices:
    """Return the prices of a form with `MONEY_FIELDS`."""
    held, reserved, term, capital, years, kwh, staff, space = (reading.values[field.id] for field in MONEY_FIELDS)
    return Prices(held, reserved, term, capital, years, kwh, staff, space)


CALENDAR_FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
