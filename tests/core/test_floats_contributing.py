"""A float format added by CONTRIBUTING's steps fails the tests it names until it is done, and none after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.contributing import Recipe, insert

ROW = "p3109_k8p5se,P3109 K8P5,3,4,4,1,1,negative_zero,0,1,1,0,0,draft standard,P3109\n"
DEFINITION = '    "p3109_k8p5se": formats.format_info_p3109(8, 5, domain=Domain.Extended),\n'


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_float_format_is_added_by_the_steps(tmp_path: Path) -> None:
    recipe = Recipe.of("float format", tmp_path)
    insert(recipe.copy / "assets/data/float_formats.csv", "p3109_k4p2sf,", ROW)
    missing = "test_every_reference_format_is_there"
    assert f"FAILED tests/core/test_floats_formats.py::{missing}" in recipe.failures(alone=missing)
    insert(recipe.copy / "tests/tools/float_tables.py", '    "p3109_k4p2sf":', DEFINITION)
    recipe.write_tables()
    table = recipe.copy / "tests/data/float_formats.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("p3109_k8p5se,,", "p3109_k8p5se,P3109 draft,"))
    assert not recipe.failures("test_reference_tables")
