"""A hundred and fifty people on all pages of a server that starts under the usual soft limit of 1,024 descriptors."""

from __future__ import annotations

import asyncio
import time

from tests.perf.client import spawned, until_up
from tests.perf.visitors import HEADING, ROOT, Tally, crowd, report

PEOPLE = 150
A_SECOND = 5.0
STAY_S = 60.0
AFTERWARDS_S = 180.0


def main() -> None:
    """Measure and print."""
    print(f"{PEOPLE} people over all pages, soft limit of 1,024 descriptors at start\n{HEADING}")
    with spawned(ROOT, limits=("-Sn 1024",)) as (port, pid):
        asyncio.run(_measure(port, pid))


async def _measure(port: int, pid: int) -> None:
    tally = Tally()
    await until_up(port)
    await asyncio.sleep(5)  # until it has warmed up
    print(report("start", tally, pid), flush=True)
    all_here = time.monotonic() + PEOPLE / A_SECOND
    people = asyncio.create_task(crowd(port, tally, PEOPLE, a_second=A_SECOND, until=all_here + STAY_S))
    await asyncio.sleep(PEOPLE / A_SECOND)
    seen = len(tally.taken)
    print(report("all have come", tally, pid), flush=True)
    await asyncio.sleep(STAY_S - 1)
    print(report("all here", tally, pid, seen), flush=True)
    await people
    await left(tally, pid)


async def left(tally: Tally, pid: int) -> None:
    """Print what the server holds after all have left, a minute at a time for three, and the kinds of error."""
    for minutes in range(1, 1 + round(AFTERWARDS_S / 60)):
        await asyncio.sleep(60)
        print(report(f"{minutes} min after they left", tally, pid, len(tally.taken)), flush=True)
    for error in sorted(set(tally.errors)):
        print(f"{tally.errors.count(error):>6} × {error}")
