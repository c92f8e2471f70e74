"""A hundred and fifty people on all pages of a server that starts under the usual soft limit of 1,024 descriptors."""

from __future__ import annotations

import asyncio
import time

from tests.perf.client import spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import HEADING, ROOT, Tally, crowd, missed, report

A_SECOND = 5.0


def main(options: Options = FULL) -> None:
    """Measure and print."""
    print(f"{options.people} people over all pages, soft limit of 1,024 descriptors at start\n{HEADING}")
    with spawned(ROOT, limits=("-Sn 1024",)) as (port, pid):
        asyncio.run(_measure(port, pid, options))


async def _measure(port: int, pid: int, options: Options) -> None:
    tally, arrivals_s = Tally(), options.people / A_SECOND
    await until_up(port)
    await asyncio.sleep(options.warm_up_s)
    print(report("start", tally, pid), flush=True)
    until = time.monotonic() + arrivals_s + options.stay_s
    everybody = crowd(port, tally, options.people, a_second=A_SECOND, until=until, think_s=options.think_s)
    people = asyncio.create_task(everybody)
    await asyncio.sleep(arrivals_s)
    seen = len(tally.taken)
    print(report("all have come", tally, pid), flush=True)
    await asyncio.sleep(options.stay_s - 1)
    print(report("all here", tally, pid, seen), flush=True)
    await people
    await left(tally, pid, options.left_minutes)


async def left(tally: Tally, pid: int, minutes: int) -> None:
    """Print what the server holds after all have left, a minute at a time, and judge what was seen."""
    for minute in range(1, 1 + minutes):
        await asyncio.sleep(60)
        print(report(f"{minute} min after they left", tally, pid, len(tally.taken)), flush=True)
    judged(tally)


def judged(tally: Tally) -> None:
    """Print the kinds of error. Raises ``SystemExit`` where a page has shown one, or was seen by nobody."""
    for error in sorted(set(tally.errors)):
        print(f"{tally.errors.count(error):>6} × {error}")
    print(f"reruns of each page: {', '.join(f'{name} {count:,}' for name, count in sorted(tally.pages.items()))}")
    wrong = [error for error in tally.errors if error.partition(":")[0] in tally.pages]
    if wrong or missed(tally):
        raise SystemExit(f"{len(wrong)} errors on pages; seen by nobody: {', '.join(missed(tally)) or 'none'}")
