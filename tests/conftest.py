"""Settings of every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No clock decides whether a test passes: a loaded machine is slower, not wrong. `make perf` prints times.
settings.register_profile(
    "napkin", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("napkin")
