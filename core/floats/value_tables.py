"""Formats that are a list of values rather than sign, exponent and fraction: a code is a place in the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.formula import Source
from core.limits import cached
from core.rows import read_rows

_DECADES = 7
"""Powers of ten that the dynamic map of 8 bits reaches down."""


@dataclass(frozen=True)  # without slots, so that the arrays can be kept once worked out
class ValueTable:
    """A format whose codes 0, 1, … stand for ``values``, which rise and end at 1.

    name, title: as of a `FloatFormat`. used: where training meets it, in a few words.
    """

    name: str
    title: str
    values: tuple[float, ...]
    used: str
    sources: tuple[Source, ...]

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return (len(self.values) - 1).bit_length()

    @property
    def hex_digits(self) -> int:
        """Hex digits of a code."""
        return -(-self.bits // 4)

    @property
    def max_finite(self) -> Fraction:
        """The largest value."""
        return Fraction(self.values[-1])

    @cached_property
    def _array(self) -> npt.NDArray[np.float64]:
        return np.array(self.values)

    @cached_property
    def midpoints(self) -> npt.NDArray[np.float64]:
        """Halfway between neighbors: where one code ends and the next begins."""
        return (self._array[:-1] + self._array[1:]) / 2

    def encode(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the codes of the nearest values, of two equally near ones the smaller; beyond the ends the last."""
        return np.searchsorted(self.midpoints, values, side="left").astype(np.uint8)

    def decode(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the values of codes."""
        return self._array[codes]


def _read(row: Mapping[str, str]) -> ValueTable:
    values = tuple(float(value) for value in row["values"].split("; "))
    source = Source(row["source"], row["locator"], row["url"])
    return ValueTable(row["name"], row["title"], values, row["used"], (source,))


VALUE_TABLES: Mapping[str, ValueTable] = {row["name"]: _read(row) for row in read_rows("value_tables")}
"""Every such format that a table spells out, by its name."""

_DETTMERS = Source(
    "Dettmers 2015, 8-Bit Approximations for Parallelism in Deep Learning",
    "section 2.1",
    "https://arxiv.org/abs/1511.04561",
)
BITSANDBYTES = Source(
    "bitsandbytes",
    "functional.py: create_dynamic_map and quantize_4bit",
    "https://github.com/bitsandbytes-foundation/bitsandbytes/blob/main/bitsandbytes/functional.py",
)


@cached("tables_kept")
def dynamic_8bit() -> ValueTable:
    """Return bitsandbytes' signed map of 8 bits, in which double quantization keeps the scales of NF4.

    Each power of ten below 1 is cut into twice as many equal parts as the one below it, and each part is kept as its
    middle; 0 and 1 are added.
    """
    positive: list[npt.NDArray[np.float32]] = []
    for decade in range(_DECADES):
        edges = np.linspace(0.1, 1, 2**decade + 1, dtype=np.float32)
        positive.append(np.float32(10.0 ** (decade - _DECADES + 1)) * ((edges[:-1] + edges[1:]) / np.float32(2)))
    magnitudes = np.concatenate(positive)
    values = np.sort(np.concatenate([magnitudes, -magnitudes, np.array([0, 1], dtype=np.float32)]))
    return ValueTable(
        "dynamic_8bit",
        "dynamic 8-bit",
        tuple(values.astype(np.float64).tolist()),
        "scales of NF4 blocks, optimizer state in 8 bits",
        (_DETTMERS, BITSANDBYTES),
    )
