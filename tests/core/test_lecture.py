"""The lecture's claims: every check confirms its row, and torch agrees where tensors are concerned."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
import torch

from core.lecture.catalogue import CLAIMS, findings
from core.lecture.claims import GROUPS, VERDICTS, Finding
from core.lecture.memory import check_checkpoint, check_largest_model
from core.lecture.numbers import sum_up, train_weight
from core.messages import message
from core.tensors.tracing.trace import trace
from tests.every import every


@every("claim_id", CLAIMS)
def test_the_computation_confirms_the_row(claim_id: str) -> None:
    claim, finding = CLAIMS[claim_id], findings()[claim_id]
    assert finding.confirms, finding.value
    assert finding.value
    assert claim.group in GROUPS
    assert claim.verdict in VERDICTS
    assert claim.remark or claim.verdict in {"exact", "holds"}, "a verdict with a catch must name it"


def test_claims_are_numbered_without_holes_in_four_chapters() -> None:
    assert len(CLAIMS) == 78
    assert [claim.number for claim in CLAIMS.values()] == [
        f"{chapter}.{place}"
        for chapter, group in enumerate(GROUPS, 1)
        for place in range(1, 1 + sum(claim.group == group for claim in CLAIMS.values()))
    ]


@every("claim_id", CLAIMS)
def test_every_claim_says_where_it_stands_and_has_its_evidence(claim_id: str) -> None:
    """A page, or lines that run; what is wrong in the notes always has a counterexample of a few lines."""
    claim = CLAIMS[claim_id]
    documents = {re.match(r"\w+", place.strip())[0] for place in claim.stands_in.split(";")}  # type: ignore[index]
    assert documents <= {"lecture", "A", "B", "C", "D"}
    assert claim.link or claim.example or claim_id == "T14"
    assert claim.example or claim.verdict != "needs care"


@every("claim_id", [claim.id for claim in CLAIMS.values() if claim.example])
def test_the_lines_of_an_example_print_what_is_shown(claim_id: str) -> None:
    """Run as a reader would run them, copied into a file of their own."""
    example = CLAIMS[claim_id].example
    assert example
    code, printed = example.code, io.StringIO()
    lines = len([line for line in code.splitlines() if line.strip()])
    assert (3 if CLAIMS[claim_id].verdict == "needs care" else 1) <= lines <= 8
    with contextlib.redirect_stdout(printed):
        exec(compile(code, claim_id, "exec"), {"__name__": "example"})  # noqa: S102  our own lines
    assert len(printed.getvalue().splitlines()) == len(example.output().splitlines()) > 0
    if "randn" not in code:
        assert printed.getvalue().rstrip("\n") == example.output()


def test_counterexamples_on_tensors_are_followed_step_by_step() -> None:
    shown = [one for one in CLAIMS.values() if one.verdict == "needs care" and one.example and one.example.on_tensors]
    assert {claim.id for claim in shown} >= {"T2", "T8", "T16", "T17", "T18", "T19", "C5", "F15", "F17"}
    for claim in shown:
        assert claim.example
        assert len(trace(claim.example.code, (2, 3))) > 0, claim.id


def test_a_verdict_follows_from_its_numbers_where_there_are_two() -> None:
    derived = {claim: finding.verdict for claim, finding in findings().items() if finding.verdict}
    assert len(derived) >= 5
    assert derived == {claim: CLAIMS[claim].verdict for claim in derived}
    said = message("lecture.M5.how")
    assert [Finding(said, True, how=said, compared=(100.0, v)).verdict for v in (100.0, 100.2, 110.0, 200.0)] == [
        "exact",
        "holds",
        "rule of thumb",
        "needs care",
    ]


@pytest.mark.parametrize(("name", "dtype"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_torch_confirms_the_sums(name: str, dtype: torch.dtype) -> None:
    total = torch.zeros((), dtype=dtype)
    step = torch.tensor(0.01, dtype=dtype)
    for _ in range(1000):
        total = total + step
    assert float(total) == sum_up(name, 0.01, 1000)


def test_torch_confirms_the_weight_that_never_moves() -> None:
    weight = torch.ones((), dtype=torch.bfloat16)
    for _ in range(100):
        weight = (weight.double() - 1e-3).to(torch.bfloat16)
    assert float(weight) == train_weight("bf16", 1e-3, 100) == 1


def test_a_check_can_fail() -> None:
    """The accounts behind the checks follow their inputs: other inputs give other numbers than the lecture's."""
    assert not check_largest_model("bf16 throughout").confirms
    assert not check_checkpoint(69e9).confirms
    assert sum_up("bf16", 0.01, 100) != sum_up("bf16", 0.01, 1000)
