"""The lecture's claims about tensors as something to run, one preset per claim, T1 to T13; and a program of a model."""

from __future__ import annotations

from dataclasses import dataclass

from core.rows import read_rows
from core.tensors.parsing.text import read_shape


@dataclass(frozen=True, slots=True)
class Preset:
    """An example, and what to run to see it.

    claim: of the lecture, its id; empty for others. shape, dtype, source: the start tensor and the program.
    """

    claim: str
    label: str
    shape: tuple[int, ...]
    dtype: str
    source: str


_ROWS = [
    Preset(row["claim"], row["label"], read_shape(row["shape"]), row["dtype"], row["source"])
    for row in read_rows("tensor_presets")
]
"""The rows of ``assets/data/tensor_presets.csv``."""

LECTURE = tuple(preset for preset in _ROWS if preset.claim)
"""One preset per claim, in order."""

(ATTENTION,) = (preset for preset in _ROWS if not preset.claim)
"""What heads of attention do to memory, unscaled: views up to the first product, and a copy at the end."""
