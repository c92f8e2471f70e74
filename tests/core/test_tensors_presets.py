"""The lecture's presets run and show what their claims say; the program of a model is what it is called."""

from __future__ import annotations

from core.tensors.examples.presets import ATTENTION, LECTURE
from core.tensors.tracing.trace import trace


def test_the_lecture_has_a_preset_for_every_claim() -> None:
    claims = [preset.claim for preset in LECTURE]
    assert claims == [f"T{n}" for n in range(1, 1 + len(claims))]
    last = {p.claim: trace(p.source, p.shape, dtype=p.dtype) for p in LECTURE}
    assert {claim for claim, run in last.items() if run.refusal} == {"T5"}
    assert [run.last.layout.offset for run in (last["T1"], last["T2"])] == [6, 5]
    assert {step.storage for step in last["T3"]} == {0}
    assert last["T4"].last.values == (100, 3, 1, 4, 2, 5)
    assert last["T6"].last.storage == 1
    assert (last["T7"].bytes_copied, last["T9"].bytes_copied) == (96, 48)
    assert (last["T8"].last.kind, last["T8"].last.is_contiguous) == ("view", False)
    assert len({step.layout for step in last["T10"].steps[2:]}) == 1
    assert last["T10"].bytes_copied == 0
    assert set(last["T11"].last.values) == {0}
    assert last["T12"].last.values == (1, 1, 1, 0, 1, 1, 0, 0, 1)
    assert last["T13"].last.layout.shape == (4, 8, 16, 2)


def test_six_lines_of_attention_copy_once_and_make_two_products() -> None:
    run = trace(ATTENTION.source, ATTENTION.shape, dtype=ATTENTION.dtype)
    assert run.refusal is None
    assert run.last.line == 6
    assert [step.operation for step in run if step.bytes_allocated] == ["x", "matmul", "softmax", "matmul", "reshape"]
    assert all(step.storage == 0 for step in run if step.line < 5)
