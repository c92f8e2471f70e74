"""The formulas of a transformer's parameters: one component each, over all layers, and the symbols they share."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.sources import DEEPSEEK_V2, DEEPSEEK_V3, MIXTRAL

_GPT2 = Source("Radford et al. 2019, GPT-2; shapes in nanoGPT", "model.py", "https://github.com/karpathy/nanoGPT")
_LLAMA = Source("Touvron et al. 2023, LLaMA", "section 2.2", "https://arxiv.org/abs/2302.13971")
_GQA = Source("Ainslie et al. 2023, GQA", "section 2", "https://arxiv.org/abs/2305.13245")
_GLU = Source("Shazeer 2020, GLU Variants Improve Transformer", "section 2", "https://arxiv.org/abs/2002.05202")
_DEEPSEEK_V2 = DEEPSEEK_V2.at("sections 2.1 and 3.1.2")
_QK_NORM = Source("Dehghani et al. 2023, ViT-22B", "section 2", "https://arxiv.org/abs/2302.05442")
_OPT = Source("Zhang et al. 2022, OPT", "metaseq, 350M configuration", "https://github.com/facebookresearch/metaseq")
_XIELU = Source("Huang and Schlag 2024, Deriving Activation Functions", "xIELU", "https://arxiv.org/abs/2411.13010")
_GPTJ = Source(
    "Wang and Komatsuzaki 2021, GPT-J", "CausalTransformerShard", "https://github.com/kingoflolz/mesh-transformer-jax"
)
_GPT_OSS = Source("OpenAI 2025, gpt-oss", "model card, section 2", "https://arxiv.org/abs/2508.10925")


def count(latex: str, meaning: str) -> Symbol:
    """A symbol that counts things."""
    return Symbol(latex, meaning, "count")


LAYERS = count("L", "layers")
HIDDEN = count("h", "hidden width")
HEADS = count("a", "query heads")
KV_HEADS = count("k", "key/value heads")
HEAD_DIM = count("d", "head width")
FFN = count("f", "feed-forward width")
VOCAB = count("V", "vocabulary")
MATRICES = count("m", "matrices per feed-forward network: 3 gated, 2 plain")
_BIAS = count("b", "1 with biases, 0 without")
_RESULT = count("N", "parameters")


LATENT_KV = {
    "rank": count("r_{kv}", "rank of the key/value path"),
    "rope_dim": count("d_r", "rotary width, shared by all heads"),
    "heads": HEADS,
    "nope_dim": count("d_n", "head width without rotation"),
    "value_dim": count("d_v", "head width of values"),
}
"""Symbols of the key and value path of latent attention."""


@formula(
    r"\v{vocab} \cdot \v{hidden}",
    result=_RESULT,
    symbols={"vocab": VOCAB, "hidden": HIDDEN},
    sources=(_GPT2,),
)
def embedding_parameters(vocab: float, hidden: float) -> float:
    """Token embedding, or an output head of its own: one row of width h per token of the vocabulary."""
    return vocab * hidden


@formula(
    r"\v{rows} \cdot \v{hidden}",
    result=_RESULT,
    symbols={"rows": count("p", "rows of the position table"), "hidden": HIDDEN},
    sources=(_GPT2,),
)
def position_parameters(rows: float, hidden: float) -> float:
    """Learned positions: one row of width h per position."""
    return rows * hidden


@formula(
    r"\v{layers} \cdot (\v{hidden} + \v{bias}) \cdot (\v{heads} + 2 \cdot \v{kv_heads}) \cdot \v{head_dim}",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "bias": _BIAS,
        "heads": HEADS,
        "kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
    },
    sources=(_GQA,),
)
def qkv_parameters(layers: float, hidden: float, bias: float, heads: float, kv_heads: float, head_dim: float) -> float:
    """Query, key and value projections.

    Grouped-query attention keeps one key and one value head for several query heads, so keys and values shrink
    while queries do not.
    """
    return layers * (hidden + bias) * (heads + 2 * kv_heads) * head_dim


@formula(
    r"\v{layers} \cdot ((\v{hidden} + \v{bias}) \cdot \v{rank} + \v{rank} \cdot \v{heads} \cdot \v{score_dim})",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "bias": _BIAS,
        "rank": count("r_q", "rank of the query path"),
        "heads": HEADS,
        "score_dim": count("d_{qk}", "head width of queries and keys"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_query_parameters(
    layers: float, hidden: float, bias: float, rank: float, heads: float, score_dim: float
) -> float:
    """Query projection of latent attention: down to a rank, up to the heads."""
    return layers * ((hidden + bias) * rank + rank * heads * score_dim)


@formula(
    r"\v{layers} \cdot ((\v{hidden} + \v{bias}) \cdot (\v{rank} + \v{rope_dim})"
    r" + \v{rank} \cdot \v{heads} \cdot (\v{nope_dim} + \v{value_dim}))",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "bias": _BIAS,
        **LATENT_KV,
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_kv_parameters(
    layers: float,
    hidden: float,
    bias: float,
    rank: float,
    rope_dim: float,
    heads: float,
    nope_dim: float,
    value_dim: float,
) -> float:
    """Key and value projections of latent attention: down to a rank and one rotary key, up to the heads."""
    return layers * ((hidden + bias) * (rank + rope_dim) + rank * heads * (nope_dim + value_dim))


@formula(
    r"\v{layers} \cdot (\v{heads} \cdot \v{head_dim} + \v{bias}) \cdot \v{hidden}",
    result=_RESULT,
    symbols={"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "bias": _BIAS, "hidden": HIDDEN},
    sources=(_LLAMA,),
)
def output_parameters(layers: float, heads: float, head_dim: float, bias: float, hidden: float) -> float:
    """Output projection of attention, from all query heads back to the hidden width."""
    return layers * (heads * head_dim + bias) * hidden


@formula(
    r"\v{layers} \cdot \v{networks} \cdot (\v{matrices} \cdot \v{hidden} \cdot \v{width}"
    r" + \v{bias} \cdot ((\v{matrices} - 1) \cdot \v{width} + \v{hidden}))",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "networks": count("n", "networks per layer"),
        "matrices": MATRICES,
        "hidden": HIDDEN,
        "width": FFN,
        "bias": _BIAS,
    },
    sources=(_GLU, MIXTRAL),
)
def ffn_parameters(layers: float, networks: float, matrices: float, hidden: float, width: float, bias: float) -> float:
    """Feed-forward networks.

    A gated network (SwiGLU) has three matrices: gate, up and down; a plain one has two. With experts, every
    expert is such a network.
    """
    return layers * networks * (matrices * hidden * width + bias * ((matrices - 1) * width + hidden))


@formula(
    r"\v{layers} \cdot (\v{hidden} + \v{bias}) \cdot \v{experts}",
    result=_RESULT,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "bias": _BIAS, "experts": count("E", "routed experts")},
    sources=(MIXTRAL,),
)
def router_parameters(layers: float, hidden: float, bias: float, experts: float) -> float:
    """Router: one row of width h per expert."""
    return layers * (hidden + bias) * experts


@formula(
    r"(\v{layers} \cdot \v{per_layer} + \v{outside}) \cdot \v{vectors} \cdot \v{hidden}",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "per_layer": count("n", "norms per layer"),
        "outside": count("n_0", "norms outside these layers"),
        "vectors": count("w", "vectors per norm: 2 with gain and bias, 1 with gain, 0 with neither"),
        "hidden": HIDDEN,
    },
    sources=(_LLAMA,),
)
def norm_parameters(layers: float, per_layer: float, outside: float, vectors: float, hidden: float) -> float:
    """Norms of the hidden width: RMSNorm has a gain, LayerNorm a gain and mostly a bias."""
    return (layers * per_layer + outside) * vectors * hidden


@formula(
    r"\v{layers} \cdot (\v{first} + \v{second})",
    result=_RESULT,
    symbols={
        "layers": LAYERS,
        "first": count("g_1", "width of the first gain"),
        "second": count("g_2", "width of the second gain"),
    },
    sources=(_QK_NORM, _DEEPSEEK_V2),
)
def inner_norm_parameters(layers: float, first: float, second: float) -> float:
    """Norms inside attention: of queries and keys, or of the two latent vectors."""
    return layers * (first + second)


@formula(
    r"\v{layers} \cdot \v{heads}",
    result=_RESULT,
    symbols={"layers": LAYERS, "heads": HEADS},
    sources=(_GPT_OSS,),
)
def sink_parameters(layers: float, heads: float) -> float:
    """Attention sinks: one learned logit per query head."""
    return layers * heads


@formula(
    r"\v{each} \cdot \v{layers}",
    result=_RESULT,
    symbols={"each": count("n", "learned numbers per activation function"), "layers": LAYERS},
    sources=(_XIELU,),
)
def activation_parameters(each: float, layers: float) -> float:
    """Learned numbers of the activation function, in each layer that has one; xIELU has two."""
    return each * layers


@formula(
    r"\v{bias} \cdot \v{vocab}",
    result=_RESULT,
    symbols={"bias": _BIAS, "vocab": VOCAB},
    sources=(_GPTJ,),
)
def head_bias_parameters(bias: float, vocab: float) -> float:
    """Bias of the output head: one number per token of the vocabulary."""
    return bias * vocab


@formula(
    r"\v{joints} \cdot \v{width} \cdot \v{hidden}",
    result=_RESULT,
    symbols={
        "joints": count("n", "projections between the token table and the layers"),
        "width": count("e", "width of the token table"),
        "hidden": HIDDEN,
    },
    sources=(_OPT,),
)
def joint_parameters(joints: float, width: float, hidden: float) -> float:
    """Projections between a narrow token table and the layers, one each way."""
    return joints * width * hidden


@formula(
    r"\v{modules} \cdot (\v{layer} + (2 \cdot \v{hidden} + 3 \cdot \v{vectors}) \cdot \v{hidden})",
    result=_RESULT,
    symbols={
        "modules": count("m", "multi-token prediction modules"),
        "layer": count("n_1", "parameters of one more layer"),
        "hidden": HIDDEN,
        "vectors": count("w", "vectors per norm"),
    },
    sources=(DEEPSEEK_V3.at("section 2.2"),),
)
def prediction_parameters(modules: float, layer: float, hidden: float, vectors: float) -> float:
    """Multi-token prediction modules.

    Each is one more layer, a projection of two hidden vectors to one, and three norms. The embedding and the output
    head are those of the model.
    """
    return modules * (layer + (2 * hidden + 3 * vectors) * hidden)
