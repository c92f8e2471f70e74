"""Which tensors the forward pass of one layer keeps for the backward pass, by name, for named implementations.

Counted are tensors that grow with the number of tokens: unique storages, without weights and without what all layers
share (rotary tables). The mean and variance that a norm keeps, a few bytes per token, are left out, as everywhere. A
sliding window changes nothing: flash kernels keep no scores at all, and materialised ones the whole square.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Source
from core.models.mixer import Mixer
from core.models.spec import Experts, LatentAttention, TransformerSpec, modelled
from core.training.activations.formulas import MEGATRON_MEMORY
from core.training.activations.partly import PartlyTrained
from core.training.layout import LayerModule

LayerKind: TypeAlias = Literal["dense", "experts"]
"""A layer's feed-forward part: one network, or a mixture of experts."""

Part: TypeAlias = Literal["norms", "attention", "router", "feed-forward"]

Split: TypeAlias = Literal["tensor", "key/value heads", "sequence", "whole"]
"""What divides a tensor over the tensor-parallel ranks: their number; their number, but one head stays whole; their
number only under sequence parallelism; nothing. Context parallelism divides every tensor, by its tokens."""

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
_INDEX = 8
_MASK = 1

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
    split: Split = "tensor"
    by: LayerModule = NOTHING
    kept: float = 0.0
    per_key: bool = False
    routed: bool = False


def written_as_gpt2(spec: TransformerSpec, implementation: Implementation) -> bool:
    """Whether transformers writes layers as GPT-2's: softmax in the compute format, GELU in single steps."""
    return implementation.written_out and spec.position_kind == "learned"


def ways(split: Split, tensor: Any, sequence_parallel: Any, kv_heads: Any) -> Any:
    """Over how many ranks a tensor is spread, of ``tensor`` of them."""
    if split in ("tensor", "whole"):
        return tensor if split == "tensor" else 1
    return 1 + sequence_parallel * (tensor - 1) if split == "sequence" else np.minimum(tensor, kv_heads)


def saved_tensors(
    spec: TransformerSpec,
    implementation: Implementation,
    kind: LayerKind = "dense",
    *,
    width: int = 2,
    residual: int | None = None,
) -> tuple[SavedTensor, ...]:
    """The tensors that one layer of ``spec`` keeps, in the order in which they are made.

    kind: "experts" for a layer with a mixture of experts.  width: bytes of an element of the format computed in.
    residual: of the residual stream; wider than that under autocast, where products cast what they read. None: as wide.
    """
    tensors = tuple(_Layer(modelled(spec), implementation, width, residual or width).tensors(kind))
    if (partly := implementation.partly) is None:
        return tensors
    added = (
        SavedTensor(name, "feed-forward" if _inside(target) else "attention", elements, each, by=_inside(target))
        for name, target, elements, each in partly.adapter_tensors(width, kind == "experts")
    )
    return (*_left(partly, tensors), *added)


def _inside(target: str) -> LayerModule:
    """The module of the feed-forward part that a class of matrices is in; none of attention's."""
    if target.startswith(("expert ", "shared experts", "router")):
        return LayerModule.MIXTURE
    return LayerModule.NETWORK if target.startswith("feed-forward") else NOTHING


def final_tensors(
    spec: TransformerSpec, implementation: Implementation, *, width: int = 2, residual: int | None = None
) -> tuple[SavedTensor, ...]:
    """What stands between the last layer and the logits: the final norm, whose output is the head's input."""
    result = _Layer(spec, implementation, width, residual or width)
    tensors = tuple(result.norm("final norm", spec.hidden, "norms", "sequence"))
    return tensors if implementation.partly is None else _left(implementation.partly, tensors)


def _left(partly: PartlyTrained, tensors: tuple[SavedTensor, ...]) -> tuple[SavedTensor, ...]:
    """What stays of tensors where only some weights are trained."""
    # Without a flash kernel only the next product reads what attention gives.
    square = any(tensor.per_key for tensor in tensors)
    scaled = (_scaled(tensor, partly.kept_share(tensor.name, square=square)) for tensor in tensors)
    return tuple(tensor for tensor in scaled if tensor.elements)


def _scaled(tensor: SavedTensor, share: float) -> SavedTensor:
    """What a mean layer has of a tensor that only this share of the layers keep."""
    return replace(tensor, elements=tensor.elements * share)


@dataclass(frozen=True, slots=True)
class _Layer:
    spec: TransformerSpec
    how: Implementation
    width: int
    residual: int

    @property
    def _autocast(self) -> bool:
        return self.residual > self.width

    @property
    def _gpt2(self) -> bool:
        return written_as_gpt2(self.spec, self.how)

    def _upcasts(self) -> bool:
        """Whether norms are RMSNorms in Python: a copy in fp32, and the normed value before the gain."""
        return self.how.written_out and self.spec.norm == "rmsnorm"

    def tensors(self, kind: LayerKind) -> Iterator[SavedTensor]:
        s = self.spec
        attended, fed = self._readers(kind)
        both = attended + fed if s.parallel_blocks and s.norms_per_layer < 2 else attended
        if s.norms_per_layer:
            yield from self.norm("norm 1", s.hidden, "norms", "sequence", readers=both)
        else:
            yield self._read("attention input", "attention", s.hidden, "sequence", both)
        attention = (*(self._latent_attention(s.latent) if s.latent else self._attention()), *self._core())
        yield from (_scaled(tensor, s.attention_share) for tensor in attention) if s.mixer else attention
        if s.mixer:
            yield from (_scaled(tensor, 1 - s.attention_share) for tensor in self._state(s.mixer))
        if kind == "dense" and not s.ffn:
            return
        if s.norms_per_layer > 1:
            shared = s.parallel_blocks and not self._upcasts()
            yield from self.norm("norm 2", s.hidden, "norms", "sequence", fed=not shared, readers=fed)
        elif not s.parallel_blocks:
            yield self._read("feed-forward input", "feed-forward", s.hidden, "sequence", fed)
        for i in range(2, s.norms_per_layer):
            yield from self.norm(f"norm {i + 1}", s.hidden, "norms", "sequence", readers=0, inside=True)
        yield from self._experts(s.experts) if s.experts and kind == "experts" else self._network("", s.ffn)
        if self.how.dropout:
            yield SavedTensor("feed-forward dropout mask", "feed-forward", s.hidden, _MASK, "sequence")

    def _plain(
        self, name: str, part: Part, elements: Any, split: Split = "tensor", by: LayerModule = NOTHING
    ) -> SavedTensor:
        return SavedTensor(name, part, elements, self.width, split, by)

    def _readers(self, kind: LayerKind) -> tuple[int, int]:
        """Products that read what attention begins with, and what the feed-forward part begins with."""
        s = self.spec
        attended = 1 if self._gpt2 else 2 if s.latent else 3
        network = 2 if s.glu else 1
        if s.experts is None or kind == "dense":
            return attended, network
        return attended, 1 + (network + s.experts.shared_gate if s.experts.shared else 0)

    def _read(
        self, name: str, part: Part, elements: Any, split: Split, readers: int, by: LayerModule = NOTHING
    ) -> SavedTensor:
        """What ``readers`` products read: one tensor; under autocast a cast for each of them, unless they share it."""
        if self._autocast and readers > 1 and not self.how.shares_casts:
            name, elements = f"{name}, a cast for each of {readers} products", elements * readers
        return SavedTensor(name, part, elements, self.width, split, by)

    def norm(
        self,
        name: str,
        elements: Any,
        part: Part,
        split: Split,
        *,
        fed: bool = True,
        readers: int = 1,
        inside: bool = False,
    ) -> Iterator[SavedTensor]:
        """A norm: its input, and its output where matrices read it.

        fed: its input is not kept already.  readers: matrices that read the output; the residual stream keeps nothing.
        inside: its input is not the residual stream, but what a product made.
        """
        given = self.width if inside else self.residual
        if self._upcasts():
            # A norm that is done again starts from its input as it was given.
            yield SavedTensor(f"{name} input in fp32", part, elements, FP32, split, LayerModule.NORMS, given / FP32)
            if self.spec.norm_vectors:
                yield SavedTensor(f"{name} before the gain", part, elements, given, split, LayerModule.NORMS)
        elif fed:
            yield SavedTensor(f"{name} input", part, elements, given, split)
        if readers:
            yield self._read(f"{name} output", part, elements, split, readers, LayerModule.NORMS)

    def _attention(self) -> Iterator[SavedTensor]:
        s = self.spec
        queries, keys = s.heads * s.head_dim, s.kv_heads * s.head_dim
        split: Split = "tensor" if s.kv_heads == s.heads else "key/value heads"
        if s.qk_norm != "none":
            yield from self.norm("query norm", queries, "attention", "tensor", readers=0, inside=True)
            yield from self.norm("key norm", keys, "attention", split, readers=0, inside=True)
        yield self._plain("queries", "attention", queries)
        yield self._plain("keys", "attention", keys, split)
        yield self._plain("values", "attention", keys, split)
        if not self.how.flash and s.kv_heads != s.heads:
            repeated = 2 * (s.heads - s.kv_heads) * s.head_dim
            yield SavedTensor("keys and values, repeated", "attention", repeated, self.width, by=LayerModule.CORE)

    def _latent_attention(self, low: LatentAttention) -> Iterator[SavedTensor]:
        s = self.spec
        if low.query_rank:
            yield from self.norm("query latent norm", low.query_rank, "attention", "sequence", inside=True)
        yield from self.norm("key/value latent norm", low.kv_rank, "attention", "sequence", inside=True)
        up = LayerModule.UP_PROJECTION
        yield self._plain("queries", "attention", s.heads * s.score_dim, by=up)
        yield self._plain("keys", "attention", s.heads * s.score_dim, by=up)
        # Written out, values are a view of a product that also holds the keys' unrotated part, and keep it alive.
        beside = low.nope_dim if self.how.written_out and self.how.flash else 0
        yield self._plain("values", "attention", s.heads * (s.value_dim + beside), by=up)

    def _core(self) -> Iterator[SavedTensor]:
        s, width = self.spec, self.width
        if self.how.flash:
            yield SavedTensor("log-sum-exp", "attention", s.heads, FP32, by=LayerModule.CORE)
        else:
            # GPT-2's softmax is in the format of its scores, which autocast's mask turns into fp32.
            exact = self.how.written_out and (self._autocast or not self._gpt2) and width < FP32
            if exact:
                yield SavedTensor("softmax in fp32", "attention", s.heads, FP32, by=LayerModule.CORE, per_key=True)
            yield SavedTensor("softmax", "attention", s.heads, width, by=LayerModule.CORE, per_key=True)
            if self.how.dropout:
                yield SavedTensor(
                    "weights’ dropout mask", "attention", s.heads, _MASK, by=LayerModule.CORE, per_key=True
                )
                yield SavedTensor(
                    "weights after dropout", "attention", s.heads, width, by=LayerModule.CORE, per_key=True
                )
        if self.how.flash and self.how.written_out and s.latent:
            # Queries joined from two parts lie head by head, and so does the output, which is then copied token by
            # token for the next product.
            yield self._plain("attention output by head", "attention", s.heads * s.value_dim, by=LayerModule.CORE)
        yield self._plain("attention output", "attention", s.heads * s.value_dim)
        if s.attention_gate:
            yield self._plain("attention gate", "attention", s.heads * s.head_dim)
            yield self._plain("gated output", "attention", s.heads * s.head_dim)
        if self.how.dropout:
            yield SavedTensor("attention dropout mask", "attention", s.hidden, _MASK, "sequence")

    def _state(self, mixer: Mixer) -> Iterator[SavedTensor]:
        """Of a layer with a state: its kernels keep what they read, and work the states out again chunk by chunk."""
        made = 2 * mixer.inner + mixer.pairs + mixer.rates
        yield self._plain("state: first projection", "attention", made)
        if mixer.kind == "delta" or self.how.written_out:
            yield self._plain("state: convolution", "attention", mixer.inner + mixer.pairs)
        if mixer.kind == "delta":
            yield SavedTensor("state: products of keys in a chunk", "attention", DELTA_CHUNK * mixer.heads, self.width)
        yield self._plain("state: output", "attention", mixer.inner)
        yield SavedTensor("state: gated output", "attention", mixer.inner, self.width, by=LayerModule.ACTIVATION)

    def _network(self, owner: str, ffn: Any, *, routed: bool = False) -> Iterator[SavedTensor]:
        """The hidden part of a feed-forward network, ``ffn`` wide."""
        width, inside = self._grouped if routed else self.width, LayerModule.MIXTURE if owner else LayerModule.NETWORK

        def made(name: str, elements: Any, by: LayerModule = NOTHING) -> SavedTensor:
            return SavedTensor(f"{owner}{name}", "feed-forward", elements, width, "tensor", inside | by, routed=routed)

        if self.spec.glu:
            yield made("gate", ffn)
            yield made("up", ffn)
            if self.how.written_out:
                yield made("silu(gate)", ffn, LayerModule.ACTIVATION)
            yield made("product", ffn, LayerModule.ACTIVATION)
        else:
            steps = self._gpt2
            # The third power is taken of a cast, and all that follows from it is as wide.
            wide = FP32 if steps and self.how.autocasts else width
            yield replace(made("activation input", ffn, LayerModule.ACTIVATION), each=wide, kept=width / wide)
            if steps:
                yield made("half of GELU’s input", ffn, LayerModule.ACTIVATION)
                yield replace(made("steps of GELU", 2 * ffn, LayerModule.ACTIVATION), each=wide)
            yield made("activation output", ffn, LayerModule.ACTIVATION)

    @property
    def _grouped(self) -> int:
        """Bytes of an element in routed experts: autocast leaves PyTorch's grouped product in fp32."""
        return self.residual if self.how.grouped_experts else self.width

    def _experts(self, experts: Experts) -> Iterator[SavedTensor]:
        hidden, width, chosen, by = self.spec.hidden, self._grouped, experts.per_token, LayerModule.MIXTURE
        yield SavedTensor("router probabilities", "router", experts.count, FP32, "sequence", by)
        yield SavedTensor("weights of the chosen experts", "router", chosen, FP32, "sequence", by)
        yield SavedTensor("chosen experts", "router", chosen, _INDEX, "sequence", by)
        yield SavedTensor("token order", "router", chosen, _INDEX, "sequence", by, routed=True)
        yield SavedTensor("expert inputs", "feed-forward", chosen * hidden, width, "sequence", by, routed=True)
        yield from self._network("experts’ ", chosen * experts.width, routed=True)
        if not self.how.weighs_inside:
            yield SavedTensor("expert outputs", "feed-forward", chosen * hidden, width, "sequence", by, routed=True)
        if self.how.written_out and not self.how.grouped_experts:
            each = self.residual
            yield SavedTensor("weighted outputs", "feed-forward", chosen * hidden, each, "sequence", by, routed=True)
        if experts.shared:
            each = experts.shared_width or experts.width
            yield from self._network("shared experts’ ", experts.shared * each)
        if experts.shared_gate:
            yield self._plain("shared experts’ output", "feed-forward", hidden, "sequence", by)
