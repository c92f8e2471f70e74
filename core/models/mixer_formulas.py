"""The formulas of layers with a state in place of attention: parameters, and FLOPs per token going forward."""

from __future__ import annotations

from core.formula import Source, Symbol, formula
from core.models.parameter_formulas import HIDDEN, LAYERS, count

_MAMBA = Source("Gu and Dao 2023, Mamba", "sections 3.2 and 3.4", "https://arxiv.org/abs/2312.00752")
_MAMBA2 = Source("Dao and Gu 2024, Mamba-2", "section 7", "https://arxiv.org/abs/2405.21060")
_DELTA = Source("Yang et al. 2024, Gated Delta Networks", "section 3.4", "https://arxiv.org/abs/2412.06464")
_MEGATRON = Source(
    "Megatron-LM",
    "megatron/training/training.py, mamba_layer_flops and gdn_layer_flops",
    "https://github.com/NVIDIA/Megatron-LM",
)

_PARAMETERS = count("N", "parameters")
_FORWARD = Symbol("F", "forward FLOPs per token", "flop")
_INNER = count("e", "width of the values, all heads together")
_PAIRS = count("g", "width of keys and queries (B and C), all groups together; 0 with Mamba, which makes them later")
_RATES = count("u", "numbers per token that steer the state: one per head with Mamba-2, two with the delta rule")
_CONV = count("c", "tokens that the convolution sees")
_RANK = count("r", "rank of the step size")
_STATE = count("n", "rows of the state")
_BIAS = count("b", "1 with biases, 0 without")


@formula(
    r"\v{layers} \cdot (\v{hidden} + \v{bias}) \cdot (2 \cdot \v{inner} + \v{pairs} + \v{rates})",
    result=_PARAMETERS,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "bias": _BIAS, "inner": _INNER, "pairs": _PAIRS, "rates": _RATES},
    sources=(_MAMBA, _MAMBA2, _DELTA),
)
def mixer_input_parameters(
    layers: float, hidden: float, bias: float, inner: float, pairs: float, rates: float
) -> float:
    """First projection: values, a gate as wide, keys and queries, and what steers the state."""
    return layers * (hidden + bias) * (2 * inner + pairs + rates)


@formula(
    r"\v{layers} \cdot (\v{conv} + \v{bias}) \cdot (\v{inner} + \v{pairs})",
    result=_PARAMETERS,
    symbols={"layers": LAYERS, "conv": _CONV, "bias": _BIAS, "inner": _INNER, "pairs": _PAIRS},
    sources=(_MAMBA, _MAMBA2, _DELTA),
)
def convolution_parameters(layers: float, conv: float, bias: float, inner: float, pairs: float) -> float:
    """Short convolution over the last tokens, each channel by itself."""
    return layers * (conv + bias) * (inner + pairs)


@formula(
    r"\v{layers} \cdot \v{inner} \cdot (2 \cdot (\v{rank} + \v{state}) + 1)",
    result=_PARAMETERS,
    symbols={"layers": LAYERS, "inner": _INNER, "rank": _RANK, "state": _STATE},
    sources=(_MAMBA,),
)
def selection_parameters(layers: float, inner: float, rank: float, state: float) -> float:
    """What makes Mamba selective.

    The values are projected to the rank of the step size, to B and to C; the rank back to a step size for each
    channel, with a bias.
    """
    return layers * inner * (2 * (rank + state) + 1)


@formula(
    r"\v{layers} \cdot \v{heads} \cdot \v{learned}",
    result=_PARAMETERS,
    symbols={
        "layers": LAYERS,
        "heads": count("a", "heads of the values; with Mamba its channels"),
        "learned": count("l", "learned numbers per head: n + 1 with Mamba, 3 with Mamba-2, 2 with the delta rule"),
    },
    sources=(_MAMBA, _MAMBA2, _DELTA),
)
def state_parameters(layers: float, heads: float, learned: float) -> float:
    """Learned numbers of the recurrence.

    Mamba: decay of every row of a channel’s state, and a skip. Mamba-2: one decay, skip and step size per head. Delta
    rule: decay and step size.
    """
    return layers * heads * learned


@formula(
    r"2 \cdot \v{layers} \cdot \v{hidden} \cdot (2 \cdot \v{inner} + \v{pairs} + \v{rates})",
    result=_FORWARD,
    symbols={"layers": LAYERS, "hidden": HIDDEN, "inner": _INNER, "pairs": _PAIRS, "rates": _RATES},
    sources=(_MEGATRON,),
)
def mixer_input_flop(layers: float, hidden: float, inner: float, pairs: float, rates: float) -> float:
    """First projection of a layer with a state."""
    return 2 * layers * hidden * (2 * inner + pairs + rates)


@formula(
    r"2 \cdot \v{layers} \cdot \v{conv} \cdot (\v{inner} + \v{pairs})",
    result=_FORWARD,
    symbols={"layers": LAYERS, "conv": _CONV, "inner": _INNER, "pairs": _PAIRS},
    sources=(_MEGATRON,),
)
def convolution_flop(layers: float, conv: float, inner: float, pairs: float) -> float:
    """Short convolution, each channel by itself. What it computes beyond the ends of a sequence is not counted."""
    return 2 * layers * conv * (inner + pairs)


@formula(
    r"4 \cdot \v{layers} \cdot \v{inner} \cdot (\v{rank} + \v{state})",
    result=_FORWARD,
    symbols={"layers": LAYERS, "inner": _INNER, "rank": _RANK, "state": _STATE},
    sources=(_MAMBA,),
)
def selection_flop(layers: float, inner: float, rank: float, state: float) -> float:
    """Step size, B and C of Mamba, projected from the values."""
    return 4 * layers * inner * (rank + state)


@formula(
    r"\v{operations} \cdot \v{layers} \cdot \v{inner} \cdot \v{state}",
    result=_FORWARD,
    symbols={
        "operations": count("o", "operations per number of the state: 7 for state spaces, 8 for the delta rule"),
        "layers": LAYERS,
        "inner": _INNER,
        "state": _STATE,
    },
    sources=(_MEGATRON,),
)
def scan_flop(operations: float, layers: float, inner: float, state: float) -> float:
    """The state moved on by one token and read, whatever the length of the sequence.

    By Megatron-LM’s convention: 7 operations for each number of the state of a state space, and four multiply-adds
    for the gated delta rule. The state is taken token by token; kernels that work in chunks multiply more, by as much
    as their chunks are long, and that is not counted.
    """
    return operations * layers * inner * state
