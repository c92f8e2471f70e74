"""What a ``config.json`` calls things: a family's description, other names, and keys that change no count."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.rows import read_rows

if TYPE_CHECKING:
    from core.models.configs.fields import Fields


@dataclass(frozen=True, slots=True)
class Family:
    """How to read one ``model_type``.

    keys: field of `Fields` → its keys in the config, the usual one first, a dot stepping into an object.
    defaults: fields that a config may omit, with the value they then have. fixed: fields of `TransformerSpec` that
    the family decides. derived: those that depend on the config's fields. windowed: whether layer i of the config
    has the sliding window, where no ``layer_types`` says so; None for families without windows. only: keys whose
    other values would build a model that is not counted here. note: what a reader should know of every such model.
    inert: keys that the family has and that change no count of it. built: keys whose value transformers builds whatever
    the file says; another one is not read, and said to be so.
    """

    name: str
    keys: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]
    derived: Callable[[Fields], Mapping[str, Any]]
    windowed: Callable[[Fields, int], bool] | None
    only: Mapping[str, Any]
    note: str
    inert: tuple[str, ...]
    built: Mapping[str, Any]


def keys(text: str) -> dict[str, tuple[str, ...]]:
    """``field=key|other_key …`` as a mapping."""
    return {name: tuple(names.split("|")) for name, _, names in (item.partition("=") for item in text.split())}


_ALIASES = read_rows("model_aliases")

ALIASES: Mapping[str, str] = {row["model_type"]: row["family"] for row in _ALIASES}
"""Other names of a family: older ones, and those of composites whose text part belongs to it."""

COMPOSITES = frozenset(row["model_type"] for row in _ALIASES if row["composite"] == "1")
"""Other names that stand for a text model together with what reads images."""

TEXT_PARTS = ("text_config", "llm_config", "language_config")
"""Keys under which composites of text and images keep the text model."""

GENERIC = keys(
    "layers=num_hidden_layers|n_layer|n_layers|num_layers|depth hidden=hidden_size|n_embd|n_embed|d_model|dim "
    "heads=num_attention_heads|n_head|n_heads|num_heads vocab=vocab_size|n_vocab|padded_vocab_size "
    "kv_heads=num_key_value_heads|num_kv_heads|n_kv_heads|n_head_kv|multi_query_group_num "
    "head_dim=head_dim|kv_channels ffn=intermediate_size|ffn_dim|ffn_hidden_size|n_inner|d_ff|hidden_dim "
    "tied=tie_word_embeddings "
    "attention_bias=attention_bias|qkv_bias|add_qkv_bias|use_qkv_bias|use_bias|enable_bias "
    "output_bias=attention_bias|use_bias|enable_bias ffn_bias=mlp_bias|use_bias|enable_bias "
    "experts=num_experts|num_local_experts|n_routed_experts|moe_num_experts "
    "per_token=num_experts_per_tok|moe_top_k|top_k expert_width=moe_intermediate_size "
    "shared=n_shared_experts|num_shared_experts dense_first=first_k_dense_replace|first_dense_layers "
    "route_groups=n_group groups_per_token=topk_group routing=topk_method"
)
"""Names under which configs of other families keep the same fields, for a first draft of a spec."""


_INERT = re.compile(
    r"(.*_)?(dropout|dropout_p|pdrop|dropout_rate|prob|eps|epsilon|token_id|token_ids|token_index|coef|loss|alpha"
    r"|multiplier|scale|scaling|scaling_factor|softcapping|softcap|checkpointing|range|std|theta)"
    r"|rope_.*|rotary_.*|partial_rotary_factor|.*initializer.*|output_.*|summary_.*|id2label|label2id|num_labels"
    r"|transformers_version|architectures|model_type|_name_or_path|name_or_path|auto_map|dtype|torch_dtype"
    r"|quantization_config|use_cache|cache_implementation|return_dict|problem_type|task_specific_params"
    r"|hidden_act|hidden_activation|activation_function|activation|is_decoder|is_encoder_decoder|pretraining_tp|tp_degree"
    r"|slow_but_exact|masked_softmax_fusion|skip_bias_add.*|apply_residual_connection_post_layernorm"
    r"|scale_attn.*|reorder_and_upcast_attn|attn_logit.*|final_logit.*|query_pre_attn_scalar|attn_temperature_tuning"
    r"|floor_scale|attn_scale|router_jitter_noise|norm_topk_prob|n_group|topk_group|topk_method|scoring_func|seq_aux"
    r"|ep_size|clip_qkv|swiglu_limit|chunk_size_feed_forward|original_max_position_embeddings|max_position_embeddings"
    r"|_?attn_implementation|_?experts_implementation|gradient_checkpointing|use_flash_attn|logits_to_keep|mup_.*"
    r"|num_logits_to_keep|pad_vocab_.*|begin_suppress_tokens|suppress_tokens|do_sample|max_length|tokenizer_class"
    r"|temperature|top_[kp]|typical_p|num_beams|num_beam_groups|num_return_sequences|length_penalty|repetition_penalty|sep_token_id|prefix|bos_token|eos_token|init_device|verbose|logit_scale"
    r"|no_bias|use_bfloat16|torchscript"
)
"""Keys that configs have and that change neither a parameter nor a product of matrices."""


def inert(key: str) -> bool:
    """Whether a key, wherever it stands, changes no count: rates, seeds, token numbers, scales, what is printed."""
    return _INERT.fullmatch(key) is not None
