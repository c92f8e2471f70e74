"""What a sweep can show of every cell, and the unit in which its cells read well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.planning.sweep.sweep import Sweep
from core.planning.throughput import Array
from core.units import SI_POWERS, format_count, significant
from core.wording import rent_or_none

Unit: TypeAlias = Literal["time", "money", "count", "share", "Wh", "W", "g", "memory"]

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Result:
    """One quantity of every cell. quantity: the sweep's array. title: what it is; unit: how it is written."""

    name: str
    quantity: str
    title: str
    unit: Unit

    def of(self, sweep: Sweep) -> Array:
        """Its values, NaN where there are none."""
        return np.asarray(getattr(sweep, self.quantity))


RESULTS: Mapping[str, Result] = {
    result.name: result
    for result in (
        Result("days", "days", "time on the wall", "time"),
        Result("dollars", "dollars", "dollars for accelerators", "money"),
        Result("memory", "memory", "peak memory per accelerator", "memory"),
        Result("MFU", "mfu", "MFU over all hours", "share"),
        Result("tokens/s", "tokens_per_second", "tokens per second, whole cluster", "count"),
        Result("acc.-hours", "hours", "accelerator-hours", "count"),
        Result("goodput", "goodput", "goodput, the share of the time that trains", "share"),
        Result("energy", "watt_hours", "energy", "Wh"),
        Result("power", "peak_watts", "peak power", "W"),
        Result("CO₂", "kg_co2", "carbon, CO₂ equivalent", "g"),
    )
}
"""Everything that a sweep can show, by name."""

_DAYS = (("years", 365.25, 2000.0), ("days", 1.0, 2.0), ("hours", 1 / 24, 1 / 12), ("minutes", 1 / 1440, 0.0))
_COUNTS = (("billions", 1e9), ("millions", 1e6), ("thousands", 1e3))


@dataclass(frozen=True, slots=True)
class Scale:
    """How the values of one sweep are written: in one unit for all cells, so that they can be compared by eye."""

    result: Result
    unit: str
    size: float

    def cell(self, value: float) -> str:
        """A value without its unit, which stands once beside all of them; short enough for a cell."""
        if not math.isfinite(value):
            return "—"
        display = value / self.size
        if abs(display) >= 1e6:
            return format_count(display, 3)
        return f"{significant(display / 1e3, 3)}k" if abs(display) >= 1e4 else significant(display, 3)

    def full(self, value: float) -> str:
        """A value with its unit."""
        if not math.isfinite(value):
            return "unknown"
        if self.result.unit == "money":
            return rent_or_none(value)
        return format_count(value, 3) if self.result.unit == "count" else f"{self.cell(value)} {self.unit}"

    @property
    def title(self) -> str:
        """What the cells say, with the unit."""
        return f"{self.result.title}, {self.unit}" if self.unit else self.result.title


def scale_of(sweep: Sweep, result: Result) -> Scale:
    """The unit in which the middle one of a sweep's values reads well."""
    values = result.of(sweep)
    finite = values[np.isfinite(values)]
    middle = float(np.median(finite)) if finite.size else 1.0
    match result.unit:
        case "time":
            unit, size, _ = next(row for row in _DAYS if middle >= row[2])
            return Scale(result, unit, size)
        case "share":
            return Scale(result, "%", 0.01)
        case "memory":
            return Scale(result, "GiB", GIB)
        case "money" | "count":
            unit, size = next((row for row in _COUNTS if middle >= row[1]), ("", 1.0))
            return Scale(result, unit, size)
        case "g":
            return Scale(result, "t", 1e3) if middle >= 1e3 else Scale(result, "kg", 1.0)
        case "Wh" | "W":
            prefix = max((p for p, power in SI_POWERS.items() if middle >= 10.0**power), key=SI_POWERS.__getitem__)
            return Scale(result, f"{prefix}{result.unit}", 10.0 ** SI_POWERS[prefix])
