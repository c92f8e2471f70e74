"""Precision policies: in which type each part of the model states is stored, so that bytes are a sum one can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.formula import Source
from core.sources import DEEPSEEK_V3, MEGATRON_OPTIMIZER, ZERO


@dataclass(frozen=True, slots=True)
class StorageType:
    """A number format as memory sees it: its name and its bytes per element."""

    name: str
    bytes: float


FP32 = StorageType("fp32", 4)
BF16 = StorageType("bf16", 2)
FP16 = StorageType("fp16", 2)


@dataclass(frozen=True, slots=True)
class PrecisionPolicy:
    """The storage type of every model state that lasts from one step to the next.

    weights: what forward and backward read.
    gradients: what the backward pass leaves behind for the optimizer.
    master: the precise copy that the optimizer updates; None where it updates the weights themselves.
    states: the optimizer's own tensors, unless ``special_states`` names another type for one of them.
    gradient_copy: a second, precise gradient next to the first; None where there is one gradient only. It lives
        and is sharded with the master weights, and is counted with them.
    phrase: the policy inside a sentence, after "under AdamW".
    autocast: what matmuls multiply in where that is not the type of the weights.
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

    @property
    def multiplies(self) -> StorageType:
        """What the matmuls of forward and backward multiply in."""
        return self.autocast or self.weights

    @property
    def fp32_states(self) -> bool:
        """Whether the optimizer keeps all its own tensors in fp32."""
        return all(kept is FP32 for kept in (self.states, *dict(self.special_states).values()))

    def state(self, name: str) -> StorageType:
        """The type of the optimizer state ``name`` (torch's name, such as ``exp_avg``)."""
        return dict(self.special_states).get(name, self.states)

    @property
    def master_bytes(self) -> float:
        """Bytes per parameter of the precise copies: master weights, and the gradient copy where there is one."""
        return sum(copy.bytes for copy in (self.master, self.gradient_copy) if copy is not None)


_ZERO = ZERO.at("section 3.1")
_MIXED = Source("Micikevicius et al. 2017, Mixed Precision Training", "section 3.1", "https://arxiv.org/abs/1710.03740")
_AMP = Source("PyTorch, Automatic Mixed Precision", "torch.autocast", "https://docs.pytorch.org/docs/stable/amp.html")
_DEEPSEEK = DEEPSEEK_V3.at("section 3.3.3")
_TORCH = Source(
    "PyTorch, torch.optim",
    "states take the type of the parameter; measured on torch 2.13",
    "https://docs.pytorch.org/docs/stable/optim.html",
)

POLICIES: Mapping[str, PrecisionPolicy] = MappingProxyType(
    {
        policy.id: policy
        for policy in (
            PrecisionPolicy(
                id="fp32",
                weights=FP32,
                gradients=FP32,
                master=None,
                states=FP32,
                phrase="in fp32",
                note="Everything in single precision.",
                sources=(_TORCH,),
            ),
            PrecisionPolicy(
                id="fp32, bf16 autocast",
                weights=FP32,
                gradients=FP32,
                master=None,
                states=FP32,
                phrase="in fp32 with bf16 autocast",
                note="PyTorch AMP: only matmul inputs and activations are bf16. The bf16 copies of the weights are "
                "temporary and not counted, up to 2 B/parameter while a step runs.",
                sources=(_AMP,),
                autocast=BF16,
            ),
            PrecisionPolicy(
                id="mixed bf16, fp32 master",
                weights=BF16,
                gradients=BF16,
                master=FP32,
                states=FP32,
                phrase="in bf16 with fp32 master weights",
                note="The ZeRO paper’s count (there with fp16).",
                sources=(_ZERO, _MIXED),
            ),
            PrecisionPolicy(
                id="mixed bf16, fp32 master, fp32 gradients",
                weights=BF16,
                gradients=FP32,
                master=FP32,
                states=FP32,
                phrase="in bf16 with fp32 master weights and gradients",
                note="Megatron’s usual setting: gradients are accumulated in fp32.",
                sources=(MEGATRON_OPTIMIZER,),
            ),
            PrecisionPolicy(
                id="mixed fp16, fp32 copies of both",
                weights=FP16,
                gradients=FP16,
                master=FP32,
                states=FP32,
                gradient_copy=FP32,
                phrase="in fp16 with fp32 copies of weights and gradients",
                note="Megatron with fp16 gradients: an fp32 copy of weights and of gradients, both counted as master.",
                sources=(MEGATRON_OPTIMIZER,),
            ),
            PrecisionPolicy(
                id="mixed bf16, fp32 master, bf16 states",
                weights=BF16,
                gradients=FP32,
                master=FP32,
                states=BF16,
                phrase="in bf16 with fp32 master weights and gradients and bf16 optimizer state",
                note="Moments in bf16 next to fp32 master weights and gradients, as DeepSeek-V3 keeps them.",
                sources=(_DEEPSEEK,),
            ),
            PrecisionPolicy(
                id="bf16 throughout",
                weights=BF16,
                gradients=BF16,
                master=None,
                states=BF16,
                phrase="in bf16 throughout",
                note="No precise copy at all: small updates are lost to rounding.",
                sources=(_TORCH,),
            ),
        )
    }
)
"""The named policies, in the order in which the product lists them."""


def find_policy(name: str) -> PrecisionPolicy:
    """The policy with the id ``name``. Raises ``KeyError`` that lists the ids when there is none."""
    if name not in POLICIES:
        raise KeyError(f"no precision policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]
