"""The formulas of this room: algorithm bandwidth, and the bus bandwidth that it comes to on each rank's link."""

from __future__ import annotations

from core.formula import Source, Symbol, formula

NCCL_TESTS = Source(
    "NVIDIA, nccl-tests", "doc/PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)
_ALGORITHM = Symbol(r"B_\mathrm{alg}", "algorithm bandwidth", "bytes_per_s")


@formula(
    r"\frac{\v{size}}{\v{seconds}}",
    result=_ALGORITHM,
    symbols={
        "size": Symbol("S", "bytes of the whole message", "bytes"),
        "seconds": Symbol("t", "time of one run on the slowest rank", "seconds"),
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
