"""Precision policies, optimizers and shardings as data."""

from __future__ import annotations

import math

import pytest

from core.models.catalog import model_named
from core.training.memory import states_per_parameter
from core.training.optimizers import ALIKE, HEADLINE, find_optimizer, headline, optimizer_state, optimizers, row_names
from core.training.precision import POLICIES, find_policy
from core.training.trained import ParameterTensor
from tests.every import every


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
