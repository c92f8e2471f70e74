"""An hour with a hundred people on all pages: does anything fail, slow down, or grow?"""

from __future__ import annotations

import asyncio
import time

from tests.perf.client import spawned, until_up
from tests.perf.crowd import left
from tests.perf.visitors import HEADING, ROOT, Tally, crowd, report

PEOPLE = 100
A_SECOND = 2.0
ROWS = 12


def main(minutes: float = 60.0) -> None:
    """Measure and print."""
    print(f"{PEOPLE} people over all pages for {minutes:g} minutes\n{HEADING}")
    with spawned(ROOT) as (port, pid):
        asyncio.run(_measure(port, pid, minutes))


async def _measure(port: int, pid: int, minutes: float) -> None:
    tally = Tally()
    await until_up(port)
    await asyncio.sleep(5)  # until it has warmed up
    print(report("start", tally, pid), flush=True)
    start = time.monotonic()
    until = start + 60 * minutes
    people = asyncio.create_task(crowd(port, tally, PEOPLE, a_second=A_SECOND, until=until))
    for row in range(1, ROWS + 1):
        seen = len(tally.taken)
        await asyncio.sleep(start + 60 * minutes * row / ROWS - time.monotonic() - (row == ROWS))
        print(report(f"{minutes * row / ROWS:.3g} min", tally, pid, seen), flush=True)
    await people
    await left(tally, pid)
