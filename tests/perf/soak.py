"""An hour with a hundred people on all pages of replicas, a save in ten changes: does anything fail, slow down, or
grow, and is every save that was confirmed there afterwards? With ``--kill-minutes`` a replica is killed so often."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from tests.patience import until
from tests.perf.crowd import judged
from tests.perf.options import FULL, Options
from tests.perf.savers import lost
from tests.perf.visitors import Tally, crowd, held
from tests.team.topology import Replica, nginx, postgres, replicas

A_SECOND = 2.0
"""How many come, unless less time is left: then all have come after a fifth of it."""
ROWS, SAMPLES = 12, 240
_SETTLED = 1 / 6
"""Share of the time after which nothing should grow any more: ten minutes of an hour."""
HEADING = (
    f"{'':<10}{'people':>8}{'reruns':>9}{'p95, ms':>9}{'p99, ms':>9}{'saves':>7}{'errors':>8}  RSS, MB, and descriptors"
)


def main(options: Options = FULL) -> None:
    """Measure and print."""
    often = f", one replica killed every {options.kill_minutes:g}" if options.kill_minutes else ""
    people = f"{options.soak_people} people over all pages of {options.replicas} replicas"
    print(f"{people} for {options.minutes:g} minutes{often}\n{HEADING}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        address = stack.enter_context(postgres(durable=True))
        started = stack.enter_context(replicas(folder, options.replicas, {"DATABASE_URL": address}))
        url = stack.enter_context(nginx(folder, [replica.port for replica in started]))
        tally = Tally(saves={})
        asyncio.run(_measure(urlsplit(url).port or 0, started, tally, options))
        gone = lost(address, tally.saves or {})
        print(f"{len(tally.saves or {}):,} saves were confirmed, {len(gone)} of them are lost")
        judged(tally)
        if gone:
            raise SystemExit(f"lost: {', '.join(gone)}")


def _holds(one: Replica) -> tuple[float, int]:
    try:
        return held(one.process.pid) if one.process else (np.nan, 0)
    except OSError:
        return np.nan, 0


async def _measure(port: int, started: list[Replica], tally: Tally, options: Options) -> None:
    await asyncio.sleep(options.warm_up_s)
    people, minutes, start = options.soak_people, options.minutes, time.monotonic()
    a_second, end = max(A_SECOND, people / (12 * minutes)), start + 60 * minutes
    everybody = asyncio.create_task(crowd(port, tally, people, a_second=a_second, until=end, think_s=options.think_s))
    killing = asyncio.create_task(_killed(started, end, 60 * options.kill_minutes))
    samples: list[tuple[float, ...]] = []
    seen = 0
    for sample in range(1, SAMPLES + 1):
        await asyncio.sleep(max(0.0, start + 60 * minutes * sample / SAMPLES - time.monotonic()))
        found = [_holds(one) for one in started]
        samples.append((time.monotonic() - start, *(memory for memory, _ in found)))
        if sample % (SAMPLES // ROWS) == 0:
            _row(f"{minutes * sample / SAMPLES:.3g} min", tally, seen, found)
            seen = len(tally.taken)
    await everybody
    await killing
    _row("all of it", tally, 0, [])
    if not options.kill_minutes:
        _slopes(np.array(samples))
    for minute in range(1, 1 + options.left_minutes):
        await asyncio.sleep(60)
        _row(f"+ {minute} min", tally, len(tally.taken), [_holds(one) for one in started])


def _row(label: str, tally: Tally, seen: int, found: list[tuple[float, int]]) -> None:
    taken = tally.taken[seen:]
    cuts = statistics.quantiles(taken, n=100) if len(taken) > 1 else [float("nan")] * 99
    own = ", ".join(f"{memory:.0f} and {descriptors}" for memory, descriptors in found)
    print(
        f"{label:<10}{tally.here:>8}{len(taken):>9,}{1000 * cuts[94]:>9.0f}{1000 * cuts[98]:>9.0f}"
        f"{len(tally.saves or {}):>7}{len(tally.errors):>8}  {own}",
        flush=True,
    )


def _slopes(samples: np.ndarray) -> None:
    """Print how fast each replica grew once all were there, with the error of a line through its samples."""
    settled = samples[samples[:, 0] > _SETTLED * samples[-1, 0]]
    hours = settled[:, 0] / 3600
    for number, memory in enumerate(settled[:, 1:].T, 1):
        (slope, _), covariance = np.polyfit(hours, memory, 1, cov=True)
        print(f"replica {number}: {slope:+.1f} ± {covariance[0, 0] ** 0.5:.1f} MB an hour after the first sixth")


async def _killed(started: list[Replica], end: float, every_s: float) -> None:
    """Kill one replica after the other and start it again, until shortly before the end."""
    turn = 0
    while every_s and time.monotonic() + 1.5 * every_s < end:
        await asyncio.sleep(every_s)
        one, turn = started[turn % len(started)], turn + 1
        await asyncio.to_thread(one.kill)
        one.start()
        await asyncio.to_thread(until, one.healthy, "a replica that was killed")
