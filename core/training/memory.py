"""Bytes of the model states: per parameter, in total, against the memory of n accelerators, and on disk.

Model states are what lasts from one step to the next: parameters, gradients, master weights, optimizer state.
Activations, temporary buffers, the runtime's own memory and fragmentation come on top and are not counted here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from core.formula import Explanation, Source, Symbol, formula
from core.models.catalog import nearest_dense
from core.models.spec import TransformerSpec
from core.sources import CS336, MEGATRON_OPTIMIZER, ZERO
from core.training.optimizer_state import explain_mean_state, mean_state
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.sharding import SHARDED, Sharding

Fit: TypeAlias = Literal["room", "full", "over", "unknown"]
"""How model states stand to the memory: some is left, none is left, too little, or the memory is not known."""

_ZERO = ZERO.at("section 3.1 and table 1")
_BLOOM = Source(
    "BigScience, BLOOM 176B",
    "checkpoint size",
    "https://bigscience.notion.site/BigScience-176B-Model-ad073ca07cdf479398d5f95d88e218c4",
)

_N = Symbol("N", "parameters of the model", "count")
_ACCELERATORS = Symbol("n", "accelerators", "count")
_MEMORY = Symbol("M", "memory of one accelerator, decimal as the datasheet prints it", "bytes")
_STORED = Symbol(r"\beta", "bytes per parameter stored by all accelerators together", "bytes_per_parameter")
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
    r"\v{copies_parameters} \cdot \v{parameters} + \v{copies_gradients} \cdot \v{gradients}"
    r" + \v{copies_optimizer} \cdot (\v{master} + \v{optimizer})",
    result=_STORED,
    symbols={
        "parameters": _WEIGHTS,
        "gradients": _GRADIENTS,
        "master": _MASTER,
        "optimizer": _STATE,
        "copies_parameters": Symbol("c_p", "copies of the parameters: 1 sharded, n replicated", "count"),
        "copies_gradients": Symbol("c_g", "copies of the gradients: 1 sharded, n replicated", "count"),
        "copies_optimizer": Symbol("c_o", "copies of master weights and optimizer state", "count"),
    },
    sources=(_ZERO, MEGATRON_OPTIMIZER),
)
def stored_per_parameter(
    parameters: float,
    gradients: float,
    master: float,
    optimizer: float,
    copies_parameters: float,
    copies_gradients: float,
    copies_optimizer: float,
) -> float:
    """Bytes per parameter that all accelerators together store.

    A part that is sharded exists once, a replicated one once on each accelerator. Shards are taken as even.
    """
    return copies_parameters * parameters + copies_gradients * gradients + copies_optimizer * (master + optimizer)


@formula(
    r"\frac{\v{accelerators} \cdot \v{memory}}{\v{stored}}",
    result=Symbol(r"N_{\max}", "parameters of the largest model whose states fill the memory", "parameters"),
    symbols={"accelerators": _ACCELERATORS, "memory": _MEMORY, "stored": _STORED},
    sources=(CS336, _ZERO),
)
def largest_model(accelerators: float, memory: float, stored: float) -> float:
    """Largest model whose states n accelerators hold.

    An upper bound: nothing is left for activations, buffers and fragmentation.
    """
    return accelerators * memory / stored


@formula(
    r"\v{parameters} \cdot \v{stored}",
    result=Symbol("S", "model states on all accelerators together", "bytes"),
    symbols={"parameters": _N, "stored": _STORED},
    sources=(_ZERO,),
)
def state_bytes(parameters: float, stored: float) -> float:
    """Model states in total."""
    return parameters * stored


@formula(
    r"\v{accelerators} \cdot \v{memory} - \v{parameters} \cdot \v{stored}",
    result=Symbol("R", "memory left by the model states (negative: missing)", "bytes"),
    symbols={"accelerators": _ACCELERATORS, "memory": _MEMORY, "parameters": _N, "stored": _STORED},
    sources=(_ZERO,),
)
def spare_bytes(accelerators: float, memory: float, parameters: float, stored: float) -> float:
    """Memory that the model states leave, over all accelerators."""
    return accelerators * memory - parameters * stored


@formula(
    r"\frac{\v{parameters} \cdot \v{sharded}}{\v{memory} - \v{parameters} \cdot \v{replicated}}",
    result=Symbol(r"n_{\min}", "accelerators whose memory the states fill; round up", "accelerators"),
    symbols={
        "parameters": _N,
        "sharded": Symbol("b_s", "bytes per parameter of the parts that exist once", "bytes_per_parameter"),
        "replicated": Symbol("b_r", "bytes per parameter of the parts that are on each", "bytes_per_parameter"),
        "memory": _MEMORY,
    },
    sources=(_ZERO,),
)
def accelerators_filled(parameters: float, sharded: float, replicated: float, memory: float) -> float:
    """Fewest accelerators that hold the model states, before rounding up."""
    return parameters * sharded / (memory - parameters * replicated)


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
    optimizer: Optimizer, policy: PrecisionPolicy, spec: TransformerSpec | None = None
) -> StateBytes:
    """Bytes per parameter of one copy of the model states under ``optimizer`` and ``policy``.

    Raises ``ValueError`` without a ``spec`` where the optimizer's state depends on the shapes of its tensors.
    """
    return StateBytes(
        parameters=policy.weights.bytes,
        gradients=policy.gradient_bytes,
        master=policy.master_bytes,
        optimizer=mean_state(optimizer, policy, spec),
    )


@dataclass(frozen=True)
class TrainingMemory:
    """The model states of one model on one set of accelerators. Make it with `account`.

    parameters: of the model, a count.  memory: bytes of one accelerator; NaN if unknown.
    spec: the model's shape; None where only its parameters are known.
    Without slots, so that what the other figures build on is worked out once.
    """

    parameters: float
    optimizer: Optimizer
    policy: PrecisionPolicy
    accelerators: int
    memory: float
    sharding: Sharding
    spec: TransformerSpec | None = None

    @cached_property
    def shape(self) -> TransformerSpec:
        """The shape that the optimizer's state is worked out on: the model's own, else that of the nearest dense one.

        Larger and smaller models of these states are taken to be shaped like it.
        """
        return self.spec or nearest_dense(self.parameters).spec

    @property
    def stand_in(self) -> str:
        """The model whose shape stands in for that of this one; empty where none has to."""
        return "" if self.spec or self.optimizer.uniform else nearest_dense(self.parameters).name

    @cached_property
    def per_parameter(self) -> StateBytes:
        """Bytes per parameter of one copy."""
        return states_per_parameter(self.optimizer, self.policy, None if self.optimizer.uniform else self.shape)

    @cached_property
    def stored_per_parameter(self) -> float:
        """Bytes per parameter over all accelerators, copies counted."""
        return stored_per_parameter(**self._stored())

    @property
    def stored(self) -> StateBytes:
        """Bytes of each part over all accelerators, copies counted."""
        one = self.per_parameter
        copies_parameters, copies_gradients, copies_optimizer = self.sharding.copies(self.accelerators)
        return StateBytes(
            parameters=self.parameters * copies_parameters * one.parameters,
            gradients=self.parameters * copies_gradients * one.gradients,
            master=self.parameters * copies_optimizer * one.master,
            optimizer=self.parameters * copies_optimizer * one.optimizer,
        )

    @property
    def total(self) -> float:
        """Bytes of the model states over all accelerators."""
        return state_bytes(self.parameters, self.stored_per_parameter)

    @property
    def capacity(self) -> float:
        """Bytes of memory of all accelerators."""
        return self.accelerators * self.memory

    @property
    def largest(self) -> float:
        """Parameters of the largest model whose states these accelerators hold."""
        return largest_model(self.accelerators, self.memory, self.stored_per_parameter)

    @property
    def spare(self) -> float:
        """Bytes left over all accelerators; negative when they are missing."""
        return spare_bytes(self.accelerators, self.memory, self.parameters, self.stored_per_parameter)

    @property
    def fit(self) -> Fit:
        """Whether the states leave room; "full" means equal to within a byte, or to float64's own precision."""
        if math.isnan(self.spare):
            return "unknown"
        tolerance = max(1.0, 1e-12 * self.capacity)
        if abs(self.spare) < tolerance:
            return "full"
        return "room" if self.spare > 0 else "over"

    @property
    def fewest(self) -> int | None:
        """Fewest accelerators that hold the states; None when no number does, or when the memory is unknown."""
        sharded, replicated = self._split()
        if math.isnan(self.memory) or self.parameters * replicated > self.memory:
            return None
        if sharded == 0:
            return 1
        if self.parameters * replicated == self.memory:
            return None
        filled = accelerators_filled(self.parameters, sharded, replicated, self.memory)
        # One part in 10¹² forgives the division's rounding, so that 40 B × 16 B / 80 GB is 8 and never 9.
        return max(1, math.ceil(filled * (1 - 1e-12)))

    def checkpoint(self, *, with_compute_copy: bool = False) -> float:
        """Bytes of a checkpoint; ``with_compute_copy`` also saves the low-precision weights next to a master copy."""
        return checkpoint_bytes(self.parameters, self._saved_weights(with_compute_copy), self.per_parameter.optimizer)

    def explain(self) -> tuple[Explanation, ...]:
        """Every number above with its formula, values and sources, in the order in which they build on each other."""
        one, stored = self.per_parameter, self.stored_per_parameter
        found = [
            *explain_mean_state(self.optimizer, self.policy, self.shape),
            bytes_per_parameter.explain(**_parts(one)),
            stored_per_parameter.explain(**self._stored()),
            largest_model.explain(accelerators=self.accelerators, memory=self.memory, stored=stored),
            state_bytes.explain(parameters=self.parameters, stored=stored),
            spare_bytes.explain(
                accelerators=self.accelerators, memory=self.memory, parameters=self.parameters, stored=stored
            ),
        ]
        sharded, replicated = self._split()
        if self.fewest is not None and sharded > 0:
            found.append(
                accelerators_filled.explain(
                    parameters=self.parameters, sharded=sharded, replicated=replicated, memory=self.memory
                )
            )
        found.append(
            checkpoint_bytes.explain(
                parameters=self.parameters, weights=self._saved_weights(False), optimizer=one.optimizer
            )
        )
        return tuple(found)

    def explain_largest(self) -> tuple[Explanation, ...]:
        """The steps to the largest model alone."""
        other = (bytes_per_parameter, state_bytes, spare_bytes, accelerators_filled, checkpoint_bytes)
        return tuple(step for step in self.explain() if step.name not in {rule.name for rule in other})

    def _stored(self) -> dict[str, float]:
        names = ("copies_parameters", "copies_gradients", "copies_optimizer")
        copies = self.sharding.copies(self.accelerators)
        return {**_parts(self.per_parameter), **dict(zip(names, copies, strict=True))}

    def _split(self) -> tuple[float, float]:
        """Bytes per parameter of the parts that exist once, and of those that are on each accelerator."""
        one = self.per_parameter
        parts = (
            (self.sharding.parameters, one.parameters),
            (self.sharding.gradients, one.gradients),
            (self.sharding.optimizer, one.master + one.optimizer),
        )
        sharded = sum(size for once, size in parts if once)
        return sharded, one.total - sharded

    def _saved_weights(self, with_compute_copy: bool) -> float:
        if self.policy.master is None:
            return self.policy.weights.bytes
        return self.policy.master.bytes + (self.policy.weights.bytes if with_compute_copy else 0.0)


def _parts(states: StateBytes) -> dict[str, float]:
    return {
        "parameters": states.parameters,
        "gradients": states.gradients,
        "master": states.master,
        "optimizer": states.optimizer,
    }


def account(
    parameters: float,
    optimizer: Optimizer,
    policy: PrecisionPolicy,
    *,
    accelerators: int = 1,
    memory: float,
    sharding: Sharding = SHARDED,
    spec: TransformerSpec | None = None,
) -> TrainingMemory:
    """Account for the model states of a model of ``parameters`` on ``accelerators`` of ``memory`` bytes each.

    spec: the model's shape, for optimizers whose state depends on it; without one, the nearest dense model stands in.
    Raises ``ValueError`` for less than one parameter or accelerator, or memory that is not positive (NaN: unknown).
    """
    if not parameters >= 1:
        raise ValueError(f"a model has at least one parameter, not {parameters!r}")
    if accelerators < 1:
        raise ValueError(f"there must be at least one accelerator, not {accelerators!r}")
    if memory <= 0:
        raise ValueError(f"an accelerator's memory is positive, not {memory!r} bytes")
    return TrainingMemory(parameters, optimizer, policy, accelerators, memory, sharding, spec)
