"""The tensors that a layer saves for backward, by how it is implemented, and what of it is trained.

The gradient flows through frozen weights, so what nonlinear operations keep stays; what only the gradient of a weight
reads goes with it. Measured on torch 2.13 with saved_tensors_hooks.

Counted are tensors that grow with the number of tokens: unique storages, without weights and without what all layers
share (rotary tables). The mean and variance that a norm keeps, a few bytes per token, are left out, as everywhere. A
sliding window changes nothing: flash kernels keep no scores at all, and materialised ones the whole square.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from core.formula import Source, Symbol, formula, read_sources
from core.models.spec import TransformerSpec
from core.models.symbols import VOCAB, count
from core.rows import read_record, read_rows
from core.sources import OWN_CONSTRUCTION
from core.training.layout import LayerModule

MEGATRON_MEMORY = Source(
    "Korthikanti et al. 2022, Reducing Activation Recomputation", url="https://arxiv.org/abs/2205.05198"
)
_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM on GPU Clusters", url="https://arxiv.org/abs/2104.04473")
_TORCHTITAN_SOURCE = Source(
    "torchtitan, activation_checkpoint.py",
    "per-operation selective checkpointing",
    "https://github.com/pytorch/torchtitan/blob/main/torchtitan/distributed/activation_checkpoint.py",
)

_TOKENS = count("T", "tokens of a micro-batch on one rank")
_WAYS = count("t", "ranks that it is spread over")
_STAGES = count("p", "pipeline stages")
_CHUNKS = count("v", "model chunks on each stage")
_STAGE = count("i", "place of the stage, the first one 0")
_IN_FLIGHT = Symbol("r", "micro-batches whose activations a stage holds", "number")
_SAVED = Symbol("A", "bytes saved for backward", "bytes")


@formula(
    r"\frac{\v{micro_batch} \cdot \v{seq_len}}{\v{context}}",
    result=_TOKENS,
    symbols={
        "micro_batch": count("b", "sequences of a micro-batch"),
        "seq_len": count("s", "sequence length"),
        "context": count("c", "context-parallel ranks"),
    },
    sources=(MEGATRON_MEMORY.at("section 3"), OWN_CONSTRUCTION),
)
def rank_tokens(micro_batch: float, seq_len: float, context: float) -> float:
    """Tokens that one rank works on at a time."""
    return micro_batch * seq_len / context


@formula(
    r"\frac{\v{tokens} \cdot \v{elements} \cdot \v{each}}{\v{spread}}",
    result=_SAVED,
    symbols={
        "tokens": _TOKENS,
        "elements": Symbol("n", "elements per token", "number"),
        "each": Symbol("w", "bytes per element", "number"),
        "spread": _WAYS,
    },
    sources=(MEGATRON_MEMORY.at("section 4"), _TORCHTITAN_SOURCE),
)
def saved_bytes(tokens: float, elements: float, each: float, spread: float) -> float:
    """Bytes that a rank keeps of one tensor."""
    return tokens * elements * each / spread


@formula(
    r"\v{pipeline} - \v{stage}",
    result=_IN_FLIGHT,
    symbols={"pipeline": _STAGES, "stage": _STAGE},
    sources=(_NARAYANAN.at("section 2.2.1"), MEGATRON_MEMORY.at("section 4.2.3")),
)
def in_flight_plain(pipeline: float, stage: float) -> float:
    """Micro-batches that a stage holds under 1F1B, where a step has as many.

    A stage starts one for each stage from itself to the last before the first comes back.
    """
    return pipeline - stage


@formula(
    r"\frac{\v{pipeline} \cdot \v{interleave} + \v{pipeline} - 1 - 2 \cdot \v{stage}}{\v{interleave}}",
    result=_IN_FLIGHT,
    symbols={"pipeline": _STAGES, "interleave": _CHUNKS, "stage": _STAGE},
    sources=(_NARAYANAN.at("section 2.2.2"), MEGATRON_MEMORY.at("section 4.2.3")),
)
def in_flight_interleaved(pipeline: float, interleave: float, stage: float) -> float:
    """Micro-batches that a stage holds under interleaved 1F1B, counted in all of its chunks together.

    On the first stage that is 1 + (p − 1) / (p · v) times as many as without interleaving.
    """
    return (pipeline * interleave + pipeline - 1 - 2 * stage) / interleave


@formula(
    r"\v{layers} \cdot \v{in_flight} \cdot \v{layer}",
    result=_SAVED,
    symbols={
        "layers": count("l", "layers of the stage"),
        "in_flight": _IN_FLIGHT,
        "layer": Symbol("A_1", "bytes that one layer saves of one micro-batch, on average", "bytes"),
    },
    sources=(MEGATRON_MEMORY.at("section 4.2.3"),),
)
def stage_bytes(layers: float, in_flight: float, layer: float) -> float:
    """Bytes that the layers of a stage save."""
    return layers * in_flight * layer


@formula(
    r"\frac{\v{tokens} \cdot \v{vocab} \cdot \v{each}}{\v{tensor} \cdot \v{chunks}}",
    result=Symbol("A_V", "bytes of logits, their copy and their gradient", "bytes"),
    symbols={
        "tokens": _TOKENS,
        "vocab": VOCAB,
        "each": Symbol("w", "bytes per logit, with copy and gradient", "number"),
        "tensor": count("t", "tensor-parallel ranks"),
        "chunks": count("n", "pieces in which the loss is worked out, one after the other"),
    },
    sources=(MEGATRON_MEMORY.at("section 4.3"), OWN_CONSTRUCTION),
)
def logits_bytes(tokens: float, vocab: float, each: float, tensor: float, chunks: float) -> float:
    """Logits and what cross-entropy makes of them."""
    return tokens * vocab * each / (tensor * chunks)


_FUSED = ("queries", "keys", "values")
"""Matrices that some software has as one."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """Adapters beside one class of matrices ``width_in`` → ``width_out``; a token runs through ``times`` of them in a
    layer that has them."""

    name: str
    width_in: int
    width_out: int
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class PartlyTrained:
    """Which weights of a layer have gradients.

    active_share: of the layers, those through which a gradient flows; unfed_share: of these, those whose input has
    none, being the lowest. trained_shares: class of tensors and the share of active layers in which it is trained.
    adapters: beside which matrices; rank, dora, dropout: theirs; fused: those of queries, keys and values have one
    input after dropout; element_bytes: of what they compute in where that is not the layer's, else 0.
    largest_dequantised_bytes: of the largest matrix that products read as a copy. weight_gradient_share: of the
    weights' FLOPs, those of weight gradients; adapter_flop_share: FLOPs of adapters in forward, over those of the
    weights. head_share: of the head, what is trained. quantised_bytes_per_parameter: which each pass reads and writes
    anew; 0 where weights are not quantised.
    """

    @property
    def flop_over_forward(self) -> float:
        """Products of the layers in forward and backward, over those of forward: 3 where all is trained, 2 where all
        is frozen and a gradient flows through it."""
        return 1.0 + self.active_share + self.weight_gradient_share + 3.0 * self.adapter_flop_share

    active_share: float = 1.0
    unfed_share: float = 0.0
    trained_shares: tuple[tuple[str, float], ...] = ()
    adapters: tuple[Adapter, ...] = ()
    rank: int = 0
    dora: bool = False
    dropout: bool = False
    fused: bool = False
    element_bytes: int = 0
    largest_dequantised_bytes: float = 0.0
    weight_gradient_share: float = 0.0
    adapter_flop_share: float = 0.0
    head_share: float = 0.0
    quantised_bytes_per_parameter: float = 0.0

    def read_share(self, name: str) -> float:
        """The share of active layers in which training reads the saved input of this class of weights: for their
        gradient, or that of an adapter that shares the input."""
        shares = not self.element_bytes and not self.dropout and any(adapter.name == name for adapter in self.adapters)
        return 1.0 if shares else dict(self.trained_shares).get(name, 0.0)

    def adapter_tensors(self, layer_element_bytes: int, experts: bool) -> Iterator[tuple[str, str, float, float]]:
        """What adapters keep for backward: name, its target, elements per token, bytes of an element."""
        sharing = [adapter.name for adapter in self.adapters if adapter.name in _FUSED] if self.fused else []
        for adapter in self.adapters:
            expert = adapter.name.startswith(("expert ", "shared", "router"))
            if (expert and not experts) or (adapter.name.startswith("feed-forward") and experts):
                continue
            each = self.element_bytes or layer_element_bytes
            if self.element_bytes and not self.dropout:
                yield f"{adapter.name}: adapter’s input", adapter.name, adapter.times * adapter.width_in, each
            if self.dropout and adapter.name not in sharing[1:]:
                size = adapter.times * adapter.width_in
                yield f"{adapter.name}: adapter’s input after dropout, and its mask", adapter.name, size, each + 1
            yield f"{adapter.name}: adapter’s middle", adapter.name, adapter.times * self.rank, each
            if self.dora:
                yield (
                    f"{adapter.name}: DoRA’s two outputs",
                    adapter.name,
                    adapter.times * adapter.width_out,
                    layer_element_bytes + each,
                )


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
    sharded_by: who shards the states. DeepSpeed’s ZeRO-1 and 2 make one flat gradient of a shard in 16 bits and in fp32
    as they update; FSDP keeps no second copy of weights on the host.
    """

    id: str
    flash: bool
    written_out: bool
    dropout: bool
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
    sharded_by: Literal["", "DeepSpeed", "FSDP"] = ""
    timed_loss: Loss | None = None


FUSED, HF_SDPA, HF_EAGER, MEGATRON_GPT, FUSED_DTENSOR = (
    read_record(Implementation, row, sources=read_sources(row["sources"])) for row in read_rows("implementations")
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
