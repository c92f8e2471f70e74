"""Visitors for the benchmarks of pages, crowds and hours: what they edit, how they roam, what their server holds."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from websockets.exceptions import WebSocketException

from pages.common.registry import COMPUTE, PAGES, PageSpec
from tests.perf.client import Run, Session
from tests.perf.savers import SAVING, save, to_save

ROOT = Path(__file__).parents[2]
ANSWER_S = 30.0
"""A rerun that takes longer counts as an error."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a visitor of a page keeps changing: a box of text or choice, and between what.

    press: the button that brings the box, on a page that begins without it.
    """

    box: str
    texts: tuple[str, str]
    press: str = ""


EDITS: Mapping[str, Edit] = {
    "home": Edit("p_n", ("70B", "71B")),
    "floats": Edit("f_x", ("0.1", "0.2")),
    "tensors": Edit("t_x", ("x.t()", "x.t().contiguous().view(2, 3)")),
    "lecture": Edit("l_verdict", ("holds", "All")),
    "exercises": Edit("e_sheet", ("1", "2")),
    "glossary": Edit("g_q", ("MFU", "ZeRO")),
    "compute": Edit("p_tokens", ("15T", "14T")),
    "memory": Edit("p_n", ("8B", "9B")),
    "parallel": Edit("p_count", ("512", "256")),
    "what_if": Edit("p_tokens", ("15T", "14T")),
    "compare": Edit("p_tokens", ("15T", "14T"), press="k_examples"),
    "decide": Edit("p_tokens", ("15T", "14T")),
    "saved": Edit("r_q", ("Llama", "70B")),
    "measure": Edit("d_n", ("512", "1024")),
}
"""Page id → what its visitors change."""


def p95(values: list[float]) -> float:
    """The 95th percentile; NaN of fewer than two values."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else float("nan")


@dataclass
class Tally:
    """What a crowd has seen: seconds of each rerun, errors, how often somebody came, and reruns by page’s id.

    saves: those that were confirmed (id → name), of a crowd that saves; None for others.
    """

    taken: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    arrivals: int = 0
    here: int = 0
    pages: Counter[str] = field(default_factory=Counter[str])
    saves: dict[str, str] | None = None


async def roam(port: int, tally: Tally, until: float, number: int, think_s: float) -> None:
    """One visitor until the clock shows ``until``: edits a box, now and then turns to the next page or reloads, which
    is another websocket. The first page is that of the visitor's number, so that as many as there are pages see all.
    An error ends the visit; the visitor comes back after a think time."""
    chance, first = random.Random(number), number % len(PAGES)
    pages = itertools.cycle((*PAGES[first:], *PAGES[:first]))
    while True:
        try:
            async with Session(port) as session:
                tally.arrivals += 1
                tally.here += 1
                try:
                    await _visit(session, tally, until, chance, pages, think_s)
                finally:
                    tally.here -= 1
        except (OSError, WebSocketException) as problem:
            tally.errors.append(f"{type(problem).__name__}: {problem}")
            await asyncio.sleep(think_s)
        if time.monotonic() > until:
            return


async def _visit(
    session: Session, tally: Tally, until: float, chance: random.Random, pages: Iterator[PageSpec], think_s: float
) -> None:
    async def see(page: PageSpec, *changes: str) -> None:
        async with asyncio.timeout(ANSWER_S):
            run = await (change(session, EDITS[page.id], *changes) if changes else session.rerun())
        tally.taken.append(run.finished_s)
        tally.pages[page.id] += 1
        tally.errors += [f"{page.id}: {error}" for error in run.errors]
        await asyncio.sleep(chance.uniform(0.5, 1.5) * think_s)

    async def saved() -> None:
        async with asyncio.timeout(2 * ANSWER_S):
            name = f"{time.monotonic_ns()}"
            await to_save(session)
            run, plan = await save(session, name)
        tally.taken.append(run.finished_s)
        tally.errors += [f"{COMPUTE.id}: {error}" for error in run.errors] + [f"{COMPUTE.id}: not saved"] * (not plan)
        if tally.saves is not None and plan:
            tally.saves[plan] = name
        await asyncio.sleep(chance.uniform(0.5, 1.5) * think_s)

    await see(PAGES[0])  # which tells the addresses of all
    page, turn, step = PAGES[0], itertools.count(), 0.0
    while step < 0.97:
        if step < 0.12:
            page = next(pages)
            session.page_hash = session.pages[page.url_path]
            await see(page)
        elif tally.saves is not None and step < 0.12 + SAVING:
            await saved()
            page = COMPUTE
        else:
            await see(page, EDITS[page.id].texts[next(turn) % 2])
        if time.monotonic() > until:
            return
        step = chance.random()


async def change(session: Session, edit: Edit, text: str) -> Run:
    """Change what a page's visitors change; where its box is not there yet, press the button that brings it."""
    if edit.press and edit.box not in session.boxes:
        return await session.rerun(press=edit.press)
    return await session.rerun({edit.box: text})


def missed(tally: Tally) -> list[str]:
    """The pages that nobody has seen."""
    return [page.title for page in PAGES if not tally.pages[page.id]]


async def crowd(port: int, tally: Tally, people: int, *, a_second: float, until: float, think_s: float) -> None:
    """People who arrive one by one and roam until the clock shows ``until``."""

    async def one(index: int) -> None:
        await asyncio.sleep(index / a_second)
        await roam(port, tally, until, index, think_s)

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
