"""Bytes of the model states against published tables, the lecture's numbers, and the account of one accelerator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hardware.accelerators import accelerators
from core.models.catalog import model_named
from core.models.parameters import parameters
from core.models.stand_in import stand_in
from core.training.activations.stage import StepSettings
from core.training.device.inputs import explain_largest, largest_model, states_of
from core.training.device.memory import memory_over
from core.training.layout import Layout
from core.training.memory import (
    CheckpointSize,
    bytes_per_parameter,
    checkpoint_bytes,
    checkpoint_size,
    states_per_parameter,
)
from core.training.optimizers import find_optimizer, optimizers
from core.training.precision import POLICIES, find_policy
from tests.every import every

MIXED = "mixed bf16, fp32 master"
MEGATRON = "mixed bf16, fp32 master, fp32 gradients"
SHAPE = model_named("Llama 3 8B").spec
ADAMW = find_optimizer("AdamW")


def each(layout: Layout, precision: str, optimizer: str = "AdamW") -> float:
    """Bytes that one accelerator keeps for each parameter."""
    states = states_per_parameter(find_optimizer(optimizer), find_policy(precision))
    return 1e9 / explain_largest(states, layout, 1e9)[-1].value


def saved(precision: str = "fp32") -> CheckpointSize:
    return checkpoint_size(ADAMW, find_policy(precision))


# ------------------------------------------------------------------------------------------- the lecture


def test_m1_eight_h100_hold_forty_billion_parameters() -> None:
    assert largest_model(80e9, 1, bytes_per_parameter(4, 4, 0, 8) / 8) == 640e9 / (4 + 4 + 4 + 4) == 40e9
    states = states_per_parameter(ADAMW, find_policy("fp32"))
    assert explain_largest(states, Layout(data=8, zero=3), 80e9)[-1].value == 40e9


def test_m2_a_master_copy_costs_what_bf16_saves() -> None:
    assert states_per_parameter(ADAMW, find_policy(MIXED)).total == 2 + 2 + 4 + 4 + 4 == 16
    assert states_per_parameter(ADAMW, find_policy("fp32")).total == 16
    assert states_per_parameter(ADAMW, find_policy(MEGATRON)).total == 18
    for optimizer in optimizers().values():  # the saving is always spent, whatever the optimizer keeps
        mixed, full = (states_per_parameter(optimizer, find_policy(p), SHAPE).total for p in (MIXED, "fp32"))
        assert mixed == full


def test_m4_adagrad_keeps_one_state_per_parameter() -> None:
    """4·(P + P + P) of the lecture's 4·(P + B·D·L + P + P) are model states."""
    assert each(Layout(), "fp32", "AdaGrad") == pytest.approx(4 * 3)


def test_m8_a_checkpoint_of_seventy_billion_is_840_gigabytes() -> None:
    assert saved().of(70e9) == saved(MIXED).of(70e9) == checkpoint_bytes(70e9, 4, 8) == 840e9
    assert saved("mixed fp16, fp32 copies of both").of(70e9) == 840e9  # the gradient copy is not saved


# ------------------------------------------------------------------------------------------- published tables

ZERO_TABLE_1 = [
    # GB on each accelerator at 7.5 B, 128 B and 1T parameters; Rajbhandari et al. 2019, table 1, K = 12
    (7.5e9, 64, 0, 120.0),
    (7.5e9, 64, 1, 31.4),
    (7.5e9, 64, 2, 16.6),
    (7.5e9, 64, 3, 1.88),
    (128e9, 64, 0, 2048.0),
    (128e9, 64, 1, 536.0),
    (128e9, 64, 2, 284.0),
    (128e9, 64, 3, 32.0),
    (1e12, 1024, 1, 4011.0),
    (1e12, 1024, 2, 2013.0),
    (1e12, 1024, 3, 15.6),
]


@every(("params", "degree", "stage", "gigabytes"), ZERO_TABLE_1)
def test_zero_paper_table_1(params: float, degree: int, stage: int, gigabytes: float) -> None:
    assert params * each(Layout(data=degree, zero=stage), MIXED) / 1e9 == pytest.approx(gigabytes, rel=0.004)


# ------------------------------------------------------------------------------------------- one account

LAYOUTS = st.builds(
    Layout,
    data=st.sampled_from([1, 2, 8, 48, 1024]),
    context=st.sampled_from([1, 2]),
    zero=st.integers(0, 3),
    shard_group=st.sampled_from([0, 1, 2]),
    offload=st.integers(0, 1),
)


@given(st.floats(1e9, 1e12), st.sampled_from(list(POLICIES)), LAYOUTS)
def test_states_alone_are_those_of_the_account(params: float, precision: str, layout: Layout) -> None:
    """The largest model by states alone fills the memory in the account of one accelerator, to within its rounding."""
    policy, spec = find_policy(precision), stand_in(params)
    found = memory_over(spec, layout, states_of(ADAMW, policy, spec), StepSettings(4096))
    steps = explain_largest(states_per_parameter(ADAMW, policy), layout, float(found.states))
    assert steps[-1].value == pytest.approx(parameters(spec).total, rel=1e-9)


def test_state_that_depends_on_shapes_needs_a_shape() -> None:
    with pytest.raises(ValueError, match="depends on the shapes"):
        states_per_parameter(find_optimizer("Muon"), find_policy("fp32"))


def test_no_accelerator_lacks_what_it_has_a_peak_for() -> None:
    for device in accelerators():
        assert not any(device.lacks(dtype) for dtype, _ in device.peaks)
    assert {a.family for a in accelerators() if a.lacks("bf16")} == {"Volta", "Turing"}
