"""What money depends on beside a plan: prices and yearly sums, any of which may be unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """What money depends on beside the plan's own price; NaN wherever nothing was given.

    held: whether a rented fleet is paid for from its start to the last end, or only while runs work. reserved: per
    accelerator-hour. term: days. capital: per accelerator. staff, space: a year. kwh: dollars.
    """

    held: bool = False
    reserved: float = math.nan
    term: float = math.nan
    capital: float = math.nan
    years: float = math.nan
    kwh: float = math.nan
    staff: float = math.nan
    space: float = math.nan
