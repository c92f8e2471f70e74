"""Optimizers as data: which tensors each keeps per parameter, from ``assets/data/optimizers.csv``.

Here are the optimizers whose state is a whole number of tensors of the parameter's own size, for matrices and
vectors alike. Factored, quantised, low-rank and offloaded ones need the shape of each matrix and are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from core.formula import Source
from core.rows import read_rows

_FP32_BYTES = 4
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")

HEADLINE: tuple[str, ...] = ("AdamW", "Adam", "RMSProp", "AdaGrad", "SGD momentum", "SGD")
"""The six optimizers that every figure shows, from the most state to the least."""

LEFT_OUT: tuple[str, ...] = ("8-bit Adam", "Adafactor", "CAME", "Muon", "Shampoo", "SOAP", "GaLore")
"""Well-known optimizers that are in the file and not in the list."""

WHY_LEFT_OUT = "depends on the shape of each matrix, on a rank or on blocks"


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer: the state tensors that it keeps per parameter tensor, and what was measured.

    states: names of the full-size state tensors, as the measured implementation calls them.
    measured: bytes of state per parameter measured on one 512 × 256 fp32 matrix; NaN where nobody measured.
    measured_with: the library and version of that measurement.
    extra_per_tensor: what comes once per tensor on top (a step counter), too small to count; empty for none.
    confidence: "verified" or "recalled".
    """

    name: str
    states: tuple[str, ...]
    measured: float
    measured_with: str
    extra_per_tensor: str
    paper: str
    source: str
    confidence: str
    notes: str

    @property
    def state_tensors(self) -> int:
        """Full-size state tensors per parameter tensor."""
        return len(self.states)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The measurement, then the paper where one is named."""
        found = [Source(self.source, self.measured_with)]
        if self.paper:
            arxiv = _ARXIV.search(self.paper)
            found.append(Source(self.paper, url=f"https://arxiv.org/abs/{arxiv[1]}" if arxiv else ""))
        return tuple(found)


def _full_size_tensors(formula: str, size: str) -> int | None:
    """How many full-size fp32 tensors ``formula`` stands for ("8mn" with size "mn" is 2); None if it is no such."""
    if formula == "0":
        return 0
    match = re.fullmatch(rf"(\d+){size}", formula)
    if match is None or int(match[1]) % _FP32_BYTES:
        return None
    return int(match[1]) // _FP32_BYTES


def _leading_number(text: str) -> float:
    match = re.match(r"\d+(?:\.\d+)?", text)
    return float(match[0]) if match else math.nan


def _read(row: Mapping[str, str]) -> Optimizer | None:
    """The row as an `Optimizer`, or None when its state is not a whole number of full-size tensors."""
    names = row["state_tensors"].strip()
    states = () if names == "none" else tuple(name.strip() for name in names.split(","))
    matrix = _full_size_tensors(row["formula_bytes_for_m_x_n_matrix"], "mn")
    vector = _full_size_tensors(row["formula_1d_params"], "n")
    measured = _leading_number(row["measured_bytes_per_param_512x256"])
    # A measurement that disagrees means that the implementation keeps more than the names say.
    agrees = math.isnan(measured) or abs(measured - _FP32_BYTES * len(states)) < 0.001
    if matrix != len(states) or vector != len(states) or not agrees:
        return None
    return Optimizer(
        name=row["optimizer"],
        states=states,
        measured=measured,
        measured_with=row["measured_with"],
        extra_per_tensor=row["extra_per_tensor"],
        paper=row["paper"],
        source=row["source"],
        confidence=row["confidence"],
        notes=row["notes"],
    )


@lru_cache(maxsize=1)
def optimizers() -> Mapping[str, Optimizer]:
    """Every optimizer by name: the six of `HEADLINE` first, then the file's order."""
    found = {made.name: made for row in read_rows("optimizers") if (made := _read(row)) is not None}
    order = [*HEADLINE, *(name for name in found if name not in HEADLINE)]
    return MappingProxyType({name: found[name] for name in order})


def why_not(name: str) -> str:
    """Why there is no optimizer ``name``, in a sentence, where it is a variant of one in `LEFT_OUT`; else empty."""
    found = next((known for known in LEFT_OUT if re.search(rf"\b{known}\b", name, re.IGNORECASE)), "")
    if re.search(r"[48][-_ ]?bit", name, re.IGNORECASE):
        found = LEFT_OUT[0]
    return f"{found} is left out, because its state {WHY_LEFT_OUT}." if found else ""


def find_optimizer(name: str) -> Optimizer:
    """The optimizer called ``name``, in any case. Raises ``KeyError`` that lists the names when there is none."""
    for known, optimizer in optimizers().items():
        if known.casefold() == name.strip().casefold():
            return optimizer
    raise KeyError(f"no optimizer {name!r}; there are {', '.join(optimizers())}. {why_not(name)}".strip())
