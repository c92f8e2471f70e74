"""More families of models as Hugging Face transformers knows them; see `core.models.configs.families`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.models.configs.keys import (
    BIASED,
    EXPERTS,
    GROUPED,
    HEADED,
    QKV_BIASED,
    SHORT,
    USUAL,
    WINDOW,
    Family,
    every,
    keys,
    sizes,
)

if TYPE_CHECKING:
    from core.models.configs.fields import Fields

_LAYERNORM = {"norm": "layernorm", "norm_vectors": 2}
_GATED = {"glu": True}
_NORMED = keys("qk_normed=use_qk_norm")


def _one_norm(f: Fields) -> Mapping[str, Any]:
    """Blocks that run attention and feed-forward network side by side norm their input once."""
    return {"norms_per_layer": 1 if f.parallel else 2, "qk_norm": "full" if f.qk_normed else "none"}


def _full_norm(f: Fields) -> Mapping[str, Any]:
    return {"qk_norm": "full" if f.qk_normed else "none"}


def _glm_mixture(f: Fields) -> Mapping[str, Any]:
    """Heads are as wide as fit where nothing says how wide, though some of the width is then left over."""
    return {"qk_norm": "head" if f.qk_normed else "none", "head_dim": f.head_dim or max(f.hidden // f.heads, 1)}


def _learned_activation(f: Fields) -> Mapping[str, Any]:
    """xIELU learns two numbers; other activation functions learn none."""
    return {"activation_scalars": 2 if f.activation == "xielu" else 0}


_GLM = {**sizes(40, 4096, 32, 13696, 151552, 131072), "kv_heads": 2, "head_dim": 128, "attention_bias": True}

MORE: Mapping[str, Family] = {
    "phi": Family(
        "Phi",
        {**GROUPED, **HEADED},
        sizes(24, 2048, 32, 8192, 51200, 2048),
        {
            **_LAYERNORM,
            **dict.fromkeys(("attention_bias", "output_bias", "ffn_bias", "head_bias", "parallel_blocks"), True),
            "glu": False,
            "norms_per_layer": 1,
        },
        only={"qk_layernorm": False},
    ),
    "gptj": Family(
        "GPT-J",
        {**SHORT, **keys("hidden=n_embd|hidden_size max_seq=n_positions|max_position_embeddings ffn=n_inner")},
        {**sizes(28, 4096, 16, None, 50400, 2048), "ffn_times": 4},
        {
            **_LAYERNORM,
            **dict.fromkeys(("ffn_bias", "head_bias", "parallel_blocks"), True),
            "glu": False,
            "norms_per_layer": 1,
        },
    ),
    "stablelm": Family(
        "StableLM",
        {**GROUPED, **keys("attention_bias=use_qkv_bias parallel=use_parallel_residual qk_normed=qk_layernorm")},
        {**sizes(32, 2560, 32, 6912, 50304, 4096), "kv_heads": 32},
        {**_GATED, **_LAYERNORM},
        _one_norm,
    ),
    "starcoder2": Family(
        "StarCoder2",
        {**GROUPED, **HEADED, **WINDOW, **keys("attention_bias=use_bias output_bias=use_bias ffn_bias=use_bias")},
        {
            **sizes(30, 3072, 24, 12288, 49152, 4096, tied=True),
            **dict.fromkeys(("attention_bias", "output_bias", "ffn_bias"), True),
            "kv_heads": 2,
        },
        {"glu": False, **_LAYERNORM},
        windowed=every,
    ),
    "cohere": Family(
        "Command R",
        {**BIASED, **HEADED, **_NORMED},
        sizes(40, 8192, 64, 22528, 256000, 8192, tied=True),
        {**_GATED, "norm": "layernorm", "norms_per_layer": 1, "parallel_blocks": True},
        _full_norm,
    ),
    "granite": Family(
        "Granite",
        {**BIASED, **HEADED, **keys("ffn_bias=mlp_bias")},
        sizes(32, 4096, 32, 11008, 32000, 2048),
        _GATED,
    ),
    "nemotron": Family(
        "Nemotron",
        {**BIASED, **HEADED, **keys("ffn_bias=mlp_bias")},
        sizes(32, 6144, 48, 24576, 256000, 4096),
        {"glu": False, **_LAYERNORM},
    ),
    "apertus": Family(
        "Apertus",
        {**BIASED, **HEADED, **keys("activation=hidden_act")},
        {**sizes(32, 4096, 32, 14336, 131072, 65536), "activation": "xielu"},
        {"glu": False, "qk_norm": "head"},
        _learned_activation,
    ),
    "glm": Family("GLM", {**QKV_BIASED, **HEADED}, _GLM, _GATED),
    "glm4": Family("GLM-4", {**QKV_BIASED, **HEADED}, _GLM, {**_GATED, "norms_per_layer": 4}),
    "glm4_moe": Family(
        "GLM-4 MoE",
        {
            **QKV_BIASED,
            **HEADED,
            **EXPERTS,
            **_NORMED,
            **keys(
                "experts=n_routed_experts|num_local_experts expert_width=moe_intermediate_size "
                "shared=n_shared_experts dense_first=first_k_dense_replace mtp=num_nextn_predict_layers|num_mtp_layers"
            ),
        },
        {
            **sizes(46, 4096, 96, 10944, 151552, 131072),
            "kv_heads": 8,
            "experts": 128,
            "per_token": 8,
            "expert_width": 1408,
            "shared": 1,
            "dense_first": 1,
            "mtp": 1,
        },
        _GATED,
        _glm_mixture,
    ),
    "llama4_text": Family(
        "Llama 4",
        {
            **USUAL,
            **BIASED,
            **HEADED,
            **EXPERTS,
            **keys(
                "ffn=intermediate_size_mlp expert_width=intermediate_size experts=num_local_experts "
                "moe_listed=moe_layers moe_every=interleave_moe_layer_step"
            ),
        },
        {
            **sizes(48, 5120, 40, 16384, 202048, 131072),
            "kv_heads": 8,
            "head_dim": 128,
            "experts": 16,
            "per_token": 1,
            "expert_width": 8192,
            "shared": 1,
            "moe_every": 1,
        },
        _GATED,
        note="Attention in chunks is counted as attention to everything: beyond the length of a chunk "
        "(attention_chunk_size) that is more than the model computes.",
        inert=("attention_chunk_size", "layer_types", "no_rope_layer_interval", "no_rope_layers", "use_qk_norm"),
    ),
}
"""These families, by their ``model_type``."""
