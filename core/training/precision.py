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
FP8 = StorageType("fp8", 1)
BLOCKS_8_BIT = StorageType("8-bit blocks", 1 + 4 / 256)
BLOCKS_4_BIT = StorageType("4-bit blocks", 0.5 + 4 / 128)

STORAGE_TYPES: Mapping[str, StorageType] = MappingProxyType(
    {
        result.name: result
        for result in (
            *(FP32, BF16, FP16, FP8, BLOCKS_8_BIT, BLOCKS_4_BIT),
            StorageType("uint8", 1),
            StorageType("uint4", 0.5),
        )
    }
)
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

    @property
    def fp32_states(self) -> bool:
        """Whether the optimizer keeps all its own tensors in fp32."""
        return all(selected is FP32 for selected in (self.states, *dict(self.special_states).values()))

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
_DEEPSEEK_FP8 = DEEPSEEK_V3.at("sections 3.3.1 and 3.3.3")
_PLAYBOOK = Source(
    "Hugging Face 2025, The Ultra-Scale Playbook",
    "memory for weights, gradients and optimizer states",
    "https://huggingface.co/spaces/nanotron/ultrascale-playbook",
)
_GOPHER = Source("Rae et al. 2021, Gopher", "section 3.1", "https://arxiv.org/abs/2112.11446")
_TORCHAO = Source("torchao, torchao.optim", "bf16_stochastic_round", "https://github.com/pytorch/ao")
_MS_AMP = Source("Peng et al. 2023, FP8-LM (MS-AMP)", "section 2.2", "https://arxiv.org/abs/2310.18313")
_8_BIT = Source("Dettmers et al. 2021, 8-bit Optimizers", "section 2", "https://arxiv.org/abs/2110.02861")
_4_BIT = Source("Li et al. 2023, Optimizers with 4-bit States", "section 3", "https://arxiv.org/abs/2309.01507")
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
                note="PyTorch AMP: each product casts its input and its weights to bf16 and keeps both casts for "
                "backward, 2 B/parameter more while a step runs; the residual stream stays fp32. FSDP’s own mixed "
                "precision casts once, as it gathers: choose “mixed bf16, fp32 master”, as many bytes.",
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
            PrecisionPolicy(
                id="mixed bf16, fp32 master, fp32 accumulation",
                weights=BF16,
                gradients=BF16,
                master=FP32,
                states=FP32,
                accumulation=FP32,
                phrase="in bf16 with fp32 master weights and an fp32 buffer for gradients",
                note="Gradients of micro-batches are added up in an fp32 buffer beside the bf16 ones: 20 under AdamW.",
                sources=(_PLAYBOOK,),
            ),
            PrecisionPolicy(
                id="bf16, stochastic rounding, fp32 states",
                weights=BF16,
                gradients=BF16,
                master=None,
                states=FP32,
                phrase="in bf16 with stochastic rounding and fp32 optimizer state",
                note="No master copy: an update is rounded up or down by chance, so that small ones count on average. "
                "12 under AdamW.",
                sources=(_GOPHER,),
            ),
            PrecisionPolicy(
                id="bf16, stochastic rounding",
                weights=BF16,
                gradients=BF16,
                master=None,
                states=BF16,
                phrase="in bf16 with stochastic rounding",
                note="Neither a master copy nor precise moments: 8 under AdamW, as bf16 throughout, but small updates "
                "are not lost on average.",
                sources=(_TORCHAO, _GOPHER),
            ),
            PrecisionPolicy(
                id="fp8 matmuls, fp32 master, bf16 states",
                weights=BF16,
                gradients=FP32,
                master=FP32,
                states=BF16,
                autocast=FP8,
                phrase="in bf16 with fp8 matmuls, fp32 master weights and gradients and bf16 optimizer state",
                note="DeepSeek-V3’s recipe. fp8 speeds the products up and halves what linear layers save; the fp8 "
                "copies of the weights are temporary and not counted, up to 1 B/parameter while a step runs.",
                sources=(_DEEPSEEK_FP8,),
            ),
            PrecisionPolicy(
                id="fp8 weights and gradients, fp16 master",
                weights=FP8,
                gradients=FP8,
                master=FP16,
                states=FP16,
                special_states=(("exp_avg", FP8),),
                saved=BF16,
                phrase="in fp8 with scaled fp16 master weights and an fp8 first moment",
                note="MS-AMP. Its paper counts 6 for master weights, gradients and Adam’s moments (2 + 1 + 1 + 2); "
                "the fp8 weights that forward reads make it 7. One scale for each tensor is not counted.",
                sources=(_MS_AMP,),
            ),
            PrecisionPolicy(
                id="mixed bf16, fp32 master, 8-bit states",
                weights=BF16,
                gradients=BF16,
                master=FP32,
                states=BLOCKS_8_BIT,
                phrase="in bf16 with fp32 master weights and 8-bit optimizer state",
                note="Each state in 8 bits with an fp32 scale for 256 of them, in every tensor; libraries leave small "
                "ones in fp32.",
                sources=(_8_BIT,),
            ),
            PrecisionPolicy(
                id="mixed bf16, fp32 master, 4-bit states",
                weights=BF16,
                gradients=BF16,
                master=FP32,
                states=BLOCKS_4_BIT,
                phrase="in bf16 with fp32 master weights and 4-bit optimizer state",
                note="Each state in 4 bits with an fp32 scale for 128 of them, in every tensor; libraries leave small "
                "ones in fp32.",
                sources=(_4_BIT,),
            ),
        )
    }
)
"""The named policies, in the order in which the product lists them."""


USUAL_POLICY = "mixed bf16, fp32 master"
"""The policy that is meant where none is named."""


def find_policy(name: str) -> PrecisionPolicy:
    """The policy with the id ``name``. Raises ``KeyError`` that lists the ids when there is none."""
    if name not in POLICIES:
        raise KeyError(f"no precision policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]
