"""How ranks agree on what comes next and on what a run took, beside the exchanges that are timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

Reduce = Callable[[Sequence[float], Literal["max", "min"]], list[float]]
"""The largest or smallest of all ranks' values, place by place."""


class Ranks:
    """One rank among ``world``, over a store of texts that all of them reach. Every rank makes the same calls in turn.

    The store is not what is measured: an operation that is refused leaves it as it was.
    """

    def __init__(self, store: Any, rank: int, world: int) -> None:
        self._store = store
        self.rank = rank
        self.world = world
        self._calls = 0

    def texts(self, text: str) -> list[str]:
        """What every rank says, by rank."""
        self._calls += 1
        self._store.set(f"{self._calls}/{self.rank}", text)
        message = self._store.multi_get([f"{self._calls}/{rank}" for rank in range(self.world)])
        return [bytes(item).decode() for item in message]

    def problem(self, text: str) -> str:
        """What the first rank says that has a problem; empty when none has."""
        return next(filter(None, self.texts(text)), "")

    def decide(self, value: int) -> int:
        """Rank 0's number."""
        self._calls += 1
        key = f"{self._calls}/0"
        if self.rank == 0:
            self._store.set(key, str(value))
            return value
        return int(bytes(self._store.get(key)))


def over_ranks(times: Sequence[float], rank: int, world: int, reduce: Reduce) -> tuple[list[float], int]:
    """Seconds of each run on its slowest rank, and the rank that was it most often.

    times: of this rank's runs. Of ranks as slow as each other the first counts; so it does of ranks as often.
    """
    slowest = reduce(times, "max")
    # Who was as slow as the slowest says its number, all others one that is no rank's.
    who = reduce([rank if time >= worst else world for time, worst in zip(times, slowest, strict=True)], "min")
    often = Counter(int(value) for value in who)
    return slowest, min(often, key=lambda number: (-often[number], number))
