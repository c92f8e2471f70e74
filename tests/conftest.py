"""Settings of every test."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.conftest import Tabs

# No clock decides whether a test passes: a loaded machine is slower, not wrong. `make perf` prints times.
settings.register_profile(
    "napkin", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("napkin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long what `make test` leaves to `make test-all`: a team's servers, what a browser does beside journeys,
    and of ``sweep(n)`` all but n cases, evenly spread. Tables whose rows cost little are one test (`tests.every`).
    """
    cases = Counter(item.nodeid.partition("[")[0] for item in items)
    before = Counter[str]()
    for item in items:
        name = item.nodeid.partition("[")[0]
        sweep = item.get_closest_marker("sweep")
        left_out = sweep is not None and before[name] * sweep.args[0] % cases[name] >= sweep.args[0]
        before[name] += 1
        journey = item.get_closest_marker("journey")
        team = name.startswith("tests/team/")
        if left_out or team or (item.get_closest_marker("browser") and not journey):
            item.add_marker(pytest.mark.long)
        if team or item.get_closest_marker("browser") or item.get_closest_marker("process"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """What is imported by now stays, so that garbage, looked for after every run of a page, is not looked for there."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went by module, since many short tests hide behind the slowest; and what needed a second try: a
    test that needs it often is a fault to be repaired."""
    seconds = Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("ten slowest modules")
    for name, spent in seconds.most_common(10):
        terminalreporter.line(f"{spent:.0f} s {name}")
    again = sorted({report.nodeid for report in terminalreporter.stats.get("rerun", [])})
    if again:
        terminalreporter.section(f"{len(again)} needed a second try")
        for name in again:
            terminalreporter.line(name)


def _open_sockets_and_pipes() -> int:
    """How many of this process's descriptors are no files; 0 where the system does not list them."""
    count = 0
    with suppress(OSError), os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                count += not os.readlink(entry.path).startswith("/")
    return count


@pytest.fixture(autouse=True)
def closes_what_it_opens() -> Iterator[None]:
    """A socket, pipe or event loop that a test leaves to the collector warns in that test, not in a later one."""
    before = _open_sockets_and_pipes()
    yield
    if _open_sockets_and_pipes() > before:
        gc.collect()


@pytest.fixture(scope="session", autouse=True)
def nobodys_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every test saves plans in a folder of its session's own, in servers that it starts too."""
    with patch.dict(os.environ, {"NAPKIN_DATA": str(tmp_path_factory.mktemp("plans"))}):
        os.environ.pop("DATABASE_URL", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_run_here() -> Iterator[None]:
    """Programs of tests run in their own process, which has torch anyway; tests of the seal start sealed ones."""

    def run(source: str) -> tuple[list[dict[str, Any]], str]:
        from core.tensors.sealed.recorder import record

        lines: list[str] = []
        record(source, lambda event: lines.append(json.dumps(event)))
        return [json.loads(line) for line in lines], ""

    with patch("core.tensors.tracing.trace.run_program", run):
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a session, since a thread can drive only one; each opens its own context in it."""
    from playwright.sync_api import sync_playwright

    from tests.browser.chromium import ensure
    from tests.browser.conftest import FLAGS

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=ensure(), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> Tabs:
    """The tabs of this session's browser."""
    from tests.browser.conftest import Tabs

    return Tabs(browser)
