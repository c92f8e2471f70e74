"""A precision of one's own in a plan: every combination answers, on every account the same, and wider is never less."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.messages import message
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.form.training import OWN_FIELDS
from core.planning.memory_estimate import memory_estimate, under_each_optimizer, under_each_policy
from core.planning.plan import OWN_POLICY
from core.training.custom_policy import policy_rows
from core.training.device.peak import through_one_step
from core.training.optimizers import optimizers
from core.training.precision import POLICIES, STORAGE_TYPES
from core.views.training import text_precision
from tests.every import every

TYPES = st.fixed_dictionaries({field.id: st.sampled_from(field.options) for field in OWN_FIELDS.values()})
OWN = {"prec": OWN_POLICY, "n": "13B", "count": "8"}


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(TYPES, st.sampled_from(list(optimizers())))
def test_every_combination_answers_and_all_accounts_agree(types: dict[str, str], opt: str) -> None:
    plan = plan_from({**OWN, **types, "opt": opt})
    h = memory_estimate(plan)
    assert math.isfinite(h.total)
    assert through_one_step(h.setup).total.max() == pytest.approx(h.total, rel=1e-12)
    (same,) = [estimate for estimate in under_each_optimizer(h) if estimate.optimizer.name == opt]
    assert same.total == pytest.approx(h.total, rel=1e-12)
    assert under_each_policy(h)[0] is h
    assert estimate(plan).memory.total == pytest.approx(h.total, rel=1e-12)


@every("opt", ["AdamW", "SGD", "Muon", "Adafactor with momentum", "Prodigy"])
@every("field", OWN_FIELDS.values(), ids=lambda field: field.id)
def test_a_wider_type_never_holds_less(field: object, opt: str) -> None:
    """Of every class alone, the others as usual; one that the optimizer does not have changes nothing."""
    (name, item) = next((name, item) for name, item in OWN_FIELDS.items() if item is field)
    sizes = {option: STORAGE_TYPES[option].bytes if option in STORAGE_TYPES else 0.0 for option in item.options}
    totals = {
        option: memory_estimate(plan_from({**OWN, "lay": "own", "opt": opt, item.id: option})).total
        for option in item.options
    }
    ordered = [totals[option] for option in sorted(item.options, key=lambda option: sizes[option])]
    assert ordered == sorted(ordered)
    chosen = {row.chosen for row in policy_rows(POLICIES["fp32"], optimizers()[opt])}
    assert (ordered[0] < ordered[-1]) == (name in chosen)


@pytest.mark.parametrize(
    ("types", "total"),
    [
        ({"pm": "none", "ps1": "bf16", "ps2": "bf16"}, 8),
        ({"pm": "none"}, 12),
        ({}, 16),
        ({"pw": "fp32", "pm": "none", "pg": "fp32"}, 16),
        ({"pg": "fp32"}, 18),
        ({"pa": "fp32"}, 20),
        ({"pc": "fp32"}, 20),
    ],
)
def test_8_12_16_18_and_20_bytes(types: dict[str, str], total: int) -> None:
    """The sums that are explained are those that the types come to."""
    h = memory_estimate(plan_from({**OWN, **types}))
    assert text_precision.total(h)[1] == f"**{total} B**"
    assert f"**{total}**" in message("training.policy.why_so_many")
