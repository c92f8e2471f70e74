"""Output of nccl-tests and what it says, made up for tests.

The text is written from the printing statements of nccl-tests itself (src/util.cu), with its own bandwidths.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from core.benchmark.collectives import Collectives

DAY = date(2026, 3, 4)
H100 = "NVIDIA H100 80GB HBM3"

# programme, redop, root, factor of bus over algorithm bandwidth for n ranks; in-place results are checked
PROGRAMMES = {
    "all-reduce": ("all_reduce_perf", "sum", lambda n: 2 * (n - 1) / n, True),
    "all-gather": ("all_gather_perf", "none", lambda n: (n - 1) / n, True),
    "reduce-scatter": ("reduce_scatter_perf", "sum", lambda n: (n - 1) / n, True),
    "all-to-all": ("alltoall_perf", "none", lambda n: (n - 1) / n, False),
    "send-recv": ("sendrecv_perf", "none", lambda n: 1.0, False),
}


def _figure(value: float, width: int) -> str:
    """As ``getFloatStr`` writes it: as many decimals, two at most, as fit."""
    texts = (f"{value:.{digits}f}" for digits in (2, 1, 0))
    return next((text for text in texts if len(text) <= width), f"{value:.1e}").rjust(width)


def devices(nodes: int, per_node: int, name: str = H100) -> str:
    """The lines of the ranks."""
    return "".join(
        f"#  Rank {rank:2d} Group  0 Pid {9000 + rank:6d} on {f'node-{rank // per_node}':>10} device "
        f"{rank % per_node:2d} [0000:{rank % per_node:02x}:00] {name}\n"
        for rank in range(nodes * per_node)
    )


def output(
    operation: str,
    times_us: dict[int, float],
    *,
    nodes: int = 1,
    per_node: int = 8,
    named: bool = True,
    wrong: int = 0,
    ranks: str = "",
) -> str:
    """The output of one test. times_us: by size in bytes. named: as since version 2.17."""
    programme, redop, factor, checked = PROGRAMMES[operation]
    head = "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22809\n" if named else ""
    head += f"# Collective test starting: {programme}\n" if named else ""
    rows = ""
    for size, us in times_us.items():
        algorithm = size / us / 1e3
        figures = f"  {_figure(us, 7)}  {_figure(algorithm, 6)}  {_figure(algorithm * factor(nodes * per_node), 6)}"
        rows += f"{size:12d}  {size // 4:12d}     float  {redop:>6}      -1{figures}  {wrong:6g}{figures}"
        rows += "       0\n" if checked else "    N/A\n"
    return (
        f"{head}# nThread 1 nGpus 8 minBytes 1024 maxBytes 1073741824 step: 4(factor) warmup iters: 1 iters: 20 agg "
        f"iters: 1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n{ranks or devices(nodes, per_node)}#\n"
        "#                                                              out-of-place                       in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"
        "  #wrong \n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)          (us)  (GB/s)  (GB/s)\n"
        f"{rows}# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n# Avg bus bandwidth    : 1.0 \n#\n"
        + (f"# Collective test concluded: {programme}\n\n" if named else "\n")
    )


def timing(operation: str, size: int, seconds: float, **other: Any) -> dict[str, Any]:
    """A message of ``size`` bytes in ``seconds``."""
    return {
        "operation": operation,
        "bytes": size,
        "seconds": seconds,
        "in_place_seconds": 0.9 * seconds,
        "wrong": 0,
    } | other


def values(**other: Any) -> dict[str, Any]:
    """Collectives of 8 ranks on one node."""
    return {
        "day": DAY,
        "nodes": 1,
        "ranks_per_node": 8,
        "devices": (H100,),
        "versions": "nccl-tests 2.17.6, NCCL 2.28.9",
        "timings": (
            timing("all-reduce", 1 << 20, 5e-5),
            timing("all-reduce", 1 << 30, 0.005),
            timing("all-gather", 1 << 30, 0.0025),
            timing("send-recv", 1 << 30, 0.003),
        ),
    } | other


def made(**other: Any) -> Collectives:
    """The same, checked."""
    return Collectives.model_validate(values(**other))
