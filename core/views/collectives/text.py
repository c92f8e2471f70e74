"""What a measuring of collectives found, in words, rows and explanations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.benchmark.collectives.formulas import algorithm_bandwidth, bus_bandwidth
from core.benchmark.collectives.result import algorithm_rate, bus_rate, link_point, points_of, wide
from core.benchmark.collectives.spec import MIN_RUNS, OPERATIONS, Name, size_text
from core.formula import Explanation
from core.units import format_duration, format_exact, format_quantity
from core.wording import listed, percent, plural, span

if TYPE_CHECKING:
    from core.benchmark.collectives.result_fields import PointFields, ResultFields

METHOD_TEXT = (
    "Before anything is timed, each operation exchanges a small message of known numbers, and one whose result is "
    "wrong is refused. What a backend cannot do is tried too, and stands here in its own words.",
    "Every size of every operation has an equal share of the seconds, the first fifth of it to warm up. All ranks meet "
    "at a barrier before each run; each takes its time until its device has finished, and the run counts with the time "
    "of the slowest rank. The headline is the median run; best, p10 and p90 show the spread.",
    f"A size of which {MIN_RUNS} runs do not fit into its share, or whose buffers do not fit into memory, is skipped "
    "with all larger ones. Buffers hold random normal numbers; the all-reduce is in place.",
    "Algorithm bandwidth is the size of the message over its time; bus bandwidth is what a rank’s link then carries, "
    "one way. Both follow nccl-tests, GB are 10⁹ bytes, and sizes are those of "
    + listed([f"{item.size} ({name})" for name, item in OPERATIONS.items()])
    + ".",
    " ".join(f"{name}: {operation.what}." for name, operation in OPERATIONS.items()),
)
"""How it is measured, a paragraph each."""


def rate_text(rate: float) -> str:
    """Bytes per second as shown: 7.1 GB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured size, as text."""

    operation: str
    size: str
    bus: str
    spread: str
    best: str
    algorithm: str
    time: str
    runs: str
    slowest: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts, in the order of `HEADINGS`."""
        return (
            self.operation,
            self.size,
            self.bus,
            self.spread,
            self.best,
            self.algorithm,
            self.time,
            self.runs,
            self.slowest,
        )


HEADINGS = (
    "Operation",
    "Message",
    "Bus",
    "p10–p90",
    "Best",
    "Algorithm",
    "Time",
    "Runs",
    "Slowest",
)
"""Over the cells of `rows`; the first is over words, the others over figures."""


CAPTION = "Bus and algorithm bandwidth at the median time of the slowest rank; which rank that was most often."


def top_rows(result: ResultFields) -> tuple[Row, ...]:
    """The largest message of each operation."""
    return _rows(result, tuple(largest(result).values()))


def rows(result: ResultFields) -> tuple[Row, ...]:
    """The table: every measured size, in the order of measuring."""
    return _rows(result, result.points)


def _rows(result: ResultFields, points: Sequence[PointFields]) -> tuple[Row, ...]:
    return tuple(
        Row(
            point.operation,
            size_text(point.bytes),
            rate_text(bus_rate(result, point)),
            spread(result, point),
            rate_text(bus_rate(result, point, point.best_s)),
            rate_text(algorithm_rate(point)),
            format_duration(point.median_s, 3),
            format_exact(point.runs),
            format_exact(point.slowest_rank),
        )
        for point in points
    )


def spread(result: ResultFields, point: PointFields) -> str:
    """The p10–p90 range of the bus bandwidth: a tenth of the runs were slower, a tenth faster."""
    return span(*(rate_text(bus_rate(result, point, seconds)) for seconds in (point.p90_s, point.p10_s)))


def largest(result: ResultFields) -> dict[Name, PointFields]:
    """The largest message of each operation that was measured, in the order of measuring."""
    table: dict[Name, PointFields] = {}
    for name in OPERATIONS:
        if points := points_of(result, name):
            table[name] = max(points, key=lambda point: point.bytes)
    return table


def headline(result: ResultFields) -> PointFields | None:
    """The largest all-reduce; without one the largest message of the first operation that there is."""
    return next(iter(largest(result).values()), None)


def ranks_text(result: ResultFields) -> str:
    """ "16 ranks on 2 nodes"."""
    where = "one node" if result.nodes == 1 else f"{result.nodes:,} nodes"
    return f"{result.world_size:,} ranks on {where}"


def named(result: ResultFields) -> str:
    """One result in a list to choose from: ranks, links, device and when (UTC)."""
    top = headline(result)
    rate = f"{rate_text(bus_rate(result, top))} {top.operation}" if top else "nothing measured"
    device = listed(result.devices) or "unknown device"
    return f"{result.when[:16].replace('T', ' ')} · {rate} · {ranks_text(result)} · {device}"


def answer(result: ResultFields, link: float = math.nan) -> tuple[str, str]:
    """The finding in one sentence, and the quieter line with its circumstances.

    link: what a datasheet says that one link carries one way, in bytes per second; NaN where unknown.
    """
    top = headline(result)
    if top is None:
        return f"**{ranks_text(result)}**: no exchange was measured.", _where(result)
    rate = bus_rate(result, top)
    text = f"{top.operation} of {size_text(top.bytes)} runs at **{rate_text(rate)}** bus bandwidth"
    if not math.isnan(link):
        text += f", **{percent(rate / link)}** of the datasheet’s {rate_text(link)}"
    message = (
        f"Median of {top.runs:,} {plural(top.runs, 'run')} in {format_duration(top.duration_s, 2)} on the slowest "
        f"rank, most often rank {top.slowest_rank:,}; p10–p90 {spread(result, top)}."
    )
    return f"**{ranks_text(result)}**: {text}.", f"{message} {_where(result)}"


def link_line(result: ResultFields) -> str:
    """Where the rate of the links that a plan can take comes from; empty where there is none."""
    point = link_point(result)
    if point is None:
        return ""
    string = (
        f"Of links it is the slowest of all-reduce, all-gather and reduce-scatter: {point.operation}, bus bandwidth"
    )
    rate = rate_text(bus_rate(result, point))
    if result.nodes == 1:
        return f"{string} {rate}, one way."
    return f"{string} {rate} one way, over the {result.ranks_per_node:,} ranks of a node, which share its network."


def _where(result: ResultFields) -> str:
    libraries = [f"torch {result.torch}"]
    libraries += [f"CUDA {result.cuda}"] * bool(result.cuda) + [f"NCCL {result.nccl}"] * bool(result.nccl)
    when = result.when.replace("T", " ")[:16]
    return (
        f"{listed(result.devices) or 'Unknown device'}, backend {result.backend}, {', '.join(libraries)}; measured "
        f"{when} UTC, method {result.method}."
    )


def remarks(result: ResultFields) -> tuple[str, ...]:
    """What the table has no column for: that it ended early, what is missing and why, and wide spreads."""
    sentences = [] if result.complete else [f"**Incomplete**: {_sentence(result.problem)}"]
    sentences += [f"**{refusal.operation} {refusal.kind}**: {_sentence(refusal.text)}" for refusal in result.refusals]
    doubtful = [point for point in largest(result).values() if wide(point)]
    if doubtful:
        names = listed([f"{point.operation} of {size_text(point.bytes)}" for point in doubtful])
        sentences.append(f"**The runs of {names} spread widely**: something else probably used the links meanwhile.")
    return tuple(sentences)


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."


def chart_alt(result: ResultFields, link: float = math.nan) -> str:
    """The chart's takeaway for those who do not see it."""
    table = largest(result)
    sentences = [f"{n} {rate_text(bus_rate(result, p))} at {size_text(p.bytes)}" for n, p in table.items()]
    dashed = "" if math.isnan(link) else f" A dashed line marks the datasheet’s {rate_text(link)}."
    return (
        f"Bus bandwidth over message size, a line per operation: {', '.join(sentences) or 'nothing measured'}.{dashed}"
    )


def explanations(result: ResultFields) -> tuple[Explanation, ...]:
    """The rates of the largest message of each operation, opened. Point to point they are one and the same."""
    table = largest(result)
    results = [
        algorithm_bandwidth.explain(size=point.bytes, seconds=point.median_s).about(_named(point))
        for point in table.values()
    ]
    for point in table.values():
        if times := OPERATIONS[point.operation].times:
            rate = algorithm_rate(point)
            results.append(bus_bandwidth.explain(times=times, ranks=result.world_size, rate=rate).about(_named(point)))
    return tuple(results)


def _named(point: PointFields) -> str:
    return f"{point.operation}, {size_text(point.bytes)}, median"
