"""Families of models as Hugging Face transformers knows them: what a config.json calls things, and what it leaves out.

One entry per ``model_type``. Defaults are those of the family's configuration class, so a field that a file omits
means here what it means there; what the class builds whatever the file says is ``fixed``. Keys, defaults and shapes
were read in https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.models.configs.families_more import MORE
from core.models.configs.families_state import STATES
from core.models.configs.keys import (
    BIASED,
    DEEPSEEK,
    EXPERTS,
    GROUPED,
    HEADED,
    MOSAIC,
    QWEN_EXPERTS,
    SHORT,
    SWITCHED,
    TYPED,
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
_ALL_BIASES = {"attention_bias": True, "output_bias": True, "ffn_bias": True}
_PLAIN = {**_LAYERNORM, "glu": False}
_LLAMA = {"glu": True}


def _alternate(_: Fields, layer: int) -> bool:
    return layer % 2 == 0


def _three_of_four(_: Fields, layer: int) -> bool:
    return (layer + 1) % 4 != 0


def _but_every_nth(f: Fields, layer: int) -> bool:
    return (layer + 1) % (f.window_every or 1) != 0


def _above(f: Fields, layer: int) -> bool:
    return layer >= (f.window_from or 0)


def _alternate_below(f: Fields, layer: int) -> bool:
    return layer % 2 == 0 and layer < (f.window_from or 0)


def _without_rotation(f: Fields, layer: int) -> bool:
    if f.rotary_layers is not None:
        return layer < len(f.rotary_layers) and not f.rotary_layers[layer]
    return (layer + 1) % (f.rotary_every or 1) == 0


def _falcon(f: Fields) -> Mapping[str, Any]:
    """Falcon 40B and 180B group keys and values; the 7B shares one; older ones have as many as queries."""
    own = f.norms_in_parallel or (2 if f.grouped else 1)
    return {
        "kv_heads": (f.kv_heads or f.heads) if f.grouped else 1 if f.multi_query else f.heads,
        "norms_per_layer": min(own, 2) if f.parallel else 2,
        "positions": "alibi" if f.alibi else "",
    }


def _opt(f: Fields) -> Mapping[str, Any]:
    """OPT has two position rows beyond the longest sequence; the 350M norms last and narrows its token table."""
    return {
        "position_rows": (f.max_seq or 0) + 2,
        "norms_outside": int(f.norm_first and not f.norm_removed),
        "norm_vectors": 2 if f.norm_learned else 0,
    }


def _gpt2(f: Fields) -> Mapping[str, Any]:
    return {"position_rows": f.max_seq or 0}


FAMILIES: Mapping[str, Family] = {
    "gpt2": Family(
        "GPT-2",
        {**SHORT, **keys("hidden=n_embd|hidden_size max_seq=n_positions|max_position_embeddings ffn=n_inner")},
        {**sizes(12, 768, 12, None, 50257, 1024, tied=True), "ffn_times": 4},
        {**_PLAIN, **_ALL_BIASES},
        _gpt2,
        only={"add_cross_attention": False},
    ),
    "gpt_neox": Family(
        "GPT-NeoX",
        {
            **USUAL,
            **keys("attention_bias=attention_bias output_bias=attention_bias parallel=use_parallel_residual"),
        },
        {
            **sizes(44, 6144, 64, 24576, 50432, 2048),
            "attention_bias": True,
            "output_bias": True,
            "parallel": True,
        },
        {**_PLAIN, "ffn_bias": True},
    ),
    "opt": Family(
        "OPT",
        {
            **USUAL,
            **keys(
                "ffn=ffn_dim embedding_width=word_embed_proj_dim attention_bias=enable_bias output_bias=enable_bias "
                "ffn_bias=enable_bias norm_first=do_layer_norm_before norm_removed=_remove_final_layer_norm "
                "norm_learned=layer_norm_elementwise_affine"
            ),
        },
        {**sizes(12, 768, 12, 3072, 50272, 2048, tied=True), **_ALL_BIASES, "norm_removed": False},
        _PLAIN,
        _opt,
    ),
    "bloom": Family(
        "BLOOM",
        {**SHORT, **keys("hidden=n_embed|hidden_size max_seq=seq_length")},
        {**sizes(2, 64, 8, None, 250880, 2048, tied=True), "ffn_times": 4},
        {**_PLAIN, **_ALL_BIASES, "norms_outside": 2, "positions": "alibi"},
    ),
    "falcon": Family(
        "Falcon",
        {
            **SHORT,
            **keys(
                "layers=num_hidden_layers|n_layer heads=num_attention_heads|n_head hidden=hidden_size|n_embed "
                "kv_heads=num_kv_heads|n_head_kv ffn=ffn_hidden_size max_seq=max_position_embeddings "
                "attention_bias=bias output_bias=bias ffn_bias=bias parallel=parallel_attn alibi=alibi "
                "multi_query=multi_query grouped=new_decoder_architecture norms_in_parallel=num_ln_in_parallel_attn"
            ),
        },
        {
            **sizes(32, 4544, 71, None, 65024, 2048, tied=True),
            "ffn_times": 4,
            "multi_query": True,
            "parallel": True,
        },
        _PLAIN,
        _falcon,
    ),
    "mpt": Family(
        "MPT",
        MOSAIC,
        {**sizes(24, 2048, 16, None, 50368, 2048, tied=True), "ffn_times": 4},
        {"glu": False, "norm": "layernorm", "positions": "alibi"},
        inert=(
            *(f"attn_config.{key}" for key in ("alibi", "alibi_bias_max", "attn_impl", "attn_type", "softmax_scale")),
            *("embedding_fraction", "learned_pos_emb", "norm_type"),
        ),
        built={"expansion_ratio": 4},
    ),
    "llama": Family(
        "LLaMA",
        {**BIASED, **HEADED, **keys("ffn_bias=mlp_bias")},
        sizes(32, 4096, 32, 11008, 32000, 2048),
        _LLAMA,
    ),
    "mistral": Family(
        "Mistral",
        {**GROUPED, **HEADED, **WINDOW},
        {**sizes(32, 4096, 32, 14336, 32000, 131072), "kv_heads": 8, "window": 4096},
        _LLAMA,
        windowed=every,
    ),
    "mixtral": Family(
        "Mixtral",
        {**GROUPED, **HEADED, **WINDOW, **EXPERTS, **keys("experts=num_local_experts|num_experts")},
        {**sizes(32, 4096, 32, 14336, 32000, 131072), "kv_heads": 8, "experts": 8, "per_token": 2},
        _LLAMA,
        windowed=every,
    ),
    "qwen2": Family(
        "Qwen2",
        {**GROUPED, **SWITCHED},
        {
            **sizes(32, 4096, 32, 22016, 151936, 32768),
            "kv_heads": 32,
            "window": 4096,
            "window_on": False,
            "window_from": 28,
        },
        {**_LLAMA, "attention_bias": True},
        windowed=_above,
    ),
    "qwen2_moe": Family(
        "Qwen2 MoE",
        {
            **GROUPED,
            **SWITCHED,
            **QWEN_EXPERTS,
            **keys("attention_bias=qkv_bias shared_width=shared_expert_intermediate_size"),
        },
        {
            **sizes(24, 2048, 16, 5632, 151936, 32768),
            "kv_heads": 16,
            "window": 4096,
            "window_on": False,
            "window_from": 28,
            "attention_bias": True,
            "experts": 60,
            "per_token": 4,
            "expert_width": 1408,
            "shared": 1,
            "shared_width": 5632,
            "moe_every": 1,
        },
        _LLAMA,
        windowed=_alternate_below,
    ),
    "qwen3": Family(
        "Qwen3",
        {**BIASED, **HEADED, **SWITCHED},
        {
            **sizes(32, 4096, 32, 22016, 151936, 32768),
            "kv_heads": 32,
            "head_dim": 128,
            "window": 4096,
            "window_on": False,
            "window_from": 28,
        },
        {**_LLAMA, "qk_norm": "head"},
        windowed=_above,
    ),
    "qwen3_moe": Family(
        "Qwen3 MoE",
        {**BIASED, **HEADED, **WINDOW, **keys("window_on=use_sliding_window"), **QWEN_EXPERTS},
        {
            **sizes(24, 2048, 32, 6144, 151936, 32768),
            "kv_heads": 4,
            "window": 4096,
            "window_on": False,
            "experts": 128,
            "per_token": 8,
            "expert_width": 768,
            "moe_every": 1,
        },
        {**_LLAMA, "qk_norm": "head"},
        windowed=every,
    ),
    "gemma": Family(
        "Gemma",
        {**BIASED, **HEADED},
        {**sizes(28, 3072, 16, 24576, 256000, 8192, tied=True), "kv_heads": 16, "head_dim": 256},
        _LLAMA,
    ),
    "gemma2": Family(
        "Gemma 2",
        {**BIASED, **HEADED, **TYPED},
        {
            **sizes(26, 2304, 8, 9216, 256000, 8192, tied=True),
            "kv_heads": 4,
            "head_dim": 256,
            "window": 4096,
        },
        {**_LLAMA, "norms_per_layer": 4},
        windowed=_alternate,
    ),
    "gemma3_text": Family(
        "Gemma 3",
        {**BIASED, **HEADED, **TYPED, **keys("window_every=sliding_window_pattern")},
        {
            **sizes(26, 2304, 8, 9216, 262208, 131072, tied=True),
            "kv_heads": 4,
            "head_dim": 256,
            "window": 4096,
            "window_every": 6,
        },
        {**_LLAMA, "norms_per_layer": 4, "qk_norm": "head"},
        windowed=_but_every_nth,
        only={"use_bidirectional_attention": False},
        inert=("_sliding_window_pattern",),
    ),
    "phi3": Family(
        "Phi-3",
        {**GROUPED, **HEADED, **WINDOW},
        sizes(32, 3072, 32, 8192, 32064, 4096),
        _LLAMA,
        windowed=every,
    ),
    "deepseek_v2": Family(
        "DeepSeek-V2",
        DEEPSEEK,
        {
            **sizes(32, 4096, 32, 11008, 102400, 2048),
            "experts": 64,
            "expert_width": 1407,
            "shared": 2,
            "dense_first": 0,
            "query_rank": 1536,
            "kv_rank": 512,
            "nope_dim": 128,
            "rope_dim": 64,
            "value_dim": 128,
        },
        _LLAMA,
        only={"mlp_bias": False, "moe_layer_freq": 1},
        inert=("head_dim", "qk_head_dim"),
    ),
    "deepseek_v3": Family(
        "DeepSeek-V3",
        DEEPSEEK,
        {
            **sizes(61, 7168, 128, 18432, 129280, 4096),
            "kv_heads": 128,
            "experts": 256,
            "per_token": 8,
            "expert_width": 2048,
            "shared": 1,
            "dense_first": 3,
            "query_rank": 1536,
            "kv_rank": 512,
            "nope_dim": 128,
            "rope_dim": 64,
            "value_dim": 128,
            "mtp": 1,
        },
        _LLAMA,
        only={"moe_layer_freq": 1},
        inert=("head_dim", "qk_head_dim"),
    ),
    "olmo": Family(
        "OLMo",
        BIASED,
        sizes(32, 4096, 32, 11008, 50304, 2048),
        {**_LLAMA, "norm": "layernorm", "norm_vectors": 0},
    ),
    "olmo2": Family(
        "OLMo 2",
        {**BIASED, **HEADED},
        sizes(32, 4096, 32, 11008, 50304, 2048),
        {**_LLAMA, "qk_norm": "full"},
    ),
    "olmo3": Family(
        "OLMo 3",
        {**BIASED, **HEADED, **TYPED},
        {**sizes(32, 4096, 32, 11008, 50304, 2048), "window": 4096},
        {**_LLAMA, "qk_norm": "full"},
        windowed=_three_of_four,
    ),
    "olmoe": Family(
        "OLMoE",
        {**BIASED, **HEADED, **EXPERTS, **keys("experts=num_experts|num_local_experts")},
        {**sizes(16, 2048, 16, 2048, 50304, 4096), "experts": 64, "per_token": 8},
        {**_LLAMA, "qk_norm": "full"},
    ),
    "smollm3": Family(
        "SmolLM3",
        {
            **BIASED,
            **HEADED,
            **SWITCHED,
            **keys("ffn_bias=mlp_bias rotary_layers=no_rope_layers rotary_every=no_rope_layer_interval"),
        },
        {
            **sizes(36, 2048, 16, 11008, 128256, 32768, tied=True),
            "kv_heads": 4,
            "window_on": False,
            "rotary_every": 4,
        },
        _LLAMA,
        windowed=_without_rotation,
    ),
    "dbrx": Family(
        "DBRX",
        {
            **MOSAIC,
            **keys(
                "expert_width=ffn_config.ffn_hidden_size experts=ffn_config.moe_num_experts "
                "per_token=ffn_config.moe_top_k kv_heads=attn_config.kv_n_heads"
            ),
        },
        {
            **sizes(24, 2048, 16, None, 32000, 2048),
            "kv_heads": 1,
            "expert_width": 3584,
            "experts": 4,
            "per_token": 1,
        },
        {**_LLAMA, "norm": "layernorm"},
        inert=(
            *(f"ffn_config.{key}" for key in ("ffn_act_fn", "hidden_size", "moe_loss_weight")),
            *("ffn_config.moe_normalize_expert_weights", "num_key_value_heads"),
        ),
    ),
    "gpt_oss": Family(
        "gpt-oss",
        {**BIASED, **HEADED, **TYPED, **EXPERTS, **keys("experts=num_local_experts|num_experts")},
        {
            **sizes(36, 2880, 64, 2880, 201088, 131072),
            "kv_heads": 8,
            "head_dim": 64,
            "attention_bias": True,
            "output_bias": True,
            "window": 128,
            "experts": 128,
            "per_token": 4,
            "router_bias": True,
        },
        {**_LLAMA, "ffn_bias": True, "attention_sinks": True},
        windowed=_alternate,
    ),
    **MORE,
    **STATES,
}
"""Every family read, by its ``model_type``."""
