"""Visitors who do anything at all to any page; ``make perf`` lets many more of them do it for longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from tests.perf.walk import Walk, observed


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with observed():
        yield


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(6))
def test_nothing_a_visitor_does_ends_in_an_error(seed: int) -> None:
    walk = Walk(seed)
    walk.walk(50)
    assert set(walk.kinds) >= {"go", "panel", "button"}


def test_a_walk_is_told_by_its_seed() -> None:
    first, second = Walk(7), Walk(7)
    first.walk(8)
    second.walk(8)
    assert first.actions == second.actions


@pytest.mark.parametrize(
    "drawn",
    [
        "st.title('A')\n1 / 0",
        "st.title('A')\nst.html('<div class=\"np-error np-failed\">This panel failed.</div>')",
        "st.text('no title')",
    ],
)
def test_a_planted_error_is_found_and_told(drawn: str) -> None:
    with pytest.raises(AssertionError, match="seed 7\nopen Home\n"):
        Walk(7, AppTest.from_string(f"import streamlit as st\n{drawn}"))
