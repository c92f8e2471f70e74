"""Exercises on claims of the lecture and of students' notes: true as stated, or not?"""

from __future__ import annotations

import random

from core.exercises.exercise import ChoiceExercise, Maker
from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.lecture.claims import Finding, Verdict
from core.limits import cached
from core.messages import message

_TRUE: tuple[Verdict, ...] = ("exact", "holds")


def true(rng: random.Random) -> ChoiceExercise:
    """Ask about a claim that is true."""
    return _ask(rng, _TRUE)


def false(rng: random.Random) -> ChoiceExercise:
    """Ask about a claim that needs care."""
    return _ask(rng, ("needs care",))


def _ask(rng: random.Random, verdicts: tuple[Verdict, ...]) -> ChoiceExercise:
    claim = rng.choice([one for one in CLAIMS.values() if one.verdict in verdicts])
    found = _finding(claim.id)
    answer = int(verdicts != _TRUE)
    reasons = ["", ""]
    reasons[answer] = f"{found.value} {claim.remark}".rstrip()
    return ChoiceExercise(
        message("exercises.lecture.ask", claim=claim.text),
        (message("exercises.lecture.true"), message("exercises.lecture.false")),
        answer,
        tuple(reasons),
        found.explanations,
        shown=Link("lecture", {"claim": claim.id}),
    )


@cached("results_kept")
def _finding(claim: str) -> Finding:
    """Return the finding of a claim, which is the same every time."""
    return CLAIMS[claim].check()


MAKERS: tuple[Maker, ...] = (true, false)
"""All kinds of exercises on the lecture."""
