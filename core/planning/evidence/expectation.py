"""TEMP"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.formula import Explanation
from core.planning.evidence.rows import Width


@dataclass(frozen=True, slots=True)
class Setting:
    params: Any
    tokens: Any
    accelerator: str
    accelerators: Any
    mixture: bool = False
    width: Width = "16-bit"


@dataclass(frozen=True, slots=True)
class Expectation:
    low: Any
    mid: Any
    high: Any


def expected_utilisation(s: Setting) -> Expectation:
    mid = 0.35 * (np.clip(np.asarray(s.params), 1e8, 1e12) / 1e11) ** 0.05 * np.clip(
        np.asarray(s.accelerators), 1, 1e5
    ) ** -0.02 + 0 * np.asarray(s.tokens)
    return Expectation(mid * 0.7, mid, mid * 1.3)


def explain(s: Setting) -> list[Explanation]:
    return []


from core.planning.evidence.rows import Evidence, evidence


@dataclass(frozen=True, slots=True)
class Near:
    row: Evidence
    share: float
    distance: float
    parts: str


def nearest(s: Setting, most: int = 9) -> tuple[Near, ...]:
    return tuple(Near(r, 0.1, 1.0, "x") for r in evidence("whole")[:most])


def beyond(s: Setting) -> tuple[str, ...]:
    return ()
