"""A fine-tuning plan as its training programs need it: what is trained, how it is stored, and what each step takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.formula import Source
from core.training.trained import Method

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
LINEAR = (*ATTENTION, *FEED_FORWARD)
"""Matrices of a layer by the names that Hugging Face gives them in models built as Llama is."""

_NAMES = ("GPTNeoX", "OPT", "Bloom", "Falcon", "Mpt", "Phi", "Phi3", "GPTJ", "Dbrx", "Glm", "Glm4", "Starcoder2")

FOREIGN = frozenset(f"{name}ForCausalLM" for name in _NAMES) | {"GPT2LMHeadModel"}
"""Classes whose matrices have other names, fused ones among them."""

ALL_LINEAR = "all-linear"
"""What PEFT takes for every linear layer but the head."""

DROPOUT = 0.05
"""The rate that is written where a plan has dropout, whose bytes no rate changes."""


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What a fine-tuning program is told.

    model: name in the catalogue, empty where it has none. base: the model's name on Hugging Face, empty where unknown.
    targets: matrices that get adapters. dropout: of what adapters read. foreign: transformers calls the model's
    matrices otherwise. stacked: it holds routed experts as one tensor, which is no linear layer. head, norms: embedding
    and head, and norms and biases, are trained as they are beside adapters. biases: whether the model has any. last:
    layers from the top that are trained. patterns: of names of trained tensors. frozen: how the rest is stored, by name
    of `core.training.trained.FROZEN`. stored: the type of trained weights, autocast where products are in a narrower
    one. optimizer: by name, as `core.training.optimizers` has it. packed: several examples in one sequence. others:
    what of the layout no program has a setting for. offload: of states, as a layout has it; activations: those that are
    kept for backward. chunks: of the loss.
    """

    model: str = ""
    base: str = ""
    layers: int = 1
    trained: Method = "everything"
    rank: int = 16
    alpha: float = 32
    targets: tuple[str, ...] = LINEAR
    dropout: float = 0.0
    foreign: bool = False
    stacked: bool = False
    dora: bool = False
    head: bool = False
    norms: bool = False
    biases: bool = False
    last: int = 0
    patterns: tuple[str, ...] = ()
    frozen: str = "bf16"
    stored: Literal["bf16", "fp32"] = "bf16"
    autocast: bool = False
    optimizer: str = "AdamW"
    paged: bool = False
    in_backward: bool = False
    seq_len: int = 4096
    packed: bool = False
    micro_batch: int = 1
    accumulated: int = 1
    data: int = 1
    zero: int = 0
    tensor: int = 1
    others: tuple[str, ...] = ()
    offload: int = 0
    recompute: bool = True
    activations: bool = False
    chunks: int = 1

    @property
    def accelerators(self) -> int:
        """How many there are."""
        return self.data * self.tensor

    @property
    def four_bits(self) -> bool:
        """Whether frozen weights are in NF4."""
        return self.frozen.startswith("nf4")

    @property
    def scaled(self) -> float | int:
        """Alpha, as a whole number where it is one."""
        return int(self.alpha) if float(self.alpha).is_integer() else self.alpha

    @property
    def computed(self) -> Literal["bf16", "fp32"]:
        """The type in which a program loads the weights: that of the frozen ones under adapters."""
        return ("fp32" if self.frozen == "fp32" else "bf16") if self.adapters else self.stored

    @property
    def adapters(self) -> bool:
        """Whether adapters are trained."""
        return self.trained == "adapters"


@dataclass(frozen=True, slots=True)
class FineTuningLaunch:
    """Settings of one program; empty where it cannot train this. notes: what they leave out, or do otherwise."""

    system: str
    language: Literal["bash", "yaml", "python"]
    text: str
    notes: tuple[str, ...]
    source: Source
