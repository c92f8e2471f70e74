"""Memory that a serving engine counts in addition to weights, and the blocks in which it hands out the rest.

vLLM runs one pass of dummy tokens, subtracts its peak and what lies outside PyTorch from the share it may use, and
divides the rest into blocks. What no formula gives, memory outside PyTorch and CUDA graphs, is read from printed logs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from core.formula import Source, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.limits import cached
from core.models.symbols import HIDDEN, count
from core.rows import number, read_rows
from core.serving.cache import Cache

_VLLM_WORKER = Source(
    "vLLM",
    "vllm/v1/worker/gpu_worker.py, determine_available_memory, 2026",
    "https://github.com/vllm-project/vllm/blob/35d5cda123ec28581759b6d34cde8052314fb1e6/vllm/v1/worker/gpu_worker.py",
)
_LOGS = Source(
    "vLLM",
    "issue 10517: printed peaks of passes of 20,000 and 29,000 tokens",
    "https://github.com/vllm-project/vllm/issues/10517",
)
_SAMPLER = Source(
    "vLLM",
    "pull request 33538: top-k and top-p without a sort, about 80 MiB of buffers",
    "https://github.com/vllm-project/vllm/pull/33538",
)
BLOCKS = Source(
    "vLLM",
    "vllm/v1/core/kv_cache_utils.py and kv_cache_interface.py, max_memory_usage_bytes, 2026",
    "https://github.com/vllm-project/vllm/blob/001cabc1be16a59a70d720ed61a13b678c060a18/vllm/v1/kv_cache_interface.py",
)
USED_SHARE = 0.92
"""``gpu_memory_utilization`` of vLLM where it is not set."""

LARGE_MEMORY = 70 * 2.0**30
"""Memory from which on vLLM reads larger passes by default, on all cards but A100s (get_batch_defaults)."""

DRIVER = 2.0**29
"""Bytes that nvidia-smi shows and CUDA does not: 0.3 to 0.9 GiB on nine cards, 79.65 and 79.18 GiB on an H100."""

PER_LOGIT, PER_LOGIT_SORTED, SAMPLER_BUFFERS = 14.0, 38.0, 80 * 2.0**20
"""Bytes per logit while tokens are sampled: bf16 and fp32 logits, probabilities, and random numbers. Before vLLM 0.17
the logits were sorted, with indices and buffers of the sort (38)."""

TOKENS_PER_BLOCK = 16

Draft: TypeAlias = Literal["none", "MTP", "EAGLE-3"]
Version: TypeAlias = Literal["0.21 or later", "0.17 to 0.20", "before 0.17"]

MTP_FAMILIES = ("DeepseekV3", "DeepseekV32", "Glm4Moe", "Qwen3Next", "Qwen3_5", "MiMo", "LongcatFlash", "Step3p5")
"""Beginnings of the architectures whose checkpoints have multi-token prediction modules that vLLM drafts with."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Settings of vLLM. utilization: ``gpu_memory_utilization``. tokens: ``max_num_batched_tokens``, requests:
    ``max_num_seqs``; None for the default of the card. vision: parameters of the vision tower. draft: layers that
    propose tokens. version: of vLLM; before 0.17 its sampler sorted, and before 0.21 it subtracted no graphs."""

    utilization: float = USED_SHARE
    tokens: int | None = None
    requests: int | None = None
    vision: float = 0.0
    draft: Draft = "none"
    version: Version = "0.21 or later"

    def passes(self, device: Accelerator) -> tuple[int, int]:
        """Tokens of one pass, and requests of which it samples a token each."""
        large = device.memory_bytes >= LARGE_MEMORY and not device.name.startswith("A100")
        tokens = self.tokens or (8192 if large else 2048)
        return tokens, min(self.requests or (1024 if large else 256), tokens)


@formula(
    r"\v{share} \cdot \v{memory} - \v{weights} - \v{activations} - \v{outside} - \v{graphs}",
    result=Symbol("R", "bytes for KV caches on one accelerator", "bytes"),
    symbols={
        "share": Symbol("u", "gpu_memory_utilization", "ratio"),
        "memory": Symbol("M", "memory of one accelerator that CUDA reports", "bytes"),
        "weights": Symbol("W", "bytes of weights on it", "bytes"),
        "activations": Symbol("A", "peak activations of the profiling pass", "bytes"),
        "outside": Symbol("N", "memory outside PyTorch: context, libraries, NCCL", "bytes"),
        "graphs": Symbol("G", "CUDA graphs", "bytes"),
    },
    sources=(_VLLM_WORKER,),
)
def cache_room(share: float, memory: float, weights: float, activations: float, outside: float, graphs: float) -> float:
    """What vLLM prints as available KV cache memory."""
    return share * memory - weights - activations - outside - graphs


@formula(
    r"6 \cdot \v{tokens} \cdot (\v{hidden} + \v{width})",
    result=Symbol("A_l", "bytes of one pass in the layers", "bytes"),
    symbols={
        "tokens": count("T", "tokens of one pass"),
        "hidden": HIDDEN,
        "width": count("f", "feed-forward width that a token runs through on one accelerator"),
    },
    sources=(_LOGS,),
)
def layer_bytes(tokens: float, hidden: float, width: float) -> float:
    """Three tensors of the hidden and three of the feed-forward width in bf16: the slope of printed peaks."""
    return 6 * tokens * (hidden + width)


@formula(
    r"\v{each} \cdot \v{requests} \cdot \v{vocab} + 2 \cdot \v{tokens} \cdot \v{hidden} + \v{buffers}",
    result=Symbol("A_s", "bytes while tokens are sampled", "bytes"),
    symbols={
        "each": Symbol("c", "bytes per logit", "number"),
        "requests": count("B_s", "requests that get a token at once (max_num_seqs)"),
        "vocab": count("V", "vocabulary"),
        "tokens": count("T", "tokens of one pass, whose hidden states are still held"),
        "hidden": HIDDEN,
        "buffers": Symbol("b_s", "buffers of the kernel", "bytes"),
    },
    sources=(_SAMPLER,),
)
def sampler_bytes(each: float, requests: float, vocab: float, tokens: float, hidden: float, buffers: float) -> float:
    """Logits and probabilities of every request, whole on each accelerator, beside the hidden states of the pass."""
    return each * requests * vocab + 2 * tokens * hidden + buffers


@formula(
    r"\v{encoder} + \v{fullest}",
    result=Symbol("A", "peak activations of the profiling pass", "bytes"),
    symbols={
        "encoder": Symbol("A_v", "outputs of the vision encoder", "bytes"),
        "fullest": Symbol("A_f", "the larger of the bytes in the layers and while tokens are sampled", "bytes"),
    },
    sources=(_VLLM_WORKER,),
)
def activation_bytes(encoder: float, fullest: float) -> float:
    """Return the peak of the profiling pass, which keeps the encoder’s outputs until its end."""
    return encoder + fullest


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes that logs printed: memory outside PyTorch and CUDA graphs. low, middle, high: P10, P50, P90 over logs."""

    outside: tuple[float, float, float]
    graphs: tuple[float, float, float]


@cached("results_kept")
def overhead(several: bool) -> Overhead:
    """What printed logs of vLLM on one accelerator, or on several, show outside weights and activations."""
    rows = read_rows("serving_logs")

    def quantiles(column: str, kept: list[dict[str, str]]) -> tuple[float, float, float]:
        sizes = [value for row in kept if math.isfinite(value := number(row[column]))]
        low, middle, high = np.quantile(sizes, (0.1, 0.5, 0.9)) * 2**30
        return float(low), float(middle), float(high)

    alike = [row for row in rows if (int(row["tensor"]) > 1) == several]
    counted = [row for row in rows if float(row["version"].removeprefix("0.")) >= 21]
    return Overhead(quantiles("outside_gib", alike), quantiles("graphs_gib", counted))


# ------------------------------------------------------------------------------------------ blocks


@dataclass(frozen=True, slots=True)
class Blocks:
    """How vLLM hands out memory. block: bytes of one block, a page of each layer of a group. tokens: of attention in a
    block. groups: of layers, each with a table of blocks. request: blocks of one request at its full context."""

    block: float
    tokens: int
    groups: int
    request: int

    def concurrency(self, room: float) -> float:
        """Requests at full context that ``room`` bytes hold, as vLLM prints it."""
        return math.floor(room / self.block) / self.request

    def cache_tokens(self, room: float, context: int) -> int:
        """``GPU KV cache size`` as vLLM prints it."""
        if self.groups == 1:
            return math.floor(room / self.block) * self.tokens
        return int(self.concurrency(room) * context)


def blocks_of(cache: Cache, context: int, pass_tokens: int) -> Blocks:
    """Return the blocks that one request of ``context`` tokens takes, with the padding of pages and groups.

    Layers of one kind share a table. A page of attention grows to the size of a state, groups are as large as the
    rarest kind. A window keeps the tokens of one pass too, a state one copy more for the prefix cache.

    Source: vLLM, kv_cache_utils.py (group_and_unify, unify_hybrid_kv_cache_specs) and interface.py (block size).
    """
    kinds: dict[float, tuple[float, float]] = {}
    for part in cache.parts:
        layers, size = kinds.get(part.most, (0.0, 0.0))
        kinds[part.most] = max(layers, part.values["layers"]), size + float(part.bytes(min(part.most, 1.0)))
    each = {most: size / layers for most, (layers, size) in kinds.items()}
    state, token = each.pop(0.0, 0.0), max(each.values(), default=0.0)
    unit = TOKENS_PER_BLOCK * token
    page = unit * max(1, math.ceil(state / unit)) if unit else state
    held = [max(1, round(layers)) for layers, _ in kinds.values()]
    size = max(held) if max(held) < 1.25 * min(held) else min(held)
    request = 0
    for (most, _), layers in zip(kinds.items(), held, strict=True):
        if most == 0:
            taken = 2
        else:
            tokens = int(page / each[most])
            windowed = math.isfinite(most)
            taken = (
                math.ceil(min(context, most - 1 + pass_tokens) / tokens) + 1
                if windowed
                else math.ceil(context / tokens)
            )
        request += taken * math.ceil(layers / size)
    return Blocks(size * page, int(page / token) if token else context, sum(math.ceil(n / size) for n in held), request)


# ------------------------------------------------------------------------------------------ SGLang

_TIERS: Mapping[float, tuple[int, int, int]] = MappingProxyType(
    {20: (2048, 8, 8), 35: (2048, 24, 80), 60: (4096, 32, 160), 160: (8192, 256, 512), math.inf: (16384, 512, 512)}
)
"""GiB under which a card reads so many tokens in a pass, and the largest batch of its graphs on under four cards and
on more."""


def sglang_room(memory: float, weights: float, tensor: int, draft: bool) -> float:
    """Bytes of SGLang’s token pool on one accelerator under its default ``mem_fraction_static``.

    Args:
        memory: Bytes that CUDA reports.
        weights: Bytes of weights on the accelerator.

    Source: SGLang, server_args.py, which reserves 1.5 MiB per token of a pass, 2 MiB per request of the largest graph.
    """
    if not math.isfinite(memory):
        return math.nan
    gib = memory / 2**30
    tokens, few, many = next(row for below, row in _TIERS.items() if gib < below)
    reserved = 512 + 1.5 * max(tokens, 2048) + 2 * (few if tensor < 4 else many) + tensor / 8 * 1024
    reserved = max(reserved, 10 * 1024 if gib > 60 else 0) + (2048 if draft else 0)
    return memory - reserved * 2**20 - weights
