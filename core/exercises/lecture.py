"""Exercises on what the lecture and students' notes say of it: does it stand, or does it need care?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache

from core.exercises.exercise import Exercise, Maker, choose
from core.fields import Link
from core.lecture.catalogue import CLAIMS
from core.lecture.claims import VERDICTS, Finding, Verdict

_OPTIONS: Mapping[str, tuple[Verdict, ...]] = {
    "it stands as it is": ("exact", "holds"),
    "it is a rule of thumb": ("rule of thumb",),
    "it is true under one convention of several": ("convention",),
    "it needs care": ("needs care",),
}
"""What there is to choose, and the verdicts that are meant by it."""


def stands(rng: random.Random) -> Exercise:
    """One claim, as likely one that needs care as one that does not."""
    careful = rng.random() < 0.5
    claim = rng.choice([one for one in CLAIMS.values() if (one.verdict == "needs care") is careful])
    found = _finding(claim.id)
    why = f"{VERDICTS[claim.verdict]}: {found.value}"
    right = next(option for option, verdicts in _OPTIONS.items() if claim.verdict in verdicts)
    return choose(
        rng,
        f"{claim.text.rstrip('.')}. **Does that stand?**",
        (right, _sentences(f"{why[0].upper()}{why[1:]}", claim.remark)),
        [(option, _meaning(verdicts)) for option, verdicts in _OPTIONS.items() if option != right],
        explanations=found.explanations,
        shown=Link("lecture", {"claim": claim.id}),
    )


@lru_cache(maxsize=len(CLAIMS))
def _finding(claim: str) -> Finding:
    """What the check of a claim finds, which is the same every time."""
    return CLAIMS[claim].check()


def _meaning(verdicts: tuple[Verdict, ...]) -> str:
    return f"That would be {VERDICTS[verdicts[-1]]}."


def _sentences(*parts: str) -> str:
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


MAKERS: tuple[Maker, ...] = (stands,)
"""Every kind of exercise on the lecture."""
