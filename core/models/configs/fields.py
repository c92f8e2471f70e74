"""The fields of a ``config.json`` that a count needs, whatever its family calls them, checked by pydantic.

Imported where a config is read and not before: pydantic takes a tenth of a second.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from core.limits import limit

_MOST = limit("model_dimension")
Size = Annotated[int, Field(ge=1, le=_MOST)]
Maybe = Annotated[int, Field(ge=0, le=_MOST)]


class Fields(BaseModel):
    """One field per thing that changes a count; None where the config leaves it open."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    layers: Annotated[int, Field(ge=1, le=limit("model_layers"))]
    hidden: Size
    heads: Size
    vocab: Size
    tied: bool
    kv_heads: Size | None = None
    head_dim: Size | None = None
    ffn: Size | None = None
    ffn_times: Size | None = None
    max_seq: Annotated[int, Field(ge=1)] | None = None
    embedding_width: Size | None = None
    attention_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    parallel: bool = False
    qk_normed: bool = False
    activation: str = ""
    alibi: bool = False
    multi_query: bool = False
    grouped: bool = False
    norms_in_parallel: Maybe | None = None
    norm_first: bool = True
    norm_removed: bool = False
    norm_learned: bool = True
    window: Maybe | None = None
    window_on: bool = True
    window_from: Maybe | None = None
    window_every: Size | None = None
    layer_types: list[str] | None = None
    pattern: str | None = None
    rotary_layers: list[int] | None = None
    rotary_every: Size | None = None
    experts: Maybe | None = None
    per_token: Maybe | None = None
    expert_width: Size | None = None
    route_groups: Size | None = None
    groups_per_token: Size | None = None
    routing: str = ""
    router_bias: bool = False
    shared: Maybe | None = None
    shared_width: Maybe | None = None
    dense_first: Maybe | None = None
    dense_listed: list[int] | None = None
    moe_listed: list[int] | None = None
    moe_every: Size | None = None
    query_rank: Maybe | None = None
    kv_rank: Size | None = None
    nope_dim: Maybe | None = None
    rope_dim: Maybe | None = None
    value_dim: Size | None = None
    mtp: Maybe | None = None
    moe_offset: Maybe | None = None
    attention_every: Size | None = None
    attention_offset: Maybe | None = None
    state_rows: Size | None = None
    state_heads: Size | None = None
    state_width: Size | Literal["auto"] | None = None
    state_groups: Size | None = None
    state_conv: Size | None = None
    state_expand: Size | None = None
    state_inner: Size | None = None
    state_bias: bool = False
    conv_bias: bool = False
    step_rank: Size | Literal["auto"] | None = None
    full_gate: bool = False
    shared_gated: bool = True
    dense_ffn: Size | None = None
    state_normed: bool = True
    blocks: list[dict[str, Any]] | None = None
    moe_types: list[str] | None = None
    moe_marks: list[int] | Maybe | None = None
    moe_until: int | None = None
    latent: Maybe | None = None
    latent_norm: bool = False
    gated: bool = False
    attending: list[int] | None = None
    window_size: Maybe | None = None
    layer_vocab: Size | None = None
    ffn_multiplier: float | int | None = None
    window_marks: list[int] | None = None
    window_heads: Size | None = None
    window_kv_heads: Size | None = None
    window_sinks: bool = True
    per_layer: dict[str, dict[str, Size]] | None = None
    global_kv_heads: Size | None = None
    global_head_dim: Size | None = None
    keys_are_values: bool = False
    sharing: Maybe = 0
    double_wide: bool = False
    layer_embedding: Maybe | None = None
    moe_on: bool = True
    index_heads: Size | None = None
    index_dim: Size | None = None
    index_chosen: Size | None = None
    index_types: list[str] | None = None
    index_marks: list[int] | None = None
    index_every: Size | None = None
    index_from: Maybe | None = None
    output_groups: Size | None = None
    output_rank: Size | None = None
    compress_ratios: list[int] | None = None
    streams: Size = 1
    adjusted: bool = False
    multiple: Size | None = None
