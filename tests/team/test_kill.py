"""Servers that are killed while people save: what was confirmed is there, and nothing is there by halves."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
from pathlib import Path

from websockets.exceptions import WebSocketException

from core.store.plans import SavedPlan
from core.store.store import Store
from tests.loops import run
from tests.patience import PATIENCE_S
from tests.perf.client import Session
from tests.perf.savers import lost, save, to_save
from tests.team.random_plans import plan
from tests.team.topology import ROOT, Replica, replicas

SAVES = 200

WRITER = """
import sys
from core.store.store import Store
from tests.team.random_plans import plan
store = Store.open(sys.argv[1])
for number in range(int(sys.argv[2]), 10**9):
    print(store.save(*plan(number)).id, number, flush=True)
"""


def held(path: Path) -> dict[str, SavedPlan]:
    """Everything that a store tells of its plans, by id."""
    store, found, page = Store.open(f"sqlite:///{path}"), {}, 1
    while len(found) < (listed := store.find(page=page, per_page=50)).total:
        found |= {one.id: one for one in listed.plans}
        page += 1
    assert all([change.revision for change in store.history(plan)] == [1] for plan in found)
    store.close()
    return found


def test_of_200_random_saves_none_is_lost_or_torn_by_kills(tmp_path: Path) -> None:
    """Two writers at once, killed after any of their saves, and others that go on where they were."""
    path, chance, confirmed = tmp_path / "napkin.db", random.Random(1), dict[str, int]()
    Store.open(f"sqlite:///{path}").close()
    start = 0
    while len(confirmed) < SAVES:
        command = [sys.executable, "-c", WRITER, f"sqlite:///{path}"]
        writers = [
            subprocess.Popen([*command, str(start + first)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for first in (0, 500_000)
        ]
        told: list[str] = []
        for _ in range(chance.randint(20, 60)):
            told += [writer.stdout.readline() for writer in writers if writer.stdout]
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            told += (writer.communicate(timeout=PATIENCE_S)[0] or "").splitlines(keepends=True)
        confirmed |= {saved: int(number) for saved, number in (line.split() for line in told if line.endswith("\n"))}
        start += 1000
    found = held(path)
    assert set(confirmed) <= set(found)
    for one in found.values():
        number = int(one.entry.name)
        assert (one.entry, one.note, one.tags, one.owner, one.problems) == (*plan(number), ()), number
        assert confirmed.get(one.id, number) == number


def test_what_the_page_calls_saved_survives_the_servers_kill(tmp_path: Path) -> None:
    """Six visitors who save until the server is killed under them."""
    confirmed: dict[str, str] = {}

    async def visit(number: int, replica: Replica) -> None:
        with contextlib.suppress(WebSocketException, OSError):
            async with Session(replica.port) as session:
                await to_save(session)
                for turn in range(1000):
                    _, saved = await save(session, f"{number}, {turn}")
                    if saved:
                        confirmed[saved] = f"{number}, {turn}"
                    if len(confirmed) >= 20:
                        replica.kill()

    async def all_visits(replica: Replica) -> None:
        await asyncio.gather(*(visit(number, replica) for number in range(6)))

    with replicas(tmp_path, 1, {"NAPKIN_DATA": str(tmp_path)}) as (replica,):
        run(all_visits(replica))
    assert len(confirmed) >= 20
    assert lost(f"sqlite:///{tmp_path / 'napkin.db'}", confirmed) == []
