"""Visitors while the processor is measured: seconds of their reruns alone, and beside a measurement of everything."""

from __future__ import annotations

import asyncio
import itertools
import time

from pages.parts.registry import COMPUTE, DEVICE
from tests.perf.client import Session, spawned, until_up
from tests.perf.visitors import EDITS, ROOT, p95

VISITORS = 5
THINK_S = 1.0
STAY_S = 25.0


async def edits(port: int, until: float, found: list[float]) -> None:
    """One visitor of Compute budget who changes a value after each think time, until the clock shows ``until``."""
    box, texts = EDITS["compute"]
    async with Session(port) as session:
        await session.open(COMPUTE.url_path)
        for text in itertools.cycle(texts):
            if time.monotonic() > until:
                return
            found.append((await session.rerun({box: text})).finished_s)
            await asyncio.sleep(THINK_S)


async def _both(port: int) -> None:
    await until_up(port)
    alone: list[float] = []
    beside: list[float] = []
    for found, stay in (([], 5.0), (alone, STAY_S)):  # the first ones wait for what a server imports once
        await asyncio.gather(*(edits(port, time.monotonic() + stay, found) for _ in range(VISITORS)))
    async with Session(port) as measures:
        await measures.open(DEVICE.url_path)
        await measures.rerun({"d_what": "Everything"})
        await measures.rerun(press=next(key for key in measures.boxes if key.endswith("run")))
        await asyncio.gather(*(edits(port, time.monotonic() + STAY_S, beside) for _ in range(VISITORS)))
    for name, taken in (("alone", alone), ("beside a measurement", beside)):
        middle = 1000 * sorted(taken)[len(taken) // 2]
        print(f"{name:<22}{len(taken):>5} reruns, p50 {middle:.0f} ms, p95 {1000 * p95(taken):.0f} ms")


def main() -> None:
    """Measure and print."""
    with spawned(ROOT) as (port, _):
        asyncio.run(_both(port))
