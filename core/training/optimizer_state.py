"""Bytes of optimizer state of a model: each state on each class of its tensors, and the mean for one parameter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.operation import WeightKind
from core.models.spec import TransformerSpec
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy, StorageType
from core.training.tensors import ParameterTensor, tensors_of

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
