"""Measured collectives in words, rows and explanations."""

from __future__ import annotations

import math
from collections.abc import Iterable

from core.benchmark.collectives import LINK_PASSES, Collectives, CollectiveTiming, algorithm_bandwidth, bus_bandwidth
from core.formula import Explanation
from core.units import format_bytes, format_duration, format_quantity
from core.wording import listed, percent, plural

HEADINGS = ("Operation", "Message", "Bus", "Bus, in place", "Algorithm", "Time")
"""Over the cells of `rows`; the first is over words, the others over figures."""

CAPTION = "Bandwidths of the mean time, out of place, that is with a result in a buffer of its own; and in place."


def size_text(size: float) -> str:
    """A message's size as people say it: 64 KiB."""
    return format_bytes(size, system="binary", digits=3)


def rate_text(rate: float) -> str:
    """Bytes per second as shown: 7.1 GB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


def rows(result: Collectives, timings: Iterable[CollectiveTiming]) -> list[tuple[str, ...]]:
    """The table of ``timings``, under `HEADINGS`."""
    return [
        (
            timing.operation,
            size_text(timing.bytes),
            rate_text(result.bus_rate(timing)),
            rate_text(result.bus_rate(timing, timing.in_place_seconds)),
            rate_text(algorithm_bandwidth(timing.bytes, timing.seconds)),
            format_duration(timing.seconds, 3),
        )
        for timing in timings
    ]


def ranks_text(result: Collectives) -> str:
    """ "16 ranks on 2 nodes"."""
    where = "one node" if result.nodes == 1 else f"{result.nodes:,} nodes"
    return f"{result.ranks:,} ranks on {where}"


def named(result: Collectives) -> str:
    """One result in a list to choose from: day, rate, ranks and device."""
    operation, timing = next(iter(result.largest.items()))
    rate = rate_text(result.bus_rate(timing))
    return f"{result.day} · {rate} {operation} · {ranks_text(result)} · {listed(result.devices)}"


def answer(result: Collectives, link: float = math.nan) -> tuple[str, str]:
    """The result in one sentence, and the quieter line with its circumstances.

    link: what a datasheet says that one link carries one way, in bytes per second; NaN where unknown.
    """
    operation, timing = next(iter(result.largest.items()))
    rate = result.bus_rate(timing)
    text = f"{operation} of {size_text(timing.bytes)} runs at **{rate_text(rate)}** bus bandwidth"
    if not math.isnan(link):
        text += f", **{percent(rate / link)}** of the datasheet’s {rate_text(link)}"
    circumstances = f"{listed(result.devices)}, {result.versions or 'nccl-tests'}; brought in on {result.day}."
    return f"**{ranks_text(result)}**: {text}.", circumstances


def link_line(result: Collectives) -> str:
    """Where the rate of the links that a plan can take comes from; empty where there is none."""
    timing = result.link_timing
    if timing is None:
        return ""
    text = f"Of links it is the slowest of all-reduce, all-gather and reduce-scatter: {timing.operation}, bus bandwidth"
    rate = rate_text(result.bus_rate(timing))
    if result.nodes == 1:
        return f"{text} {rate}, one way."
    return f"{text} {rate} one way, over the {result.ranks_per_node:,} ranks of a node, which share its network."


def remarks(result: Collectives) -> tuple[str, ...]:
    """What the table has no column for: results that were not right."""
    return tuple(
        f"**{timing.operation} of {size_text(timing.bytes)} is wrong**: {timing.wrong:,} "
        f"{plural(timing.wrong, 'element')} of its results, by nccl-tests’ own check. A plan takes no rate of it."
        for timing in result.largest.values()
        if timing.wrong
    )


def chart_alt(result: Collectives, link: float = math.nan) -> str:
    """The chart's takeaway for those who do not see it."""
    ends = [f"{name} {rate_text(result.bus_rate(t))} at {size_text(t.bytes)}" for name, t in result.largest.items()]
    dashed = "" if math.isnan(link) else f" A dashed line marks the datasheet’s {rate_text(link)}."
    return f"Bus bandwidth over message size, a line per operation: {', '.join(ends)}.{dashed}"


def explanations(result: Collectives) -> tuple[Explanation, ...]:
    """The rates of the largest message of each operation, opened. Point to point they are one and the same."""
    opened: list[Explanation] = []
    for operation, timing in result.largest.items():
        about = f"{operation}, {size_text(timing.bytes)}"
        opened.append(algorithm_bandwidth.explain(size=timing.bytes, seconds=timing.seconds).about(about))
        if passes := LINK_PASSES[operation]:
            rate = algorithm_bandwidth(timing.bytes, timing.seconds)
            opened.append(bus_bandwidth.explain(times=passes, ranks=result.ranks, rate=rate).about(about))
    return tuple(opened)
