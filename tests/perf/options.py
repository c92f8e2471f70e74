"""How large the suites of ``make perf`` are and how long they last: all of it here, each an option of its command."""

from __future__ import annotations

from dataclasses import dataclass

from pages.common.registry import PAGES


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is asked for; the defaults are those of ``make perf``.

    Servers: warm_up_s, before anybody comes. starts: cold ones, of which the median is told.
    Visitors: think_s, between two changes. Of each page one who changes something ``reruns`` times, then ``few`` and
    ``many`` at once, watched for watched_s. Of crowd people for stay_s, of soak soak_people over so many replicas for
    minutes, one of them killed every kill_minutes (0: none), then left_minutes without any people; of team those of
    both replicas; a quiet user for beside_s, alone and while ten attack.
    Walks: steps, round of one visitor of the walk over pages, seed of the first. plans: on which laws are tried.
    """

    warm_up_s: float = 5.0
    starts: int = 5
    think_s: float = 2.0
    reruns: int = 40
    few: int = 20
    many: int = 100
    watched_s: float = 10.0
    people: int = 150
    stay_s: float = 60.0
    soak_people: int = 100
    replicas: int = 3
    minutes: float = 60.0
    left_minutes: int = 3
    kill_minutes: float = 0.0
    team: int = 100
    beside_s: float = 25.0
    steps: int = 20_000
    round: int = 60
    seed: int = 1
    plans: int = 100_000


FULL = Options()

QUICK = Options(
    warm_up_s=0.0,
    starts=1,
    think_s=0.05,
    reruns=2,
    few=1,
    many=2,
    watched_s=0.2,
    people=len(PAGES),
    stay_s=2.0,
    soak_people=len(PAGES),
    minutes=0.05,
    left_minutes=0,
    team=4,
    beside_s=3.0,
    steps=26,
    round=2,
    plans=60,
)
"""Everything once, to see that it runs; its figures say nothing."""
