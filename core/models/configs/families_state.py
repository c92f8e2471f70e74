"""Families whose layers have a state in place of attention, some or all; see `core.models.configs.families`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.models.configs.keys import BIASED, EXPERTS, GROUPED, HEADED, QWEN_EXPERTS, Family, keys, sizes
from core.models.mixer import Mixer
from core.models.spec_error import SpecError

if TYPE_CHECKING:
    from core.models.configs.fields import Fields

_GATED = {"glu": True}
_STATE_ALONE = {"heads": 1, "kv_heads": 1, "head_dim": 1, "ffn": 0, "glu": False, "norms_per_layer": 1}
_SCAN_NOTE = (
    "The state is counted token by token, {} operations for each of its numbers (Megatron-LM’s convention); "
    "kernels that work in chunks compute more."
)
_STATE_SPACE, _DELTA_RULE = _SCAN_NOTE.format("7"), _SCAN_NOTE.format("8")
_IMPLEMENTED = (
    *("use_mambapy", "use_associative_scan", "residual_in_fp32", "rescale_prenorm_residual", "chunk_size"),
    *("time_step_min", "time_step_max", "time_step_floor", "time_step_limit", "time_step_init_scheme"),
)


def _mamba(f: Fields, layers: int, *, normed: bool = False) -> Mixer:
    """A Mamba mixer, its inner width and the rank of its step size as the config says or as they follow."""
    rank = math.ceil(f.hidden / 16) if f.step_rank == "auto" else f.step_rank
    return Mixer(
        kind="mamba",
        layers=layers,
        heads=f.state_inner or (f.state_expand or 0) * f.hidden,
        width=1,
        state=f.state_rows or 0,
        conv=f.state_conv or 0,
        rank=int(rank or 0),
        bias=f.state_bias,
        conv_bias=f.conv_bias,
        normed=normed,
    )


def _of_mamba(f: Fields) -> Mapping[str, Any]:
    return {"mixer": _mamba(f, f.layers)}


def _of_mamba2(f: Fields) -> Mapping[str, Any]:
    heads, width = f.state_heads or 0, f.state_width or 0
    if heads * width != (f.state_expand or 0) * f.hidden:
        raise SpecError("state_heads", heads, f"with a width of {width:,} they must add up to expand · hidden_size.")
    mixer = Mixer(
        kind="mamba2",
        layers=f.layers,
        heads=heads,
        width=width,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
        bias=f.state_bias,
        conv_bias=f.conv_bias,
    )
    return {"mixer": mixer}


def _of_jamba(f: Fields) -> Mapping[str, Any]:
    """Attention once in a period, experts once in another; a single expert is an ordinary network."""
    period, offset = f.attention_every or 1, f.attention_offset or 0
    for name, at, of in (("attention_offset", offset, period), ("moe_offset", f.moe_offset or 0, f.moe_every or 1)):
        if at >= of:
            raise SpecError(name, at, f"it is less than the period of {of}.", 0)
    states = sum(layer % period != offset for layer in range(f.layers))
    by_name: dict[str, Any] = {"mixer": _mamba(f, states, normed=True) if states else None}
    return by_name if (f.experts or 0) > 1 else {**by_name, "experts": None}


_LAYER_KINDS = {"linear_attention": True, "full_attention": False}


def _of_qwen3_next(f: Fields) -> Mapping[str, Any]:
    if f.layer_types is None:
        states = sum((layer + 1) % (f.attention_every or 4) != 0 for layer in range(f.layers))
    elif len(f.layer_types) != f.layers or not set(f.layer_types) <= set(_LAYER_KINDS):
        raise SpecError("layer_types", f.layer_types, f"it has {f.layers} of {' and '.join(_LAYER_KINDS)}.")
    else:
        states = sum(_LAYER_KINDS[kind] for kind in f.layer_types)
    if not states:
        return {}
    mixer = Mixer(
        kind="delta",
        layers=states,
        heads=f.state_heads or 0,
        width=f.state_width or 0,
        state=f.state_rows or 0,
        groups=f.state_groups or 0,
        conv=f.state_conv or 0,
    )
    return {"mixer": mixer}


STATES: Mapping[str, Family] = {
    "mamba": Family(
        "Mamba",
        keys(
            "layers=num_hidden_layers|n_layer hidden=hidden_size|d_model vocab=vocab_size tied=tie_word_embeddings "
            "state_rows=state_size state_conv=conv_kernel state_expand=expand state_inner=intermediate_size "
            "step_rank=time_step_rank state_bias=use_bias conv_bias=use_conv_bias"
        ),
        {
            "layers": 32,
            "hidden": 768,
            "heads": 1,
            "vocab": 50280,
            "tied": True,
            "state_rows": 16,
            "state_conv": 4,
            "state_expand": 2,
            "step_rank": "auto",
            "conv_bias": True,
        },
        {**_STATE_ALONE, "positions": "none"},
        _of_mamba,
        note=_STATE_SPACE,
        inert=(*_IMPLEMENTED, "time_step_scale", "rms_norm", "fused_add_norm", "pad_vocab_size_multiple"),
    ),
    "mamba2": Family(
        "Mamba-2",
        keys(
            "layers=num_hidden_layers|n_layer hidden=hidden_size|d_model vocab=vocab_size tied=tie_word_embeddings "
            "state_rows=state_size state_conv=conv_kernel state_expand=expand state_heads=num_heads "
            "state_width=head_dim state_groups=n_groups state_bias=use_bias conv_bias=use_conv_bias"
        ),
        {
            "layers": 64,
            "hidden": 4096,
            "heads": 1,
            "vocab": 32768,
            "tied": False,
            "state_rows": 128,
            "state_heads": 128,
            "state_width": 64,
            "state_groups": 8,
            "state_conv": 4,
            "state_expand": 2,
            "conv_bias": True,
        },
        {**_STATE_ALONE, "positions": "none"},
        _of_mamba2,
        note=_STATE_SPACE,
        inert=(*_IMPLEMENTED, "time_step_rank", "intermediate_size", "rms_norm", "norm_before_gate"),
    ),
    "jamba": Family(
        "Jamba",
        {
            **GROUPED,
            **HEADED,
            **EXPERTS,
            **keys(
                "experts=num_experts|num_local_experts moe_every=expert_layer_period moe_offset=expert_layer_offset "
                "attention_every=attn_layer_period attention_offset=attn_layer_offset state_rows=mamba_d_state "
                "state_conv=mamba_d_conv state_expand=mamba_expand step_rank=mamba_dt_rank "
                "state_bias=mamba_proj_bias conv_bias=mamba_conv_bias"
            ),
        },
        {
            **sizes(32, 4096, 32, 14336, 65536, 262144),
            "kv_heads": 8,
            "experts": 16,
            "per_token": 2,
            "moe_every": 2,
            "moe_offset": 1,
            "attention_every": 8,
            "attention_offset": 4,
            "state_rows": 16,
            "state_conv": 4,
            "state_expand": 2,
            "step_rank": "auto",
            "conv_bias": True,
        },
        {**_GATED, "positions": "none"},
        _of_jamba,
        only={"mamba_inner_layernorms": True},
        note=_STATE_SPACE,
        inert=(*_IMPLEMENTED, "use_mamba_kernels", "calc_logits_for_entire_prompt"),
    ),
    "qwen3_next": Family(
        "Qwen3-Next",
        {
            **BIASED,
            **HEADED,
            **QWEN_EXPERTS,
            **keys(
                "layer_types=layer_types attention_every=full_attention_interval "
                "shared_width=shared_expert_intermediate_size state_conv=linear_conv_kernel_dim "
                "state_rows=linear_key_head_dim state_width=linear_value_head_dim state_groups=linear_num_key_heads "
                "state_heads=linear_num_value_heads"
            ),
        },
        {
            **sizes(48, 2048, 16, 5632, 151936, 32768),
            "kv_heads": 2,
            "head_dim": 256,
            "state_conv": 4,
            "state_rows": 128,
            "state_width": 128,
            "state_groups": 16,
            "state_heads": 32,
            "experts": 512,
            "per_token": 10,
            "expert_width": 512,
            "shared": 1,
            "shared_width": 512,
            "moe_every": 1,
        },
        {**_GATED, "qk_norm": "head", "attention_gate": True},
        _of_qwen3_next,
        note=_DELTA_RULE,
    ),
}
"""These families, by their ``model_type``."""
