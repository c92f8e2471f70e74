"""Precision policies: in which type each part of the model states is stored, so that bytes are a sum one can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from core.formula import Source, read_sources
from core.rows import read_record, read_rows


@dataclass(frozen=True, slots=True)
class StorageType:
    """A number format as memory sees it: its name and its bytes per element."""

    name: str
    bytes: float


FP32 = StorageType("fp32", 4)
BF16 = StorageType("bf16", 2)
FP16 = StorageType("fp16", 2)
FP8 = StorageType("fp8", 1)
BLOCKS_8_BIT = StorageType("8-bit blocks", 1 + 4 / 256)
BLOCKS_4_BIT = StorageType("4-bit blocks", 0.5 + 4 / 128)

_TYPES = (FP32, BF16, FP16, FP8, BLOCKS_8_BIT, BLOCKS_4_BIT, StorageType("uint8", 1), StorageType("uint4", 0.5))
STORAGE_TYPES: Mapping[str, StorageType] = MappingProxyType({one.name: one for one in _TYPES})
"""Every storage type by name. Blocks have an fp32 scale each: one for 256 elements of 8 bits, for 128 of 4 bits."""


@dataclass(frozen=True, slots=True)
class PrecisionPolicy:
    """The storage type of every model state that lasts from one step to the next.

    weights: what forward and backward read.
    gradients: what the backward pass leaves behind for the optimizer.
    master: the precise copy that the optimizer updates; None where it updates the weights themselves.
    states: the optimizer's own tensors, unless ``special_states`` names another type for one of them.
    gradient_copy: a second, precise gradient next to the first; None where there is one gradient only. It lives
        and is sharded with the master weights, and is counted with them.
    accumulation: a buffer in which the gradients of micro-batches are added up, next to the gradients and sharded as
        they are; None where they are added up in place.
    phrase: the policy inside a sentence, after "under AdamW".
    short: its name where there is little room.
    autocast: what matmuls multiply in where that is not the type of the weights.
    saved: what most activations are saved in for the backward pass, where that is not what matmuls multiply in.
    note: what the policy is for, or who trains with it.
    """

    id: str
    weights: StorageType
    gradients: StorageType
    master: StorageType | None
    states: StorageType
    phrase: str
    note: str
    sources: tuple[Source, ...]
    gradient_copy: StorageType | None = None
    special_states: tuple[tuple[str, StorageType], ...] = ()
    autocast: StorageType | None = None
    accumulation: StorageType | None = None
    saved: StorageType | None = None
    short: str = ""

    @property
    def multiplies(self) -> StorageType:
        """What the matmuls of forward and backward multiply in."""
        return self.autocast or self.weights

    @property
    def activations(self) -> StorageType:
        """What most activations are saved in between forward and backward."""
        return self.saved or self.multiplies

    @property
    def autocasts(self) -> bool:
        """Whether products read fp32 tensors through casts to a narrower type, weights too, as torch.autocast does."""
        return self.weights is FP32 and self.multiplies.bytes < FP32.bytes and self.saved is None

    @property
    def residual(self) -> StorageType:
        """What the residual stream is in: fp32 under autocast, which casts inputs of products and nothing else."""
        return self.weights if self.autocasts else self.activations

    @property
    def new_gradient_bytes(self) -> float:
        """Bytes per parameter of gradients that each step makes anew.

        Those in fp32 beside narrower weights, and what adds them up, are buffers that last from step to step.
        """
        return 0.0 if self.gradients is FP32 and self.weights is not FP32 else self.gradients.bytes

    @property
    def gradient_bytes(self) -> float:
        """Bytes per parameter of the gradients and of the buffer they are added up in, where there is one."""
        return self.gradients.bytes + (self.accumulation.bytes if self.accumulation else 0.0)

    def state(self, name: str) -> StorageType:
        """The type of the optimizer state ``name`` (torch's name, such as ``exp_avg``)."""
        return dict(self.special_states).get(name, self.states)

    @property
    def master_bytes(self) -> float:
        """Bytes per parameter of the precise copies: master weights, and the gradient copy where there is one."""
        return sum(copy.bytes for copy in (self.master, self.gradient_copy) if copy is not None)


_STORED = ("weights", "gradients", "master", "states", "gradient_copy", "autocast", "accumulation", "saved")
"""Fields that are storage types."""


def _read(row: Mapping[str, str]) -> PrecisionPolicy:
    special = (part.split(" = ") for part in row["special_states"].split("; ") if part)
    known: dict[str, Any] = {name: STORAGE_TYPES[row[name]] if row[name] else None for name in _STORED}
    known |= {"sources": read_sources(row["sources"]), "short": row["short"] or row["id"]}
    known["special_states"] = tuple((name, STORAGE_TYPES[stored]) for name, stored in special)
    return read_record(PrecisionPolicy, row, **known)


POLICIES: Mapping[str, PrecisionPolicy] = MappingProxyType(
    {row["id"]: _read(row) for row in read_rows("precision_policies")}
)
"""The policies of ``assets/data/precision_policies.csv``, in the order in which the product lists them."""


USUAL_POLICY = "mixed bf16, fp32 master"
"""The policy that is meant where none is named."""


def find_policy(name: str) -> PrecisionPolicy:
    """The policy with the id ``name``. Raises ``KeyError`` that lists the ids when there is none."""
    if name not in POLICIES:
        raise KeyError(f"no precision policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]
