"""A derivation: each formula once, in the order of first use, with every value it is used with; defaults fill in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from core.budget.compute_optimal import compute_optimal
from core.budget.equations import accelerator_hours
from core.formula import Explanation, Formula, Source, Symbol, derivation
from core.lecture.catalogue import CLAIMS, findings

SOURCE = (Source("A book", "page 1"),)
NUMBER = Symbol("n", "a number", "number")


def _scaled(size: float, factor: float = 3.0, *, shift: float = 0.5) -> float:
    """Size by a factor.

    And a shift.
    """
    return factor * size + shift


SCALED = Formula(
    _scaled,
    r"\v{factor} \cdot \v{size} + \v{shift}",
    Symbol("r", "result", "number"),
    {"size": NUMBER, "factor": replace(NUMBER, latex="k"), "shift": replace(NUMBER, latex="h")},
    SOURCE,
)


def test_what_is_left_out_takes_its_default() -> None:
    explained = SCALED.explain(size=2.0)
    assert explained.value == SCALED(2.0) == 6.5
    assert [term.value for term in explained.terms] == [2.0, 3.0, 0.5]
    assert explained.substituted == r"r = 3 \cdot 2 + 0.5 = 6.5"
    assert explained == SCALED.explain(size=2.0, factor=3.0, shift=0.5)
    assert SCALED.explain(size=2.0, shift=1.0).value == 7.0


def test_a_formula_comes_once_where_it_comes_first() -> None:
    hours = accelerator_hours.explain(accelerators=8, seconds=3600.0)
    first, second = SCALED.explain(size=1.0), SCALED.explain(size=2.0)
    steps = derivation([first, hours, second, first])
    assert [step.symbolic for step in steps] == [first.symbolic, hours.symbolic]
    assert steps[0].uses == (first, second)
    assert steps[0].sources == SOURCE
    assert [steps[0].uses[0].terms[i].latex for i in steps[0].differing] == ["n"]
    assert steps[1].differing == ()


@pytest.mark.parametrize("which", ["lecture", "split"])
def test_no_value_of_ours_is_lost(which: str) -> None:
    found = findings()
    lists = {
        "lecture": [one for claim in CLAIMS for one in found[claim].explanations],
        "split": [one for split in compute_optimal(1e24) for one in split.explanations],
    }
    explanations: list[Explanation] = lists[which]
    steps = derivation(explanations)
    assert len({step.symbolic for step in steps}) == len(steps) < len(explanations)
    left = {(use.name, use.title, tuple(term.text for term in use.terms), use.text) for s in steps for use in s.uses}
    assert left == {(e.name, e.title, tuple(term.text for term in e.terms), e.text) for e in explanations}
    assert all(math.isfinite(use.value) for step in steps for use in step.uses)
    for step in steps:
        for i, _ in enumerate(step.uses[0].terms):
            shared = len({use.terms[i].text for use in step.uses}) == 1
            assert shared == (i not in step.differing)
