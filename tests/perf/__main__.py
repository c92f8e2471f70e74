"""``make perf``: cold start and rerun latency, printed beside an empty Streamlit page measured in the same run.

After that the throughput of the float codec, of tensor traces with their full-size checks, and of counting a million
models, measured matmul rates beside other ways of timing them, how fast a pointer lights what shares memory, and a long
random walk over all pages. Page ids as arguments limit the pages; ``codec``, ``traces``, ``models``, ``matmul`` and
``hover`` are those alone, as is ``walk``, which takes options of its own (``walk --help``).

Nothing here gates on a time: machines differ. What is printed is the figure and its ratio to the empty page.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pages.parts.registry import PAGES
from tests.perf import floats, hover, matmul, models, tensors, walk
from tests.perf.client import Session, spawned, until_up

ROOT = Path(__file__).parents[2]
THINK_S = 2.0
CROWD_S = 10.0
EMPTY = 'import streamlit as st\n\nst.set_page_config(page_title="empty")\nst.title("Empty")\n'

EDITS: dict[str, tuple[str, tuple[str, str]]] = {
    "home": ("h_n", ("70B", "71B")),
    "floats": ("f_x", ("0.1", "0.2")),
    "tensors": ("t_x", ("x.t()", "x.t().contiguous().view(2, 3)")),
    "compute": ("c_tokens", ("15T", "14T")),
    "memory": ("m_n", ("8B", "9B")),
    "device": ("d_n", ("512", "1024")),
}
"""Page id → the text box that a visitor keeps editing, and between what. The lecture page has none."""

THROUGHPUT = {
    "codec": floats.main,
    "traces": tensors.main,
    "models": models.main,
    "matmul": matmul.main,
    "hover": hover.main,
}
"""What is measured beside the pages, each on its own under its name."""


async def cold_start(folder: Path) -> tuple[float, float]:
    """Seconds from starting the server to the first element and to the end of the first script run."""
    start = time.perf_counter()
    with spawned(folder) as port:
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


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


async def measure(port: int, page: str, edit: Edit) -> list[float]:
    """Median of 1 session without thinking; p95 of 20 and of 100 sessions with 2 s think time."""
    alone = [taken for _, taken in await visitor(port, page, edit, 0.0, math.inf, 42)]
    return [
        statistics.median(alone[2:]),
        p95(await crowd(port, page, edit, 20)),
        p95(await crowd(port, page, edit, 100)),
    ]


def line(name: str, values: list[float], base: list[float]) -> str:
    """One printed row in milliseconds, with the ratio to the empty page for one session."""
    cells = "".join(f"{1000 * value:>14.1f}" for value in values)
    return f"{name:<18}{cells}{values[0] / base[0]:>12.1f}×"


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["walk"]:
        walk.main(sys.argv[2:])
        return
    wanted = set(sys.argv[1:])
    if not wanted or wanted - set(THROUGHPUT):
        measure_pages(wanted - set(THROUGHPUT))
    for name, suite in THROUGHPUT.items():
        if not wanted or name in wanted:
            print()
            suite()
    if not wanted:
        print()
        walk.main([])


def measure_pages(wanted: set[str]) -> None:
    """Measure and print cold starts and reruns; an empty ``wanted`` is every page."""
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name)
        (empty / "app.py").write_text(EMPTY)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
        pairs = [(asyncio.run(cold_start(empty)), asyncio.run(cold_start(ROOT))) for _ in range(5)]
        for index, label in enumerate(("first element", "script finished")):
            bare, ours = (statistics.median(pair[who][index] for pair in pairs) for who in (0, 1))
            print(f"cold start to {label:<16} empty {bare:.2f} s, Napkin {ours:.2f} s, ratio {ours / bare:.2f}")
        print(f"\nrerun, ms         {'1 session p50':>14}{'20 p95':>14}{'100 p95':>14}{'× empty':>13}")
        with spawned(empty) as port:
            asyncio.run(until_up(port))
            base = asyncio.run(measure(port, "", None))
        print(line("(empty page)", base, base), flush=True)
        # The same empty page under Napkin's settings separates what the settings save from what the pages cost.
        shutil.copytree(ROOT / ".streamlit", empty / ".streamlit")
        with spawned(empty) as port:
            asyncio.run(until_up(port))
            print(line("(same, tuned)", asyncio.run(measure(port, "", None)), base), flush=True)
        with spawned(ROOT) as port:
            asyncio.run(until_up(port))
            for spec in PAGES:
                if not wanted or spec.id in wanted:
                    values = asyncio.run(measure(port, spec.url_path, EDITS.get(spec.id)))
                    print(line(spec.title, values, base), flush=True)


if __name__ == "__main__":
    main()
