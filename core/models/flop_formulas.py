"""The formulas of a transformer's FLOPs: one product each, over all layers, per token going forward."""

from __future__ import annotations

from collections.abc import Mapping

from core.formula import Source, Symbol, formula
from core.models.parameter_formulas import (
    FFN,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LATENT_KV,
    LAYERS,
    MATRICES,
    VOCAB,
    count,
    joint_parameters,
)
from core.sources import DEEPSEEK_V2, DEEPSEEK_V3, MIXTRAL, PALM

_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "section 2.1", "https://arxiv.org/abs/2001.08361")
_CHINCHILLA = Source("Hoffmann et al. 2022, Chinchilla", "appendix F", "https://arxiv.org/abs/2203.15556")
_PALM = PALM.at("appendix B")
_LLM_FOUNDRY = Source(
    "llm-foundry",
    "scripts/train/benchmarking/README.md",
    "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking",
)
_MEGATRON = Source(
    "Megatron-LM",
    "megatron/training/training.py, num_floating_point_operations",
    "https://github.com/NVIDIA/Megatron-LM",
)
_DEEPSEEK_V2 = DEEPSEEK_V2.at("section 2.1")
_MISTRAL = Source(
    "Jiang et al. 2023, Mistral 7B", "section 2, sliding window attention", "https://arxiv.org/abs/2310.06825"
)

_SEQ = count("s", "sequence length")
_WINDOW = count("w", "attention window, the token itself included")
_FORWARD = Symbol("F", "forward FLOPs per token", "flop")
_COMPUTE = Symbol("C", "training compute", "flop")
_TOKENS = count("D", "training tokens")


@formula(
    r"6 \cdot \v{params} \cdot \v{tokens}",
    result=_COMPUTE,
    symbols={"params": count("N", "parameters (active ones, with experts)"), "tokens": _TOKENS},
    sources=(_KAPLAN, _CHINCHILLA),
)
def train_flop_6nd(params: float, tokens: float) -> float:
    """Training compute by the 6ND rule.

    Each parameter multiplies and adds once per token going forward (2 FLOPs) and twice going back (4 FLOPs: the
    gradient of the weight and that of its input). Attention's products of activations are not in it, and the input
    embedding is, though it is only looked up.
    """
    return 6 * params * tokens


@formula(
    r"3 \cdot \v{forward} \cdot \v{tokens}",
    result=_COMPUTE,
    symbols={"forward": _FORWARD, "tokens": _TOKENS},
    sources=(_CHINCHILLA, _MEGATRON),
)
def train_flop_by_layer(forward: float, tokens: float) -> float:
    """Training compute from the forward count.

    The backward pass multiplies every matrix twice where the forward pass does once, so it costs two forwards.
    """
    return 3 * forward * tokens


@formula(
    r"6 \cdot \v{params} + 12 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=Symbol("F_t", "training FLOPs per token", "flop"),
    symbols={
        "params": count("N", "parameters (active ones, with experts)"),
        "layers": LAYERS,
        "heads": HEADS,
        "head_dim": HEAD_DIM,
        "seq_len": _SEQ,
    },
    sources=(_PALM, _LLM_FOUNDRY),
)
def palm_flop(params: float, layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """Training FLOPs per token as PaLM's appendix B counts them.

    6 N with every parameter, tables and norms included, and the full attention square; windows are not known to it.
    llm-foundry and nanoGPT count the same way.
    """
    return 6 * params + 12 * layers * heads * head_dim * seq_len


_QKV_SYMBOLS: Mapping[str, Symbol] = {
    "layers": LAYERS,
    "hidden": HIDDEN,
    "heads": HEADS,
    "kv_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
}
_SQUARE_SYMBOLS: Mapping[str, Symbol] = {"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "seq_len": _SEQ}


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot (\v{heads} + 2 \cdot \v{kv_heads}) \cdot \v{head_dim}",
    result=_FORWARD,
    symbols=_QKV_SYMBOLS,
    sources=(_MEGATRON,),
)
def qkv_flop(layers: float, hidden: float, heads: float, kv_heads: float, head_dim: float) -> float:
    """Query, key and value projections."""
    return 2 * layers * hidden * (heads + 2 * kv_heads) * head_dim


@formula(
    r"2 \cdot \v{layers} \cdot (\v{hidden} \cdot \v{rank} + \v{rank} \cdot \v{heads} \cdot \v{score_dim})",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        "rank": count("r_q", "rank of the query path"),
        "heads": HEADS,
        "score_dim": count("d_{qk}", "head width of queries and keys"),
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_query_flop(layers: float, hidden: float, rank: float, heads: float, score_dim: float) -> float:
    """Query projection of latent attention."""
    return 2 * layers * (hidden * rank + rank * heads * score_dim)


@formula(
    r"2 \cdot \v{layers} \cdot (\v{hidden} \cdot (\v{rank} + \v{rope_dim})"
    r" + \v{rank} \cdot \v{heads} \cdot (\v{nope_dim} + \v{value_dim}))",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "hidden": HIDDEN,
        **LATENT_KV,
    },
    sources=(_DEEPSEEK_V2,),
)
def latent_kv_flop(
    layers: float, hidden: float, rank: float, rope_dim: float, heads: float, nope_dim: float, value_dim: float
) -> float:
    """Key and value projections of latent attention."""
    return 2 * layers * (hidden * (rank + rope_dim) + rank * heads * (nope_dim + value_dim))


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=_FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(_PALM,),
)
def square_flop_full(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, all of it counted.

    Scores multiply queries with keys, then weights multiply values: two such products per layer. Each token
    meets all s positions, as PaLM's appendix B counts it. Query heads count, however few key/value heads there are.
    """
    return 2 * layers * heads * head_dim * seq_len


@formula(
    r"\v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=_FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(_MEGATRON,),
)
def square_flop_causal(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, the causal half of it counted.

    A token sees the positions up to its own, (s + 1)/2 on average; the convention takes s/2, as Megatron-LM does.
    """
    return layers * heads * head_dim * seq_len


@formula(
    r"\v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot (\v{seq_len} + 1)",
    result=_FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(_PALM,),
)
def square_flop_exact(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, the pairs that the causal mask leaves.

    Token i meets i positions, itself included: (s + 1)/2 on average.
    """
    return layers * heads * head_dim * (seq_len + 1)


_WINDOW_SYMBOLS: Mapping[str, Symbol] = {
    "layers": LAYERS,
    "heads": HEADS,
    "head_dim": HEAD_DIM,
    "window": _WINDOW,
}


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{window}",
    result=_FORWARD,
    symbols=_WINDOW_SYMBOLS,
    sources=(_MISTRAL,),
)
def window_flop_full(layers: float, heads: float, head_dim: float, window: float) -> float:
    """One product of attention in a sliding window, w positions counted for every token."""
    return 2 * layers * heads * head_dim * window


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim}"
    r" \cdot (\v{window} - \frac{\v{window}^{2}}{2 \cdot \v{seq_len}})",
    result=_FORWARD,
    symbols={**_WINDOW_SYMBOLS, "seq_len": _SEQ},
    sources=(_MISTRAL,),
)
def window_flop_causal(layers: float, heads: float, head_dim: float, window: float, seq_len: float) -> float:
    """One product of attention in a sliding window, the causal part of it counted.

    The first w tokens see half a window on average, the others a whole one. A window of the whole sequence makes
    this the causal half of the square.
    """
    return 2 * layers * heads * head_dim * (window - window**2 / (2 * seq_len))


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim}"
    r" \cdot (\v{window} - \frac{\v{window} \cdot (\v{window} - 1)}{2 \cdot \v{seq_len}})",
    result=_FORWARD,
    symbols={**_WINDOW_SYMBOLS, "seq_len": _SEQ},
    sources=(_MISTRAL,),
)
def window_flop_exact(layers: float, heads: float, head_dim: float, window: float, seq_len: float) -> float:
    """One product of attention in a sliding window, the pairs that the mask leaves.

    Token i meets i positions, itself included, and never more than w.
    """
    return 2 * layers * heads * head_dim * (window - window * (window - 1) / (2 * seq_len))


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{hidden}",
    result=_FORWARD,
    symbols={"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "hidden": HIDDEN},
    sources=(_MEGATRON,),
)
def output_flop(layers: float, heads: float, head_dim: float, hidden: float) -> float:
    """Output projection of attention."""
    return 2 * layers * heads * head_dim * hidden


@formula(
    r"2 \cdot \v{layers} \cdot \v{networks} \cdot \v{matrices} \cdot \v{hidden} \cdot \v{width}",
    result=_FORWARD,
    symbols={
        "layers": LAYERS,
        "networks": count("n", "networks each token runs per layer"),
        "matrices": MATRICES,
        "hidden": HIDDEN,
        "width": FFN,
    },
    sources=(_MEGATRON, MIXTRAL),
)
def ffn_flop(layers: float, networks: float, matrices: float, hidden: float, width: float) -> float:
    """Feed-forward networks a token runs through: one, or its top-k experts, never all experts."""
    return 2 * layers * networks * matrices * hidden * width


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot \v{experts}",
    result=_FORWARD,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "experts": count("E", "routed experts")},
    sources=(MIXTRAL,),
)
def router_flop(layers: float, hidden: float, experts: float) -> float:
    """Router: a score for every expert, chosen or not."""
    return 2 * layers * hidden * experts


@formula(
    r"2 \cdot \v{hidden} \cdot \v{vocab}",
    result=_FORWARD,
    symbols={"hidden": HIDDEN, "vocab": VOCAB},
    sources=(_CHINCHILLA,),
)
def head_flop(hidden: float, vocab: float) -> float:
    """Output head: logits over the vocabulary, whether or not it shares its matrix with the embedding."""
    return 2 * hidden * vocab


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot \v{width}",
    result=_FORWARD,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "width": FFN},
    sources=(_MEGATRON,),
)
def matrix_flop(layers: float, hidden: float, width: float) -> float:
    """One matrix of the feed-forward network: gate, up or down."""
    return 2 * layers * hidden * width


@formula(
    r"2 \cdot \v{joints} \cdot \v{width} \cdot \v{hidden}",
    result=_FORWARD,
    symbols={
        "joints": count("n", "projections between the token table and the layers"),
        "width": count("e", "width of the token table"),
        "hidden": HIDDEN,
    },
    sources=joint_parameters.sources,
)
def joint_flop(joints: float, width: float, hidden: float) -> float:
    """Projections between a narrow token table and the layers, one each way."""
    return 2 * joints * width * hidden


@formula(
    r"\v{modules} \cdot (\v{layer} + 4 \cdot \v{hidden}^{2} + 2 \cdot \v{width} \cdot \v{vocab})",
    result=_FORWARD,
    symbols={
        "modules": count("m", "multi-token prediction modules"),
        "layer": Symbol("F_1", "forward FLOPs per token of one more layer, attention’s squares apart", "flop"),
        "hidden": HIDDEN,
        "width": count("e", "width of the token table"),
        "vocab": VOCAB,
    },
    sources=(DEEPSEEK_V3.at("section 2.2"),),
)
def prediction_flop(modules: float, layer: float, hidden: float, width: float, vocab: float) -> float:
    """Multi-token prediction modules: one more layer each, a projection of two hidden vectors, the head once more.

    The squares of their attention are counted with those of the other layers.
    """
    return modules * (layer + 4 * hidden**2 + 2 * width * vocab)


@formula(
    r"96 \cdot \v{layers} \cdot \v{hidden}^{2} \cdot (1 + \frac{\v{seq_len}}{6 \cdot \v{hidden}}"
    r" + \frac{\v{vocab}}{16 \cdot \v{layers} \cdot \v{hidden}})",
    result=Symbol("F", "training FLOPs per token", "flop"),
    symbols={"layers": LAYERS, "hidden": HIDDEN, "seq_len": _SEQ, "vocab": VOCAB},
    sources=(
        Source("Narayanan et al. 2021, Megatron-LM", "section 3, eq. 3 and 4", "https://arxiv.org/abs/2104.04473"),
    ),
)
def hardware_flop_narayanan(layers: float, hidden: float, seq_len: float, vocab: float) -> float:
    """Hardware FLOPs per token of a GPT, every layer’s forward done twice.

    What the papers of Megatron-LM in 2021, MT-NLG and BLOOM divide by time, for networks four times as wide as the
    model.
    """
    return 96 * layers * hidden**2 * (1 + seq_len / (6 * hidden) + vocab / (16 * layers * hidden))
