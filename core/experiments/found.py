"""What an experiment measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """numbers: single figures. series: curves, by name. words: what was printed."""

    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    series: Mapping[str, Sequence[float]] = field(default_factory=dict[str, list[float]])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
