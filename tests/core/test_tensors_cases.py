"""Surprising results are what torch says they are, and negative steps are what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.tensors.examples.surprises import CASES, NEGATIVE, Case, NegativePreset, negative_step
from core.tensors.tracing.steps import TraceStep
from core.tensors.tracing.trace import trace
from tests.every import every

# What the sentence of each case says, as a fact about the last step.
FACTS: dict[str, Callable[[TraceStep], bool]] = {
    "One column, two dimensions": lambda s: s.layout.stride == (6, 1) and not s.is_contiguous,
    "One row, two dimensions": lambda s: s.layout.offset == 6 and s.is_contiguous,
    "A transpose that stays contiguous": lambda s: s.layout.stride == (1, 6) and s.is_contiguous,
    "Strides that repeat": lambda s: s.layout.stride == (1, 1) and not s.layout.overlaps,
    "A moved dimension of size 1": lambda s: s.kind == "view",
    "Not contiguous, and yet a view": lambda s: s.kind == "view" and s.layout.stride == (2,),
    "One number, twelve elements": lambda s: s.kind == "view" and s.layout.stride == (0,),
    "ravel copies": lambda s: s.kind == "copy",
    "detach does not copy": lambda s: s.kind == "view" and s.storage == 0,
    "contiguous does nothing": lambda s: s.kind == "same",
    "A conversion to the same type": lambda s: s.kind == "same",
    "A copy that is not contiguous": lambda s: s.kind == "copy" and s.layout.stride == (1, 6),
    "A sum that is not contiguous": lambda s: s.kind == "copy" and not s.is_contiguous,
    "Same rows, other memory": lambda s: s.kind == "copy",
    "A slice that is no fence": lambda s: s.layout.offset == 0 and s.storage == 0,
    "No elements, any shape": lambda s: s.kind == "view",
    "An empty transpose is contiguous": lambda s: s.layout.stride == (1, 3) and s.is_contiguous,
    "The sum of nothing": lambda s: s.values == (0, 0, 0),
    "A slice past the end": lambda s: s.layout.shape == (0,) and s.layout.offset == 10,
    "Two memory formats at once": lambda s: s.kind == "same",
}


def test_every_case_has_a_fact() -> None:
    assert [case.title for case in CASES] == list(FACTS)


@every("case", CASES, ids=[case.title for case in CASES])
def test_cases_are_what_their_sentences_say(case: Case) -> None:
    traced = case.run()
    assert traced.refusal is None
    assert FACTS[case.title](traced.last)


@pytest.mark.parametrize("preset", NEGATIVE, ids=[preset.label for preset in NEGATIVE])
def test_negative_steps(preset: NegativePreset) -> None:
    traced = negative_step(preset)
    assert min(traced.layout.stride) < 0
    assert (traced.refusal.error_type, traced.refusal.error_message) == ("ValueError", "step must be greater than zero")
    assert traced.handed_over[0] == "ValueError"
    assert "negative strides are not currently supported" in traced.handed_over[1]
    values = tuple(traced.layout.cells().tolist())
    assert traced.instead.last.values == values
    assert traced.instead.bytes_copied == 8 * len(values)
    assert f"copies {8 * len(values)} B" in traced.headline[1]


def test_clone_keeps_the_order_and_closes_gaps() -> None:
    """Also where elements leave gaps, as the case and the quiz say."""
    assert trace("x[:, ::2].t().clone()", (4, 6)).last.layout.stride == (1, 3)
    assert trace("x[:, ::2].clone()", (4, 6)).last.layout.stride == (3, 1)
    assert trace("x.permute(2, 0, 1)[:, :, ::2].clone()", (2, 4, 6)).last.layout.stride == (1, 12, 6)
    (case,) = (case for case in CASES if case.source == "x.t().clone()")
    assert "closes gaps" in case.why
