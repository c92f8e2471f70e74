"""Plans worth telling, as texts of the plan's fields."""

from __future__ import annotations

from collections.abc import Mapping

from core.planning.plan import FASTEST, FINE_TUNING_BATCH, OWN_LAYOUT, OWN_SHAPE, TYPED
from core.training.precision import USUAL_POLICY

_NEXT = (
    "layers=48 hidden=4096 heads=32 kv_heads=4 head_dim=128 ffn=0 vocab=128000 glu=yes tied_head=no qk_norm=head "
    "experts.count=128 experts.per_token=8 experts.width=1536"
)

_MEGATRON = "mixed bf16, fp32 master, fp32 gradients"
_WHOLE = {
    **dict.fromkeys(("mbs", "tp", "pp", "vpp", "cp", "ep"), "1"),
    "etp": "",
    "zero": "3",
    "rc": "full",
    "prec": USUAL_POLICY,
}
_LLAMA = {"tp": "8", "pp": "16", "vpp": "8", "zero": "1", "rc": "selective", "prec": _MEGATRON}
_DEEPSEEK = {"pp": "16", "ep": "64", "zero": "1", "rc": "full", "prec": "mixed bf16, fp32 master, bf16 states"}
"""Layouts: one that splits no model, and those that were published. How many chunks a stage of Llama 3.1 had is not:
with eight, each of the 126 layers and both ends has one (arXiv:2407.21783, section 3.3.2: interleaved)."""


def _preset(model: str, tokens: str, gpu: str, count: str, mfu: str, seq: str, **more: str) -> Mapping[str, str]:
    """Return every field shown, so that the preset is lit only when all of them match, and the layout that must hold
    it."""
    usual = {**_WHOLE, "find": "time", "dtype": "bf16", "attn": "causal", "price": "", "pace": "all hours"}
    usual["gb"] = "16M tokens"
    return {**usual, "model": model, "tokens": tokens, "gpu": gpu, "count": count, "mfu": mfu, "seq": seq, **more}


LECTURE = "Lecture: 70B on 1,024 H100"
PRESETS: Mapping[str, Mapping[str, str]] = {
    "Llama 3.1 405B as trained": _preset(
        "Llama 3.1 405B", "15.6T", "H100 SXM", "16,384", "41%", "8,192", pace="steady steps", **_LLAMA
    ),
    LECTURE: _preset(TYPED, "15T", "H100 SXM", "1,024", "0.5", "8,192", n="70B"),
    "GPT-3 175B": _preset(
        "GPT-3 175B", "300B", "V100 SXM 32 GB", "10,000", "21.3%", "2,048", dtype="fp16", gb="3.2M tokens"
    ),
    "Llama 2 70B": _preset("Llama 2 70B", "2T", "A100 SXM 80 GB", "2,048", "40%", "4,096", gb="4M tokens"),
    "DeepSeek-V3": _preset(
        *("DeepSeek-V3", "14.8T", "H800 SXM", "2,048", "published", "4,096"),
        dtype="fp8",
        gb="62.9M tokens",
        lay=FASTEST,  # its own schedule, two directions at once, is none that can be typed
        prec=_DEEPSEEK["prec"],
    ),
    "GPT-2 124M on one node": _preset("GPT-2 124M", "10B", "A100 SXM 80 GB", "8", "0.5", "1,024", gb="512"),
    "Our next model": _preset(
        OWN_SHAPE, "15T", "H100 SXM", "512", "published", "8,192", find="tokens", within="60 days", shape=_NEXT
    ),
}
"""The presets of Compute budget."""


def _memory_preset(seq: str, **more: str) -> Mapping[str, str]:
    """Return every field shown of a step on eight H100s under ZeRO-3, one sequence at a time, unless others are
    named."""
    usual = {**_WHOLE, "lay": OWN_LAYOUT, "model": TYPED, "opt": "AdamW", "gpu": "H100 SXM", "count": "8", "rc": "none"}
    return {**usual, "seq": seq, **more}


def _tuned(model: str, gpu: str, count: str, **more: str) -> Mapping[str, str]:
    """Return fine-tuning on 10M tokens, adapters beside every matrix unless others are named, layers computed again."""
    usual = {"model": model, "gpu": gpu, "count": count, "tokens": "10M", "ft": "adapters", "target": "all-linear"}
    usual |= {"rank": "16", "frozen": "bf16", "prec": "bf16 throughout", "rc": "full", "seq": "2,048", "mbs": "1"}
    usual |= {"gb": FINE_TUNING_BATCH}  # once the layout no longer decides it
    usual |= {"lay": OWN_LAYOUT, "acc": "1", "sw": "PyTorch, eager", "opt": "AdamW", "ctx": "0.6 GB"}
    return {**_WHOLE, **usual, **more}


FIRST_TUNING = "QLoRA 8B on 24 GB"
"""What a newcomer asks first."""

MEMORY_PRESETS: Mapping[str, Mapping[str, str]] = {
    "Lecture: 40B, fp32 AdamW": _memory_preset("4,096", n="40B", prec="fp32"),
    "8B on one node": _memory_preset("8,192", model="Llama 3.1 8B"),
    "70B on one node": _memory_preset("4,096", model="Llama 3.3 70B"),
    "7B on one 24 GB card": _memory_preset("2,048", n="7B", gpu="RTX 4090", count="1"),
    "QLoRA 8B on 24 GB": _tuned("Llama 3.1 8B", "RTX 4090", "1", frozen="nf4, double"),
    "Full 8B on one 80 GB": _tuned("Llama 3.1 8B", "H100 SXM", "1", ft="everything", opt="8-bit Adam", paged="true"),
    "LoRA 70B on 8 H100": _tuned("Llama 3.1 70B", "H100 SXM", "8"),
    "70B QLoRA on 2 × 24 GB": _tuned("Llama 2 70B", "RTX 4090", "2", frozen="nf4, double", seq="512"),
    "1B full on 8 GB": _tuned(
        *("Llama 3.2 1B", "RTX 4060", "1"), ft="everything", opt="8-bit Adam", paged="true", inb="true", seq="1,024"
    ),
    "Without sharding": _memory_preset("4,096", n="7B", zero="0", prec="fp32"),
    "Llama 3.1 405B, TP 8, PP 16": _memory_preset("8,192", model="Llama 3.1 405B", count="16,384", **_LLAMA),
    "DeepSeek-V3, PP 16, EP 64": _memory_preset(
        "4,096", model="DeepSeek-V3", gpu="H800 SXM", count="2,048", **_DEEPSEEK
    ),
}
"""The presets of Training memory."""


_WAY = {
    "find": "time",
    "opt": "AdamW",
    "prec": USUAL_POLICY,
    "dtype": "bf16",
    **dict.fromkeys(("ktp", "kpp", "kvpp", "kcp", "kep", "ketp", "kmbs"), ""),
    "kzero": "any",
    "krc": "any",
    "knode": "true",
    "koff": "false",
}
"""Nothing to keep to, in 16 bits."""


def _search_preset(
    model: str, tokens: str, gpu: str, count: str, seq: str, batch: str, **more: str
) -> Mapping[str, str]:
    return {**_WAY, "model": model, "tokens": tokens, "gpu": gpu, "count": count, "seq": seq, "gb": batch, **more}


_H100 = "H100 SXM"
SEARCH_PRESETS: Mapping[str, Mapping[str, str]] = {
    "Llama 3.1 405B on 16,384 H100": _search_preset(
        "Llama 3.1 405B", "15.6T", _H100, "16,384", "8,192", "16M tokens", prec=_MEGATRON
    ),
    "70B on 512 H100": _search_preset("Llama 3.3 70B", "15T", _H100, "512", "8,192", "4M tokens"),
    "DeepSeek-V3 on 2,048 H800": _search_preset(
        "DeepSeek-V3",
        "14.8T",
        "H800 SXM",
        "2,048",
        "4,096",
        "62.9M tokens",
        dtype="fp8",
        prec="mixed bf16, fp32 master, bf16 states",
    ),
    "Mixtral 8x7B on 128 H100": _search_preset("Mixtral 8x7B", "2T", _H100, "128", "4,096", "1,024"),
    "8B on 64 H100": _search_preset("Llama 3.1 8B", "1T", _H100, "64", "8,192", "4M tokens"),
    "13B on one node": _search_preset("Llama 2 13B", "100B", "A100 SXM 80 GB", "8", "4,096", "256"),
}
"""The presets of Parallel plan."""
