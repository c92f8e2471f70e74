"""Formulas of step time, and the constants in them.

Most constants are ratios, such as the share of the peak that matmuls reach, or the exposed share of communication.
``core.step_time.calibration.fit`` fits them to published step times. Each has a prior with its source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from core.formula import Source, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.limits import cached
from core.models.symbols import count
from core.rows import read_record, read_rows
from core.sources import DEEPSEEK_V3, OWN_CONSTRUCTION, ZERO

TABLE = "step_constants"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant.

    family: of accelerators, empty for all of them. prior, prior_sd: without the published step times; standard
    deviations are of the logarithm. posterior_sd: after the fit; NaN before one.
    """

    name: str
    family: str
    value: float
    prior: float
    prior_sd: float
    posterior_sd: float
    meaning: str
    source: str


class Constants(SimpleNamespace):
    """The constants for accelerators of one family by their names in the table; NaN for what the family lacks."""


@cached("tables_kept")
def step_constants() -> tuple[Constant, ...]:
    """Return the constants of the table, in its order."""
    return tuple(read_record(Constant, row) for row in read_rows(TABLE))


_FAMILY_OF_GENERATION: Mapping[int, str] = {0: "A100", 1: "A100", 2: "Hopper", 3: "Blackwell"}
"""Generation → the family whose constants an accelerator without its own takes."""

BESIDE: Mapping[str, str] = {"TPU": "Hopper"}
"""Family with few measurements → its proxy for everything that was not measured."""


def family_of(accelerator: Accelerator) -> str:
    """Return the family whose constants an accelerator takes."""
    return accelerator.family if accelerator.family in BESIDE else _FAMILY_OF_GENERATION[accelerator.generation]


_NEAREST: Mapping[str, str] = {
    "matmul8": "matmul16",
    "matmul4": "matmul8",
    "attention_fa2": "attention",
    "attention_triton": "attention",
}
"""Constant without measurements in a family → its proxy."""


def resolved(table: Iterable[Constant], family: str) -> Constants:
    """Return the constants of ``table`` for one family."""
    table = tuple(table)
    by_name = {
        constant.name: constant.value
        for one in ("", BESIDE.get(family, ""), family)
        for constant in table
        if constant.family == one
    }
    for name, nearest in _NEAREST.items():
        by_name.setdefault(name, by_name.get(nearest, math.nan))
    return Constants(**({constant.name: math.nan for constant in table} | by_name))


@cached("results_kept")
def constants_of(family: str) -> Constants:
    """Return the published constants for one family."""
    return resolved(step_constants(), family)


_ROOFLINE = Source(
    "Williams, Waterman and Patterson 2009, Roofline",
    "Communications of the ACM 52(4); a sum in place of the larger of two",
    "https://doi.org/10.1145/1498765.1498785",
)
_WAVES = Source(
    "NVIDIA, Matrix Multiplication Background User’s Guide",
    "Wave quantization",
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
)
_NCCL = Source("NVIDIA, nccl-tests", "doc/PERFORMANCE.md", "https://github.com/NVIDIA/nccl-tests")
_MEGATRON = Source(
    "Megatron-LM, megatron/core/tensor_parallel/layers.py",
    "gradient_accumulation_fusion",
    "https://github.com/NVIDIA/Megatron-LM",
)
_FSDP = Source("Zhao et al. 2023, PyTorch FSDP", "section 3.3", "https://arxiv.org/abs/2304.11277")
_LLAMA = Source("Llama team 2024, The Llama 3 Herd of Models", "section 3.3", "https://arxiv.org/abs/2407.21783")

_TIME = Symbol("t", "time", "seconds")
_RATE = Symbol("P", "FLOP/s of large matmuls", "flop_per_s")
_MEMORY = Symbol(r"\beta", "memory bandwidth", "bytes_per_s")


@formula(
    r"\frac{\v{flop}}{\v{rate}} + \v{traffic_factor} \cdot \frac{\v{bytes}}{\v{bandwidth}}",
    result=_TIME,
    symbols={
        "flop": Symbol("W", "work", "flop"),
        "rate": _RATE,
        "traffic_factor": Symbol(r"\rho", "weight of the traffic", "number"),
        "bytes": Symbol("Q", "bytes of both operands and the result", "bytes"),
        "bandwidth": _MEMORY,
    },
    sources=(_ROOFLINE, OWN_CONSTRUCTION),
)
def product_seconds(flop: float, rate: float, traffic_factor: float, bytes: float, bandwidth: float) -> float:
    """Return the time of matmuls, the sum of arithmetic and memory traffic.

    The sum makes narrow shards, short micro-batches, and small experts slower without a table of shapes. Its efficiency
    falls with 1/M + 1/N + 1/K.
    """
    return flop / rate + traffic_factor * bytes / bandwidth


@formula(
    r"\frac{2}{3} \cdot \v{tail} \cdot \v{sides}",
    result=Symbol(r"W_\text{t}", "FLOPs lost in the last wave", "flop"),
    symbols={
        "sides": count(r"\Sigma", "sum of the sides M + N + K of all matmuls"),
        "tail": count("a", "elements in half a wave of tiles"),
    },
    sources=(_WAVES, OWN_CONSTRUCTION),
)
def tail_flop(sides: float, tail: float) -> float:
    """Return the FLOPs lost at the end of a matmul, when fewer tiles are left than the chip has multiprocessors.

    Half a wave is lost on average, as deep as the inner side of the matmul. Forward and both gradients have each of the
    three sides as inner side once, so this is their mean.
    """
    return 2 / 3 * tail * sides


@formula(
    r"\v{experts} \cdot \v{half_rate_tokens}",
    result=Symbol("T'", "extra tokens of the expert matmuls", "count"),
    symbols={
        "experts": count("E_r", "experts per rank"),
        "half_rate_tokens": count("M_0", "tokens per expert at half the full rate"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def padded_tokens(experts: float, half_rate_tokens: float) -> float:
    """Return the extra tokens of a grouped matmul, in which each expert costs as if it had M₀ more tokens.

    With M tokens per expert, the efficiency is M / (M + M₀).
    """
    return experts * half_rate_tokens


@formula(
    r"\sqrt{\v{product}^2 + \v{added}^2} - \v{product}",
    result=Symbol(r"t_\text{a}", "extra time of a matmul that accumulates", "seconds"),
    symbols={
        "product": Symbol("t", "time of the matmul", "seconds"),
        "added": Symbol(r"t_\text{w}", "time to read and write the accumulated gradient", "seconds"),
    },
    sources=(_MEGATRON, OWN_CONSTRUCTION),
)
def adding_seconds(product: float, added: float) -> float:
    """Return the extra time of a gradient matmul that adds its result to that of earlier micro-batches.

    It reads and writes tile by tile while it multiplies other tiles, so this is a smooth maximum of the two times.
    """
    return np.sqrt(product**2 + added**2) - product


@formula(
    r"\v{times} \cdot \v{hop} \cdot \log_2 (\v{ranks})",
    result=_TIME,
    symbols={
        "times": Symbol("k", "collectives", "number"),
        "hop": Symbol(r"\alpha", "latency per doubling of the ranks", "seconds"),
        "ranks": Symbol("G", "ranks of the group", "count"),
    },
    sources=(_NCCL,),
)
def latency_seconds(times: float, hop: float, ranks: float) -> float:
    """Return the latency of collectives, which grows with the ranks. The time to send their bytes is extra."""
    return times * hop * np.log2(ranks)


@formula(
    r"\left(\v{starting}^4 + \v{computing}^4\right)^{1/4}",
    result=Symbol(r"t_\text{o}", "time of a layer without CUDA graphs", "seconds"),
    symbols={
        "starting": Symbol(r"t_\text{h}", "time in which the host launches the kernels", "seconds"),
        "computing": Symbol(r"t_\text{c}", "time in which the accelerator runs them", "seconds"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def started_seconds(starting: float, computing: float) -> float:
    """Return a smooth maximum of the times of host and accelerator.

    If both take about as long, some kernels wait for their launch and others delay it.
    """
    return (starting**4 + computing**4) ** 0.25


@formula(
    r"\frac{\v{share} \cdot \v{time} + (\v{time} - \v{behind})"
    r" + |\v{share} \cdot \v{time} - (\v{time} - \v{behind})|}{2}",
    result=Symbol(r"t_\text{x}", "exposed time", "seconds"),
    symbols={
        "time": Symbol("t", "time of the communication", "seconds"),
        "share": Symbol("x", "share that is always exposed", "ratio"),
        "behind": Symbol(r"t_\text{c}", "compute that overlaps it", "seconds"),
    },
    sources=(_FSDP, OWN_CONSTRUCTION),
)
def exposed_seconds(time: float, share: float, behind: float) -> float:
    """Return the exposed communication: a fixed share, or all that exceeds the overlapping compute if that is more.

    Half of the sum plus half of the absolute difference is the maximum of the two.
    """
    return np.maximum(share * time, time - behind)


@formula(
    r"\v{nodes} \cdot (1 - (1 - \frac{1}{\v{nodes}})^{\v{chosen}})",
    result=Symbol("c", "nodes per token", "number"),
    symbols={
        "nodes": count("n", "nodes that have experts"),
        "chosen": count("K", "experts per token"),
    },
    sources=(DEEPSEEK_V3.at("section 3.2.2"),),
)
def nodes_met(nodes: float, chosen: float) -> float:
    """Return the expected number of nodes with a token’s experts. The network carries one copy to each.

    Raises ``ValueError`` for less than one node.
    """
    if np.any(np.less(nodes, 1)):
        raise ValueError("experts lie on at least one node")
    with np.errstate(divide="ignore"):  # On one node the logarithm is that of zero.
        return -nodes * np.expm1(chosen * np.log1p(-1 / nodes))


@formula(
    r"\v{kept} \cdot 2 + \v{gradients} + \v{weights}",
    result=Symbol("u", "bytes moved by the update per parameter", "bytes_per_parameter"),
    symbols={
        "kept": Symbol("k", "optimizer state and master weight, read and written", "bytes_per_parameter"),
        "gradients": Symbol("g", "gradient, read", "bytes_per_parameter"),
        "weights": Symbol("w", "weight, written", "bytes_per_parameter"),
    },
    sources=(ZERO.at("section 3.1"),),
)
def update_bytes(kept: float, gradients: float, weights: float) -> float:
    """Return the bytes that the optimizer moves per parameter."""
    return kept * 2 + gradients + weights


@formula(
    r"\v{share} \cdot \log_2 (\v{nodes})",
    result=Symbol("J", "time lost to stragglers and contention, over the rest of the step", "ratio"),
    symbols={
        "share": Symbol("j", "share per doubling", "ratio"),
        "nodes": Symbol("n", "accelerators over those of one node, at least 1", "number"),
    },
    sources=(_LLAMA, OWN_CONSTRUCTION),
)
def jitter_share(share: float, nodes: float) -> float:
    """Return the share lost to stragglers and contention, which grows with each doubling beyond one node."""
    return share * np.log2(nodes)


@formula(
    r"\v{share} \cdot (1 - \frac{1}{\v{accelerators}})",
    result=Symbol("K", "time lost to concurrent collectives, over the step on one accelerator", "ratio"),
    symbols={
        "share": Symbol("k", "share on many accelerators", "ratio"),
        "accelerators": count("n", "accelerators"),
    },
    sources=(OWN_CONSTRUCTION,),
)
def contention_share(share: float, accelerators: float) -> float:
    """Return the share of compute lost to concurrent collectives, which use multiprocessors, bandwidth, and power.

    It is zero on a single accelerator and grows like the bytes that a ring sends.
    """
    return share * (1 - 1 / accelerators)
