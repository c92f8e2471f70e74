"""The cache of a served model against the caches that transformers really makes, byte by byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache, Fp8QuantizedLayer

from core.models.catalog import catalog
from core.models.configs.config import from_hf_config
from core.models.spec import SlidingWindow
from core.serving.cache import CACHE_TYPES, ENGINE, TRANSFORMERS, CacheConvention, cache_of, cached_spec
from tests.core.models_oracle import DENSE, MIXTURES, STATES, config_of
from tests.every import every

pytestmark = pytest.mark.usefixtures("quiet")

SMALL: Mapping[str, Mapping[str, Any]] = {
    **DENSE,
    **MIXTURES,
    **STATES,
    "gemma3_text, one head": {**DENSE["gemma3_text"], "num_key_value_heads": 1},
    "phi3, windowed": {**DENSE["phi3"], "num_key_value_heads": 4, "sliding_window": 8},
}
USERS = 2
REFUSED = {"nemotron_h, states alone"}
"""Configs that transformers builds and cannot run with a cache: it asks a model without attention for its length."""


def convention(name: str) -> CacheConvention:
    """Falcon repeats the keys and values of a group for each of its heads before it stores them."""
    repeated = name.startswith("falcon") and SMALL[name].get("new_decoder_architecture")
    return replace(TRANSFORMERS, heads="repeated") if repeated else TRANSFORMERS


def tensors(cache: Cache) -> list[torch.Tensor]:
    """Every tensor that a cache holds, of states too."""
    found: list[Any] = []
    for layer in cache.layers:
        found += [getattr(layer, name, None) for name in ("keys", "values", "indexer_keys")]
        for name in ("conv_states", "recurrent_states"):
            found += (getattr(layer, name, None) or {}).values()
    return [item for item in found if item is not None]


def stored(model: PreTrainedModel, tokens: int) -> float:
    """Bytes that transformers keeps of one user after a prompt of so many tokens."""
    ids = torch.randint(3, 61, (USERS, tokens), generator=torch.Generator().manual_seed(tokens))
    with torch.no_grad():
        out = model(ids, use_cache=True)
    cache = getattr(out, "past_key_values", None) or out.cache_params
    return sum(item.numel() * item.element_size() for item in tensors(cache)) / USERS


def compared(name: str) -> None:
    """Below the windows of the small configs, at their edge, and beyond."""
    config = config_of(name, SMALL[name])
    spec = from_hf_config(config.to_json_string())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    for tokens in (5, 8, 20):
        counted = float(cache_of(spec, convention=convention(name)).bytes(tokens))
        assert counted == stored(model, tokens), f"{name} after {tokens} tokens"


SHORT = ("gpt2", "llama", "falcon", "falcon, grouped", "deepseek_v3", "mistral", "gemma3_text", "mamba2", "jamba")


@every("name", (*SHORT, "qwen3_next", "nemotron_h, listed"))
def test_a_family_of_each_kind_to_the_byte(name: str) -> None:
    compared(name)


@pytest.mark.long
@every("name", [name for name in SMALL if name not in REFUSED])
def test_every_family_to_the_byte(name: str) -> None:
    compared(name)


def test_a_cache_made_token_by_token_is_that_of_the_prompt() -> None:
    config = config_of("gemma3_text", SMALL["gemma3_text"])
    spec = from_hf_config(config.to_json_string())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    cache = DynamicCache(config=config)
    for tokens in range(1, 13):
        with torch.no_grad():
            model(torch.tensor([[tokens + 3]]), past_key_values=cache, use_cache=True)
        held = sum(item.numel() * item.element_size() for item in tensors(cache))
        assert held == float(cache_of(spec, convention=TRANSFORMERS).bytes(tokens))


@every("name", ["llama", "gpt2", "deepseek_v3", "llama, biases"])
def test_fp8_as_transformers_quantises_it(name: str) -> None:
    """Its one scale for a tensor, which is not counted, is 8 bytes for a layer."""
    config = config_of(name, SMALL[name])
    spec = from_hf_config(config.to_json_string())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    cache = DynamicCache(config=config)
    cache.layers = [Fp8QuantizedLayer() for _ in cache.layers]
    with torch.no_grad():
        model(torch.randint(3, 61, (USERS, 9)), past_key_values=cache, use_cache=True)
    parts = [part for layer in cache.layers for part in (*layer._quantized_keys, *layer._quantized_values)]
    numbers = [part for part in parts if part.ndim]
    held = sum(part.numel() * part.element_size() for part in numbers)
    assert held == USERS * float(cache_of(spec, CACHE_TYPES["fp8"]).bytes(9))
    scales = sum(part.numel() * part.element_size() for part in parts if not part.ndim)
    assert scales == 8 * spec.layers


def test_a_window_keeps_of_a_latent_what_it_keeps_of_keys() -> None:
    latent = from_hf_config(config_of("deepseek_v3", SMALL["deepseek_v3"]).to_json_string())
    short, window = cache_of(latent).bytes(8), SlidingWindow(8)
    assert cache_of(replace(latent, window=window)).bytes(np.array([8, 4096])).tolist() == [short, short]


def test_chunks_of_llama_4_to_the_byte() -> None:
    """transformers keeps of a layer that attends within chunks what it keeps of a window as long as a chunk."""
    config = config_of("llama4_text", {**SMALL["llama4_text"], "attention_chunk_size": 8})
    pattern = tuple(kind == "chunked_attention" for kind in config.layer_types)
    (scout,) = (model for model in catalog() if model.name == "Llama 4 Scout")
    window = cached_spec(scout).window
    assert window
    assert window.pattern == pattern, "three of four"
    spec = replace(from_hf_config(config.to_json_string()), window=SlidingWindow(8, pattern))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    for tokens in (5, 8, 20):
        assert float(cache_of(spec, convention=TRANSFORMERS).bytes(tokens)) == stored(model, tokens)
    default = config_of("llama4_text", {"num_hidden_layers": 48})
    assert window.size == default.attention_chunk_size
    assert cached_spec(scout).windowed_layers == default.layer_types.count("chunked_attention")


@every("name", ["deepseek_v2", "deepseek_v3"])
def test_a_latent_expanded_is_what_attention_makes_of_it(name: str) -> None:
    """The keys and values that transformers' own attention expands from a cached latent, of all heads and layers."""
    config = config_of("deepseek_v3", {**SMALL["deepseek_v3"], **SMALL[name]})
    spec = from_hf_config(config.to_json_string())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    made: list[torch.Tensor] = []
    for layer in model.model.layers:
        original = layer.self_attn.expand_kv

        def keeping(*given: Any, original: Any = original) -> Any:
            pair = original(*given)
            made.extend(pair)
            return pair

        layer.self_attn.expand_kv = keeping
    with torch.no_grad():
        model(torch.randint(3, 61, (1, 7)), use_cache=True)
    expanded = cache_of(spec, convention=replace(TRANSFORMERS, latent="expanded"))
    assert sum(item.numel() * item.element_size() for item in made) == float(expanded.bytes(7))


# ------------------------------------------------------------------------------------------ what holds for all


SPECS = {model.name: model.spec for model in catalog()}


@every("name", SPECS)
def test_a_cache_grows_by_its_token_and_never_shrinks(name: str) -> None:
    cache, lengths = cache_of(SPECS[name]), np.array([1, 2, 100, 4096, 131_072, 131_073])
    sizes = cache.bytes(lengths)
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[-1] - sizes[-2] == cache.per_token
    assert sizes[-1] == cache.fixed + 131_073 * cache.per_token
    assert [float(cache.bytes(int(n))) for n in lengths] == list(sizes)
    assert sum(step.value for step in cache.explain(4096)) == float(cache.bytes(4096))


@every("name", SPECS)
def test_accelerators_share_a_cache_and_none_is_lost(name: str) -> None:
    spec = SPECS[name]
    whole = float(cache_of(spec).bytes(10_000))
    for tensor in (2, 4, 8):
        each = float(cache_of(spec, tensor=tensor).bytes(10_000))
        assert whole / tensor <= each * (1 + 1e-12)
        assert each <= whole
        if spec.latent:
            assert each == whole, "one latent serves all heads"
        elif not spec.mixer and spec.kv_heads % tensor == 0:
            assert each == whole / tensor


@every("name", SPECS)
def test_formats_and_conventions_are_in_order(name: str) -> None:
    spec = SPECS[name]
    bf16, fp8, int8 = (cache_of(spec, kind).per_token for kind in CACHE_TYPES.values())
    assert fp8 * 2 == bf16
    assert fp8 <= int8 <= bf16
    engine, loose = (float(cache_of(spec, convention=c).bytes(200_000)) for c in (ENGINE, TRANSFORMERS))
    window = spec.windowed_layers * 2 * spec.kv_heads * spec.head_dim * 2
    if not spec.mixer:
        assert engine - loose == window


# ------------------------------------------------------------------------------------------ what others print

PRINTED = {
    "Llama 3.1 8B, RTX 3090 (vLLM issue 10517)": ("Llama 3.1 8B", 1, "bf16", 3.81, 1952 * 16),
    "the same with a pass of 29,000 tokens": ("Llama 3.1 8B", 1, "bf16", 2.89, 1478 * 16),
    "Qwen3 235B-A22B on 4 H100 (SGLang, vLLM issue 21348)": ("Qwen3 235B-A22B", 4, "bf16", 2 * 8.23, 367_404),
}
"""Model, accelerators, format, GiB for the cache on each, tokens in it, as engines printed them."""


@every("name", PRINTED)
def test_the_tokens_that_an_engine_printed(name: str) -> None:
    """The bytes are printed to two decimals."""
    model, tensor, kind, printed, tokens = PRINTED[name]
    counted = float(cache_of(SPECS[model], CACHE_TYPES[kind], tensor=tensor).bytes(tokens)) / 2**30
    assert abs(counted - printed) <= 0.012
