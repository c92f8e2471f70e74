"""Exercises on what the lecture and students' notes say of it: does it stand, or does it need care?"""

from __future__ import annotations

import random
from collections.abc import Mapping

from core.exercises.exercise import Exercise, Maker, choose
from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.lecture.claims import VERDICTS, Finding, Verdict
from core.limits import cached

_OPTIONS: Mapping[str, tuple[Verdict, ...]] = {
    "it stands as it is": ("exact", "holds"),
    "it is a rule of thumb": ("rule of thumb",),
    "it is true under one convention of several": ("convention",),
    "it needs care": ("needs care",),
}
"""What there is to choose, and the verdicts that are meant by it."""


def stands(rng: random.Random) -> Exercise:
    """One claim that stands as it is."""
    return _asked(rng, "it stands as it is")


def careful(rng: random.Random) -> Exercise:
    """One claim that needs care."""
    return _asked(rng, "it needs care")


def partly(rng: random.Random) -> Exercise:
    """One claim that is a rule of thumb or a convention."""
    return _asked(rng, rng.choice(("it is a rule of thumb", "it is true under one convention of several")))


def _asked(rng: random.Random, right: str) -> Exercise:
    claim = rng.choice([one for one in CLAIMS.values() if one.verdict in _OPTIONS[right]])
    found = _finding(claim.id)
    why = f"{VERDICTS[claim.verdict]}: {found.value}"
    return choose(
        rng,
        f"{claim.text.rstrip('.')}. **Does that stand?**",
        (right, _sentences(f"{why[0].upper()}{why[1:]}", claim.remark)),
        [(option, _meaning(verdicts)) for option, verdicts in _OPTIONS.items() if option != right],
        explanations=found.explanations,
        shown=Link("lecture", {"claim": claim.id}),
    )


@cached("results_kept")
def _finding(claim: str) -> Finding:
    """What the check of a claim finds, which is the same every time."""
    return CLAIMS[claim].check()


def _meaning(verdicts: tuple[Verdict, ...]) -> str:
    return f"That would be {VERDICTS[verdicts[-1]]}."


def _sentences(*parts: str) -> str:
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


MAKERS: tuple[Maker, ...] = (stands, careful, partly)
"""Every kind of exercise on the lecture."""
