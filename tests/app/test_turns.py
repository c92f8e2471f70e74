"""Reruns take turns, and nobody waits for long."""

from __future__ import annotations

import threading

import pytest

from pages.parts import turns
from pages.parts.turns import turn


def test_one_at_a_time_in_the_order_of_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 30.0)
    ended: list[int] = []
    inside: list[int] = []

    def rerun(index: int) -> None:
        with turn():
            inside.append(index)
            assert len(inside) == 1
            ended.append(inside.pop())

    with turn():
        threads: list[threading.Thread] = []
        for index in range(8):
            threads.append(threading.Thread(target=rerun, args=(index,)))
            threads[-1].start()
            while len(turns._one._cond._waiters) <= index:  # type: ignore[attr-defined]
                pass
        assert not ended
    for thread in threads:
        thread.join()
    assert ended == list(range(8))


def test_who_has_waited_long_enough_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_S", 0.01)
    with turn(), turn():
        pass
    with turn():  # the one that was not waited for is not given back twice
        assert not turns._one.acquire(blocking=False)


def test_an_error_gives_the_turn_back() -> None:
    with pytest.raises(ZeroDivisionError), turn():
        raise ZeroDivisionError
    with turn():
        pass
    assert turns._one.acquire(blocking=False)
    turns._one.release()
