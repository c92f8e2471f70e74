"""What all that is said of a measurement shares: the device, its datasheet, the points of a kind, and their doubts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from core.benchmark.device import DeviceKind
from core.benchmark.points import Kind, Point
from core.benchmark.record import Record
from core.hardware.accelerators import rate_kind
from core.units import SI_POWERS, UNIT, format_quantity, significant

SUSTAINED_S = 10.0
"""Timed seconds from which a rate counts as sustained: by then power and temperature limits show."""

OVER = 1.0
"""Above this share of a dense peak the peak is in doubt, not the clock."""


def rate_text(rate: float, dtype: str = "") -> str:
    """A rate to three digits: 790 TFLOP/s, of int8 790 TOP/s."""
    return format_quantity(rate, rate_kind(dtype), 3)


def point_rate_text(point: Point) -> str:
    """The rate of a point in the unit of its dtype."""
    return rate_text(point.rate, point.item.name)


def bandwidth_text(rate: float) -> str:
    """A bandwidth to three digits: 3.91 TB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


def rate_title(dtypes: Iterable[str], prefix: str = "") -> str:
    """The title of an axis of rates in ``dtypes``."""
    names = {UNIT[rate_kind(dtype)]: dtype for dtype in dtypes}
    units = sorted(f"{prefix}{unit}" for unit in names or (UNIT["flop_per_s"],))
    if len(units) > 1:
        units = [units[0], f"{names[UNIT['op_per_s']]}: {units[1]}"]
    return f"achieved rate ({'; '.join(units)})"


def spread(point: Point) -> str:
    """The p10–p90 range of a point's rates, both ends in the unit of the median."""
    unit = point_rate_text(point).split(" ")[1]
    scale = 10.0 ** SI_POWERS[unit.removesuffix(UNIT[rate_kind(point.item.name)])]
    low, high = point.p10_rate, point.p90_rate
    return f"{significant(low / scale, 3)}–{significant(high / scale, 3)} {unit}"


def rate_ticks(low: float, high: float, *, unit: bool = True) -> dict[str, list[Any]]:
    """Ticks of a logarithmic axis of rates between powers ``low`` and ``high`` of ten: powers where there are three,
    else one, two and five times them, or finer. unit: whether a tick has it, and not just the prefix."""
    values: list[float] = []
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [step * 10.0**k for k in powers for step in steps if low <= math.log10(step) + k <= high]
        if len(values) > 2:
            break
    ending = "" if unit else UNIT["flop_per_s"]
    return {"tickvals": values, "ticktext": [rate_text(value).removesuffix(ending) for value in values]}


def when(record: Record) -> str:
    """When it was begun, as a date and a time."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started))


def measured_line(record: Record) -> str:
    """When it was measured, with which torch and by which method."""
    return f"Measured {when(record)} with torch {record.torch}, method {record.method}."


def device_phrase(kind: DeviceKind, name: str) -> str:
    """ "This CPU", "This NVIDIA H200" or "This GPU"."""
    return "This CPU" if kind == "cpu" else f"This {name or 'GPU'}"


def subject(record: Record) -> str:
    """What the sentences of a record are about."""
    return device_phrase(record.programme.device, record.facts.name if record.facts else "")


def of_kind(record: Record, kind: Kind) -> tuple[Point, ...]:
    """The points of a kind, in order."""
    return tuple(point for point in record.points if point.item.kind == kind)
