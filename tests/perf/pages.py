"""Cold start and rerun latency of every page, printed beside an empty Streamlit page measured in the same run."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Set
from pathlib import Path

from pages.common.registry import PAGES
from tests.perf.client import Session, spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import EDITS, ROOT, Edit, change, p95

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


async def visitor(
    port: int, page: str, edit: Edit | None, think: float, until: float, runs: int
) -> list[tuple[float, float]]:
    """One visitor who edits one box up to ``runs`` times, thinking in between, until the clock shows ``until``.

    Gives when each rerun was asked for and how long it took. Raises ``SystemExit`` where there is no such box, or an
    error is shown.
    """
    async with Session(port) as session:
        await session.open(page)
        if edit and edit.press:
            await change(session, edit, "")
        if edit and edit.box not in session.boxes:
            raise SystemExit(f"{page}: no box {edit.box}; found {sorted(session.boxes)}")
        taken: list[tuple[float, float]] = []
        while len(taken) < runs and time.monotonic() < until:
            if think:
                await asyncio.sleep(think * (0.5 + len(taken) * 0.37 % 1))
            value = time.monotonic()
            run = await (change(session, edit, edit.texts[len(taken) % 2]) if edit else session.rerun())
            if run.errors:
                raise SystemExit(f"{page}: {', '.join(run.errors)}")
            taken.append((value, run.finished_s))
        return taken


async def crowd(port: int, page: str, edit: Edit | None, sessions: int, options: Options) -> list[float]:
    """Latencies of many visitors, ten of whom arrive a second, from one think time after the last has come."""
    all_here = time.monotonic() + sessions / 10 + options.think_s
    until = all_here + options.watched_s

    async def one(index: int) -> list[float]:
        await asyncio.sleep(index / 10)
        seen = await visitor(port, page, edit, options.think_s, until, 10_000)
        return [taken for value, taken in seen if value >= all_here]

    return [taken for seen in await asyncio.gather(*(one(i) for i in range(sessions))) for taken in seen]


async def measure(port: int, page: str, edit: Edit | None, options: Options) -> list[float]:
    """Median of 1 session without thinking; p95 of few and of many sessions that think."""
    alone = [taken for _, taken in await visitor(port, page, edit, 0.0, math.inf, 2 + options.reruns)]
    return [
        statistics.median(alone[2:]),
        p95(await crowd(port, page, edit, options.few, options)),
        p95(await crowd(port, page, edit, options.many, options)),
    ]


def line(name: str, values: list[float], base: list[float]) -> str:
    """One printed row in milliseconds, with the ratios to the empty page for one session and for a hundred."""
    cells = "".join(f"{1000 * value:>14.1f}" for value in values)
    return f"{name:<22}{cells}{values[0] / base[0]:>14.2f}{f'1/{base[2] / values[2]:.0f}':>14}"


def main(options: Options = FULL, wanted: Set[str] = frozenset()) -> None:
    """Measure and print cold starts and reruns; an empty ``wanted`` is every page."""
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name)
        (empty / "app.py").write_text(EMPTY)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
        pairs = [(asyncio.run(cold_start(empty)), asyncio.run(cold_start(ROOT))) for _ in range(options.starts)]
        for index, label in enumerate(("first element", "script finished")):
            bare, ours = (statistics.median(pair[who][index] for pair in pairs) for who in (0, 1))
            print(f"cold start to {label:<16} empty {bare:.2f} s, Napkin {ours:.2f} s, ratio {ours / bare:.2f}")
        print(
            f"\n{'rerun, ms':<22}{'1 session p50':>14}{f'{options.few} p95':>14}{f'{options.many} p95':>14}"
            f"{'1 ÷ empty':>14}{f'{options.many} ÷ empty':>14}"
        )
        with spawned(empty) as (port, _):
            asyncio.run(until_up(port))
            base = asyncio.run(measure(port, "", None, options))
        print(line("(empty page)", base, base), flush=True)
        # The same empty page under Napkin's settings separates what the settings save from what the pages cost.
        shutil.copytree(ROOT / ".streamlit", empty / ".streamlit")
        with spawned(empty) as (port, _):
            asyncio.run(until_up(port))
            print(line("(same, tuned)", asyncio.run(measure(port, "", None, options)), base), flush=True)
        with spawned(ROOT) as (port, _):
            asyncio.run(until_up(port))
            for spec in PAGES:
                if not wanted or spec.id in wanted:
                    values = asyncio.run(measure(port, spec.url_path, EDITS[spec.id], options))
                    print(line(spec.title, values, base), flush=True)
