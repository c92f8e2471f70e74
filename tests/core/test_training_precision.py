"""Precision policies, optimizers and shardings as data."""

from __future__ import annotations

import dataclasses
import math

import pytest

from core.training import (
    HEADLINE,
    POLICIES,
    REPLICATED,
    SHARDED,
    SHARDINGS,
    ZERO_1,
    ZERO_2,
    PrecisionPolicy,
    find_optimizer,
    find_policy,
    optimizers,
    stage_sharding,
    states_per_parameter,
)
from core.training.precision import BF16, FP32

ADAMW_BYTES = {
    # policy → parameters, gradients, master copies, optimizer state under AdamW, as their sources count them
    "fp32": (4, 4, 0, 8),
    "fp32, bf16 autocast": (4, 4, 0, 8),
    "mixed bf16, fp32 master": (2, 2, 4, 8),
    "mixed bf16, fp32 master, fp32 gradients": (2, 4, 4, 8),
    "mixed fp16, fp32 copies of both": (2, 2, 8, 8),
    "mixed bf16, fp32 master, bf16 states": (2, 4, 4, 4),
    "bf16 throughout": (2, 2, 0, 4),
}


def test_every_policy_is_counted_here() -> None:
    assert set(POLICIES) == set(ADAMW_BYTES)


@pytest.mark.parametrize("name", POLICIES)
def test_adamw_bytes_of_every_policy(name: str) -> None:
    states = states_per_parameter(find_optimizer("AdamW"), find_policy(name))
    assert dataclasses.astuple(states) == ADAMW_BYTES[name]
    assert states.total == sum(ADAMW_BYTES[name])


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda p: p.id)
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


def test_policies_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        find_policy("fp32").phrase = "otherwise"  # type: ignore[misc]
    with pytest.raises(TypeError):
        POLICIES["fp32"] = find_policy("bf16 throughout")  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("SGD", ()),
        ("SGD momentum", ("momentum_buffer",)),
        ("AdaGrad", ("sum",)),
        ("RMSProp", ("square_avg",)),
        ("Adam", ("exp_avg", "exp_avg_sq")),
        ("AdamW", ("exp_avg", "exp_avg_sq")),
    ],
)
def test_the_six_headline_optimizers(name: str, states: tuple[str, ...]) -> None:
    optimizer = find_optimizer(name)
    assert name in HEADLINE
    assert optimizer.states == states
    assert optimizer.state_tensors == len(states)
    assert optimizer.confidence == "verified"


def test_headline_comes_first_and_falls_in_state() -> None:
    assert tuple(optimizers())[:6] == HEADLINE
    counts = [find_optimizer(name).state_tensors for name in HEADLINE]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("name", optimizers())
def test_state_is_what_was_measured(name: str) -> None:
    """Four bytes per state tensor in fp32, but for counters of a few bytes per tensor of 131,072 elements."""
    optimizer = find_optimizer(name)
    counted = states_per_parameter(optimizer, find_policy("fp32")).optimizer
    assert counted == 4 * optimizer.state_tensors
    assert 0 <= optimizer.measured - counted <= 12 / (512 * 256)
    assert optimizer.sources[0].title


def test_optimizers_that_need_the_matrix_shape_are_left_out() -> None:
    """Factored, quantised, 2-D only, low-rank, offloaded, and those whose measurement contradicts their name."""
    for name in ("Adafactor (no momentum)", "8-bit Lion", "Muon", "GaLore (rank r)", "Sophia-H", "Shampoo", "LBFGS"):
        with pytest.raises(KeyError, match="no optimizer"):
            find_optimizer(name)
    assert {"Lion", "AMSGrad", "Prodigy", "LAMB", "NAdam"} <= set(optimizers())
    assert not any(math.isnan(optimizer.measured) for optimizer in optimizers().values())


def test_names_are_found_in_any_case_and_unknown_ones_are_told() -> None:
    assert find_optimizer(" adagrad ").name == "AdaGrad"
    with pytest.raises(KeyError, match="AdamW"):
        find_optimizer("AdaBelieve")
    with pytest.raises(KeyError, match="bf16 throughout"):
        find_policy("int3")
    with pytest.raises(KeyError):
        stage_sharding(4)


def test_copies_of_each_sharding() -> None:
    assert [stage_sharding(stage) for stage in range(4)] == [REPLICATED, ZERO_1, ZERO_2, SHARDED]
    assert SHARDED.copies(8) == (1, 1, 1)
    assert ZERO_2.copies(8) == (8, 1, 1)
    assert ZERO_1.copies(8) == (8, 8, 1)
    assert REPLICATED.copies(8) == (8, 8, 8)
    assert [s.complete for s in SHARDINGS.values()] == [True, False, False, False]
    assert all(s.copies(1) == (1, 1, 1) for s in SHARDINGS.values())
