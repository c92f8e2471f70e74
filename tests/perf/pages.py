"""Cold start and rerun latency of every page, printed beside an empty Streamlit page measured in the same run."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Set
from pathlib import Path

from pages.parts.registry import PAGES
from tests.perf.client import Session, spawned, until_up
from tests.perf.visitors import EDITS, ROOT, THINK_S, p95

CROWD_S = 10.0
EMPTY = 'import streamlit as st\n\nst.set_page_config(page_title="empty")\nst.title("Empty")\n'


async def cold_start(folder: Path) -> tuple[float, float]:
    """Seconds from starting the server to the first element and to the end of the first script run."""
    start = time.perf_counter()
    with spawned(folder) as (port, _):
        await until_up(port)
        async with Session(port) as session:
            up = time.perf_counter() - start
            run = await session.rerun()
            return up + run.first_element_s, up + run.finished_s


Edit = tuple[str, tuple[str, str]] | None


async def visitor(port: int, page: str, edit: Edit, think: float, until: float, runs: int) -> list[tuple[float, float]]:
    """One visitor who edits one box up to ``runs`` times, thinking in between, until the clock shows ``until``.

    Gives when each rerun was asked for and how long it took.
    """
    async with Session(port) as session:
        await session.open(page)
        if edit and edit[0] not in session.boxes:
            raise SystemExit(f"{page}: no text box {edit[0]}; found {sorted(session.boxes)}")
        values = itertools.cycle(edit[1]) if edit else itertools.repeat("")
        taken: list[tuple[float, float]] = []
        while len(taken) < runs and time.monotonic() < until:
            if think:
                await asyncio.sleep(think * (0.5 + len(taken) * 0.37 % 1))
            asked = time.monotonic()
            run = await session.rerun({edit[0]: next(values)} if edit else None)
            taken.append((asked, run.finished_s))
        return taken


async def crowd(port: int, page: str, edit: Edit, sessions: int) -> list[float]:
    """Latencies of many visitors, ten of whom arrive a second, from one think time after the last has come."""
    all_here = time.monotonic() + sessions / 10 + THINK_S
    until = all_here + CROWD_S

    async def one(index: int) -> list[float]:
        await asyncio.sleep(index / 10)
        seen = await visitor(port, page, edit, THINK_S, until, 10_000)
        return [taken for asked, taken in seen if asked >= all_here]

    return list(itertools.chain.from_iterable(await asyncio.gather(*(one(i) for i in range(sessions)))))


async def measure(port: int, page: str, edit: Edit) -> list[float]:
    """Median of 1 session without thinking; p95 of 20 and of 100 sessions with 2 s think time."""
    alone = [taken for _, taken in await visitor(port, page, edit, 0.0, math.inf, 42)]
    return [
        statistics.median(alone[2:]),
        p95(await crowd(port, page, edit, 20)),
        p95(await crowd(port, page, edit, 100)),
    ]


def line(name: str, values: list[float], base: list[float]) -> str:
    """One printed row in milliseconds, with the ratios to the empty page for one session and for a hundred."""
    cells = "".join(f"{1000 * value:>14.1f}" for value in values)
    return f"{name:<22}{cells}{values[0] / base[0]:>14.2f}{f'1/{base[2] / values[2]:.0f}':>14}"


def main(wanted: Set[str] = frozenset()) -> None:
    """Measure and print cold starts and reruns; an empty ``wanted`` is every page."""
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name)
        (empty / "app.py").write_text(EMPTY)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
        pairs = [(asyncio.run(cold_start(empty)), asyncio.run(cold_start(ROOT))) for _ in range(5)]
        for index, label in enumerate(("first element", "script finished")):
            bare, ours = (statistics.median(pair[who][index] for pair in pairs) for who in (0, 1))
            print(f"cold start to {label:<16} empty {bare:.2f} s, Napkin {ours:.2f} s, ratio {ours / bare:.2f}")
        print(
            f"\n{'rerun, ms':<22}{'1 session p50':>14}{'20 p95':>14}{'100 p95':>14}{'1 ÷ empty':>14}{'100 ÷ empty':>14}"
        )
        with spawned(empty) as (port, _):
            asyncio.run(until_up(port))
            base = asyncio.run(measure(port, "", None))
        print(line("(empty page)", base, base), flush=True)
        # The same empty page under Napkin's settings separates what the settings save from what the pages cost.
        shutil.copytree(ROOT / ".streamlit", empty / ".streamlit")
        with spawned(empty) as (port, _):
            asyncio.run(until_up(port))
            print(line("(same, tuned)", asyncio.run(measure(port, "", None)), base), flush=True)
        with spawned(ROOT) as (port, _):
            asyncio.run(until_up(port))
            for spec in PAGES:
                if not wanted or spec.id in wanted:
                    values = asyncio.run(measure(port, spec.url_path, EDITS[spec.id]))
                    print(line(spec.title, values, base), flush=True)
