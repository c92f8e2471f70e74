"""A team of a hundred behind nginx with two replicas, on SQLite and on PostgreSQL; one change in ten is a save."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException

from pages.common.registry import COMPUTE
from tests.perf.client import Session
from tests.perf.options import FULL, Options
from tests.perf.savers import SAVING, lost, save, to_save
from tests.perf.visitors import ANSWER_S, EDITS, held, p95
from tests.team.topology import nginx, postgres, replicas

A_SECOND = 4.0


@dataclass
class _Seen:
    """Seconds of reruns and of saves, errors, what was confirmed (id → name), and how many asked in vain."""

    reruns: list[float] = field(default_factory=list[float])
    saves: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    confirmed: dict[str, str] = field(default_factory=dict[str, str])
    refused: int = 0
    here: int = 0


def main(options: Options = FULL) -> None:
    """Measure and print, for both databases."""
    print(
        f"{options.team} people behind nginx on two replicas, {options.think_s:g} s between changes, one in ten a save"
    )
    print(f"{'':<12}{'reruns':>8}{'p50':>7}{'p95, ms':>9}{'saves':>8}{'p95, ms':>9}", end="")
    print(f"{'refused':>9}{'errors':>8}{'lost':>6}")
    for kind in ("SQLite", "PostgreSQL"):
        _one(kind, options)


def _one(kind: str, options: Options) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        address = (
            stack.enter_context(postgres(durable=True)) if kind == "PostgreSQL" else f"sqlite:///{folder / 'napkin.db'}"
        )
        both = stack.enter_context(replicas(folder, environment={"DATABASE_URL": address}))
        url = stack.enter_context(nginx(folder, [replica.port for replica in both]))
        pids = [replica.process.pid for replica in both if replica.process]
        time.sleep(options.warm_up_s)  # until they have warmed up
        before, seen = sum(held(pid)[0] for pid in pids), _Seen()
        steady = asyncio.run(_crowd(urlsplit(url).port or 0, seen, options, pids))
        gone = lost(address, seen.confirmed)
        print(
            f"{kind:<12}{len(seen.reruns):>8,}{1000 * sorted(seen.reruns)[len(seen.reruns) // 2]:>7.0f}"
            f"{1000 * p95(seen.reruns):>9.0f}{len(seen.confirmed):>8,}{1000 * p95(seen.saves):>9.0f}"
            f"{seen.refused:>9}{len(seen.errors):>8}{len(gone):>6}",
            flush=True,
        )
        alone, rise = before / len(pids), (sum(held(pid)[0] for pid in pids) - before) / options.team
        print(
            f"            {steady} a replica {alone:.0f} MB before anybody came, {rise:.2f} MB more for each visitor; "
            f"load {os.getloadavg()[0]:.0f}"
        )
        for error in sorted(set(seen.errors)):
            print(f"{seen.errors.count(error):>6} × {error}")


def _worked(pids: Sequence[int]) -> float:
    """Seconds of processor time of these processes; of Linux's /proc."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(parts[11]) + int(parts[12]) for parts in fields) / os.sysconf("SC_CLK_TCK")


async def _crowd(port: int, seen: _Seen, options: Options, pids: Sequence[int]) -> str:
    """All come, stay and leave; gives what a change costs the replicas while all are here."""
    leave = asyncio.Event()

    async def one(number: int) -> None:
        await asyncio.sleep(number / A_SECOND)
        while not leave.is_set():
            try:
                async with Session(port) as session:
                    async with asyncio.timeout(2 * ANSWER_S):
                        await to_save(session)
                    seen.here += 1
                    await _plan(session, seen, number, options.think_s, leave)
            except (OSError, WebSocketException) as problem:
                seen.errors.append(f"{type(problem).__name__}: {problem}")
                await asyncio.sleep(options.think_s)

    everybody = asyncio.gather(*map(one, range(options.team)))
    while seen.here < options.team:
        await asyncio.sleep(0.1)
    worked, runs, start = _worked(pids), len(seen.reruns) + len(seen.saves), time.monotonic()
    await asyncio.sleep(options.stay_s)
    worked, runs = _worked(pids) - worked, len(seen.reruns) + len(seen.saves) - runs
    took = time.monotonic() - start
    leave.set()
    await everybody
    return f"{1000 * worked / runs:.1f} ms of processor time a change, {worked / took:.2f} cores in all;"


async def _plan(session: Session, seen: _Seen, number: int, think_s: float, leave: asyncio.Event) -> None:
    """One visitor on Compute budget who changes the tokens, and saves now and then."""
    chance, edit = random.Random(number), EDITS[COMPUTE.id]
    for turn in itertools.count():
        await asyncio.sleep(chance.uniform(0.5, 1.5) * think_s)
        if leave.is_set():
            return
        async with asyncio.timeout(ANSWER_S):
            if chance.random() < SAVING:
                name = f"{number}, {turn}, {time.monotonic_ns()}"
                run, saved = await save(session, name)
                seen.saves.append(run.finished_s)
                seen.refused += not saved
                seen.confirmed |= {saved: name} if saved else {}
            else:
                run = await session.rerun({edit.box: edit.texts[turn % 2]})
                seen.reruns.append(run.finished_s)
        seen.errors += run.errors
