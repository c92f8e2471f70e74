"""Every table of tests/data has a line on its origin, and is what its script makes of its questions today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every import every
from tests.tools.__main__ import TABLES

DATA = Path(__file__).parents[1] / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")


@every("path", [path for path in DATA.iterdir() if path.suffix != ".md"], ids=lambda path: path.name)
def test_a_table_says_where_it_is_from(path: Path) -> None:
    assert f"`{path.name}`" in README


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.needs])
def test_a_table_is_what_its_script_makes(name: str) -> None:
    table = TABLES[name]
    for was, made in zip(table.committed(), table.made(), strict=True):
        assert was == made


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_columns_of_its_script(name: str) -> None:
    table = TABLES[name]
    assert set(table.committed()[0]) == {*table.questions, *table.answers}
