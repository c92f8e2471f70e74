"""Precision policies, optimizers and shardings as data."""

from __future__ import annotations

import dataclasses
import math

import pytest

from core.models.catalog import model_named
from core.training.memory import states_per_parameter
from core.training.optimizer_state import optimizer_state
from core.training.optimizers import ALIKE, HEADLINE, find_optimizer, headline, optimizers, row_names
from core.training.precision import BF16, FP32, POLICIES, PrecisionPolicy, find_policy
from core.training.tensors import ParameterTensor
from tests.every import every

ADAMW_BYTES = {
    # policy → parameters, gradients, master copies, optimizer state under AdamW, as their sources count them
    "fp32": (4, 4, 0, 8),
    "fp32, bf16 autocast": (4, 4, 0, 8),
    "mixed bf16, fp32 master": (2, 2, 4, 8),
    "mixed bf16, fp32 master, fp32 gradients": (2, 4, 4, 8),
    "mixed fp16, fp32 copies of both": (2, 2, 8, 8),
    "mixed bf16, fp32 master, bf16 states": (2, 4, 4, 4),
    "bf16 throughout": (2, 2, 0, 4),
    "mixed bf16, fp32 master, fp32 accumulation": (2, 2 + 4, 4, 8),
    "bf16, stochastic rounding, fp32 states": (2, 2, 0, 8),
    "bf16, stochastic rounding": (2, 2, 0, 4),
    "fp8 matmuls, fp32 master, bf16 states": (2, 4, 4, 4),
    "fp8 weights and gradients, fp16 master": (1, 1, 2, 1 + 2),
    "mixed bf16, fp32 master, 8-bit states": (2, 2, 4, 2 * (1 + 4 / 256)),
    "mixed bf16, fp32 master, 4-bit states": (2, 2, 4, 2 * (1 / 2 + 4 / 128)),
}


def test_every_policy_is_counted_here() -> None:
    assert set(POLICIES) == set(ADAMW_BYTES)


@every("name", POLICIES)
def test_adamw_bytes_of_every_policy(name: str) -> None:
    states = states_per_parameter(find_optimizer("AdamW"), find_policy(name))
    assert dataclasses.astuple(states) == ADAMW_BYTES[name]
    assert states.total == sum(ADAMW_BYTES[name])


@every("policy", POLICIES.values(), ids=lambda p: p.id)
def test_policy_is_complete(policy: PrecisionPolicy) -> None:
    assert policy.note.endswith(".")
    assert policy.phrase.startswith("in ")
    assert all(source.url.startswith("https://") for source in policy.sources)
    assert policy.sources


def test_one_state_may_have_its_own_type() -> None:
    """As in optax, whose ``mu_dtype`` stores Adam's first moment in another type than the second."""
    policy = dataclasses.replace(find_policy("fp32"), special_states=(("exp_avg", BF16),))
    assert policy.state("exp_avg") is BF16
    assert policy.state("exp_avg_sq") is FP32
    assert states_per_parameter(find_optimizer("AdamW"), policy).optimizer == 6
    assert states_per_parameter(find_optimizer("RMSProp"), policy).optimizer == 4


def test_headline_comes_first_and_falls_in_state() -> None:
    assert tuple(optimizers())[: len(HEADLINE)] == HEADLINE
    spec = model_named("Llama 3.1 8B").spec
    sizes = [states_per_parameter(find_optimizer(name), find_policy("fp32"), spec).optimizer for name in HEADLINE]
    assert sizes[:-2] == sorted(sizes[:-2], reverse=True)
    assert max(sizes[-2:]) < 0.01  # Adafactor keeps almost nothing, SGD nothing
    assert sizes[-1] == 0


@every("chosen", optimizers())
def test_a_figure_shows_the_chosen_optimizer_once(chosen: str) -> None:
    names = headline(chosen)
    assert names.count(chosen) == 1
    assert len(set(row_names(names))) == len(names) <= len(HEADLINE) + 1
    assert ("Adam, AdamW" in row_names(names)) != ({"Adam", "AdamW"} <= set(names))
    for group in ALIKE:  # those that share a row keep the same, under every policy
        for policy in POLICIES.values():
            assert len({states_per_parameter(find_optimizer(name), policy).optimizer for name in group}) == 1


MATRIX = (ParameterTensor("one matrix", 512, 256, 1, "matrix"),)


@every("name", [name for name, made in optimizers().items() if not math.isnan(made.measured)])
def test_state_is_what_was_measured(name: str) -> None:
    """On one 512 × 256 fp32 matrix: but for counters, and the tables of codes that quantised states share."""
    optimizer = find_optimizer(name)
    state = optimizer_state(MATRIX, optimizer, find_policy("fp32"))
    tables = 2 * 256 * 4 if "8-bit" in name else 2 * 16 * 4 if "4-bit" in name else 0
    assert optimizer.measured == pytest.approx((state.total + state.counters + tables) / (512 * 256), abs=0.0081)
    if not tables:
        assert optimizer.measured == pytest.approx((state.total + state.counters) / (512 * 256), abs=1.1e-5)
    assert optimizer.sources[0].title


def test_names_are_found_in_any_case_and_unknown_ones_are_told() -> None:
    assert find_optimizer(" adagrad ").name == "AdaGrad"
    with pytest.raises(KeyError, match="AdamW"):
        find_optimizer("AdaBelieve")
    with pytest.raises(KeyError, match="bf16 throughout"):
        find_policy("int3")
