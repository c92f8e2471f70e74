"""Optimizers and the bytes of their states.

A rule is text, so that an optimizer is a row of data: ``exp_avg = mn; row = m; codes = mn as uint8; absmax = mn/256 as
fp32``. For a parameter tensor of m rows and n columns (a vector has n = 1) a size is

- ``mn`` one element for each parameter, ``m`` for each row, ``n`` for each column, ``1`` one in all;
- ``mm``, ``nn`` a square matrix over the rows, over the columns; ``mm<=10000`` none where that side is longer;
- ``mn/256`` one element for each block of 256, the last one perhaps not full;
- ``128max``, ``128min`` a factor of rank 128 along the longer, the shorter side, whose rank is at most that side;
- a number in front of the others multiplies: ``100mn`` is a history of a hundred.

Without ``as``, the elements have the type that the precision policy gives to optimizer state.

Most keep a few tensors of the parameter's own size, whatever its shape. Factored, quantised, low-rank and
preconditioned ones, and those that treat matrices, vectors, tables and the output head apart, need the shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.operation import WeightKind
from core.models.spec import TransformerSpec
from core.rows import read_record, read_rows
from core.training.precision import STORAGE_TYPES, PrecisionPolicy, StorageType
from core.training.trained import ParameterTensor, tensors_of
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


_COLUMNS: Mapping[str, str] = {"name": "optimizer", "measured": "measured_bytes_per_param_512x256"}
"""Field → its column, where that has another name."""


def _read(row: Mapping[str, str]) -> Optimizer:
    # Vectors and both ends have the states of matrices where the table does not say otherwise.
    kinds = {name: parse_states(row[name] or row["matrix"]) for name in ("matrix", "vector", "embedding", "head")}
    others = {name: parse_states(row[name] or "none") for name in ("small", "per_tensor")}
    return read_record(Optimizer, row, _COLUMNS, **kinds, **others)


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


_TORCH = Source(
    "PyTorch, torch.optim",
    "state of each optimizer after one step, measured on torch 2.13",
    "https://docs.pytorch.org/docs/stable/optim.html",
)
_STATE = Symbol("o", "optimizer state", "bytes_per_parameter")


@formula(
    r"\v{tensors} \cdot \v{each}",
    result=_STATE,
    symbols={
        "tensors": Symbol("k", "state tensors of the parameter’s own size", "number"),
        "each": Symbol("s", "bytes per element of a state (the mean where they differ)", "bytes_per_parameter"),
    },
    sources=(_TORCH,),
)
def optimizer_bytes_per_parameter(tensors: float, each: float) -> float:
    """Optimizer state per parameter.

    A step counter of 4 bytes per tensor is left out.
    """
    return tensors * each


@formula(
    r"\v{elements} \cdot \v{each}",
    result=Symbol("S_i", "one state on one class of tensors", "bytes"),
    symbols={
        "elements": Symbol("e_i", "elements that it has for all of them", "count"),
        "each": Symbol("s_i", "bytes of one element", "number"),
    },
    sources=(_TORCH,),
)
def state_tensor_bytes(elements: float, each: float) -> float:
    """Bytes of one state."""
    return elements * each


@formula(
    r"\frac{\v{total}}{\v{parameters}}",
    result=_STATE,
    symbols={
        "total": Symbol(r"\sum S_i", "all states on all tensors", "bytes"),
        "parameters": Symbol("N", "parameters of the model whose tensors these are", "count"),
    },
    sources=(_TORCH,),
)
def mean_state_bytes(total: float, parameters: float) -> float:
    """Optimizer state per parameter, the mean over a model's tensors.

    Counters of a few bytes per tensor are left out.
    """
    return total / parameters


@dataclass(frozen=True, slots=True)
class StateOfKind:
    """One of an optimizer's states, on all tensors of one class."""

    name: str
    kind: WeightKind
    elements: int
    type: StorageType

    @property
    def bytes(self) -> float:
        return state_tensor_bytes(self.elements, self.type.bytes)


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """What an optimizer keeps for a model. states: on each class of tensors. counters: bytes of step counters and such,
    which ``total`` leaves out."""

    states: tuple[StateOfKind, ...]
    parameters: int
    counters: float

    @property
    def total(self) -> float:
        """Bytes of all states on all tensors."""
        return sum(state.bytes for state in self.states)

    @property
    def per_parameter(self) -> float:
        """Bytes per parameter, the mean over all tensors."""
        return mean_state_bytes(self.total, self.parameters)

    @property
    def by_kind(self) -> dict[WeightKind, float]:
        """Bytes of each class of tensors over all states."""
        kinds: list[WeightKind] = list(dict.fromkeys(state.kind for state in self.states))
        return {kind: sum(state.bytes for state in self.states if state.kind == kind) for kind in kinds}


def optimizer_state(
    model: TransformerSpec | Iterable[ParameterTensor], optimizer: Optimizer, policy: PrecisionPolicy
) -> OptimizerState:
    """What ``optimizer`` keeps for a model, or for the tensors given, under ``policy``."""
    return _state(tensors_of(model) if isinstance(model, TransformerSpec) else tuple(model), optimizer, policy)


@cached("results_kept")
def _state(tensors: tuple[ParameterTensor, ...], optimizer: Optimizer, policy: PrecisionPolicy) -> OptimizerState:
    elements: dict[tuple[str, WeightKind, StorageType], int] = {}
    for tensor in tensors:
        for state, count in optimizer.elements(tensor.kind, tensor.rows, tensor.columns):
            key = (state.name, tensor.kind, state.each(policy))
            elements[key] = elements.get(key, 0) + int(count) * tensor.count
    return OptimizerState(
        tuple(StateOfKind(name, kind, size, storage) for (name, kind, storage), size in elements.items() if size),
        sum(tensor.elements for tensor in tensors),
        sum(tensor.count for tensor in tensors) * sum(c.each(policy).bytes for c in optimizer.per_tensor),
    )


def state_bytes_per_parameter(optimizer: Optimizer, policy: PrecisionPolicy, spec: TransformerSpec | None) -> float:
    """Bytes of optimizer state per parameter.

    Raises ``ValueError`` without a ``spec`` where they depend on the shapes of its tensors.
    """
    if optimizer.uniform:
        return optimizer_bytes_per_parameter(**_full_size(optimizer, policy))
    if spec is None:
        raise ValueError(f"the state of {optimizer.name} depends on the shapes of a model’s tensors")
    return optimizer_state(spec, optimizer, policy).per_parameter


def explain_state_bytes(
    optimizer: Optimizer, policy: PrecisionPolicy, spec: TransformerSpec
) -> tuple[Explanation, ...]:
    """Those bytes per parameter, with the sum they come from where there is one."""
    if optimizer.uniform:
        return (optimizer_bytes_per_parameter.explain(**_full_size(optimizer, policy)),)
    state = optimizer_state(spec, optimizer, policy)
    return (
        *(
            state_tensor_bytes.explain(elements=one.elements, each=one.type.bytes).about(f"{one.name}, {one.kind}")
            for one in state.states
        ),
        mean_state_bytes.explain(total=state.total, parameters=state.parameters),
    )


def _full_size(optimizer: Optimizer, policy: PrecisionPolicy) -> dict[str, float]:
    """Number of state tensors, and their mean bytes per element."""
    tensors = sum(state.times for state in optimizer.matrix)
    size = sum(state.times * state.each(policy).bytes for state in optimizer.matrix)
    return {"tensors": tensors, "each": size / tensors if tensors else policy.states.bytes}
