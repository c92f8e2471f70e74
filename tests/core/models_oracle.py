"""Configs of Hugging Face transformers for the tests: every family, small, and every model of the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from core.models.catalog import CatalogModel

_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_SMALL = {
    "num_hidden_layers": 4,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 61,
}
_LATENT = {
    "num_key_value_heads": 4,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 7,
}
_EXPERTS = {"num_experts_per_tok": 2}
_LLAMA4 = {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size_mlp": 40, "head_dim": 16}

_INDEX = {"index_topk": 8, "index_head_dim": 8, "index_n_heads": 2}
_GEMMA4 = {
    **_SMALL,
    "num_hidden_layers": 7,
    "head_dim": 8,
    "global_head_dim": 16,
    "sliding_window": 8,
    "hidden_size_per_layer_input": 6,
    "vocab_size_per_layer_input": 61,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2 + ["full_attention"],
}
_DELTA_LAYERS = {
    **_SMALL,
    "head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 6,
    "linear_value_head_dim": 10,
}

DENSE: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {"n_layer": 3, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_positions": 64},
    "gpt2, n_inner": {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_positions": 64, "n_inner": 40},
    "gpt_neox": _SMALL,
    "gpt_neox, no biases": {**_SMALL, "attention_bias": False, "use_parallel_residual": False},
    "opt": {**_SMALL, "ffn_dim": 96},
    "opt, narrow table": {**_SMALL, "ffn_dim": 96, "word_embed_proj_dim": 16, "do_layer_norm_before": False},
    "bloom": {"n_layer": 3, "hidden_size": 32, "n_head": 4, "vocab_size": 61},
    "falcon": {**_SMALL, "intermediate_size": 128},
    "falcon, grouped": {**_SMALL, "num_kv_heads": 2, "new_decoder_architecture": True, "ffn_hidden_size": 96},
    "falcon, one norm": {**_SMALL, "num_kv_heads": 2, "new_decoder_architecture": True, "num_ln_in_parallel_attn": 1},
    "falcon, first": {**_SMALL, "multi_query": False, "parallel_attn": False, "alibi": True, "bias": True},
    "mpt": {"n_layers": 3, "d_model": 32, "n_heads": 4, "vocab_size": 61},
    "llama": _SMALL,
    "llama, biases": {**_SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 10},
    "mistral": {**_SMALL, "sliding_window": 8},
    "qwen2": _SMALL,
    "qwen2, windows above": {**_SMALL, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
    "qwen3": {**_SMALL, "head_dim": 16, "attention_bias": True},
    "gemma": {**_SMALL, "head_dim": 16},
    "gemma2": {**_SMALL, "head_dim": 16, "sliding_window": 8},
    "gemma3_text": {**_SMALL, "head_dim": 16, "sliding_window": 8, "num_hidden_layers": 7},
    "phi3": _SMALL,
    "olmo": _SMALL,
    "olmo2": _SMALL,
    "olmo3": {**_SMALL, "sliding_window": 8},
    "smollm3": {**_SMALL, "use_sliding_window": True, "sliding_window": 8},
    "phi": {**_SMALL, "head_dim": 12},
    "gptj": {"n_layer": 3, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_positions": 64, "rotary_dim": 4},
    "gptj, n_inner": {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_inner": 40, "rotary_dim": 4},
    "stablelm": {**_SMALL, "partial_rotary_factor": 0.5},
    "stablelm, parallel": {
        **_SMALL,
        "use_qkv_bias": True,
        "qk_layernorm": True,
        "use_parallel_residual": True,
        "partial_rotary_factor": 0.5,
    },
    "starcoder2": {**_SMALL, "sliding_window": 8},
    "starcoder2, no biases": {**_SMALL, "use_bias": False, "tie_word_embeddings": False, "head_dim": 10},
    "cohere": _SMALL,
    "cohere, norms": {**_SMALL, "use_qk_norm": True, "attention_bias": True, "head_dim": 10},
    "granite": {**_SMALL, "attention_bias": True, "mlp_bias": True, "head_dim": 10},
    "nemotron": {**_SMALL, "partial_rotary_factor": 0.5},
    "nemotron, biases": {**_SMALL, "attention_bias": True, "mlp_bias": True, "head_dim": 10},
    "apertus": _SMALL,
    "apertus, plain": {**_SMALL, "hidden_act": "silu", "attention_bias": True, "head_dim": 10},
    "glm": {**_SMALL, "head_dim": 16},
    "glm4": {**_SMALL, "head_dim": 16, "attention_bias": False},
    "qwen3_5_text": {**_DELTA_LAYERS, "layer_types": ["full_attention"] * 4, "attention_bias": True},
    "gemma4_text": {**_GEMMA4, "attention_k_eq_v": True, "num_global_key_value_heads": 1},
    "gemma4_text, shared": {**_GEMMA4, "num_kv_shared_layers": 2, "use_double_wide_mlp": True},
    "ernie4_5": {**_SMALL, "head_dim": 16, "use_bias": True},
    "lfm2": {**_SMALL, "full_attn_idxs": [0, 1, 2, 3], "block_multiple_of": 8},
    "granitemoehybrid": {
        **_SMALL,
        "num_local_experts": 0,
        "layer_types": ["full_attention"] * 4,
        "shared_intermediate_size": 40,
        "mamba_n_heads": 8,
    },
}
"""Small configs of the dense families, some of them twice; what stands before a comma is the ``model_type``."""

MIXTURES: Mapping[str, Mapping[str, Any]] = {
    "mixtral": {**_SMALL, **_EXPERTS, "num_local_experts": 5},
    "qwen2_moe": {
        **_SMALL,
        **_EXPERTS,
        "num_experts": 5,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 40,
        "mlp_only_layers": [1],
    },
    "qwen3_moe": {
        **_SMALL,
        **_EXPERTS,
        "num_experts": 5,
        "moe_intermediate_size": 24,
        "decoder_sparse_step": 2,
        "head_dim": 16,
    },
    "olmoe": {**_SMALL, **_EXPERTS, "num_experts": 5},
    "deepseek_v2": {**_SMALL, **_LATENT},
    "deepseek_v2, lite": {**_SMALL, **_LATENT, "q_lora_rank": None, "attention_bias": True},
    "deepseek_v3": {**_SMALL, **_LATENT, "n_group": 2, "topk_group": 1, "attention_bias": True},
    "dbrx": {
        "n_layers": 3,
        "d_model": 32,
        "n_heads": 4,
        "vocab_size": 61,
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8},
        "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 5, "moe_top_k": 2},
    },
    "gpt_oss": {**_SMALL, **_EXPERTS, "head_dim": 16, "sliding_window": 8, "num_local_experts": 5},
    "glm4_moe": {
        **_SMALL,
        **_EXPERTS,
        "head_dim": 16,
        "n_routed_experts": 6,
        "moe_intermediate_size": 24,
        "n_shared_experts": 2,
        "use_qk_norm": True,
        "attention_bias": True,
    },
    "minimax_m2": {**_SMALL, **_EXPERTS, "head_dim": 16, "num_local_experts": 5},
    "deepseek_v32": {**_SMALL, **_LATENT, **_INDEX, "n_group": 2, "topk_group": 1},
    "glm_moe_dsa": {**_SMALL, **_LATENT, **_INDEX, "index_topk_freq": 2, "index_skip_topk_offset": 1},
    "mimo_v2_flash": {
        **_SMALL,
        **_EXPERTS,
        "n_routed_experts": 5,
        "moe_intermediate_size": 24,
        "head_dim": 12,
        "v_head_dim": 8,
        "sliding_window": 8,
        "num_hidden_layers": 7,
    },
    "gemma4_text, mixture": {
        **_GEMMA4,
        "enable_moe_block": True,
        "num_experts": 5,
        "top_k_experts": 2,
        "moe_intermediate_size": 24,
    },
    "ernie4_5_moe": {
        **_SMALL,
        "head_dim": 16,
        "moe_num_experts": 5,
        "moe_k": 2,
        "moe_intermediate_size": 24,
        "moe_layer_end_index": 2,
    },
    "lfm2_moe": {
        **_SMALL,
        **_EXPERTS,
        "num_experts": 5,
        "moe_intermediate_size": 24,
        "num_dense_layers": 1,
        "layer_types": ["full_attention"] * 4,
    },
    "llama4_text": {**_SMALL, **_LLAMA4, "interleave_moe_layer_step": 2},
    "llama4_text, listed": {**_SMALL, **_LLAMA4, "moe_layers": [0, 1, 3], "attention_bias": True},
}
"""Small configs of the mixtures of experts."""


_MAMBA = {"hidden_size": 32, "num_hidden_layers": 3, "state_size": 5, "vocab_size": 61}
_MAMBA2 = {**_MAMBA, "num_heads": 4, "head_dim": 16, "n_groups": 2, "chunk_size": 16}
_JAMBA = {
    **_SMALL,
    **_EXPERTS,
    "num_hidden_layers": 5,
    "num_experts": 4,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_d_state": 5,
}
_DELTA = {
    **_DELTA_LAYERS,
    **_EXPERTS,
    "num_experts": 5,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 40,
}
_MAMBA_HEADS = {
    **_SMALL,
    "mamba_n_heads": 4,
    "mamba_n_groups": 2,
    "mamba_d_state": 5,
    "mamba_chunk_size": 16,
}
_HYBRID = {
    **_EXPERTS,
    "hybrid_override_pattern": "MEM*EM*E",
    "hidden_size": 32,
    "vocab_size": 61,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "ssm_state_size": 5,
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "n_groups": 2,
    "chunk_size": 16,
    "n_routed_experts": 5,
    "moe_intermediate_size": 24,
    "moe_shared_expert_intermediate_size": 40,
}

STATES: Mapping[str, Mapping[str, Any]] = {
    "mamba": _MAMBA,
    "mamba, biases": {**_MAMBA, "use_bias": True, "use_conv_bias": False, "conv_kernel": 3, "expand": 3},
    "mamba, rank": {**_MAMBA, "time_step_rank": 7, "tie_word_embeddings": False, "hidden_size": 40},
    "mamba, width": {**_MAMBA, "intermediate_size": 48},
    "mamba2": _MAMBA2,
    "mamba2, biases": {**_MAMBA2, "use_bias": True, "use_conv_bias": False, "conv_kernel": 3},
    "mamba2, one group": {**_MAMBA2, "n_groups": 1, "expand": 1, "num_heads": 2, "tie_word_embeddings": True},
    "mamba2, short chunks": {**_MAMBA2, "chunk_size": 4, "head_dim": 8, "num_heads": 8, "state_size": 9},
    "jamba": _JAMBA,
    "jamba, biases": {**_JAMBA, "mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": 7},
    "jamba, one expert": {**_JAMBA, "num_experts": 1, "mamba_expand": 1, "mamba_d_conv": 3},
    "jamba, experts first": {**_JAMBA, "expert_layer_period": 3, "expert_layer_offset": 0, "attn_layer_offset": 2},
    "jamba, attention alone": {**_JAMBA, "attn_layer_period": 1, "attn_layer_offset": 0, "head_dim": 10},
    "qwen3_next": _DELTA,
    "qwen3_next, every other": {**_DELTA, "full_attention_interval": 2, "attention_bias": True},
    "qwen3_next, dense below": {**_DELTA, "mlp_only_layers": [0], "decoder_sparse_step": 2},
    "qwen3_next, listed": {**_DELTA, "layer_types": ["full_attention", "linear_attention"] * 2},
    "qwen3_next, attention alone": {**_DELTA, "layer_types": ["full_attention"] * 4},
    "nemotron_h": _HYBRID,
    "nemotron_h, states alone": {**_HYBRID, "hybrid_override_pattern": "MEMEM", "use_bias": True},
    "nemotron_h, listed": {**_HYBRID, "layers_block_type": ["linear_attention", "full_attention", "moe"]},
    "nemotron_h, networks": {**_HYBRID, "hybrid_override_pattern": "M-M*-M", "intermediate_size": 44},
    "nemotron_h, latent": {**_HYBRID, "moe_latent_size": 16},
    "qwen3_5_text, states": _DELTA_LAYERS,
    "qwen3_5_moe_text": _DELTA,
    "kimi_linear": {
        **{
            key: value
            for key, value in {**_SMALL, **_LATENT}.items()
            if key not in ("n_routed_experts", "n_shared_experts")
        },
        "num_hidden_layers": 5,
        "num_experts": 6,
        "num_experts_per_token": 2,
        "num_shared_experts": 1,
        "linear_num_heads": 4,
        "linear_head_dim": 8,
    },
    "falcon_h1": {**_MAMBA_HEADS, "mamba_d_ssm": 64, "mamba_rms_norm": True},
    "falcon_h1, plain": {**_MAMBA_HEADS, "mamba_d_ssm": 32},
    "granitemoehybrid, mixture": {
        **_MAMBA_HEADS,
        **_EXPERTS,
        "num_local_experts": 5,
        "shared_intermediate_size": 40,
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
    },
    "lfm2, convolutions": {**_SMALL, "full_attn_idxs": [1], "conv_bias": True, "block_multiple_of": 8},
    "qwen3_next, short": {**_DELTA, "linear_conv_kernel_dim": 2, "linear_num_key_heads": 4, "num_hidden_layers": 7},
}
"""Small configs of the families whose layers have a state in place of attention."""

PUBLISHED_STATES: Mapping[str, tuple[Mapping[str, Any], int, float, float]] = {
    "mamba": (
        {"hidden_size": 2560, "num_hidden_layers": 64, "d_model": 2560, "n_layer": 64, "time_step_rank": 160},
        2_768_345_600,
        2.8e9,
        2.8e9,
    ),
    "mamba2": (
        {
            "hidden_size": 2560,
            "num_hidden_layers": 64,
            "num_heads": 80,
            "n_groups": 1,
            "vocab_size": 50288,
            "tie_word_embeddings": True,
        },
        2_702_599_680,
        2.7e9,
        2.7e9,
    ),
    "mamba2, Codestral": ({"norm_before_gate": True, "rms_norm": True}, 7_285_403_648, 7.3e9, 7.3e9),
    "jamba, v0.1": ({"mamba_dt_rank": 256, "mamba_inner_layernorms": True}, 51_570_323_328, 52e9, 12e9),
    "jamba, 1.5 Large": (
        {
            "hidden_size": 8192,
            "intermediate_size": 24576,
            "num_hidden_layers": 72,
            "num_attention_heads": 64,
            "mamba_dt_rank": 512,
        },
        398_555_145_696,
        398e9,
        94e9,
    ),
    "qwen3_next, 80B-A3B": (
        {"intermediate_size": 5120, "full_attention_interval": 4, "max_position_embeddings": 262144},
        79_674_391_296,
        80e9,
        3.9e9,
    ),
}
"""Public configs: what differs from the class's defaults, parameters by transformers, and those printed: all, active.

mamba-2.8b-hf and mamba2-2.7b of state-spaces, Mamba-Codestral-7B, Jamba-v0.1, Jamba-1.5-Large, Qwen3-Next-80B-A3B;
Qwen counts 3 billion active ones without the embeddings and the head.
"""


def public_configs() -> list[dict[str, Any]]:
    """Published ``config.json`` files with their parameters, those printed, and whether transformers builds them."""
    path = Path(__file__).parents[1] / "data" / "configs_2026.json"
    return json.loads(path.read_text(encoding="utf-8"))["configs"]


def config_of(name: str, values: Mapping[str, Any]) -> PretrainedConfig:
    """The configuration object of a small config."""
    return AutoConfig.for_model(name.partition(",")[0], **{**_TOKENS, **values})


def built(config: PretrainedConfig) -> PreTrainedModel:
    """The model with weights, attention written out, one loop over the experts that have tokens."""
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager").train()


def parameter_count(config: PretrainedConfig) -> int:
    """Parameters of the model, built without memory; tied ones count once."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def counted(model: PreTrainedModel, seq: int) -> tuple[int, int]:
    """FLOPs of one sequence by torch's counter: forward with its loss, and backward."""
    tokens = torch.randint(3, 61, (1, seq), generator=torch.Generator().manual_seed(seq))
    with FlopCounterMode(display=False) as forward:
        loss = model(tokens, labels=tokens, use_cache=False).loss
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    return forward.get_total_flops(), backward.get_total_flops()


_LONG = ("num_hidden_layers", "hidden_size", "num_attention_heads")
_MODEL_TYPES = {
    "GPT2LMHeadModel": ("gpt2", ("n_layer", "n_embd", "n_head"), "n_inner", "n_positions"),
    "OPTForCausalLM": ("opt", _LONG, "ffn_dim", "max_position_embeddings"),
    "GPTNeoXForCausalLM": ("gpt_neox", _LONG, "intermediate_size", "max_position_embeddings"),
    "BloomForCausalLM": ("bloom", ("n_layer", "hidden_size", "n_head"), "", "seq_length"),
    "FalconForCausalLM": ("falcon", _LONG, "ffn_hidden_size", "max_position_embeddings"),
    "MptForCausalLM": ("mpt", ("n_layers", "d_model", "n_heads"), "", "max_seq_len"),
    "DbrxForCausalLM": ("dbrx", ("n_layers", "d_model", "n_heads"), "", "max_seq_len"),
    "Gemma3ForCausalLM": ("gemma3_text", _LONG, "intermediate_size", "max_position_embeddings"),
    "Llama4ForCausalLM": ("llama4_text", _LONG, "intermediate_size_mlp", "max_position_embeddings"),
}
"""Class → model type, the keys of layers, width and heads, and those of the feed-forward width and longest sequence."""
_EXPERT_WIDTH = dict.fromkeys(("mixtral", "gpt_oss", "olmoe", "llama4_text", "minimax_m2"), "intermediate_size")
_EXPERT_COUNT = {
    **dict.fromkeys(("qwen3_moe", "olmoe"), "num_experts"),
    **dict.fromkeys(("mixtral", "gpt_oss", "llama4_text", "minimax_m2"), "num_local_experts"),
}
"""Model type → the keys of the width of an expert and of how many there are, where they are not the usual ones."""


def published_config(model: CatalogModel) -> dict[str, Any]:
    """The config of a model of the catalogue, under its family's own keys."""
    s = model.spec
    usual = re.sub(r"(?<!^)(?=[A-Z])", "_", model.family.removesuffix("ForCausalLM")).lower()
    usual = {"smol_l_m3": "smollm3", "mini_max_m2": "minimax_m2", "nemotron_h": "nemotron_h"}.get(usual, usual)
    default = (usual, _LONG, "intermediate_size", "max_position_embeddings")
    model_type, (layers, hidden, heads), ffn, positions = _MODEL_TYPES.get(model.family, default)
    values: dict[str, Any] = {
        "model_type": model_type,
        layers: s.layers,
        hidden: s.hidden,
        heads: s.heads,
        positions: model.max_seq,
        "vocab_size": s.vocab,
        "tie_word_embeddings": s.tied_head,
    }
    if ffn and s.ffn:
        values[ffn] = s.ffn
    if model_type == "falcon":
        values |= {"num_kv_heads": s.kv_heads, "new_decoder_architecture": s.kv_heads > 1}
    elif layers == "num_hidden_layers" and model_type not in ("opt", "gpt_neox"):
        values |= {"num_key_value_heads": s.kv_heads, "head_dim": s.head_dim}
    if model_type == "dbrx":
        values["attn_config"] = {"kv_n_heads": s.kv_heads, "rope_theta": 5e5, "clip_qkv": 8}
        assert s.experts
        values["ffn_config"] = {
            "ffn_hidden_size": s.experts.width,
            "moe_num_experts": s.experts.count,
            "moe_top_k": s.experts.per_token,
        }
    elif e := s.experts:
        values |= {"num_experts_per_tok": e.per_token}
        values[_EXPERT_WIDTH.get(model_type, "moe_intermediate_size")] = e.width
        values[_EXPERT_COUNT.get(model_type, "n_routed_experts")] = e.count
        if model_type.startswith(("deepseek", "glm4")):
            values |= {"n_shared_experts": e.shared, "first_k_dense_replace": e.dense_layers}
            values |= {"n_group": e.route_groups, "topk_group": e.groups_per_token}
        if model_type == "deepseek_v2" and e.route_groups > 1:
            values["topk_method"] = "group_limited_greedy"
        if model_type == "llama4_text":
            values["interleave_moe_layer_step"] = s.layers // s.moe_layers
        if (m := s.mixer) and model_type == "nemotron_h":
            values |= {
                "hybrid_override_pattern": m.layers * "M" + s.attention_layers * "*" + s.moe_layers * "E",
                "moe_shared_expert_intermediate_size": e.shared_width,
                "mamba_num_heads": m.heads,
                "mamba_head_dim": m.width,
                "ssm_state_size": m.state,
                "n_groups": m.groups,
                "conv_kernel": m.conv,
            }
        if model_type == "glm4_moe":
            values |= {"use_qk_norm": s.qk_norm == "head", "attention_bias": s.attention_bias}
    if low := s.latent:
        values |= {
            "q_lora_rank": low.query_rank or None,
            "kv_lora_rank": low.kv_rank,
            "qk_nope_head_dim": low.nope_dim,
            "qk_rope_head_dim": low.rope_dim,
            "v_head_dim": low.value_dim,
        }
    if s.window or model_type == "mistral":
        values["sliding_window"] = s.window.size if s.window else None
    return values
