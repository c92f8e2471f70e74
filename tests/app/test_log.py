"""A repeated fault is logged once in a while, with a count; different ones are all logged."""

from __future__ import annotations

import logging
import threading

import pytest

from pages.common.server.log import OncePer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(clock: Clock) -> tuple[logging.Logger, list[str]]:
    """A logger behind the filter, and what came through it."""
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.Logger("told")  # not among the process's loggers
    logger.addFilter(OncePer(60.0, clock))
    logger.addHandler(Handler())
    return logger, lines


def test_a_repeated_record_passes_once_a_minute_and_counts_the_others(
    told: tuple[logging.Logger, list[str]], clock: Clock
) -> None:
    logger, lines = told
    for _ in range(1_000):
        logger.error("panel %s failed", "quiz")
    assert lines == ["panel quiz failed"]
    clock.now += 60.0
    logger.error("panel %s failed", "overlap")
    assert len(lines) == 2
    assert "overlap" in lines[1]
    assert "999" in lines[1]
    clock.now += 60.0
    logger.error("panel %s failed", "quiz")
    assert lines[2] == "panel quiz failed", "none was held back since"


def test_other_messages_exceptions_and_places_are_other_kinds(told: tuple[logging.Logger, list[str]]) -> None:
    logger, lines = told

    def here(error: Exception) -> None:
        try:
            raise error
        except Exception:
            logger.exception("failed")

    for _ in range(3):
        here(ValueError("a"))
        here(ValueError("b"))
        here(KeyError("a"))
        try:
            raise ValueError("elsewhere")
        except ValueError:
            logger.exception("failed")
        logger.error("Task-7 at 0x7f001: lost")
        logger.error("Task-12 at 0x7f9a2: lost")
    assert len(lines) == 4, "a ValueError here and there, a KeyError, and the lost task"


def test_memory_stays_bounded(clock: Clock) -> None:
    once = OncePer(60.0, clock)
    record = logging.makeLogRecord
    for number in range(10_000):
        name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        assert once.filter(record({"name": name, "msg": "m"}))
    assert len(once._seen) <= 256


def test_of_many_threads_one_gets_through(clock: Clock) -> None:
    once = OncePer(60.0, clock)
    passed: list[bool] = []
    threads = [
        threading.Thread(
            target=lambda: passed.extend(once.filter(logging.makeLogRecord({"msg": "m"})) for _ in range(200))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 1
    assert passed.count(False) == 1_599
