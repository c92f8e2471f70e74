"""What a claim is: its wording, the computation that checks it, the verdict, and where to play with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from core.formula import Explanation

Verdict: TypeAlias = Literal["exact", "holds", "rule of thumb", "convention", "needs care"]
"""exact, of claims with numbers; holds as stated, or to the precision given; rule of thumb, error quantified; true
under one of several conventions; wrong or dated as stated, with the correction."""

VERDICTS: Mapping[Verdict, str] = {
    "exact": "true to the last digit",
    "holds": "true as stated, or to the precision given",
    "rule of thumb": "close, with the error shown",
    "convention": "true under one of several conventions",
    "needs care": "wrong or dated as stated; the correction is shown",
}

Group: TypeAlias = Literal["Numbers in memory", "Tensors", "Compute", "Training memory"]

GROUPS: tuple[Group, ...] = ("Numbers in memory", "Tensors", "Compute", "Training memory")


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check found: the recomputed value in words, whether it confirms the row, and how it was found.

    confirms: for ``needs care``, that the correction (and not the claim as stated) is what the computation gives.
    how: what was done, in words, where formulas do not say all of it. There are formulas or words, or both.
    """

    value: str
    confirms: bool
    explanations: tuple[Explanation, ...] = ()
    how: str = ""

    def __post_init__(self) -> None:
        if not (self.explanations or self.how):
            raise ValueError(f"a finding must say how it was found: {self.value}")


@dataclass(frozen=True, slots=True)
class Link:
    """The page (by id) that shows the claim, and the inputs (field name → text) that set it up there.

    at: the panel or other part that holds the evidence; empty where the answer itself does.
    """

    page: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    at: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the lecture or of students' notes on it, in our words.

    name: the claim in a few words. link: None where no page shows it.
    remark: the correction, the error or the condition behind the verdict; may be empty for ``exact`` and ``holds``.
    """

    id: str
    group: Group
    name: str
    text: str
    verdict: Verdict
    check: Callable[[], Finding]
    link: Link | None
    remark: str = ""


def titled(title: str, explanation: Explanation) -> Explanation:
    """The same explanation under a title that says what it is about."""
    return replace(explanation, title=title)


def summary(claims: Sequence[Claim]) -> str:
    """How many of ``claims`` stand and how many need care, in one sentence (``**bold**``)."""
    careful = sum(claim.verdict == "needs care" for claim in claims)
    if len(claims) == 1:
        return "This claim **needs care**." if careful else "This claim **stands**."
    good = len(claims) - careful
    if not good or not careful:
        every = "Both" if len(claims) == 2 else f"All **{len(claims)}**"
        return f"{every} claims **{'need care' if careful else 'stand'}**."
    return (
        f"Of **{len(claims)}** claims **{good}** {'stands' if good == 1 else 'stand'} and "
        f"**{careful}** {'needs' if careful == 1 else 'need'} care."
    )
