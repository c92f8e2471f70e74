"""Measured collectives: what each operation took by size of message, and the rate of links that a plan can take of it.

Bandwidths are those of nccl-tests, whose output `core.benchmark.nccl_tests` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from core.benchmark.points import Checked, Count, Name
from core.formula import Source, Symbol, formula
from core.hardware.rates import Rates
from core.limits import limit

Operation: TypeAlias = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-recv"]

LINK_PASSES: Mapping[Operation, int] = {
    "all-reduce": 2,
    "all-gather": 1,
    "reduce-scatter": 1,
    "all-to-all": 1,
    "send-recv": 0,
}
"""How often a message passes a link, less each rank's own part; 0 where bus and algorithm bandwidth are one."""

NCCL_TESTS = Source(
    "NVIDIA, nccl-tests", "doc/PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)
_ALGORITHM = Symbol(r"B_\mathrm{alg}", "algorithm bandwidth", "bytes_per_s")

LINK_BYTES = 64 * 2**20
"""A smaller message takes its time to begin rather than to pass."""

_Seconds = Annotated[float, Field(ge=1e-9, le=1e6, allow_inf_nan=False)]
"""Nothing is exchanged within a nanosecond; a smaller time would make a rate that is no number."""

_AWAITED: tuple[Operation, ...] = ("all-reduce", "all-gather", "reduce-scatter")
"""What a training step waits for; which of them depends on its layout."""


@formula(
    r"\frac{\v{size}}{\v{seconds}}",
    result=_ALGORITHM,
    symbols={
        "size": Symbol("S", "bytes of the whole message", "bytes"),
        "seconds": Symbol("t", "time of one operation", "seconds"),
    },
    sources=(NCCL_TESTS.at("doc/PERFORMANCE.md, algorithm bandwidth"),),
)
def algorithm_bandwidth(size: float, seconds: float) -> float:
    """Algorithm bandwidth: bytes of the message over the time it takes."""
    return size / seconds


@formula(
    r"\v{times} \cdot \frac{\v{ranks} - 1}{\v{ranks}} \cdot \v{rate}",
    result=Symbol(r"B_\mathrm{bus}", "bus bandwidth, one way", "bytes_per_s"),
    symbols={
        "times": Symbol("k", "times that the message passes a link: 2 of an all-reduce, else 1", "count"),
        "ranks": Symbol("n", "ranks taking part", "count"),
        "rate": _ALGORITHM,
    },
    sources=(NCCL_TESTS.at("doc/PERFORMANCE.md, bus bandwidth"),),
)
def bus_bandwidth(times: float, ranks: float, rate: float) -> float:
    """Bus bandwidth: what each rank's link carries one way, whatever the number of ranks.

    A rank's own part of the message does not travel. It can be set beside the bandwidth of a link.
    """
    return times * (ranks - 1) / ranks * rate


class CollectiveTiming(Checked):
    """Mean time of one operation on messages of one size, out of place and in place. wrong: elements of its results."""

    operation: Operation
    bytes: Annotated[int, Field(ge=1, lt=2**63)]
    seconds: _Seconds
    in_place_seconds: _Seconds
    wrong: Count


class Collectives(Checked):
    """Measured collectives of one set of ranks.

    day: when they came here, for nccl-tests names none. devices: what the ranks run on, each kind once. versions: of
    the programme and the library, where the output names them.
    """

    format: Literal["nccl-tests"] = "nccl-tests"
    day: Annotated[date, Field(strict=False)]
    nodes: Annotated[int, Field(ge=1)]
    ranks_per_node: Annotated[int, Field(ge=1)]
    devices: Annotated[tuple[Name, ...], Field(min_length=1, max_length=limit("collective_devices"))]
    versions: Annotated[str, Field(max_length=limit("measure_name_chars"))] = ""
    timings: Annotated[tuple[CollectiveTiming, ...], Field(min_length=1, max_length=limit("collective_points"))]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not 2 <= self.ranks <= limit("collective_ranks"):
            raise ValueError(f"from 2 to {limit('collective_ranks'):,} ranks exchange, and it has {self.ranks:,}")
        return self

    @property
    def ranks(self) -> int:
        """How many take part."""
        return self.nodes * self.ranks_per_node

    def bus_rate(self, timing: CollectiveTiming, seconds: float | None = None) -> float:
        """Bus bandwidth in bytes per second, one way: out of place, or at ``seconds``."""
        rate = algorithm_bandwidth(timing.bytes, seconds or timing.seconds)
        passes = LINK_PASSES[timing.operation]
        return bus_bandwidth(passes, self.ranks, rate) if passes else rate

    @property
    def largest(self) -> dict[Operation, CollectiveTiming]:
        """The largest message of each operation."""
        by_size = sorted(self.timings, key=lambda timing: timing.bytes)
        last = {timing.operation: timing for timing in by_size}
        return {operation: last[operation] for operation in LINK_PASSES if operation in last}

    @property
    def link_timing(self) -> CollectiveTiming | None:
        """The slowest of all-reduce, all-gather and reduce-scatter at the largest message, which `link_rates` are of.

        None without large messages, or where results were wrong.
        """
        awaited = [timing for operation, timing in self.largest.items() if operation in _AWAITED]
        if not awaited or any(timing.wrong or timing.bytes < LINK_BYTES for timing in awaited):
            return None
        return min(awaited, key=self.bus_rate)

    @property
    def link_rates(self) -> Rates:
        """What collectives reach on one rank's links, one way: inside a node where all ranks are on one, else on its
        share of the network, which the ranks of a node have together; nothing without a `link_timing`."""
        slowest = self.link_timing
        if slowest is None:
            return Rates()
        rate = self.bus_rate(slowest)
        return Rates(inside=rate) if self.nodes == 1 else Rates(between=rate / self.ranks_per_node)
