"""Users that fit and least times of a served model: laws that hold for every model, and what engines printed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from transformers import AutoConfig

from core.hardware.accelerators import accelerators, find
from core.models.catalog import catalog
from core.models.configs.config import from_hf_config
from core.models.flops import flops_per_token
from core.models.parameters import parameters
from core.rows import read_rows
from core.serving.cache import CACHE_TYPES
from core.serving.engine import PER_LOGIT_SORTED, Engine, blocks_of, overhead
from core.serving.serving import DEGREES, LONGEST, Serving, divides, serving
from core.serving.weights import WEIGHT_TYPES, touched_experts, weights_of
from tests.every import every

SPECS = {model.name: model.spec for model in catalog()}
H100 = find("H100 SXM")


def at(model: str = "Llama 3.1 8B", device: str = "H100 SXM", tensor: int | None = 1, **how: object) -> Serving:
    return serving(SPECS[model], find(device), tensor=tensor, **how)  # pyright: ignore[reportArgumentType]


# ------------------------------------------------------------------------------------------ weights


@every("name", SPECS)
def test_weights_on_one_accelerator_are_all_parameters(name: str) -> None:
    count = parameters(SPECS[name]).total
    assert math.isclose(weights_of(SPECS[name]).held, 2 * count, rel_tol=1e-12)
    sizes = [weights_of(SPECS[name], kind).held for kind in WEIGHT_TYPES.values()]
    assert sizes[0] > sizes[1] == sizes[2] > sizes[4] > sizes[3]
    assert sizes[0] > sizes[5] > (sizes[6] if SPECS[name].hidden % 256 == 0 else 0)


@every("name", SPECS)
def test_accelerators_share_the_weights_and_lose_none(name: str) -> None:
    spec = SPECS[name]
    whole = weights_of(spec).held
    for tensor in filter(lambda degree: divides(spec, degree), DEGREES):
        each = weights_of(spec, tensor=tensor).held
        assert whole / tensor <= each * (1 + 1e-9)
        assert each < whole * (1 / tensor + 0.08), "norms, routers, a latent's narrow matrices, few key/value heads"


@every("name", [name for name, spec in SPECS.items() if spec.experts])
def test_a_pass_reads_the_experts_that_its_tokens_choose(name: str) -> None:
    spec = SPECS[name]
    weights, moe = weights_of(spec), spec.experts
    assert moe
    assert math.isclose(touched_experts(moe.count, moe.per_token, 1), moe.per_token)
    reads = [weights.read(tokens) for tokens in (1, 2, 8, 64, 10**6)]
    assert reads == sorted(reads)
    assert reads[-1] <= weights.held
    active = parameters(spec).active
    looked_up = 0 if spec.tied_head else spec.vocab * spec.table_width
    assert math.isclose(reads[0], 2 * (active - looked_up - spec.hidden * spec.position_rows), rel_tol=0.01)


def test_a_pass_reads_no_table_that_layers_only_look_up() -> None:
    plain = SPECS["Gemma 3 4B text decoder"]
    plain = replace(plain, tied_head=True)
    own = replace(plain, layer_embedding=64)
    table = 2 * own.vocab * own.layers * own.layer_embedding
    for tensor in (1, 4):
        more, read = (getattr(weights_of(own, tensor=tensor), of) for of in ("held", "read"))
        assert more - weights_of(plain, tensor=tensor).held > table
        assert read(1) - weights_of(plain, tensor=tensor).read(1) < 0.1 * table


def test_experts_drawn_at_random_are_as_many_as_counted() -> None:
    rng = np.random.default_rng(0)
    drawn = [len({int(e) for _ in range(16) for e in rng.choice(64, 4, replace=False)}) for _ in range(2000)]
    assert math.isclose(float(np.mean(drawn)), touched_experts(64, 4, 16), rel_tol=0.01)


PRINTED = {
    "Llama 3.1 8B (vLLM issue 10517)": ("Llama 3.1 8B", 1, "bf16", 14.9888, 0.005),
    "Llama 3.1 70B W8A8 (vLLM pull request 12569)": ("Llama 3.1 70B", 1, "int8", 67.7229, 0.005),
    "Qwen2.5 14B on two (vLLM issue 13061)": ("Qwen2.5 14B", 2, "bf16", 13.9476, 0.02),
}
"""Model, accelerators, format, GiB that its weights took on each, as vLLM printed them, and how near we come."""


@every("name", PRINTED)
def test_the_weights_that_an_engine_printed(name: str) -> None:
    model, tensor, kind, printed, within = PRINTED[name]
    held = weights_of(SPECS[model], WEIGHT_TYPES[kind], tensor=tensor).held / 2**30
    assert math.isclose(held, printed, rel_tol=within)


@every(("tokens", "peak"), [(20_000, 17.06), (29_000, 17.98)])
def test_the_peak_of_a_pass_that_an_engine_printed(tokens: int, peak: float) -> None:
    s = at(engine=Engine(tokens=tokens, requests=1))
    assert math.isclose(14.9888 + s.activations / 2**30, peak, abs_tol=0.02)


LOGS = [row for row in read_rows("serving_logs") if row["device"] and row["activation_gib"] and row["requests"]]


@every("row", LOGS)
def test_peaks_and_room_that_engines_printed(row: dict[str, str]) -> None:
    """Activations within 3% and room within 0.2 GiB of logs of vLLM 0.10 and 0.11, whose sampler sorted."""
    name, _, kind = row["model"].partition(" fp8")
    kind = "fp8" if _ else "mxfp4" if name.startswith("gpt-oss") else "bf16"
    engine = Engine(float(row["utilization"]), int(row["tokens"]), int(row["requests"]), version="before 0.17")
    s = at("Llama 3.1 70B" if "70B" in name else name, row["device"], int(row["tensor"]), engine=engine)
    s = replace(s, weights=weights_of(s.spec, WEIGHT_TYPES[kind], tensor=s.tensor))
    assert s._sampler["each"] == PER_LOGIT_SORTED
    assert math.isclose(s.activations / 2**30, float(row["activation_gib"]), rel_tol=0.03)
    outside = float(row["outside_gib"]) - overhead(s.tensor > 1).outside[1] / 2**30
    total = float(row["utilization"]) * (s.memory / 2**30 - float(row["total_gib"]))
    weights = s.held / 2**30 - float(row["weights_gib"])
    room = s.room / 2**30 - total + weights - outside
    assert math.isclose(room, float(row["room_gib"]), abs_tol=0.2)
    assert abs(weights) < 0.15 or name == "Qwen3 8B"


@every(("printed", "tokens"), [(5.98, 567_978), (6.01, 569_878)])
def test_blocks_of_a_hybrid_are_those_that_an_engine_printed(printed: float, tokens: int) -> None:
    """Qwen3.6 35B-A3B on an RTX 5090: pages of attention as large as a state, and two states for the prefix cache."""
    spec = from_hf_config(AutoConfig.for_model("qwen3_5_moe_text").to_json_string())
    engine = Engine(tokens=8192, requests=1, vision=0.45e9)
    kinds = {"weights": WEIGHT_TYPES["nvfp4"], "stored": CACHE_TYPES["fp8"], "context": 131_072}
    s = serving(spec, find("RTX 5090"), tensor=1, engine=engine, **kinds)  # pyright: ignore[reportArgumentType]
    assert math.isclose(s.blocks.cache_tokens(printed * 2**30, s.context), tokens, rel_tol=0.004)
    assert math.isclose(s.room / 2**30, printed, rel_tol=0.05)
    assert s.room_range[0] < printed * 2**30 < s.room_range[1]
    drafting = replace(s, engine=replace(engine, draft="MTP"))
    assert 0.4 < (drafting.held - s.held) / 2**30 < 0.6
    assert math.isclose(drafting.blocks.block / s.blocks.block, 11 / 10)


@every("name", SPECS)
def test_blocks_hold_the_cache_and_pad_it(name: str) -> None:
    s = at(name, tensor=None, context=20_000)
    blocks = s.blocks
    assert blocks.request * blocks.block >= s.user_bytes * (1 - 1e-9)
    longer = blocks_of(s.cache, 40_000, 2048)
    assert longer.request >= blocks_of(s.cache, 20_000, 2048).request
    assert s.room_range[0] <= s.room <= s.room_range[1] or math.isnan(s.room)
    assert at(name, tensor=s.tensor, engine=Engine(draft="EAGLE-3")).held > s.held


def test_many_users_take_the_fewest_cards_over_all_copies() -> None:
    s = at("Llama 3.1 70B", tensor=None, context=32_768, users=64)
    assert s.copies * s.users_that_fit >= 64 > (s.copies - 1) * s.users_that_fit
    for tensor in DEGREES:
        one = at("Llama 3.1 70B", tensor=tensor, context=32_768, users=64)
        assert one.users_that_fit < 1 or one.cards >= s.cards


# ------------------------------------------------------------------------------------------ users and contexts


@every("name", SPECS)
def test_users_and_contexts_are_each_other_s_inverse(name: str) -> None:
    s = serving(SPECS[name], H100, context=4096)
    if s.users_that_fit < 1:
        pytest.skip("too large for what can share it")
    users = int(s.users_that_fit)
    longest = s.longest(users)
    assert longest >= 4096
    assert replace(s, context=min(longest, 10**8)).users_that_fit >= users
    if longest < LONGEST:
        assert replace(s, context=longest + 1).users_that_fit < users
    assert s.longest(users + 1) < 4096
    assert s.longest(1) >= longest


@every("name", SPECS)
def test_more_never_takes_less(name: str) -> None:
    s = serving(SPECS[name], H100)
    users = np.array([1.0, 2, 16, 256, 4096])
    seconds = np.asarray(s.decode(users).seconds)
    assert np.all(np.diff(seconds) >= 0)
    assert np.all(np.diff(seconds / users) <= 0), "a token of a fuller batch costs no more"
    assert [float(s.decode(int(n)).seconds) for n in users] == list(seconds)
    prompts = [float(s.prefill(n).seconds) for n in (1, 16, 1024, 16_384)]
    assert prompts == sorted(prompts)
    longer = [replace(s, context=n) for n in (1024, 8192, 131_072)]
    assert [float(x.decode(8).seconds) for x in longer] == sorted(float(x.decode(8).seconds) for x in longer)
    fits = [x.users_that_fit for x in longer]
    assert fits == sorted(fits, reverse=True)


@every("name", SPECS)
def test_one_user_s_token_reads_the_weights_and_multiplies_by_each(name: str) -> None:
    s = serving(SPECS[name], H100, context=1)
    counted = flops_per_token(SPECS[name], 1, "full")
    assert math.isclose(s.decode_flop, counted.forward, rel_tol=0.02)
    placed = s.decode(1)
    assert placed.bound == "memory"
    assert math.isclose(float(placed.seconds), (s.weights.read(1) + s.user_bytes) / H100.bandwidth)


def test_a_latent_is_met_where_it_lies() -> None:
    """Scores over rank and rotated width and values over the rank, for every head: DeepSeek-V3's absorbed attention."""
    spec = SPECS["DeepSeek-V3"]
    s, low = serving(spec, H100, context=100_000), spec.latent
    assert low
    weights = flops_per_token(spec, 100_000, "full").weights
    squares = 2 * spec.layers * spec.heads * ((low.kv_rank + low.rope_dim) + low.kv_rank) * 100_000
    assert math.isclose(s.decode_flop, weights + squares)


@every("name", SPECS)
def test_the_fewest_accelerators_are_those_that_one_user_needs(name: str) -> None:
    s = serving(SPECS[name], H100)
    smaller = [degree for degree in DEGREES if degree < s.tensor and divides(SPECS[name], degree)]
    assert divides(SPECS[name], s.tensor)
    assert all(serving(SPECS[name], H100, tensor=degree).users_that_fit < 1 for degree in smaller)


def test_heads_that_cannot_be_shared_are_refused_with_what_can() -> None:
    with pytest.raises(ValueError, match=r"2 accelerators cannot split the 25 heads evenly\. Choose 1"):
        at("GPT-2 XL 1558M", tensor=2)
    assert at("GPT-2 XL 1558M", tensor=None).tensor == 1


@every("device", [device.name for device in accelerators()])
def test_every_accelerator_serves_or_says_what_is_unknown(device: str) -> None:
    s = at(device=device, tensor=None)
    assert math.isnan(s.room) == math.isnan(s.device.memory_bytes)
    assert math.isfinite(float(s.decode(1).seconds)) == math.isfinite(s.device.bandwidth)
