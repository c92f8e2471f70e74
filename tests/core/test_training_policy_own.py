"""A precision of one's own: the sum of its rows, state by state, beginning as any named one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.models.catalog import CATALOG
from core.training.custom_policy import ABSENT, CHOICES, STATE_CHOICES, OwnPolicy, own_like, policy_rows, state_names
from core.training.device.inputs import states_of
from core.training.device.memory import width_of
from core.training.memory import states_per_parameter
from core.training.optimizers import find_optimizer, optimizers
from core.training.precision import POLICIES, STORAGE_TYPES, PrecisionPolicy
from tests.every import every

LLAMA = CATALOG["Llama 3.1 8B"].spec

TYPE, COPY, STATE = st.sampled_from(CHOICES), st.sampled_from((ABSENT, *CHOICES)), st.sampled_from(STATE_CHOICES)
OWN = st.builds(
    OwnPolicy,
    weights=TYPE,
    master=COPY,
    gradients=TYPE,
    accumulation=COPY,
    gradient_copy=COPY,
    multiplies=TYPE,
    activations=TYPE,
    states=st.tuples(STATE, STATE, STATE),
)
SIZE = {ABSENT: 0.0} | {name: kept.bytes for name, kept in STORAGE_TYPES.items()}


@given(OWN)
def test_a_policy_of_ones_own_is_the_sum_of_its_rows(own: OwnPolicy) -> None:
    adam = find_optimizer("Adam")
    policy = own.under(adam)
    rows = policy_rows(policy, adam)
    copies = (own.weights, own.master, own.gradients, own.accumulation, own.gradient_copy, *own.states[:2])
    assert states_per_parameter(adam, policy).total == pytest.approx(sum(SIZE[name] for name in copies), rel=1e-15)
    assert sum(row.bytes for row in rows if not math.isnan(row.bytes)) == states_per_parameter(adam, policy).total
    assert [row.type for row in rows] == [*copies, own.multiplies, own.activations]
    assert width_of(policy) == SIZE[own.activations]
    assert own_like(policy, adam) == replace(own, states=(*own.states[:2], own_like(policy, adam).states[2]))


@given(OWN, st.sampled_from(list(optimizers())))
def test_what_is_chosen_for_each_state_is_what_it_is_kept_in(own: OwnPolicy, name: str) -> None:
    """The first, the second, and one type for all further ones, whatever an optimizer calls them."""
    policy, names = own.under(find_optimizer(name)), state_names(find_optimizer(name))
    assert [policy.state(state).name for state in names] == [own.states[min(i, 2)] for i in range(len(names))]
    assert own.under(find_optimizer(name)).phrase.endswith(policy.id)


@every("policy", POLICIES.values(), ids=lambda p: p.id)
def test_ones_own_begins_as_what_was_chosen(policy: PrecisionPolicy) -> None:
    """Under every optimizer the types of a named precision, taken one by one, keep the same bytes."""
    for optimizer in optimizers().values():
        own = own_like(policy, optimizer).under(optimizer)
        assert states_of(optimizer, own, LLAMA) == states_of(optimizer, policy, LLAMA)
        assert (width_of(own), own.multiplies) == (width_of(policy), policy.multiplies)


def test_types_that_a_tensor_cannot_have_are_refused() -> None:
    states = {"states": ("fp32", "int3", "fp32")}
    for wrong in ({"weights": "8-bit blocks"}, states, {"master": "uint8"}, {"activations": "x"}):
        with pytest.raises(ValueError, match="cannot be kept in"):
            OwnPolicy(**wrong).under(find_optimizer("Adam"))
