"""What a claim is: its wording, the computation that checks it, the verdict, and where to play with it."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from core.fields import Link
from core.formula import Explanation
from core.limits import cached

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
"""The chapters, in the lecture's order."""

DOCUMENTS: Mapping[str, str] = {
    "lecture": "the lecture itself",
    "A": "notes in English on a blog",
    "B": "notes in English of August 2025",
    "C": "notes in English of December 2025",
    "D": "notes in Chinese of summer 2025",
}
"""What a claim's places are in: the lecture, and four sets of students' notes on it."""

_CLOSE, _ROUNDED = 0.25, 0.005
"""Shares by which a rule of thumb, and a number that was rounded, may be off."""

Show: TypeAlias = Callable[..., None]
"""What takes the place of ``print`` in an example."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check found: the recomputed value in words, whether it confirms the row, and how it was found.

    confirms: for ``needs care``, that the correction (and not the claim as stated) is what the computation gives.
    how: what was done, in words, where formulas do not say all of it. There are formulas or words, or both.
    compared: the number that is claimed and the one found, where the claim is about one number.
    shown: what stands where the claim's link leads, as it is written there; each text follows from what was found.
    """

    value: str
    confirms: bool
    explanations: tuple[Explanation, ...] = ()
    how: str = ""
    compared: tuple[float, float] | None = None
    shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.explanations or self.how):
            raise ValueError(f"a finding must say how it was found: {self.value}")

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that follows from two numbers; None where it is a judgement, whose reason the claim gives."""
        if self.compared is None:
            return None
        claimed, found = self.compared
        if claimed == found:
            return "exact"
        off = abs(claimed / found - 1)
        return "holds" if off < _ROUNDED else "rule of thumb" if off < _CLOSE else "needs care"


@dataclass(frozen=True, slots=True)
class Example:
    """A few lines of code that show a claim, or what is wrong with it. run: takes what shows values, as ``print``."""

    run: Callable[[Show], None]

    @property
    def code(self) -> str:
        """The lines, to be copied and run anywhere."""
        _, _, body = inspect.getsource(self.run).partition("-> None:\n")
        return textwrap.dedent(body).strip()

    @property
    def on_tensors(self) -> bool:
        """Whether they are operations on tensors alone, which can be followed one by one."""
        modules = set(re.findall(r"^\s*(?:import|from) (\S+)", self.code, re.MULTILINE))
        return bool(modules) and modules <= {"torch", "torch.nn.functional"} and "optim" not in self.code

    def output(self) -> str:
        """What they print, worked out once per process. Most import torch."""
        return _output(self.run)


@cached("results_kept")
def _output(run: Callable[[Show], None]) -> str:
    lines: list[str] = []

    def show(*values: Any) -> None:
        lines.append(" ".join(map(str, values)))

    run(show)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the lecture or of students' notes on it, in our words.

    number: its place, chapter and claim, such as ``2.14``. name: the claim in a few words. stands_in: the documents and
    sections that say it, by the names of `DOCUMENTS`. link: None where no page shows it.
    remark: the correction, the error or the condition behind the verdict; may be empty for ``exact`` and ``holds``.
    example: lines that show it; of what needs care, a counterexample.
    """

    id: str
    number: str
    group: Group
    name: str
    text: str
    verdict: Verdict
    check: Callable[[], Finding]
    link: Link | None
    remark: str
    stands_in: str
    example: Example | None


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
