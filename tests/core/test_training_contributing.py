"""An optimizer added by CONTRIBUTING's steps fails the test it names until it is done, and none after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.contributing import Recipe, insert

ROW = (
    "AMSGrad again,exp_avg = mn; exp_avg_sq = mn; max_exp_avg_sq = mn,,,,,,,step = 1 as fp32,12.00003,"
    "torch.optim,arXiv:1904.09237,torch.optim.Adam(amsgrad=True),verified,\n"
)
MAKER = '    "AMSGrad again": ("torch", "torch", lambda lib, p, _: lib.optim.Adam([p], amsgrad=True)),\n'


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_optimizer_is_added_by_the_steps_without_the_other_libraries(tmp_path: Path) -> None:
    recipe = Recipe.of("optimizer", tmp_path)
    insert(recipe.copy / "assets/data/optimizers.csv", "NAdam,", ROW)
    missing = "test_every_optimizer_is_compared_with_torch"
    assert f"FAILED tests/core/test_training_states.py::{missing}" in recipe.failures(alone=missing)
    insert(recipe.copy / "tests/tools/optimizer_states.py", '    "FP8 Adam":', MAKER)
    recipe.write_tables()
    assert not recipe.failures("test_reference_tables")
