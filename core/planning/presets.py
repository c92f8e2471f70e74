"""Plans, sweeps, and decisions to begin with, as texts of fields by id: ``assets/data/plan_presets.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from core.rows import read_rows

Presets: TypeAlias = Mapping[str, Mapping[str, str]]
"""Name → every field that the preset sets, so that it is marked as current only where all of them match."""

_ROWS = read_rows("plan_presets")


def _presets(page: str) -> Presets:
    """Return the presets of a page. Rows without a preset hold for all of them."""
    rows = [row for row in _ROWS if row["page"] == page]
    usual = {row["field"]: row["text"] for row in rows if not row["preset"]}
    presets: dict[str, dict[str, str]] = {}
    for row in rows:
        if name := row["preset"]:
            presets.setdefault(name, dict(usual))[row["field"]] = row["text"]
    return presets


PRESETS = _presets("compute")
MEMORY_PRESETS = _presets("memory")
SEARCH_PRESETS = _presets("parallel")
SWEEP_PRESETS = _presets("what_if")
DECISION_PRESETS = _presets("decide")

LECTURE = "Lecture: 70B on 1,024 H100"
FIRST_TUNING = "QLoRA 8B on 24 GB"
"""The question of a newcomer to fine-tuning."""
