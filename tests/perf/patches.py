"""What each patch of Streamlit saves: CPU of a rerun of every page with all, with each one left out, and with none."""

from __future__ import annotations

import asyncio
import sys
import time

from pages.common.registry import PAGES, PageSpec
from pages.streamlit_patches import PATCHES
from tests.perf.client import Session, spawned, until_up
from tests.perf.options import FULL, Options
from tests.perf.visitors import EDITS, ROOT, change

_LEFT_OUT = "import sys; from pages import streamlit_patches as p; p.PATCHES.remove({!r}); "
_STREAMLIT = "from streamlit.web.cli import main; sys.argv[0] = 'streamlit'; main()"


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has had; of Linux's clocks."""
    return time.clock_gettime((~pid << 3) | 2)


async def _rerun_ms(port: int, pid: int, page: PageSpec, options: Options) -> float:
    """Milliseconds of CPU of one rerun after a change: the best of three rounds, as others share the machine."""
    edit = EDITS[page.id]
    async with Session(port) as session:
        await session.open(page.url_path)
        if edit.press:
            await change(session, edit, "")
        rounds: list[float] = []
        for _ in range(4):
            before = cpu_s(pid)
            for index in range(options.reruns):
                run = await change(session, edit, edit.texts[index % 2])
                if run.errors:
                    raise SystemExit(f"{page.id}: {', '.join(run.errors)}")
            rounds.append((cpu_s(pid) - before) / options.reruns)
    return 1000 * min(rounds[1:])  # the first has filled caches


async def _all_pages(port: int, pid: int, options: Options) -> list[float]:
    await until_up(port)
    await asyncio.sleep(options.warm_up_s)
    return [await _rerun_ms(port, pid, page, options) for page in PAGES]


def measured(left_out: str, options: Options) -> list[float]:
    """Milliseconds of every page without the patch ``left_out``; "" is none of them, "all" leaves all out."""
    command = [sys.executable, "-m", "streamlit"]
    env = {"NAPKIN_PATCHES": "off"} if left_out == "all" else {}
    if left_out in PATCHES:
        command = [sys.executable, "-c", _LEFT_OUT.format(left_out) + _STREAMLIT]
    with spawned(ROOT, command=command, env=env) as (port, pid):
        return asyncio.run(_all_pages(port, pid, options))


def main(options: Options = FULL) -> None:
    """Measure and print."""
    print(f"{'CPU of a rerun, ms':<28}" + "".join(f"{page.id[:9]:>11}" for page in PAGES))
    titles = {"": "all patches", **{name: f"without {name}" for name in PATCHES}, "all": "none of them"}
    for left_out, title in titles.items():
        print(f"{title:<28}" + "".join(f"{ms:>11.1f}" for ms in measured(left_out, options)), flush=True)
