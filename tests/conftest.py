"""Settings of every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

# No clock decides whether a test passes: a loaded machine is slower, not wrong. `make perf` prints times.
settings.register_profile(
    "napkin", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("napkin")


@pytest.fixture(scope="session", autouse=True)
def nobodys_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every test saves plans in a folder of its session's own, in servers that it starts too."""
    with patch.dict(os.environ, {"NAPKIN_DATA": str(tmp_path_factory.mktemp("plans"))}):
        os.environ.pop("DATABASE_URL", None)
        yield
