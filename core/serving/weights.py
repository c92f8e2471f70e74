"""Weights of a served model on one of the accelerators that share them: bytes held, and bytes read for a token.

Quantised are the matrices of the layers, experts among them; the token table, the head and the norms stay in bf16, as
AWQ, GPTQ, compressed-tensors and bitsandbytes leave them by default. NVFP4 and MXFP4 quantise only experts of
mixtures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached
from core.models.spec import TransformerSpec
from core.models.symbols import HIDDEN, count
from core.serving.engine import Draft
from core.sources import OWN_CONSTRUCTION
from core.training.device.ranks import RankParameters, pieces_of, rank_parameters, stages_of
from core.training.layout import Degrees
from core.training.trained import FROZEN, QLORA

_AWQ = Source("Lin et al. 2023, AWQ", "section 5: groups of 128", "https://arxiv.org/abs/2306.00978")
_NF4 = QLORA.at("section 3: blocks of 64")
_FP8 = Source(
    "vLLM documentation, FP8 W8A8", "one scale for a tensor", "https://docs.vllm.ai/en/latest/features/quantization/fp8"
)
_INT8 = Source(
    "vLLM documentation, INT8 W8A8",
    "a scale for each output channel",
    "https://docs.vllm.ai/en/latest/features/quantization/int8",
)


_NVFP4 = Source(
    "NVIDIA", "model card of Qwen3-30B-A3B-NVFP4: linear operators of the experts", "https://huggingface.co/nvidia"
)
_MXFP4 = Source(
    "vLLM",
    "vllm/model_executor/layers/quantization/mxfp4.py, hidden_size rounded up to 256, 2026",
    "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/quantization/mxfp4.py",
)
_EAGLE = Source(
    "vLLM",
    "vllm/model_executor/models/llama_eagle3.py, 2026",
    "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/models/llama_eagle3.py",
)

EAGLE_VOCAB = 32_000
"""Vocabulary of the draft (draft_vocab_size of yuhuili/EAGLE3-LLaMA3.1-Instruct-8B)."""


@dataclass(frozen=True, slots=True)
class WeightType:
    """A number format of the layers' matrices. bytes: per parameter, scales included. products: the format in which
    they are multiplied; with weights alone quantised they are made bf16 again on the chip. experts_only: whether of a
    mixture only routed experts are in it. multiple: to which kernels pad the hidden width of experts."""

    name: str
    bytes: float
    products: str
    note: str
    source: Source
    experts_only: bool = False
    multiple: int = 1


WEIGHT_TYPES: Mapping[str, WeightType] = MappingProxyType(
    {
        item.name: item
        for item in (
            WeightType("bf16", 2.0, "bf16", "as trained", OWN_CONSTRUCTION),
            WeightType("fp8", 1.0, "fp8", "E4M3, one scale per matrix", _FP8),
            WeightType("int8", 1.0, "int8", "one scale per row", _INT8),
            WeightType("int4", 0.5 + 2.5 / 128, "bf16", "AWQ, GPTQ: scale and zero point per group of 128", _AWQ),
            WeightType("nf4", FROZEN["nf4"].each, "bf16", "bitsandbytes: fp32 scale per block of 64", _NF4),
            WeightType(
                "nvfp4", 0.5 + 1 / 16, "fp4", "E4M3 scale per block of 16; of mixtures experts only", _NVFP4, True
            ),
            WeightType("mxfp4", 0.5 + 1 / 32, "bf16", "E8M0 scale per block of 32; experts only", _MXFP4, True, 256),
        )
    }
)
"""The formats by name. Scales of a whole row or matrix are under a thousandth and not counted."""


@formula(
    r"\v{matrices} \cdot \v{bytes} + \v{others} \cdot 2",
    result=Symbol("W", "bytes of weights on one accelerator", "bytes"),
    symbols={
        "matrices": count("N_m", "parameters of the layers’ matrices, experts included, on one accelerator"),
        "bytes": Symbol("b", "bytes per parameter, scales included", "number"),
        "others": count("N_o", "parameters of token table, head and norms on one accelerator"),
    },
    sources=(_AWQ, _NF4),
)
def weight_bytes(matrices: float, bytes: float, others: float) -> float:
    """Weights that one accelerator holds.

    The matrices of the layers in the chosen format, all else in bf16.
    """
    return matrices * bytes + others * 2


@formula(
    r"\v{experts} \cdot (1 - (1 - \frac{\v{per_token}}{\v{experts}})^{\v{tokens}})",
    result=Symbol("E_t", "routed experts of a layer that some token runs", "number"),
    symbols={
        "experts": count("E", "routed experts of a layer"),
        "per_token": count("k", "routed experts that each token runs"),
        "tokens": count("B", "tokens of one pass"),
    },
    sources=(OWN_CONSTRUCTION.at("every expert equally likely, tokens independent"),),
)
def touched_experts(experts: float, per_token: float, tokens: float) -> float:
    """Routed experts whose weights one pass has to read.

    One token runs k of them; of many tokens each picks its own, so that soon all are read.
    """
    share: Any = per_token / experts
    few: Any = -np.expm1(tokens * np.log1p(-np.minimum(share, 0.5)))  # of many experts, which rounding would lose
    run: Any = cast("Any", np.where)(np.less(share, 0.5), few, 1 - (1 - share) ** tokens)
    return experts * run


@dataclass(frozen=True, slots=True)
class ServedWeights:
    """Parameters of one accelerator by what is done with them. tied: whether the head reads the token table."""

    spec: TransformerSpec
    kind: WeightType
    rank: RankParameters
    tied: bool

    def _of(self, *classes: str) -> float:
        """Parameters of these classes of `RankParameters`."""
        return sum(float(np.ravel(getattr(self.rank, name))[0]) for name in classes)

    @property
    def values(self) -> dict[str, float]:
        """What `weight_bytes` takes of what is held."""
        return self._split(self._of("experts"), self._of("norms", "embedding", "head"))

    def _split(self, experts: float, others: float) -> dict[str, float]:
        kind, hidden = self.kind, self.spec.hidden
        experts *= -(-hidden // kind.multiple) * kind.multiple / hidden
        layers = self._of("layers")
        whole = kind.experts_only and bool(self.spec.experts)
        matrices = experts + (0.0 if whole else layers)
        return {"matrices": matrices, "bytes": kind.bytes, "others": others + (layers if whole else 0.0)}

    @property
    def held(self) -> float:
        """Bytes on one accelerator."""
        return weight_bytes(**self.values)

    def touched(self, tokens: float) -> float:
        """Share of the routed experts that a pass of so many tokens reads; 1 without experts."""
        moe = self.spec.experts
        return touched_experts(moe.count, moe.per_token, tokens) / moe.count if moe else 1.0

    def read(self, tokens: float) -> float:
        """Bytes that a pass of so many tokens reads once: of tables nothing where they are only looked up."""
        looked_up = self.spec.vocab * self.spec.layers * self.spec.layer_embedding
        multiplied = self._of("embedding") - looked_up if self.tied else self._of("head")
        return weight_bytes(**self._split(self.touched(tokens) * self._of("experts"), self._of("norms") + multiplied))

    def explain(self, tokens: int) -> list[Explanation]:
        """Bytes held, and the experts that a pass of so many tokens reads."""
        moe = self.spec.experts
        touched = [touched_experts.explain(experts=moe.count, per_token=moe.per_token, tokens=tokens)] if moe else []
        return [weight_bytes.explain(**self.values).about("held"), *touched]


@cached("small_results_kept")
def weights_of(
    spec: TransformerSpec, kind: WeightType = WEIGHT_TYPES["bf16"], *, tensor: int = 1, prediction: int = 0
) -> ServedWeights:
    """The weights of ``spec`` on one of ``tensor`` accelerators, each layer's matrices divided over them.

    prediction: multi-token prediction modules that draft, which share the token table and the head.

    Norms and routers are whole on each, and key/value heads fewer than the accelerators are repeated. Parameters of a
    layer that are no matrix (biases, routers, decays) are counted as its matrices; they are under a hundredth.
    """
    served = replace(spec, mtp_modules=prediction)
    degrees = Degrees(tensor=tensor)
    stage = stages_of(served, degrees, ("first",))
    return ServedWeights(served, kind, rank_parameters(pieces_of(served, degrees), stage), served.tied_head)


@formula(
    r"2 \cdot \frac{3 \cdot \v{hidden}^2 + 2 \cdot \v{hidden} \cdot (\v{query} + 2 \cdot \v{kv})"
    r" + \v{query} \cdot \v{hidden} + 3 \cdot \v{hidden} \cdot \v{ffn} + \v{vocab} \cdot \v{hidden}}{\v{tensor}}",
    result=Symbol("W_d", "bytes of an EAGLE-3 draft on one accelerator", "bytes"),
    symbols={
        "hidden": HIDDEN,
        "query": count("q", "width of all queries"),
        "kv": count("k", "width of all keys"),
        "ffn": count("f", "feed-forward width"),
        "vocab": count("V_d", "vocabulary of the draft"),
        "tensor": count("t", "accelerators that share the model"),
    },
    sources=(_EAGLE,),
)
def eagle_bytes(hidden: float, query: float, kv: float, ffn: float, vocab: float, tensor: float) -> float:
    """One layer that reads the token and a projection of three hidden states, with a head of its own, in bf16."""
    layer = 2 * hidden * (query + 2 * kv) + query * hidden + 3 * hidden * ffn
    return 2 * (3 * hidden**2 + layer + vocab * hidden) / tensor


def draft_bytes(spec: TransformerSpec, kind: WeightType, tensor: int, draft: Draft) -> float:
    """Bytes of the layers that draft on one accelerator; a model is taken to draft with one module of prediction."""
    if draft == "MTP":
        modules = spec.mtp_modules or 1
        plain = weights_of(spec, kind, tensor=tensor)
        return weights_of(spec, kind, tensor=tensor, prediction=modules).held - plain.held
    if draft == "none":
        return 0.0
    query, kv = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    ffn = spec.ffn or 4 * spec.hidden
    return eagle_bytes(hidden=spec.hidden, query=query, kv=kv, ffn=ffn, vocab=EAGLE_VOCAB, tensor=tensor)
