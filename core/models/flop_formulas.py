"""Formulas of FLOPs: attention’s products of activations per token going forward, and counts of whole runs."""

from __future__ import annotations

from collections.abc import Mapping

from core.formula import Source, Symbol, formula
from core.models.symbols import HEAD_DIM, HEADS, HIDDEN, LAYERS, VOCAB, count
from core.sources import PALM

_KAPLAN = Source("Kaplan et al. 2020, Scaling Laws", "section 2.1", "https://arxiv.org/abs/2001.08361")
_CHINCHILLA = Source("Hoffmann et al. 2022, Chinchilla", "appendix F", "https://arxiv.org/abs/2203.15556")
_PALM = PALM.at("appendix B")
_LLM_FOUNDRY = Source(
    "llm-foundry",
    "scripts/train/benchmarking/README.md",
    "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking",
)
MEGATRON = Source(
    "Megatron-LM",
    "megatron/training/training.py, num_floating_point_operations",
    "https://github.com/NVIDIA/Megatron-LM",
)
_MISTRAL = Source(
    "Jiang et al. 2023, Mistral 7B", "section 2, sliding window attention", "https://arxiv.org/abs/2310.06825"
)

_SEQ = count("s", "sequence length")
_WINDOW = count("w", "attention window, the token itself included")
FORWARD = Symbol("F", "forward FLOPs per token", "flop")
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
    symbols={"forward": FORWARD, "tokens": _TOKENS},
    sources=(_CHINCHILLA, MEGATRON),
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


_SQUARE_SYMBOLS: Mapping[str, Symbol] = {"layers": LAYERS, "heads": HEADS, "head_dim": HEAD_DIM, "seq_len": _SEQ}


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot \v{seq_len}",
    result=FORWARD,
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
    result=FORWARD,
    symbols=_SQUARE_SYMBOLS,
    sources=(MEGATRON,),
)
def square_flop_causal(layers: float, heads: float, head_dim: float, seq_len: float) -> float:
    """One product over the attention square, the causal half of it counted.

    A token sees the positions up to its own, (s + 1)/2 on average; the convention takes s/2, as Megatron-LM does.
    """
    return layers * heads * head_dim * seq_len


@formula(
    r"\v{layers} \cdot \v{heads} \cdot \v{head_dim} \cdot (\v{seq_len} + 1)",
    result=FORWARD,
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
    result=FORWARD,
    symbols=_WINDOW_SYMBOLS,
    sources=(_MISTRAL,),
)
def window_flop_full(layers: float, heads: float, head_dim: float, window: float) -> float:
    """One product of attention in a sliding window, w positions counted for every token."""
    return 2 * layers * heads * head_dim * window


@formula(
    r"2 \cdot \v{layers} \cdot \v{heads} \cdot \v{head_dim}"
    r" \cdot (\v{window} - \frac{\v{window}^{2}}{2 \cdot \v{seq_len}})",
    result=FORWARD,
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
    result=FORWARD,
    symbols={**_WINDOW_SYMBOLS, "seq_len": _SEQ},
    sources=(_MISTRAL,),
)
def window_flop_exact(layers: float, heads: float, head_dim: float, window: float, seq_len: float) -> float:
    """One product of attention in a sliding window, the pairs that the mask leaves.

    Token i meets i positions, itself included, and never more than w.
    """
    return 2 * layers * heads * head_dim * (window - window * (window - 1) / (2 * seq_len))


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
