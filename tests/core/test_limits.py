"""The table of caps is complete and in use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.limits import LIMITS, limit

ROOT = Path(__file__).parents[2]
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("core", "pages")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "limits.py"
)


@pytest.mark.parametrize("name", LIMITS)
def test_every_cap_has_a_reason_and_a_use(name: str) -> None:
    row = LIMITS[name]
    assert row.value > 0
    assert row.unit
    assert len(row.reason) > 15
    assert f'"{name}"' in CODE, f"nothing enforces {name}"


def test_every_cap_asked_for_exists() -> None:
    for name in re.findall(r'\blimit\("(\w+)"\)', CODE):
        assert limit(name) > 0
