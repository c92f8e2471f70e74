"""A run that spins is ended from outside and says so; one that waits, or is over, is left alone."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import script_runner

from pages.common.guard import MARK
from pages.streamlit_patches import OverdueError, overdue
from pages.streamlit_patches.overdue import Watch, patch
from tests.app.test_stale_values import Browser, asked, opened, served
from tests.patience import PATIENCE_S, until

SCRIPT = """
import streamlit as st
from pages.common.guard import guarded, guarded_page
def page():
    with guarded_page(""), guarded("The part"):
        while st.text_input("a", key="a") == "spin":
            try:
                while True:
                    pass
            except Exception:
                pass
    st.text("whole")
st.fragment(page)()
"""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is overdue at once, and what it works counts from its first step."""
    monkeypatch.setattr(overdue, "limit", lambda _: 0)
    monkeypatch.setattr(overdue, "BUSY_S", 0.1)


HERE = {"me"}.__contains__


def spin() -> None:
    while True:
        pass


def ended(watch: Watch, work: object) -> list[str]:
    """How the runs of a thread end while the watch looks: two of them."""
    how = list[str]()

    def twice() -> None:
        for _ in range(2):
            watch.begin("me")
            try:
                work()  # type: ignore[operator]
                how.append("itself")
            except OverdueError:
                how.append("overdue")
            finally:
                watch.end()

    thread = threading.Thread(target=twice, daemon=True)
    thread.start()

    def over() -> bool:
        watch.look()
        return not thread.is_alive()

    until(over, "the end of both runs")
    watch.look()
    assert not watch._runs
    return how


@pytest.mark.usefixtures("at_once")
def test_a_run_that_spins_is_ended_and_one_that_waits_is_not() -> None:
    assert ended(Watch(HERE), spin) == ["overdue", "overdue"]
    assert ended(Watch(HERE), lambda: time.sleep(0.5)) == ["itself", "itself"]


def test_a_run_has_its_time() -> None:
    assert ended(Watch(HERE), lambda: sum(range(10_000_000))) == ["itself", "itself"]


def test_a_run_whose_user_has_left_is_ended_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "limit", {"run_seconds": 10 * PATIENCE_S, "left_run_seconds": 0}.__getitem__)
    monkeypatch.setattr(overdue, "BUSY_S", 0.1)
    assert ended(Watch(lambda _: False), spin) == ["overdue", "overdue"]


@pytest.mark.usefixtures("at_once")
def test_a_run_that_swallows_its_end_is_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "AGAIN_S", 0.1)

    def stubborn() -> None:
        try:
            spin()
        except OverdueError:
            spin()

    assert ended(Watch(HERE), stubborn) == ["overdue", "overdue"]


@pytest.mark.usefixtures("at_once")
def test_the_page_says_so_once_and_goes_on_with_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_runner, "exec_func_with_error_handling", None)  # and afterwards as it was
    monkeypatch.setattr(Runtime, "_instance", None)
    patch()
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)

    async def visit(server: Runtime) -> None:
        browser, session = await opened(server)
        await asked(server, session, browser, browser.change("a", "spin"))
        assert alerts(browser) == 1
        browser.see(len(browser.waiting))
        await asked(server, session, browser, browser.change("a", "on"))
        assert alerts(browser) == 0
        browser.see(len(browser.waiting))
        assert browser.script_held == "whole"

    served(path, visit)


def alerts(browser: Browser) -> int:
    return sum(MARK in message.delta.new_element.html.body for message in browser.waiting)
