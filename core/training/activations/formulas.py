"""The formulas of activation memory: tokens of a rank, one tensor, micro-batches in flight, a stage, the logits."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.models.symbols import VOCAB, count
from core.sources import OWN_CONSTRUCTION

MEGATRON_MEMORY = Source(
    "Korthikanti et al. 2022, Reducing Activation Recomputation", url="https://arxiv.org/abs/2205.05198"
)
_NARAYANAN = Source("Narayanan et al. 2021, Megatron-LM on GPU Clusters", url="https://arxiv.org/abs/2104.04473")
_TORCHTITAN = Source(
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
    sources=(MEGATRON_MEMORY.at("section 4"), _TORCHTITAN),
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
