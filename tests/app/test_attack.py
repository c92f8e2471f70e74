"""Ten who flood, upload and open what takes longest cost a quiet user little, and the health check nothing."""

from __future__ import annotations

import pytest

from tests.loops import run
from tests.perf.attack import Waits, attacked, quiet
from tests.perf.client import spawned, until_up
from tests.perf.visitors import ROOT, held

STAY_S = 20.0


@pytest.mark.process
@pytest.mark.long
@pytest.mark.patched
def test_one_user_costs_the_others_nothing() -> None:
    """`make perf` prints the times of a machine that does nothing else; here they are those of any."""
    waits = Waits()
    with spawned(ROOT) as (port, pid):

        async def meanwhile() -> None:
            await until_up(port)
            await quiet(port, Waits(), 0, 0)  # until it has warmed up
            with attacked(port):
                await quiet(port, waits, STAY_S, think_s=0.5)

        run(meanwhile())
        assert held(pid)[0] < 2_000
    health = sorted(waits.health)
    assert health[int(0.95 * len(health))] < 1
    assert health[-1] < 5
    assert max(waits.reruns) < 10
    assert len(waits.reruns) > 3
