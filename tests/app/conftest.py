"""A part of a page that fails says so and leaves the rest alone, so a test must ask: here every test does."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from core.store import locations
from core.store.store import Store
from pages.common import guard
from pages.common.server.log import OncePer


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def failures() -> Iterator[list[logging.LogRecord]]:
    """What the log got about parts of pages that failed; a test that asks for it expects some."""
    kept = _Kept()
    once = next(found for found in guard.LOG.filters if isinstance(found, OncePer))
    once._seen.clear()  # what another test made fail
    guard.LOG.addHandler(kept)
    yield kept.records
    guard.LOG.removeHandler(kept)


@pytest.fixture(autouse=True)
def nothing_fails(failures: list[logging.LogRecord], request: pytest.FixtureRequest) -> Iterator[None]:
    """No part of any page fails in a test that does not plant it."""
    yield
    planted = "failures" in request.node.function.__code__.co_varnames
    assert planted or not failures, [record.exc_info for record in failures]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, which the app under test uses."""
    with patch.dict(os.environ, {"NAPKIN_DATA": str(tmp_path)}):
        yield locations.plan_store()
        locations._stores.pop(locations.address()).close()
