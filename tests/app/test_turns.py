"""Script runs stand in line: one after the other in their order, none behind a long one for longer than a moment."""

from __future__ import annotations

import threading

import pytest
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from pages.streamlit_patches import turns
from tests.patience import PATIENCE_S, until


def test_runs_come_one_after_the_other_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_S", PATIENCE_S)
    line, said, running = turns.Turns(), list[int](), list[int]()

    def run(number: int) -> None:
        with line.turn():
            running.append(number)
            said.append(len(running) * number)
            running.clear()

    threads: list[threading.Thread] = []
    with line.turn():
        for number in range(1, 21):
            before = line.last
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            until(lambda before=before: line.last is not before)  # it stands before the next one comes
        assert said == []
    for thread in threads:
        thread.join(PATIENCE_S)
    assert said == list(range(1, 21))


def test_a_long_run_goes_on_beside_the_next() -> None:
    line = turns.Turns()

    def run() -> None:
        with line.turn():
            pass

    with line.turn():
        took = threading.Thread(target=run)
        took.start()
        took.join(PATIENCE_S)
        assert not took.is_alive()


def test_a_run_that_fails_gives_its_turn_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_S", 10 * PATIENCE_S)

    def fails(*_: object) -> None:
        raise RuntimeError("of a script")

    monkeypatch.setattr(ScriptRunner, "_run_script", fails)
    turns.patch()

    def run() -> None:
        with pytest.raises(RuntimeError, match="of a script"):
            ScriptRunner._run_script(None, None)  # type: ignore[arg-type]

    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
