"""Reading a config.json from a stranger: what it says, what it leaves out, and everything that it must not be."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.messages import Message
from core.models.catalog import model_named
from core.models.configs.config import UnknownFamilyError, from_hf_config, read_hf_config
from core.models.configs.custom import read_config
from core.models.configs.families import FAMILIES
from core.models.configs.json_text import EXAMPLE, ConfigError, read_object, shorten_config
from core.models.parameters import parameters
from core.models.spec import LatentAttention, SlidingWindow
from core.models.spec_text import read_spec, write_spec
from tests.core.models_oracle import public_configs
from tests.every import every

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}

LLAMA_3_8B = """{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256
}"""


def test_a_config_as_published() -> None:
    read = read_hf_config(LLAMA_3_8B)
    assert read.spec == model_named("Llama 3 8B").spec
    assert (read.family, read.max_seq, read.omitted, read.notes) == ("LLaMA", 8192, (), ())


def test_text_and_mapping_read_alike() -> None:
    assert from_hf_config(LLAMA) == from_hf_config(json.dumps(LLAMA)) == from_hf_config("\ufeff" + json.dumps(LLAMA))


def test_what_a_config_omits_is_said() -> None:
    read = read_hf_config({"model_type": "gemma3_text", "hidden_size": 640})
    assert {"num_hidden_layers", "vocab_size", "tie_word_embeddings", "sliding_window"} <= set(read.omitted)
    assert "hidden_size" not in read.omitted
    assert read.spec.tied_head


def test_a_dense_model_leaves_out_no_key_of_experts() -> None:
    dense = [row["config"] for row in public_configs() if from_hf_config(row["config"]).experts is None]
    assert len(dense) > 5
    for config in dense:
        assert not any("expert" in key for key in read_hf_config(config).omitted), config


@pytest.mark.parametrize(
    ("config", "family", "expected"),
    [
        ({"model_type": "RefinedWeb", "n_layer": 2, "n_head": 8, "hidden_size": 64, "n_head_kv": 2}, "Falcon", 1),
        ({"model_type": "bloom", "n_layer": 2, "num_attention_heads": 8, "n_embed": 64}, "BLOOM", 8),
        ({"model_type": "kimi_k2", "num_hidden_layers": 4}, "DeepSeek-V3", 128),
        ({"model_type": "gpt2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}, "GPT-2", 4),
    ],
)
def test_older_and_other_names(config: dict[str, Any], family: str, expected: int) -> None:
    read = read_hf_config(config)
    assert read.family == family
    assert read.spec.kv_heads == expected


@every(
    ("config", "groups"),
    [
        ({"model_type": "deepseek_v3"}, (8, 4)),
        ({"model_type": "kimi_k2", "n_group": 1, "topk_group": 1}, (1, 1)),
        ({"model_type": "deepseek_v2", "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3}, (8, 3)),
        ({"model_type": "deepseek_v2", "topk_method": "greedy", "n_group": 8, "topk_group": 3}, (1, 1)),
        ({"model_type": "deepseek_v2"}, (1, 1)),
        ({"model_type": "glm4_moe", "n_group": 1, "topk_group": 1}, (1, 1)),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "MEM*E", "n_group": 4, "topk_group": 2}, (4, 2)),
        ({"model_type": "qwen3_moe"}, (1, 1)),
    ],
)
def test_groups_of_experts_are_read(config: dict[str, Any], groups: tuple[int, int]) -> None:
    read = read_hf_config({"num_experts_per_tok": 2, **config})
    assert read.spec.experts
    assert (read.spec.experts.route_groups, read.spec.experts.groups_per_token) == groups
    assert not {"n_group", "topk_group", "topk_method"} & set(read.unread)
    assert read_spec(write_spec(read.spec)) == read.spec


@pytest.mark.parametrize("wrong", [{"topk_group": 9}, {"n_group": 0}, {"n_group": 10_000}, {"n_group": 1.5}])
def test_groups_of_experts_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        read_hf_config({"model_type": "deepseek_v3", **wrong})


def test_prediction_modules_belong_only_where_asked_for() -> None:
    """DeepSeek-V3's README_WEIGHTS.md: 671 B in the main model, 11.5 B of its own in the prediction module."""
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    main, trained = parameters(from_hf_config(config)), parameters(from_hf_config(config, mtp=True))
    assert main.total == model_named("DeepSeek-V3").parameters
    assert trained.total - main.total == pytest.approx(11.5e9, rel=0.01)
    read = read_hf_config(config)
    assert read.mtp_modules == 1
    assert len(read.notes) > len(read_hf_config({**config, "num_nextn_predict_layers": 0}).notes)


@every(
    ("config", "window"),
    [
        ({"model_type": "mistral"}, SlidingWindow(4096)),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "gemma2"}, SlidingWindow(4096, (True, False))),
        ({"model_type": "gemma3_text"}, SlidingWindow(4096, (True,) * 5 + (False,))),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 3}, SlidingWindow(4096, (True, True, False))),
        ({"model_type": "gpt_oss"}, SlidingWindow(128, (True, False))),
        ({"model_type": "olmo3"}, SlidingWindow(4096, (True, True, True, False))),
        ({"model_type": "phi3", "sliding_window": 2047}, SlidingWindow(2047)),
        ({"model_type": "qwen2"}, None),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "num_hidden_layers": 4, "max_window_layers": 3},
            SlidingWindow(4096, (False, False, False, True)),
        ),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 99}, None),
        (
            {"model_type": "gemma2", "num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]},
            SlidingWindow(4096, (False, True)),
        ),
    ],
)
def test_sliding_windows(config: dict[str, Any], window: SlidingWindow | None) -> None:
    assert from_hf_config(config).window == window


def test_latent_attention_without_a_query_rank() -> None:
    """DeepSeek-V2 Lite sets q_lora_rank to null: queries are projected at once."""
    lite = from_hf_config({"model_type": "deepseek_v2", "q_lora_rank": None, "num_experts_per_tok": 6})
    assert lite.latent == LatentAttention(0, 512, 128, 64, 128)


@every(
    "text",
    [
        "",
        "nope",
        '{"a": 1',
        '{"a": "\\ud8',
        "[1, 2]",
        '{"a": 1, "b": {"c": 1, "c": 2}}',
        '{"hidden_size": 1e999}',
        '{"hidden_size": NaN}',
        '{"model_type": "mamba2", "time_step_limit": [0, NaN]}',
        '{"model_type": "mamba2", "state_size": [Infinity]}',
        '{"hidden_size": ' + "9" * 5000 + "}",
        "x" * 100_001,
        '{"a": ' * 10_000 + "1" + "}" * 10_000,
        "[" * 60_000,
        '{"a": "' + '\\"[' * 30_000,
    ],
    ids=lambda text: text[:20],
)
def test_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_hf_config(text)
    assert EXAMPLE in str(refused.value) or refused.value.field
    assert len(str(refused.value)) < 700


@every(
    ("change", "field"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": 10_001}, "num_hidden_layers"),
        ({"num_hidden_layers": 4.0}, "num_hidden_layers"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": [64]}, "hidden_size"),
        ({"num_attention_heads": 5}, "hidden_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"model_type": "gpt2", "n_embd": 32, "hidden_size": 64}, "n_embd"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"model_type": "deepseek_v2"}, "num_experts_per_tok"),
        ({"model_type": "deepseek_v3", "v_head_dim": None}, "v_head_dim"),
        ({"model_type": "gemma2", "layer_types": ["x"] * 4}, "layer_types"),
        ({"model_type": "gemma2", "layer_types": ["x"] * 3}, "layer_types"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": ["1"]}, "mlp_only_layers"),
        ({"model_type": "dbrx", "ffn_config": {"moe_top_k": 0}}, "ffn_config.moe_top_k"),
    ],
)
def test_values_are_refused_by_the_name_of_their_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_hf_config({**LLAMA, **change})
    assert refused.value.field == field


def test_the_example_of_a_mixture_that_cannot_be_is_one_that_can() -> None:
    with pytest.raises(ConfigError) as refused:
        from_hf_config({**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 9})
    assert '"num_experts_per_tok": 4' in str(refused.value)


def test_an_unknown_family_is_told_which_names_are_like_it_and_not_all() -> None:
    for name, alike in (("qwen3_next_moe", "qwen3_next"), ("qwen9_hyper", "")):
        with pytest.raises(UnknownFamilyError) as refused:
            from_hf_config({**LLAMA, "model_type": name})
        assert alike in str(refused.value)
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize("row", public_configs(), ids=lambda row: row["name"])
def test_a_public_config_lacks_nothing_that_its_model_has_not(row: dict[str, Any]) -> None:
    """No width of experts of a dense model, none of a dense network of a mixture, no number of layers that are listed;
    and nothing of it is not read but what no release says what it does."""
    read = read_hf_config(row["config"])
    mixture = {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "n_routed_experts"}
    lacks = set(read.omitted)
    assert not lacks & mixture or read.spec.experts
    assert "intermediate_size" not in lacks or read.spec.ffn
    assert "num_hidden_layers" not in lacks
    assert set(read.unread) <= {"attn_res_block_size"}


def test_an_unknown_family_is_offered_as_a_draft() -> None:
    with pytest.raises(UnknownFamilyError) as refused:
        from_hf_config({**LLAMA, "model_type": "brand_new"})
    assert (refused.value.model_type, refused.value.missing) == ("brand_new", ())
    assert refused.value.draft == from_hf_config(LLAMA)
    with pytest.raises(UnknownFamilyError) as refused:
        from_hf_config({"n_layer": 2, "d_model": 64, "ffn_dim": 256})
    assert (refused.value.missing, refused.value.draft) == (("num_attention_heads", "vocab_size"), None)


def rule_id(problem: ConfigError) -> str:
    assert isinstance(problem.rule, Message)
    return problem.rule.id


def test_a_mapping_that_is_no_json() -> None:
    loop: dict[str, Any] = {}
    loop["text_config"] = loop
    with pytest.raises(ConfigError) as looped:
        from_hf_config(loop)
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ConfigError) as nested:
        from_hf_config(deep)
    assert {rule_id(looped.value), rule_id(nested.value)} == {"config.not_json"}


def test_lists_of_a_quantized_models_layers_are_left_out() -> None:
    """Of a file of megabytes; what is too long without them stays as it is, and is refused."""
    ignored = {"quantization_config": {"ignore": [f"model.layers.{i}.mlp \\" for i in range(50_000)]}}
    long = json.dumps({**LLAMA, **ignored, "text_config": ignored})
    assert len(long) > 2_500_000
    assert json.loads(shorten_config(long)) == {**LLAMA, "text_config": {}}
    assert from_hf_config(shorten_config(json.dumps({**LLAMA, **ignored}))) == from_hf_config(LLAMA)
    for text in (json.dumps(LLAMA), "x" * 200_000, "[" * 200_000, json.dumps({**LLAMA, "more": "x" * 5_000_000})):
        assert shorten_config(text) == text
    with pytest.raises(ConfigError) as refused:
        from_hf_config(shorten_config(json.dumps({**LLAMA, "other": "x" * 200_000})))
    assert rule_id(refused.value) == "config.too_long"


@pytest.mark.parametrize(
    "text", ['{"a": "[[[[[[[[[[[[[[[[[["}', '{"a": "\\"[[[[[[[[[[[[[[[[["}', '{"[[[[[[[[[[[[[[[[[": 1}']
)
def test_brackets_in_strings_are_not_nested(text: str) -> None:
    assert read_object(text)


@pytest.mark.parametrize("text", ["[" * 17, '{"a": "\\\\", "b": ' + "[" * 17, "]" + "[" * 18])
def test_deep_text_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_object(text)
    assert rule_id(refused.value) == "config.too_deep"


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.integers(-1, 3), max_size=3),
    st.lists(st.sampled_from(["full_attention", "sliding_attention", "x"]), max_size=5),
)


@settings(max_examples=300)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    changes=st.dictionaries(
        st.sampled_from(sorted({key for f in FAMILIES.values() for keys in f.keys.values() for key in keys})),
        _VALUES,
        max_size=4,
    ),
)
def test_no_config_gets_past_the_errors(family: str, changes: dict[str, Any]) -> None:
    """Whatever stands in a field: a shape that can be counted, or this error and no other."""
    with contextlib.suppress(ConfigError):
        counted = parameters(from_hf_config({**LLAMA, **changes, "model_type": family}))
        assert counted.total >= counted.active > 0


HALF = "\\ud800"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"{HALF}": 1, "model_type": "llama"}}',
        f'{{"{HALF}": 1, "{HALF}": 2}}',
        f'{{"model_type": "{HALF}"}}',
        f'{{"model_type": "llama", "hidden_act": ["{HALF}"]}}',
        f'{{"architectures": {{"a": [{{"b{HALF}": null}}]}}}}',
        f'"{HALF}"',
        '{"\udc80": 1}',
        "{\udc80: 1}",
    ],
)
def test_half_a_character_is_refused_in_words_that_can_be_sent(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config(text)
    str(caught.value).encode("utf-8")
    read_config(text).text.encode("utf-8")
