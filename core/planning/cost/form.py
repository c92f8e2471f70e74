"""What money asks beside a calendar: prices and amounts, each of which may stay empty."""

from __future__ import annotations

import math

from core.fields import Field, ParsedForm, optional, switch
from core.limits import limit
from core.planning.cost.prices import Prices
from core.planning.cost.tariff import TARIFF, mean_of_tariff
from core.units import Kind, QuantityError, parse_quantity

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
        value = parse_quantity(text, kind, low=low, high=high, example=example)
        # Prices here are per GB: a bare 100 would be 100 bytes, and the bill cents.
        if kind == "bytes" and value and not text.strip()[-1].isalpha():
            raise QuantityError(f"“{text.strip()}” has no unit. For example: {example}.")
        return value * scale

    field = optional(id, label, read, nothing=math.nan, placeholder="unknown", part=MONEY, help=help)
    return field.with_default(default)


_DOLLARS = float(limit("dollars"))
_BYTES = float(limit("stored_bytes"))

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
KWH = optional(
    "kwh",
    "Power, $/kWh",
    mean_of_tariff,
    nothing=math.nan,
    placeholder="unknown",
    part=MONEY,
    help=f"One price, or a tariff by the hours of a day, as {TARIFF}: its mean counts, as training goes on day and "
    "night. 8.06 cents: what industrial customers in the US paid on average in 2023, by the Energy Information "
    "Administration.",
).with_default("0.0806")
STAFF = _amount(
    "staff", "Staff, $ a year", "usd", high=_DOLLARS, example="2M", help="People who run a fleet of one’s own."
)
SPACE = _amount(
    "space", "Space, $ a year", "usd", high=_DOLLARS, example="1M", help="Rent of the building, or its share."
)
KEPT = _amount(
    "keep", "Checkpoints kept", "number", high=1e6, example="10", help="Of each run, from its start to its end."
)
DATASET = _amount(
    "data", "Dataset", "bytes", high=_BYTES, example="60 TB", help="Stored to the last day, such as 60 TB."
)
GB_MONTH = _amount(
    "gbm",
    "Storage, $/GB-month",
    "number",
    high=1000,
    example="0.023",
    default="0.023",
    help="$0.023 is Amazon S3 Standard in the eastern US, first 50 TB, in March 2026.",
)
SENT = _amount(
    "sent", "Sent out", "bytes", high=_BYTES, example="10 TB", help="Out of the cloud or data centre, such as 10 TB."
)
GB_OUT = _amount("gbo", "Network, $/GB", "number", high=1000, example="0.05")

MONEY_FIELDS: tuple[Field, ...] = (
    HELD,
    RESERVED,
    TERM,
    CAPITAL,
    YEARS,
    KWH,
    STAFF,
    SPACE,
    KEPT,
    DATASET,
    GB_MONTH,
    SENT,
    GB_OUT,
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
        kept=v[KEPT.id],
        dataset=v[DATASET.id],
        gb_month=v[GB_MONTH.id],
        sent=v[SENT.id],
        gb_out=v[GB_OUT.id],
    )
