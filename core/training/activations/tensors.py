"""How layers are written, as far as it decides which tensors forward keeps for backward, and such a tensor.

Counted are tensors that grow with the number of tokens: unique storages, without weights and without what all layers
share (rotary tables). The mean and variance that a norm keeps, a few bytes per token, are left out, as everywhere. A
sliding window changes nothing: flash kernels keep no scores at all, and materialised ones the whole square.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Source
from core.models.spec import TransformerSpec
from core.training.activations.formulas import MEGATRON_MEMORY
from core.training.activations.partly import PartlyTrained
from core.training.layout import LayerModule

LayerKind: TypeAlias = Literal["dense", "experts"]
"""A layer's feed-forward part: one network, or a mixture of experts."""

Part: TypeAlias = Literal["norms", "attention", "router", "feed-forward"]

Split: TypeAlias = float | Literal["sequence"]
"""The most tensor-parallel ranks that divide a tensor: any number, one for each key/value head, or one; or any number
under sequence parallelism alone. Context parallelism divides every tensor, by its tokens."""

Loss: TypeAlias = Literal["separate", "separate, logits kept", "fused", "compiled with the model"]
"""Cross-entropy over logits of the computed format: "separate" holds the log-softmax and two gradients in fp32 when
backward begins (12 bytes per logit, measured on an H100 and an H200 with torch 2.11), and where tensor parallelism
divides the vocabulary a fourth array of fp32 (16 bytes, torch's loss_parallel); the logits are gone then, unless the
program keeps what its model returned (14 bytes per bf16 logit); "fused" overwrites their copy by their gradient, both
in the computed format, as one kernel or a loss compiled by itself does; "compiled with the model" writes it over the
logits (2 bytes per bf16 logit; 2.1 to 3.1 measured on an H100, 6.1 where torch pads an odd vocabulary)."""

LOGITS_KEPT: Loss = "separate, logits kept"
COMPILED_WHOLE: Loss = "compiled with the model"
NOTHING = LayerModule(0)
FP32 = 4

DELTA_CHUNK = 64
"""Tokens of a chunk of the gated delta rule, whose keys' products with each other its kernel keeps
[flash-linear-attention, fla/ops/gated_delta_rule/chunk.py]."""

_TRANSFORMERS = Source(
    "Hugging Face transformers 5.23, measured with torch.autograd.graph.saved_tensors_hooks",
    "modeling_llama.py, modeling_gpt2.py, modeling_mixtral.py",
    "https://github.com/huggingface/transformers",
)
_FLASH = Source("Dao 2023, FlashAttention-2", "section 3.1", "https://arxiv.org/abs/2307.08691")
_LIGER = Source("Hsu et al. 2024, Liger Kernel", url="https://arxiv.org/abs/2410.10989")
_DTENSOR = Source(
    "PyTorch 2.13, torch.distributed.tensor.parallel, measured",
    "SequenceParallel and PrepareModuleInput",
    "https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html",
)
_TORCHTITAN = Source(
    "torchtitan of December 2024",
    "train.py: “compiling loss function causes CUDA errors, turning off for now”",
    "https://github.com/pytorch/torchtitan/blob/ba2469780/train.py",
)
_AUTOCAST = Source(
    "PyTorch 2.13, torch.autocast on transformers 5.23 and native modules, measured with saved_tensors_hooks",
    "one cast for each product that reads the fp32 residual stream",
    "https://docs.pytorch.org/docs/stable/amp.html",
)


@dataclass(frozen=True, slots=True)
class Implementation:
    """How a layer is written, as far as it decides what is kept.

    flash: attention without its square of scores.  written_out: norms, gates and softmax as single operations of a
    framework, each of which keeps what it needs, norms and softmax in fp32.  dropout: on attention weights and on what
    each block adds to the residual stream.
    gathered: vectors of the hidden width that sequence parallelism has whole on every rank in the layer at work,
    whatever is kept: the input of its products, gathered again, and the gradient of it before it is scattered.
    loss: how such software computes cross-entropy, unless one says otherwise.
    weighs_inside: a routed expert weighs its tokens between its products, so that what it gives is not kept.
    regathers: ZeRO-2 and 3 gather weights and reduce gradients for every micro-batch of a pipeline, too.
    ring_gathers: context-parallel ranks gather the keys and values of all at once, as torch does unless it is told
    otherwise [torch/distributed/tensor/experimental/_context_parallel/_attention.py, rotate_method].
    partly: which weights are trained, None where all are.  offloads: what layers keep waits in the host's memory.
    shares_casts: products that read one tensor share its cast under autocast, as where a compiler sees all of them.
    grouped_experts: routed experts are PyTorch's grouped product, which autocast does not know.
    autocasts: under CUDA's autocast, which takes powers in fp32; that of a CPU does not.
    in_fp32: matrix products are in fp32 throughout.
    """

    id: str
    flash: bool
    written_out: bool
    dropout: bool
    meaning: str
    sources: tuple[Source, ...]
    gathered: float = 2.0
    loss: Loss = "separate"
    weighs_inside: bool = False
    regathers: bool = False
    ring_gathers: bool = False
    partly: PartlyTrained | None = None
    offloads: bool = False
    shares_casts: bool = False
    grouped_experts: bool = False
    autocasts: bool = False
    in_fp32: bool = False


MEGATRON_GPT = Implementation(
    id="Megatron GPT",
    flash=False,
    written_out=False,
    dropout=True,
    meaning="The GPT layer of 2022: scores materialised, dropout, 34 + 5as/h bytes per token and width.",
    sources=(MEGATRON_MEMORY.at("section 4"),),
)
HF_EAGER = Implementation(
    id="Hugging Face eager",
    flash=False,
    written_out=True,
    dropout=False,
    meaning="transformers’ own modules, attention materialised, softmax in fp32.",
    sources=(_TRANSFORMERS, _AUTOCAST),
)
HF_SDPA = Implementation(
    id="Hugging Face SDPA",
    flash=True,
    written_out=True,
    dropout=False,
    meaning="transformers’ own modules, attention by PyTorch’s flash kernel.",
    sources=(_TRANSFORMERS, _FLASH, _AUTOCAST),
    grouped_experts=True,
)
FUSED = Implementation(
    id="fused kernels",
    flash=True,
    written_out=False,
    dropout=False,
    meaning="Flash attention, and one kernel each for a norm, for the gate and for the loss: they keep their inputs "
    "only.",
    sources=(_FLASH, _LIGER),
    loss="fused",
)
FUSED_DTENSOR = replace(
    FUSED,
    id="fused kernels, DTensor",
    meaning="The same under PyTorch’s own tensor parallelism: both blocks keep their gathered input, the gradient of "
    "one is there twice, the second time in the order in which it is scattered, and the loss is not fused.",
    sources=(*FUSED.sources, _DTENSOR, _TORCHTITAN),
    gathered=4.0,
    ring_gathers=True,
    loss="separate",
)

IMPLEMENTATIONS: Mapping[str, Implementation] = MappingProxyType(
    {how.id: how for how in (FUSED, HF_SDPA, HF_EAGER, MEGATRON_GPT)}
)
"""The implementations that can be named, from those of today to those of 2022."""


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One tensor that forward keeps for backward.

    elements: per token; where ``per_key``, per token and position it attends to; where ``routed``, per token on a rank
    whose experts get their even share.  each: bytes of one element.  by: the modules whose recomputation drops it.
    kept: the share of its bytes that stays then.
    """

    name: str
    part: Part
    elements: Any
    each: float
    split: Split = math.inf
    by: LayerModule = NOTHING
    kept: float = 0.0
    per_key: bool = False
    routed: bool = False


def written_as_gpt2(spec: TransformerSpec, implementation: Implementation) -> bool:
    """Whether transformers writes layers as GPT-2's: softmax in the compute format, GELU in single steps."""
    return implementation.written_out and spec.position_kind == "learned"


def ways(split: Split, tensor: Any, sequence_parallel: Any) -> Any:
    """Over how many ranks a tensor is spread, of ``tensor`` of them."""
    if split == "sequence":
        return 1 + sequence_parallel * (tensor - 1)
    return 1 if split == 1 else tensor if split == math.inf else np.minimum(tensor, split)
