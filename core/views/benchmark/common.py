"""What all that is said of a measurement shares: the device, its datasheet, the points of a kind, and their doubts."""

from __future__ import annotations

import math
import time
from typing import Any

from core.benchmark.device import DeviceKind
from core.benchmark.points import Kind, Point
from core.benchmark.record import Record
from core.units import format_quantity, significant

SUSTAINED_S = 10.0
"""Timed seconds from which a rate counts as sustained: by then power and temperature limits show."""

OVER = 1.0
"""Above this share of a dense peak the peak is in doubt, not the clock."""

_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def rate_text(rate: float) -> str:
    """A rate to three digits: 790 TFLOP/s."""
    return format_quantity(rate, "flop_per_s", 3)


def bandwidth_text(rate: float) -> str:
    """A bandwidth to three digits: 3.91 TB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


def spread(low: float, middle: float, high: float, kind: str = "flop_per_s") -> str:
    """A range of rates, both ends in the unit of the middle."""
    unit = format_quantity(middle, "flop_per_s" if kind == "flop_per_s" else "bytes_per_s", 3).split(" ")[1]
    scale = _SCALES[unit[: -len("FLOP/s" if kind == "flop_per_s" else "B/s")]]
    return f"{significant(low / scale, 3)}–{significant(high / scale, 3)} {unit}"


def rate_ticks(low: float, high: float) -> dict[str, list[Any]]:
    """Ticks of a logarithmic axis of rates between powers ``low`` and ``high`` of ten: powers where there are three,
    else one, two and five times them, or finer."""
    values: list[float] = []
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [step * 10.0**k for k in powers for step in steps if low <= math.log10(step) + k <= high]
        if len(values) > 2:
            break
    return {"tickvals": values, "ticktext": [rate_text(value) for value in values]}


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
