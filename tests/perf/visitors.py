"""Visitors for the benchmarks of pages, crowds and hours: what they edit, how they roam, what their server holds."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import resource
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from websockets.exceptions import WebSocketException

from pages.parts.registry import PAGES
from tests.perf.client import Session

ROOT = Path(__file__).parents[2]
THINK_S = 2.0
ANSWER_S = 30.0
"""A rerun that takes longer counts as an error."""

EDITS: dict[str, tuple[str, tuple[str, str]]] = {
    "home": ("h_n", ("70B", "71B")),
    "floats": ("f_x", ("0.1", "0.2")),
    "tensors": ("t_x", ("x.t()", "x.t().contiguous().view(2, 3)")),
    "lecture": ("l_verdict", ("holds", "All")),
    "compute": ("c_tokens", ("15T", "14T")),
    "memory": ("m_n", ("8B", "9B")),
    "board": ("w_tokens", ("15T", "14T")),
    "device": ("d_n", ("512", "1024")),
}
"""Page id → the box of text or choice that a visitor keeps changing, and between what."""


def p95(values: list[float]) -> float:
    """The 95th percentile; NaN of fewer than two values."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else float("nan")


@dataclass
class Tally:
    """What a crowd has seen: seconds of each rerun, errors, and how often somebody came."""

    taken: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    arrivals: int = 0
    here: int = 0


async def roam(port: int, tally: Tally, until: float, seed: int) -> None:
    """One visitor on all pages until the clock shows ``until``: edits a box, now and then turns to another page or
    reloads, which is another websocket. An error ends the visit; the visitor comes back after a think time."""
    chance = random.Random(seed)
    while time.monotonic() < until:
        try:
            async with Session(port) as session:
                tally.arrivals += 1
                tally.here += 1
                try:
                    await _visit(session, tally, until, chance)
                finally:
                    tally.here -= 1
        except (OSError, WebSocketException) as problem:
            tally.errors.append(f"{type(problem).__name__}: {problem}")
            await asyncio.sleep(THINK_S)


async def _visit(session: Session, tally: Tally, until: float, chance: random.Random) -> None:
    page, turn = PAGES[0], itertools.count()
    texts: dict[str, str] | None = None
    while time.monotonic() < until:
        async with asyncio.timeout(ANSWER_S):
            run = await session.rerun(texts)
        tally.taken.append(run.finished_s)
        tally.errors += [f"{page.id}: {said}" for said in run.errors]
        await asyncio.sleep(chance.uniform(0.5, 1.5) * THINK_S)
        step = chance.random()
        if step < 0.03:
            return
        if step < 0.15:
            page, texts = chance.choice(PAGES), None
            session.page_hash = session.pages[page.url_path]
        else:
            key, values = EDITS[page.id]
            texts = {key: values[next(turn) % len(values)]}


async def crowd(port: int, tally: Tally, people: int, *, a_second: float, until: float) -> None:
    """People who arrive one by one and roam until the clock shows ``until``."""

    async def one(index: int) -> None:
        await asyncio.sleep(index / a_second)
        await roam(port, tally, until, index)

    await asyncio.gather(*(one(i) for i in range(people)))


def held(pid: int) -> tuple[float, int]:
    """Resident memory in MB and open descriptors of a process; of Linux's /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6, len(os.listdir(f"/proc/{pid}/fd"))


def report(label: str, tally: Tally, pid: int, seen: int = 0) -> str:
    """A printed row on the reruns since the first ``seen``: how many, p95, errors of all, memory, descriptors."""
    memory, descriptors = held(pid)
    reruns = tally.taken[seen:]
    return (
        f"{label:<22}{tally.here:>8}{len(reruns):>9,}{1000 * p95(reruns):>10.0f}{len(tally.errors):>8}"
        f"{memory:>10.0f}{descriptors:>13}"
    )


HEADING = f"{'':<22}{'people':>8}{'reruns':>9}{'p95, ms':>10}{'errors':>8}{'RSS, MB':>10}{'descriptors':>13}"
