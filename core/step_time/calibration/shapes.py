"""The shape of the model that a published row ran, from its columns, or from the catalogue where it is a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.models.catalog import model_named
from core.models.spec import Experts, TransformerSpec
from core.models.spec_text import read_spec
from core.rows import whole

_UNPRINTED: Mapping[str, tuple[int, int, int, int, int]] = {
    "Nemotron-8B": (32, 4096, 32, 16384, 256000),
    "Nemotron-22B": (40, 6144, 48, 24576, 256000),
}
"""Layers, width, heads, feed-forward width and vocabulary that NeMo 24.07 does not print beside these names: those of
the released models, which give the FLOPs per token of the printed rates within 0.1 %."""

_MIXTURES: Mapping[str, str] = {
    "Nemotron_3_Nano": "Nemotron 3 Nano 30B-A3B",
    "Kimi_K2": "Kimi K2",
    "Qwen3_30B": "Qwen3 30B-A3B",
    "Qwen3_235B": "Qwen3 235B-A22B",
    "GPT OSS 20B": "gpt-oss 20B",
    "GPT OSS 120B": "gpt-oss 120B",
}
"""What rows of mixtures call a model → what the catalogue calls it. Larger Nemotron 3 run their experts at a width of
their own, and are not counted."""


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
    if name.startswith("DeepSeekV3"):
        return replace(model_named("DeepSeek-V3").spec, mtp_modules=0 if "w/o MTP" in name else 1)
    for start, known in _MIXTURES.items():
        if name.startswith(start):
            return model_named(known).spec
    raise KeyError(f"no shape is known of the mixture {name!r}")


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
    if row.get("shape"):
        return read_spec(row["shape"])
    mixed = row.get("architecture") in ("moe", "hybrid") or bool(row.get("experts"))
    return _mixture(row) if mixed else _dense(row, gpt=row["architecture"] == "gpt")
