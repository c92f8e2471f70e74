"""Measurements beside each other: which there are, and how two of them compare, dtype by dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.benchmark.best import is_spread, largest_copy
from core.benchmark.formulas import speed_ratio
from core.benchmark.record import Record, Stage
from core.units import significant
from core.views.benchmark.common import bandwidth_text, of_kind, rate_text, when
from core.views.benchmark.matmul import best_square, headline

HEADINGS = ("When", "Device", "What", "Matmul", "Largest copy", "torch", "State")

STATES: dict[Stage, str] = {
    "queued": "waiting",
    "running": "running",
    "finished": "finished",
    "cancelled": "cancelled",
    "failed": "failed",
    "lost": "lost with its server",
}


def device_name(record: Record) -> str:
    """The device as it calls itself."""
    return record.facts.name if record.facts else "unknown"


def rows(records: Sequence[Record]) -> tuple[tuple[str, ...], ...]:
    """One row per measurement."""
    return tuple(
        (
            when(record),
            _device(record),
            ", ".join(record.programme.kinds),
            _headline(record),
            _copy(record),
            record.torch or "unknown",
            STATES[record.stage],
        )
        for record in records
    )


def named(record: Record) -> str:
    """One measurement in a list to choose from: when (UTC), what and of which device."""
    top = _headline(record)
    what = ", ".join(record.programme.kinds) if top == "–" else top
    return f"{when(record).removesuffix(' UTC')} · {what} · {_device(record)}"


def _device(record: Record) -> str:
    return device_name(record) + (" (elsewhere)" if record.origin else "")


def _headline(record: Record) -> str:
    top = headline(record)
    return "–" if top is None or is_spread(top) else f"{rate_text(top.rate)} {top.item.name}"


def _copy(record: Record) -> str:
    point = largest_copy(record.points)
    return "–" if point is None or is_spread(point) else bandwidth_text(point.bandwidth)


def compared(first: Record, second: Record) -> tuple[tuple[str, str, str, str], ...]:
    """Rows of two measurements: what, the first, the second, and how many times the second is as fast."""
    result: list[tuple[str, str, str, str]] = []
    for dtype in dict.fromkeys((*first.programme.dtypes, *second.programme.dtypes)):
        point, two = best_square(first, dtype), best_square(second, dtype)
        if point and two:
            ratio = significant(speed_ratio(two.rate, point.rate), 3)
            result.append((f"matmul, {dtype}", _at(point.rate, point.shape), _at(two.rate, two.shape), f"{ratio} ×"))
    theirs = {
        p.item.key[:3]: p for kind in ("memory", "attention", "operations", "layer") for p in of_kind(second, kind)
    }
    for kind in ("memory", "attention", "operations", "layer"):
        for p in of_kind(first, kind):
            if other := theirs.get(p.item.key[:3]):
                show = bandwidth_text if kind == "memory" else rate_text
                sides = (p.bandwidth, other.bandwidth) if kind == "memory" else (p.rate, other.rate)
                ratio = significant(speed_ratio(p.median_s, other.median_s), 3)
                result.append((f"{p.item.name}, {p.item.label}", show(sides[0]), show(sides[1]), f"{ratio} ×"))
    return tuple(result)


def _at(rate: float, shape: tuple[int, ...]) -> str:
    return f"{rate_text(rate)} at n = {shape[0]:,}"


def comparable(first: Record, second: Record) -> str:
    """Why two measurements should not be compared as they stand; empty where they may be."""
    if first.method and second.method and first.method != second.method:
        return f"They were measured in different ways ({first.method} and {second.method}): compare with care."
    if first.torch and second.torch and first.torch != second.torch:
        return f"Different versions of torch: {first.torch} and {second.torch}."
    return ""


def says(first: Record, second: Record) -> str:
    """The comparison in a sentence: by the headline dtype that both have."""
    top = headline(first)
    other = best_square(second, top.item.name) if top else None
    if top is None or other is None:
        return "No matmul was measured in both."
    ratio = speed_ratio(other.rate, top.rate)
    word = "as fast as" if math.isclose(ratio, 1, rel_tol=0.02) else f"{significant(ratio, 3)} times as fast as"
    return (
        f"In {top.item.name} **{device_name(second)}**, {when(second)}, is {word} {device_name(first)}, {when(first)}."
    )
