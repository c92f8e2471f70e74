"""The price of electricity, one or by the hours of a day."""

from __future__ import annotations

import re

from core.units import QuantityError, parse_quantity

TARIFF = "0.06, 0.12 from 8 to 20"
"""An example of a tariff: a price, and other prices between hours of the day."""

_MOST = 100
_HOURS = 24
_PART = re.compile(
    r"(?P<price>\S+)\s+(?:from\s+)?(?P<first>\d{1,2})(?::00|h)?\s*(?:to|-|–)\s*(?P<last>\d{1,2})(?::00|h)?"
)


def mean_of_tariff(text: str) -> float:
    """Dollars per kWh on the mean of a day, of one price or of a tariff such as `TARIFF`; hours may pass midnight.

    Raises `QuantityError` with an example for what is no price, no hour, or two prices of one hour.
    """
    usual, *parts = re.split(r"[,;]", text)
    prices = [_price(usual)] * _HOURS
    taken: set[int] = set()
    for part in parts:
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise QuantityError(f"“{part.strip()}” is no price between two hours. For example: {TARIFF}.")
        first, last = int(match["first"]), int(match["last"])
        if max(first, last) > _HOURS or first == last:
            raise QuantityError(
                f"“{part.strip()}” names no hours of a day, which go from 0 to 24. For example: {TARIFF}."
            )
        hours = {hour % _HOURS for hour in range(first, last if last > first else last + _HOURS)}
        if twice := taken & hours:
            raise QuantityError(f"Hour {min(twice)} has two prices. For example: {TARIFF}.")
        taken |= hours
        for hour in hours:
            prices[hour] = _price(match["price"])
    return sum(prices) / _HOURS


def _price(text: str) -> float:
    return parse_quantity(text.strip().removeprefix("$"), "number", low=0.0, high=_MOST, example=TARIFF)
