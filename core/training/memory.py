"""Bytes of the model states for each parameter, of one copy, and on disk.

Model states are what lasts from one step to the next: parameters, gradients, master weights, optimizer state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from core.formula import Explanation, Source, Symbol, formula
from core.models.spec import TransformerSpec
from core.sources import CS336, MEGATRON_OPTIMIZER, ZERO
from core.training.optimizers import Optimizer, state_bytes_per_parameter
from core.training.precision import PrecisionPolicy

_ZERO = ZERO.at("section 3.1 and table 1")
_BLOOM = Source(
    "BigScience, BLOOM 176B",
    "checkpoint size",
    "https://bigscience.notion.site/BigScience-176B-Model-ad073ca07cdf479398d5f95d88e218c4",
)

_N = Symbol("N", "parameters of the model", "count")
_KEPT = Symbol(r"\beta", "bytes kept for each parameter", "bytes_per_parameter")
_WEIGHTS = Symbol("p", "parameters that forward and backward read", "bytes_per_parameter")
_GRADIENTS = Symbol("g", "gradients", "bytes_per_parameter")
_MASTER = Symbol("w", "master weights (0 without a precise copy)", "bytes_per_parameter")
_STATE = Symbol("o", "optimizer state", "bytes_per_parameter")


@formula(
    r"\v{parameters} + \v{gradients} + \v{master} + \v{optimizer}",
    result=Symbol("b", "bytes per parameter of one copy of the model states", "bytes_per_parameter"),
    symbols={"parameters": _WEIGHTS, "gradients": _GRADIENTS, "master": _MASTER, "optimizer": _STATE},
    sources=(_ZERO, MEGATRON_OPTIMIZER),
)
def bytes_per_parameter(parameters: float, gradients: float, master: float, optimizer: float) -> float:
    """Bytes per parameter of one copy of the model states."""
    return parameters + gradients + master + optimizer


@formula(
    r"\v{parameters} \cdot \v{stored}",
    result=Symbol("S", "bytes of one part of the model states, one copy", "bytes"),
    symbols={"parameters": _N, "stored": _KEPT},
    sources=(_ZERO,),
)
def state_bytes(parameters: float, stored: float) -> float:
    """One copy of a part of the model states."""
    return parameters * stored


@formula(
    r"\v{parameters} \cdot (\v{weights} + \v{optimizer})",
    result=Symbol("K", "bytes of one checkpoint to resume from", "bytes"),
    symbols={
        "parameters": _N,
        "weights": Symbol("w", "weights saved: the master copy, or the weights themselves", "bytes_per_parameter"),
        "optimizer": _STATE,
    },
    sources=(CS336, _BLOOM),
)
def checkpoint_bytes(parameters: float, weights: float, optimizer: float) -> float:
    """Size of a checkpoint to resume training from.

    Counts weights and optimizer state. Gradients are not saved: the next step makes them anew.
    """
    return parameters * (weights + optimizer)


@formula(
    r"\v{tokens} \cdot \v{each}",
    result=Symbol("B_D", "bytes of the tokenised text", "bytes"),
    symbols={
        "tokens": Symbol("D", "tokens stored", "count"),
        "each": Symbol("w", "bytes of one token’s number: 2 up to 65,536 tokens in the vocabulary, else 4", "number"),
    },
    sources=(
        Source(
            "Megatron-LM, indexed_dataset.py",
            "DType.optimal_dtype",
            "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/datasets/indexed_dataset.py",
        ),
    ),
)
def token_bytes(tokens: float, each: float) -> float:
    """Size of tokenised text on disk, one number per token."""
    return tokens * each


def token_width(vocab: int) -> int:
    """Bytes of one token's number: the smaller of two and four that hold the vocabulary."""
    return 2 if vocab <= 1 << 16 else 4


PARTS: Mapping[str, str] = MappingProxyType(
    {
        "parameters": "parameters",
        "gradients": "gradients",
        "master": "master weights",
        "optimizer": "optimizer state",
    }
)
"""Parts of the model states in stacking order: field of `StateBytes`, and its name."""


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes of each part of the model states, per parameter or in total."""

    parameters: float
    gradients: float
    master: float
    optimizer: float

    @property
    def total(self) -> float:
        """The sum of the four parts."""
        return bytes_per_parameter(self.parameters, self.gradients, self.master, self.optimizer)


def states_per_parameter(
    optimizer: Optimizer,
    policy: PrecisionPolicy,
    spec: TransformerSpec | None = None,
    *,
    in_backward: bool = False,
    paged: bool = False,
) -> StateBytes:
    """Bytes per parameter of one copy of the model states under ``optimizer`` and ``policy``.

    in_backward: gradients go as soon as they are there. paged: the optimizer's state lies in the host's memory.
    Raises ``ValueError`` without a ``spec`` where the optimizer's state depends on the shapes of its tensors.
    """
    return StateBytes(
        parameters=policy.weights.bytes,
        gradients=0.0 if in_backward else policy.gradient_bytes,
        master=policy.master_bytes,
        optimizer=0.0 if paged else state_bytes_per_parameter(optimizer, policy, spec),
    )


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Bytes of a checkpoint for each parameter of the model: weights (the precise copy where there is one), state."""

    weights: float
    optimizer: float

    def of(self, parameters: Any) -> Any:
        """Bytes of the checkpoint of a model, or of many."""
        return checkpoint_bytes.over(parameters=parameters, weights=self.weights, optimizer=self.optimizer)

    def explain(self, parameters: float) -> Explanation:
        """The same with its formula."""
        return checkpoint_bytes.explain(parameters=parameters, weights=self.weights, optimizer=self.optimizer)


def checkpoint_size(
    optimizer: Optimizer, policy: PrecisionPolicy, spec: TransformerSpec | None = None
) -> CheckpointSize:
    """What a checkpoint keeps; ``spec`` as in `states_per_parameter`."""
    return CheckpointSize((policy.master or policy.weights).bytes, state_bytes_per_parameter(optimizer, policy, spec))
