"""Visitors while the processor is measured: seconds of their reruns alone, and beside a measurement of everything."""

from __future__ import annotations

import asyncio
import itertools
import time

from pages.common.registry import COMPUTE, MEASURE
from tests.perf.client import Session, spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import EDITS, ROOT, p95


async def edits(port: int, until: float, values: list[float], think_s: float) -> None:
    """One visitor of Compute budget who changes a value after each think time, until the clock shows ``until``."""
    edit = EDITS[COMPUTE.id]
    async with Session(port) as session:
        await session.open(COMPUTE.url_path)
        for text in itertools.cycle(edit.texts):
            if time.monotonic() > until:
                return
            values.append((await session.rerun({edit.box: text})).finished_s)
            await asyncio.sleep(think_s)


async def _both(port: int, options: Options) -> None:
    think_s, stay_s = options.think_s / 2, options.beside_s
    await until_up(port)
    alone: list[float] = []
    beside: list[float] = []
    for values, stay in (([], stay_s / 5), (alone, stay_s)):  # the first ones wait for what a server imports once
        await asyncio.gather(*(edits(port, time.monotonic() + stay, values, think_s) for _ in range(options.beside)))
    async with Session(port) as measures:
        await measures.open(MEASURE.url_path)
        await measures.rerun({"d_what": "Everything"})
        await measures.rerun(press=next(key for key in measures.boxes if key.endswith("run")))
        await asyncio.gather(*(edits(port, time.monotonic() + stay_s, beside, think_s) for _ in range(options.beside)))
    for name, taken in (("alone", alone), ("beside a measurement", beside)):
        middle = 1000 * sorted(taken)[len(taken) // 2]
        print(f"{name:<22}{len(taken):>5} reruns, p50 {middle:.0f} ms, p95 {1000 * p95(taken):.0f} ms")


def main(options: Options = FULL) -> None:
    """Measure and print."""
    with spawned(ROOT) as (port, _):
        asyncio.run(_both(port, options))
