"""Traces of tensors: how long a chain of ten steps takes, and the full-size checks that the tests run in small.

200,000 layouts and 100,000 calls of every operation of the table against torch, and a million
random programs; each stops at the first thing that is wrong.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from core.tensors.examples.presets import ATTENTION
from core.tensors.operations.table import ROWS, TRAINED
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.trace import trace
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import headline
from pages.common.registry import TENSORS
from tests.core.tensors_calls import agreement, random_call
from tests.core.tensors_random import DTYPES, SHAPES, compare_views, random_program, survives
from tests.core.test_tensors_hostile import HOSTILE, UNREADABLE
from tests.perf.client import Session, spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import ROOT

CHAINS: dict[str, tuple[str, tuple[int, ...]]] = {
    "attention, 192 elements": (
        "q, k, v = x.chunk(3, -1)\nq = q.view(2, 4, 2, 4).transpose(1, 2)\nk = k.view(2, 4, 2, 4).transpose(1, 2)\n"
        "q @ k.mT",
        (2, 4, 24),
    ),
    "reshapes, 4,096 elements": (
        "x.view(16, 256).t().reshape(64, 64).t().contiguous().view(4096)[::2].view(32, 64).t().reshape(-1)",
        (64, 64),
    ),
    "copies, 65,536 elements": (
        "y = x.t().contiguous()\nz = y.flip(0).t().reshape(-1)\nz.view(256, 256).t().clone().add_(1).sum(0)",
        (256, 256),
    ),
}
"""Ten steps each, after the start."""

WRITES = "y = x.t()\nx += 1\ny.mul_(2)\nz = y.contiguous()\nz += 1\nz.add_(x.t())\nx"
"""Every step but one writes every element."""


def median_ms(call: Callable[[], object], rounds: int) -> float:
    """Median milliseconds of a call, after a few to warm up."""
    taken: list[float] = []
    for turn in range(rounds + 5):
        start = time.perf_counter()
        call()
        if turn >= 5:
            taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


async def rerun_cpu_ms(port: int, process: int, rounds: int) -> float:
    """Processor milliseconds that a server spends on a change of six lines of attention, by ``/proc``."""

    def spent() -> float:
        """utime and stime, after the name in brackets."""
        numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return 1000 * (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    await until_up(port)
    async with Session(port) as session:
        await session.open(TENSORS.url_path)
        await session.rerun({"t_shape": ", ".join(map(str, ATTENTION.shape))})
        texts = (ATTENTION.source, f"{ATTENTION.source}\nscores")
        for text in texts * 3:
            await session.rerun({"t_x": text})
        before = spent()
        for text in texts * (rounds // 2):
            await session.rerun({"t_x": text})
        return (spent() - before) / rounds


def refuse(text: str) -> None:
    """Read a text that is refused."""
    try:
        trace(text, (2, 3))
    except ExpressionError:
        return
    raise SystemExit(f"not refused: {text[:60]!r}")


def peak_mb() -> float:
    """Peak resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main(options: Options = FULL) -> None:
    """Measure and print."""
    rounds = options.rounds
    print(f"{'ten steps, median of ' + str(rounds) + ', ms':<36}{'trace':>8}{'+ words and picture':>22}")
    for name, (text, shape) in CHAINS.items():
        result = trace(text, shape)
        assert result.refusal is None
        assert len(result) == 11, len(result)

        def shown(text: str = text, shape: tuple[int, ...] = shape) -> None:
            run = trace(text, shape)
            headline(run)
            storage_picture(run)

        alone = median_ms(lambda text=text, shape=shape: trace(text, shape), rounds)
        print(f"{name:<36}{alone:>8.2f}{median_ms(shown, rounds):>22.2f}", flush=True)
    small, large = (trace(WRITES, shape) for shape in ((16, 16), (256, 256)))
    few, many = (median_ms(lambda results=result: storage_picture(results), rounds) for result in (small, large))
    print(
        f"picture of writes to 256 elements {few:.2f} ms, to 65,536 {many:.2f} ms, ratio {many / few:.1f}", flush=True
    )
    with spawned(ROOT) as (port, process):
        taken = asyncio.run(rerun_cpu_ms(port, process, rounds))
    print(f"a change of six lines of attention on the page, processor time of the server: {taken:.1f} ms", flush=True)
    usual = median_ms(lambda: trace("x.t()", (2, 3)), rounds)
    refused = {text: median_ms(lambda text=text: refuse(text), rounds) for text in (*HOSTILE, *UNREADABLE)}
    worst = max(refused, key=lambda text: refused[text])
    print(
        f"refusing {len(refused)} hostile texts: the slowest, {worst[:40]!r}, {refused[worst]:.2f} ms, "
        f"ratio to x.t() {refused[worst] / usual:.1f}",
        flush=True,
    )
    start = time.perf_counter()
    worked = compare_views(options.layouts, seed=1)
    taken = time.perf_counter() - start
    print(
        f"explain_view against torch: {options.layouts:,} layouts agree, {worked:,} of them views, in {taken:.0f} s",
        flush=True,
    )
    print(operations(options.calls), flush=True)
    print(programs(options.programs), flush=True)


def operations(count: int) -> str:
    """Hold ``count`` random calls, of every row in turn, against torch; what came of them."""
    rng, ended, start = random.Random(2), Counter[str](), time.process_time()
    cases = [(row, form) for row in ROWS for form in row.forms if form != "bare" and row not in TRAINED]
    for number in range(count):
        row, form = cases[number % len(cases)]
        ended[agreement(row, *random_call(rng, row, form)).split(":")[0]] += 1
    taken = time.process_time() - start
    return (
        f"operations against torch: {count:,} calls of {len(ROWS)} rows agree, {ended['ran']:,} ran, "
        f"{ended['refused']:,} torch refuses, {ended['capped']:,} a cap forbids, {taken:.0f} s of CPU"
    )


def programs(count: int) -> str:
    """Run ``count`` programs of the grammar; each must end in a trace or a message, in bounded time and memory."""
    rng = random.Random(1)
    before, start, ran, slowest = peak_mb(), time.process_time(), 0, 0.0
    for _ in range(count):
        began = time.process_time()
        result = survives(random_program(rng), rng.choice(SHAPES), rng.choice(DTYPES))
        slowest = max(slowest, time.process_time() - began)
        ran += not isinstance(result, str)
    return (
        f"random programs: {count:,} typed, {ran:,} run, each a trace or a message; slowest {1000 * slowest:.0f} ms of "
        f"CPU, {time.process_time() - start:.0f} s in all, peak memory grew by {peak_mb() - before:.0f} MB"
    )


if __name__ == "__main__":
    main()
