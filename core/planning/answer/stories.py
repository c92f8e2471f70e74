"""Plans worth telling, as texts of the plan's fields."""

from __future__ import annotations

from collections.abc import Mapping

from core.planning.answer.plan import OWN, TYPED

_NEXT = (
    "layers=48 hidden=4096 heads=32 kv_heads=4 head_dim=128 ffn=0 vocab=128000 glu=yes tied_head=no qk_norm=head "
    "experts.count=128 experts.per_token=8 experts.width=1536"
)


def _story(model: str, tokens: str, gpu: str, count: str, mfu: str, seq: str, **more: str) -> Mapping[str, str]:
    """Every field shown, so that the chip is lit only when all of them match."""
    usual = {"find": "time", "dtype": "bf16", "attn": "causal", "price": "", "pace": "all hours"}
    return {**usual, "model": model, "tokens": tokens, "gpu": gpu, "count": count, "mfu": mfu, "seq": seq, **more}


LECTURE = "Lecture: 70B on 1,024 H100"
STORIES: Mapping[str, Mapping[str, str]] = {
    "Llama 3.1 405B as trained": _story(
        "Llama 3.1 405B", "15.6T", "H100 SXM", "16,384", "41%", "8192", pace="steady steps"
    ),
    LECTURE: _story(TYPED, "15T", "H100 SXM", "1024", "0.5", "8192", n="70B"),
    "GPT-3 175B": _story("GPT-3 175B", "300B", "V100 SXM 32 GB", "10,000", "21.3%", "2048", dtype="fp16"),
    "Llama 2 70B": _story("Llama 2 70B", "2T", "A100 SXM 80 GB", "2048", "40%", "4096"),
    "DeepSeek-V3": _story("DeepSeek-V3", "14.8T", "H800 SXM", "2048", "published", "4096", dtype="fp8"),
    "GPT-2 124M on one node": _story("GPT-2 124M", "10B", "A100 SXM 80 GB", "8", "0.5", "1024"),
    "Our next model": _story(
        OWN, "15T", "H100 SXM", "512", "published", "8192", find="tokens", within="60 days", shape=_NEXT
    ),
}
"""The chips of Compute budget."""

REMARKS: Mapping[str, str] = {
    LECTURE: "**50 % is the lecture’s assumption**, taken for every hour: 143.9 days. Type “published” for what runs "
    "of this kind took.",
}
"""What is to be said beside a story."""


_MIXED, _MEGATRON = "mixed bf16, fp32 master", "mixed bf16, fp32 master, fp32 gradients"


def _states(n: str, policy: str, **more: str) -> Mapping[str, str]:
    """Every field shown of the model states of typed parameters on eight H100s, unless others are named."""
    usual = {"model": TYPED, "opt": "AdamW", "gpu": "H100 SXM", "count": "8", "zero": "3"}
    return {**usual, "n": n, "prec": policy, **more}


MEMORY_STORIES: Mapping[str, Mapping[str, str]] = {
    "Lecture: 8 × H100, fp32 AdamW": _states("40B", "fp32"),
    "Does mixed precision save?": _states("40B", _MIXED),
    "70B checkpoint": _states("70B", "fp32"),
    "Without sharding": _states("7B", "fp32", zero="0"),
    "7B on one 24 GB card": _states("7B", _MIXED, gpu="RTX 4090", count="1"),
    "Llama 3.1 405B states": _states("405.85B", _MEGATRON, count="96"),
}
"""The chips of Training memory."""
