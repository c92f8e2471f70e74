"""Optimizers as data: which state tensors each keeps for a parameter tensor, from ``assets/data/optimizers.csv``.

Most keep a few tensors of the parameter's own size, whatever its shape. Factored, quantised, low-rank and
preconditioned ones, and those that treat matrices, vectors, tables and the output head apart, need the shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from core.formula import Source
from core.limits import cached
from core.models.operation import WeightKind
from core.rows import number, read_rows, whole
from core.training.precision import PrecisionPolicy
from core.training.states import Sizes, StateTensor, as_formula, parse_states

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")

HEADLINE: tuple[str, ...] = ("AdamW", "Muon", "Lion", "AdaGrad", "SGD momentum", "8-bit Adam", "Adafactor", "SGD")
"""The optimizers that every figure shows, from the most state to the least."""

USUAL_OPTIMIZER = "AdamW"
"""The optimizer that is meant where none is named."""

ALIKE: tuple[tuple[str, ...], ...] = (("Adam", "AdamW"), ("AdaGrad", "RMSProp"))
"""Optimizers that keep as much as each other and share one row of a figure."""

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "Scalable Shampoo": "it cuts matrices into blocks and skips some, and no run of it was measured",
        "K-FAC": "its state has the shapes of what layers read and write, not of their weights",
        "PSGD": "its preconditioners have many forms, and none was measured",
        "LOMO": "it has no state: it saves gradients, which are updated with as they are made",
    }
)
"""Optimizers that are known and not in the list, each with the reason."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimizer: the state tensors that it keeps for each class of parameter tensors, and what was measured.

    matrix, vector, embedding, head: state tensors by class; those of experts are matrices.
    small: what it keeps instead for a tensor of fewer than ``small_below`` elements, or of a number of elements that
        is no multiple of ``multiple_of``.
    per_tensor: counters of a few bytes for each tensor, which bytes per parameter leave out.
    measured: bytes of state per parameter measured on one 512 × 256 fp32 matrix; NaN where nobody measured.
    measured_with: the library and version of that measurement.
    confidence: "verified" or "recalled".
    """

    name: str
    matrix: tuple[StateTensor, ...]
    vector: tuple[StateTensor, ...]
    embedding: tuple[StateTensor, ...]
    head: tuple[StateTensor, ...]
    small: tuple[StateTensor, ...]
    small_below: int
    multiple_of: int
    per_tensor: tuple[StateTensor, ...]
    measured: float
    measured_with: str
    paper: str
    source: str
    confidence: str
    notes: str

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tensors of a matrix."""
        return tuple(state.name for state in self.matrix)

    @property
    def state_tensors(self) -> int:
        """State tensors of a matrix."""
        return len(self.matrix)

    @property
    def uniform(self) -> bool:
        """Whether every tensor has the same states, all of its own size: then no shape is needed."""
        kinds = (self.matrix, self.vector, self.embedding, self.head)
        return not self.small_below and all(k == self.matrix for k in kinds) and all(s.full for s in self.matrix)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The measurement, then the paper where one is named."""
        result = [Source(self.source, self.measured_with)]
        if self.paper:
            arxiv = _ARXIV.search(self.paper)
            result.append(Source(self.paper, url=f"https://arxiv.org/abs/{arxiv[1]}" if arxiv else ""))
        return tuple(result)

    def of_kind(self, kind: WeightKind) -> tuple[StateTensor, ...]:
        """State tensors of a parameter tensor of this class, large enough for them."""
        return {"vector": self.vector, "embedding": self.embedding, "head": self.head}.get(kind, self.matrix)

    def elements(
        self, kind: WeightKind, rows: Sizes, columns: Sizes
    ) -> tuple[tuple[StateTensor, npt.NDArray[np.int64]], ...]:
        """Each state tensor with its elements, for parameter tensors of one class; rows and columns may be arrays."""
        size = np.asarray(rows, dtype=np.int64) * np.asarray(columns, dtype=np.int64)
        little = (size < self.small_below) | (size % max(1, self.multiple_of) != 0)
        return (
            *((state, np.where(little, 0, state.elements(rows, columns))) for state in self.of_kind(kind)),
            *((state, np.where(little, state.elements(rows, columns), 0)) for state in self.small),
        )

    def formula(self, policy: PrecisionPolicy, kind: WeightKind = "matrix") -> str:
        """Bytes of state for one m × n tensor of this class, as text: "4mn + 4m + 4n"."""
        return as_formula(self.of_kind(kind), policy)

    def ranked(self, rank: int) -> Optimizer:
        """The same with another rank; an optimizer without one stays as it is."""

        def low(states: tuple[StateTensor, ...]) -> tuple[StateTensor, ...]:
            return tuple(replace(state, times=rank) if state.ranked else state for state in states)

        name = re.sub(r"rank \d+", f"rank {rank}", self.name)
        return replace(self, name=name, matrix=low(self.matrix), embedding=low(self.embedding), head=low(self.head))


def _read(row: Mapping[str, str]) -> Optimizer:
    matrix = row["matrix"]
    return Optimizer(
        name=row["optimizer"],
        matrix=parse_states(matrix),
        vector=parse_states(row["vector"] or matrix),
        embedding=parse_states(row["embedding"] or matrix),
        head=parse_states(row["head"] or matrix),
        small=parse_states(row["small"] or "none"),
        small_below=whole(row["small_below"]),
        multiple_of=whole(row["multiple_of"]),
        per_tensor=parse_states(row["per_tensor"] or "none"),
        measured=number(row["measured_bytes_per_param_512x256"]),
        measured_with=row["measured_with"],
        paper=row["paper"],
        source=row["source"],
        confidence=row["confidence"],
        notes=row["notes"],
    )


@cached("tables_kept")
def optimizers() -> Mapping[str, Optimizer]:
    """Every optimizer by name: those of `HEADLINE` first, then the file's order."""
    by_name = {row.name: row for row in map(_read, read_rows("optimizers"))}
    order = [*HEADLINE, *(name for name in by_name if name not in HEADLINE)]
    return MappingProxyType({name: by_name[name] for name in order})


def headline(chosen: str) -> tuple[str, ...]:
    """The optimizers of a figure in which ``chosen`` stands: in place of the one of `ALIKE` with it, else first."""
    for group in ALIKE:
        if chosen in group:
            return tuple(chosen if name in group else name for name in HEADLINE)
    return HEADLINE if chosen in HEADLINE else (chosen, *HEADLINE)


def row_names(names: Sequence[str]) -> tuple[str, ...]:
    """What the rows of a figure are called: "Adam, AdamW" where one stands for both."""
    parts: list[str] = []
    for name in names:
        group = next((group for group in ALIKE if name in group), (name,))
        parts.append(", ".join(group) if sum(other in group for other in names) == 1 else name)
    return tuple(parts)


def why_not(name: str) -> str:
    """Why there is no optimizer ``name``, in a sentence, where it is a variant of one in `LEFT_OUT`; else empty."""
    for known, reason in LEFT_OUT.items():
        if re.search(rf"\b{re.escape(known)}\b", name, re.IGNORECASE):
            return f"{known} is left out, because {reason}."
    return ""


def find_optimizer(name: str) -> Optimizer:
    """The optimizer called ``name``, in any case. Raises ``KeyError`` that lists the names when there is none."""
    for known, optimizer in optimizers().items():
        if known.casefold() == name.strip().casefold():
            return optimizer
    raise KeyError(f"no optimizer {name!r}; there are {', '.join(optimizers())}. {why_not(name)}".strip())
