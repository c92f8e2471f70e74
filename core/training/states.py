"""State tensors of an optimizer: a name, a size rule over the shape of a parameter tensor, an element type.

A rule is text, so that an optimizer is a row of data: ``exp_avg = mn; row = m; codes = mn as uint8; absmax = mn/256 as
fp32``. For a parameter tensor of m rows and n columns (a vector has n = 1) a size is

- ``mn`` one element for each parameter, ``m`` for each row, ``n`` for each column, ``1`` one in all;
- ``mm``, ``nn`` a square matrix over the rows, over the columns; ``mm<=10000`` none where that side is longer;
- ``mn/256`` one element for each block of 256, the last one perhaps not full;
- ``128max``, ``128min`` a factor of rank 128 along the longer, the shorter side, whose rank is at most that side;
- a number in front of the others multiplies: ``100mn`` is a history of a hundred.

Without ``as``, the elements have the type that the precision policy gives to optimizer state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.training.precision import STORAGE_TYPES, PrecisionPolicy, StorageType
from core.units import significant

Sizes: TypeAlias = "int | npt.NDArray[np.int64]"
"""Rows or columns of one tensor, or of many; arrays broadcast against each other."""

_PIECE = re.compile(r"(\w+) = (\d*)(mn|mm|nn|max|min|m|n|)(?:/(\d+))?(?:<=(\d+))?(?: as (\w+))?")
_SHOWN = {"mm": "m²", "nn": "n²", "max": "max(m, n)", "min": "min(m, n)", "": ""}


@dataclass(frozen=True, slots=True)
class StateTensor:
    """One state tensor that an optimizer keeps for a parameter tensor.

    of: what it has an element for (the rules of this module).  times: a factor in front, or the rank.
    per: parameters in one block, 1 without blocks.  most: the longest side that is still squared, 0 without a bound.
    type: of its elements; None where it follows the precision policy.
    """

    name: str
    of: str
    times: int = 1
    per: int = 1
    most: int = 0
    type: StorageType | None = None

    @property
    def full(self) -> bool:
        """Whether it has the same number of elements for each parameter, whatever the shape."""
        return self.of == "mn" and self.per == 1

    @property
    def ranked(self) -> bool:
        """Whether its size depends on a rank."""
        return self.of in ("max", "min")

    def elements(self, rows: Sizes, columns: Sizes) -> npt.NDArray[np.int64]:
        """Elements for tensors of ``rows`` × ``columns``."""
        m, n = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        short, long = np.minimum(m, n), np.maximum(m, n)
        if self.ranked:
            return np.minimum(self.times, short) * (long if self.of == "max" else short)
        ones = np.ones_like(m * n)
        whole = {"mn": m * n, "m": m * ones, "n": n * ones, "mm": m * m * ones, "nn": n * n * ones, "": ones}[self.of]
        if self.most:
            whole = np.where((m if self.of == "mm" else n) <= self.most, whole, 0)
        return -(-self.times * whole // self.per)

    def each(self, policy: PrecisionPolicy) -> StorageType:
        """The type of its elements under ``policy``."""
        return self.type or policy.state(self.name)

    @property
    def size(self) -> str:
        """Its elements for an m × n matrix as text: "mn", "mn/256", "128 max(m, n)"."""
        times = f"{self.times}{' ' * self.ranked}" if self.times != 1 or not self.of else ""
        return f"{times}{_SHOWN.get(self.of, self.of)}{f'/{self.per}' if self.per > 1 else ''}{self._bound}"

    @property
    def _bound(self) -> str:
        return f" where {self.of[0]} ≤ {self.most:,}" if self.most else ""

    def shown(self, policy: PrecisionPolicy) -> tuple[float, str]:
        """Bytes and what they come for: (4, "mn"), (1024, "max(m, n)")."""
        return self.times * self.each(policy).bytes / self.per, _SHOWN.get(self.of, self.of) + self._bound


def parse_states(text: str) -> tuple[StateTensor, ...]:
    """The state tensors that ``text`` names; "none" are none. Raises ``ValueError`` where it does not read."""
    if text == "none":
        return ()
    tensors: list[StateTensor] = []
    for part in text.split("; "):
        piece = _PIECE.fullmatch(part)
        if piece is None or not piece[2] + piece[3] or (piece[6] and piece[6] not in STORAGE_TYPES):
            raise ValueError(f"{part!r} is no state tensor such as 'exp_avg = mn' or 'absmax = mn/256 as fp32'")
        name, times, of, per, most, storage = piece.groups()
        tensors.append(
            StateTensor(
                name, of, int(times or 1), int(per or 1), int(most or 0), STORAGE_TYPES[storage] if storage else None
            )
        )
    return tuple(tensors)


def as_formula(states: Sequence[StateTensor], policy: PrecisionPolicy) -> str:
    """Bytes for one m × n matrix, equal sizes added up: "4mn + 4m + 4n"; "0" where nothing is kept."""
    sums: dict[str, float] = {}
    for size, of in ((size, of) for state in states for size, of in [state.shown(policy)]):
        sums[of] = sums.get(of, 0.0) + size
    return " + ".join(f"{significant(size)}{of}" for of, size in sums.items()) or "0"
