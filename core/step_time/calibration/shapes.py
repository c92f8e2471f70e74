"""The shape of the model that a published row ran, from its columns, or from the catalogue where it is a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.models.catalog import model_named
from core.models.mixer import Mixer
from core.models.spec import Experts, TransformerSpec
from core.rows import whole

_UNPRINTED: Mapping[str, tuple[int, int, int, int, int]] = {
    "Nemotron-8B": (32, 4096, 32, 16384, 256000),
    "Nemotron-22B": (40, 6144, 48, 24576, 256000),
}
"""Layers, width, heads, feed-forward width and vocabulary that NeMo 24.07 does not print beside these names: those of
the released models, which give the FLOPs per token of the printed rates within 0.1 %."""


def _mixture(row: Mapping[str, str]) -> TransformerSpec:
    """The mixture that the row names, or whose shape it spells out."""
    name = row["model"]
    if row.get("experts"):
        experts = Experts(
            count=whole(row["experts"]),
            per_token=whole(row["experts_per_token"]),
            width=whole(row["expert_width"]),
            shared=whole(row["shared_experts"]),
            dense_layers=whole(row["dense_layers"]),
        )
        return replace(_dense(row, gpt=False, experts=experts), tied_head="Grok" in name)
    deepseek, qwen, gpt_oss = (model_named(item).spec for item in ("DeepSeek-V3", "Qwen3 30B-A3B", "gpt-oss 20B"))
    if name.startswith("DeepSeekV3"):
        return replace(deepseek, mtp_modules=0 if "w/o MTP" in name else 1)
    if name.startswith("Kimi_K2") and deepseek.experts:
        experts = replace(deepseek.experts, count=384, dense_layers=1)
        return replace(deepseek, heads=64, kv_heads=64, vocab=163_840, experts=experts)
    if name.startswith("Qwen3_30B"):
        return qwen
    if name.startswith("Qwen3_235B") and qwen.experts:
        return replace(qwen, layers=94, hidden=4096, heads=64, experts=replace(qwen.experts, width=1536))
    if name.startswith("GPT OSS 20B"):
        return gpt_oss
    if name.startswith("GPT OSS 120B") and gpt_oss.experts:
        return replace(gpt_oss, layers=36, experts=replace(gpt_oss.experts, count=128))
    raise KeyError(f"no shape is known of the mixture {name!r}")


def _hybrid(name: str) -> TransformerSpec:
    """Nemotron 3 Nano, whose 52 layers are 23 states, 6 of attention and 23 mixtures, as pairs of one and the other.

    From Megatron-Bridge, r0.3.0, nemotron_h_provider.py. Larger ones run their experts at a width of their own.
    """
    if not name.startswith("Nemotron_3_Nano"):
        raise KeyError(f"no shape is known of the hybrid {name!r}")
    return TransformerSpec(
        layers=29,
        hidden=2688,
        heads=32,
        kv_heads=2,
        head_dim=128,
        ffn=0,
        vocab=131_072,
        glu=False,
        tied_head=False,
        positions="none",
        experts=Experts(count=128, per_token=6, width=1856, shared=1, shared_width=3712, dense_layers=6),
        mixer=Mixer("mamba2", layers=23, heads=64, width=64, state=128, groups=8, conv_bias=True),
    )


def _dense(row: Mapping[str, str], *, gpt: bool, experts: Experts | None = None) -> TransformerSpec:
    """The shape in the row's columns."""
    known = next((shape for name, shape in _UNPRINTED.items() if row["model"].startswith(name)), None)
    columns = (whole(row[name]) for name in ("layers", "hidden", "heads", "ffn", "vocab"))
    layers, hidden, heads, ffn, vocab = known or columns
    nemotron = "Nemotron" in row["model"]
    biases = gpt and not nemotron and not row["model"].startswith("MPT")
    return TransformerSpec(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=whole(row["kv_heads"]) or heads,
        head_dim=hidden // heads,
        ffn=ffn,
        vocab=vocab,
        glu=not gpt,
        tied_head=gpt and not nemotron,
        norm="layernorm" if gpt else "rmsnorm",
        norm_vectors=2 if biases else 1,
        attention_bias=biases,
        output_bias=biases,
        ffn_bias=biases,
        position_rows=whole(row["seq_len"]) if gpt and not nemotron else 0,
        experts=experts,
        parallel_blocks=row["model"].startswith("MegaScale"),
    )


def shape_of_row(row: Mapping[str, str]) -> TransformerSpec:
    """The model of a row; raises ``KeyError`` or ``SpecError`` where the row does not say enough."""
    if row.get("architecture") == "hybrid":
        return _hybrid(row["model"])
    mixed = row.get("architecture") == "moe" or bool(row.get("experts"))
    return _mixture(row) if mixed else _dense(row, gpt=row["architecture"] == "gpt")
