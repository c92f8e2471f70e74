"""What post-training holds beside the trained model: every byte has a part, and no method holds less than training."""

from __future__ import annotations

import math

from core.models.parameters import parameters
from core.planning.fine_tuning import ANSWERS, post_training
from core.planning.form.plan_form import plan_from
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.serving.cache import cache_of
from tests.every import every

PLANS = {
    "one card": {"model": "Llama 3.2 1B", "count": "1", "zero": "0", "seq": "2048"},
    "sharded": {"model": "Llama 3.1 8B", "count": "8", "seq": "4096"},
    "whole weights": {"model": "Llama 3.1 8B", "count": "8", "zero": "1", "seq": "4096"},
    "tensor parallel": {"model": "Llama 3.1 70B", "count": "64", "tp": "8", "zero": "1"},
    "a mixture": {"model": "Mixtral 8x7B", "count": "16", "seq": "4096"},
    "a hybrid": {"model": "Nemotron 3 Nano 30B-A3B", "count": "16", "seq": "4096"},
    "a size alone": {"n": "13B", "count": "8"},
    "adapters": {
        "model": "Llama 3.1 8B",
        "gpu": "RTX 4090",
        "count": "1",
        "zero": "0",
        "ft": "adapters",
        "frozen": "nf4",
    },
    "the last layers": {"model": "Llama 3.1 8B", "count": "8", "ft": "last layers"},
    "fp32 weights": {"model": "Llama 3.2 1B", "count": "2", "prec": "fp32"},
}


def held(texts: dict[str, str]) -> MemoryEstimate:
    return memory_estimate(plan_from({"lay": "own", **texts}))


@every("name", PLANS)
def test_every_byte_has_its_part(name: str) -> None:
    h = held(PLANS[name])
    for row in post_training(h):
        parts = row.pairs + row.frozen + row.critic + row.engine + row.cache
        assert math.isclose(row.total - h.total, parts, rel_tol=1e-9)
        assert row.total > h.total


def test_a_frozen_copy_is_the_weights_in_bf16() -> None:
    h = held(PLANS["one card"])
    dpo, grpo, ppo = post_training(h)
    count = parameters(h.spec).total
    assert dpo.frozen == grpo.frozen == 2 * count
    assert ppo.frozen == 2 * dpo.frozen, "a reference and a reward model"
    assert grpo.engine == ppo.engine == 2 * count
    assert grpo.cache == ANSWERS * float(cache_of(h.spec).bytes(2048))
    assert ppo.critic == float(h.device_memory.states - h.device_memory.later)
    assert dpo.engine == dpo.critic == grpo.critic == 0
    fp32 = post_training(held(PLANS["fp32 weights"]))[0]
    assert fp32.frozen == parameters(held(PLANS["fp32 weights"]).spec).total, "half of them on each of two, in bf16"


def test_copies_are_sharded_as_the_weights_are() -> None:
    sharded, whole = (post_training(held(PLANS[name]))[0].frozen for name in ("sharded", "whole weights"))
    assert math.isclose(8 * sharded, whole)


def test_a_pair_is_two_sequences() -> None:
    one, two = held(PLANS["sharded"]), held({**PLANS["sharded"], "mbs": "2"})
    dpo = post_training(one)[0]
    assert math.isclose(dpo.pairs, two.total - one.total)
    assert all(row.pairs == 0 for row in post_training(one)[1:])


def test_adapters_need_no_reference() -> None:
    """TRL keeps none: with its adapters off the model is its own reference."""
    h = held({**PLANS["sharded"], "ft": "adapters", "frozen": "nf4, double"})
    dpo, grpo, ppo = post_training(h)
    assert dpo.frozen == grpo.frozen == 0
    assert ppo.frozen == post_training(held(PLANS["sharded"]))[0].frozen, "the reward model is left"
