"""An hour with a hundred people on all pages: does anything fail, slow down, or grow?"""

from __future__ import annotations

import asyncio
import time

from tests.perf.client import spawned, until_up
from tests.perf.crowd import left
from tests.perf.options import FULL, Options
from tests.perf.visitors import HEADING, ROOT, Tally, crowd, report

A_SECOND = 2.0
"""How many come, unless less time is left: then all have come after a fifth of it."""
ROWS = 12


def main(options: Options = FULL) -> None:
    """Measure and print."""
    print(f"{options.soak_people} people over all pages for {options.minutes:g} minutes\n{HEADING}")
    with spawned(ROOT) as (port, pid):
        asyncio.run(_measure(port, pid, options))


async def _measure(port: int, pid: int, options: Options) -> None:
    tally, people, minutes = Tally(), options.soak_people, options.minutes
    await until_up(port)
    await asyncio.sleep(options.warm_up_s)
    print(report("start", tally, pid), flush=True)
    start = time.monotonic()
    a_second, until = max(A_SECOND, people / (12 * minutes)), start + 60 * minutes
    everybody = asyncio.create_task(crowd(port, tally, people, a_second=a_second, until=until, think_s=options.think_s))
    for row in range(1, ROWS + 1):
        seen = len(tally.taken)
        await asyncio.sleep(start + 60 * minutes * row / ROWS - time.monotonic() - (row == ROWS))
        print(report(f"{minutes * row / ROWS:.3g} min", tally, pid, seen), flush=True)
    await everybody
    await left(tally, pid, options.left_minutes)
