"""The result of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """Measurements by name. numbers: single values. series: curves. words: printed text."""

    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    series: Mapping[str, Sequence[float]] = field(default_factory=dict[str, list[float]])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
